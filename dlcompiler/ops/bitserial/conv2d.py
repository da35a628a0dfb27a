"""The operator bitserial_conv2d: images of 1 to 4 bits by weights of 1 to 4 bits.

Numbers, weights and results are those of `bitserial_dense`; padding is 0, also for bipolar weights.
The bits of neighbouring channels are packed in words. In NHWC these channels lie side by side in
memory; in NCHW the words of a row of pixels are packed side by side. Planes of images have the
shape ``(n, h, words, bits, w)`` for both; a border of zeros is added to them, not to the image.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.errors import TuningError
from dlcompiler.ops.base import Operator, Reference, by_device, given_weight
from dlcompiler.ops.bitserial.encoding import (
    DTYPE,
    RESULT,
    Encoding,
    bit_of,
    checked,
    drawn,
    ones,
    packed_shape,
    packed_weight,
)
from dlcompiler.ops.bitserial.stages import filled, sums_of, value_of
from dlcompiler.ops.conv2d import shapes
from dlcompiler.ops.conv2d.layouts import Layout
from dlcompiler.ops.conv2d.shapes import Shape, Window
from dlcompiler.ops.helpers import over, tensor
from dlcompiler.ops.rounding import Array
from dlcompiler.space import Workload
from dlcompiler.te import Tensor

NAME = "bitserial_conv2d"
LAYOUTS = ("NCHW", "NHWC")
BYTE = 8
"""Bits of a byte; [1]."""


def workload(
    *,
    data_bits: int = 1,
    weight_bits: int = 1,
    weights: str = "unipolar",
    layout: str = "NCHW",
    word: str = "",
    block: int = 0,
    groups: int = 1,
    **window: Any,
) -> Workload:
    """Return the workload of `bitserial_conv2d`.

    Parameters
    ----------
    data_bits, weight_bits, weights, word, block
        As of `bitserial_dense`. Images are uint8, of which the lowest bits count; weights are codes
        of shape ``(o, c, kh, kw)``; results are int32, and wrap. Padding is 0.
    layout : {"NCHW", "NHWC"}
        Of images and results.
    groups : int
        1: convolutions in groups are not supported.
    **window
        ``n``, ``c``, ``h``, ``w``, ``o``, ``kernel``, ``stride``, ``padding``, ``dilation``: see
        `shapes.workload`.
    """
    if layout not in LAYOUTS:
        raise shapes.refused(NAME, "layout", layout, ", ".join(LAYOUTS))
    if groups != 1:
        raise TuningError(
            NAME, "convolutions in groups are not supported", got=f"groups={groups!r}",
            expected="groups=1", hint="a bitserial_conv2d for each group",
        )  # fmt: skip
    found = shapes.workload(NAME, **window, dtype=DTYPE, epilogue="", allowed=(DTYPE,))
    more = checked(NAME, terms=found["c"], outputs=found["o"], data_bits=data_bits,
                   weight_bits=weight_bits, weights=weights, word=word, block=block)  # fmt: skip
    kept = {name: value for name, value in found.as_dict().items() if name != "epilogue"}
    return Workload.of(NAME, **kept, layout=layout, **more)


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``data``, the packed ``weight``, and ``result``; see `stages`."""
    shape, layout = shapes.shape_of(workload), Layout(str(workload["layout"]))
    encoding = Encoding.of(workload)
    data = te.placeholder(layout.shape(shape.image), DTYPE, "data")
    weight = te.placeholder(packed_shape(encoding, shape.weight), encoding.word, "weight")
    image = _framed(shape, _planes(shape, layout, data, encoding))
    sums = sums_of(_counts(shape, image, weight), encoding, _sums_shape(shape, encoding), NAME)
    totals = _totals(shape, image) if encoding.is_bipolar else None
    block = encoding.block

    def element(*i: Any) -> Any:
        n, o, y, x = layout.element(*i)
        total = sums[n, o // block, y, x, o % block]
        return value_of(encoding, total, None if totals is None else totals[n, y, x])

    tag = f"{NAME}:{layout.name}"
    return data, weight, tensor(layout.shape(shape.result), element, "result", tag)


def _sums_shape(shape: Shape, encoding: Encoding) -> tuple[int, ...]:
    n, o, height, width = shape.result
    return n, -(-o // encoding.block), height, width, encoding.block


def _planes(shape: Shape, layout: Layout, data: Tensor, encoding: Encoding) -> Tensor:
    """Define the bits of an image in words ``(n, h, words, bits, w)``."""
    n, c, h, w = shape.image
    width, word = encoding.width, encoding.word
    extents = (n, h, encoding.words(c), encoding.data_bits, w)
    if layout.name == "NHWC":
        read, t = filled(data, width, NAME), over(width, "t")

        def packed(i: Any, y: Any, group: Any, plane: Any, x: Any) -> Any:
            return te.sum(bit_of(read[i, y, x, group * width + t], plane, t, word), axis=t)

        return tensor(extents, packed, f"{NAME}.planes")
    read = _bytes(shape, data, encoding)
    place = over(width // BYTE, "t")

    def joined(i: Any, y: Any, group: Any, plane: Any, x: Any) -> Any:
        byte = read[i, group * (width // BYTE) + place, plane, y * w + x].astype(word)
        return te.sum(byte << (place * BYTE).astype(word), axis=place)

    return tensor(extents, joined, f"{NAME}.planes")


def _bytes(shape: Shape, data: Tensor, encoding: Encoding) -> Tensor:
    """Define the bits of eight channels at a time, ``(n, c / 8, bits, h * w)``, for NCHW.

    A vector has many more bytes than words, and a channel's pixels are neighbours.
    """
    n, c, h, w = shape.image
    t = over(BYTE, "t")

    def element(i: Any, group: Any, plane: Any, pixel: Any) -> Any:
        channel = group * BYTE + t
        bit = bit_of(data[i, channel, pixel // w, pixel % w], plane, t, DTYPE)
        if c % encoding.width:
            bit = te.if_then_else(channel < c, bit, te.const(0, DTYPE))
        return te.sum(bit, axis=t)

    groups = encoding.words(c) * encoding.width // BYTE
    return tensor((n, groups, encoding.data_bits, h * w), element, f"{NAME}.bytes")


def _framed(shape: Shape, planes: Tensor) -> Tensor:
    """Define the planes with the border of zeros that windows reach into; or without elements."""
    rows, columns = shape.rows, shape.columns
    if rows.is_inside and columns.is_inside and not (rows.before or columns.before):
        return planes
    n, _, words, bits, _ = planes.static_shape
    zero = te.const(0, planes.dtype)

    def element(i: Any, y: Any, word: Any, plane: Any, x: Any) -> Any:
        row, column = y - rows.before, x - columns.before
        value: Any = planes[i, row, word, plane, column]
        # Nested choices: the row is tested once per row, the columns become constant masks.
        for conditions in (shapes.inside(columns, column), shapes.inside(rows, row)):
            if conditions:
                value = te.if_then_else(te.all(*conditions), value, zero)
        return value

    return tensor((n, rows.span, words, bits, columns.span), element, f"{NAME}.image")


def _seen(window: Window, place: Any, tap: Any) -> Any:
    """Return the index in a framed image that a tap of a window reads."""
    return place * window.stride + tap * window.dilation


def _counts(shape: Shape, image: Tensor, weight: Tensor) -> Tensor:
    rows, columns = shape.rows, shape.columns
    blocks, words, kh, kw, weight_bits, block = weight.static_shape
    w, dy, dx = (over(extent, name) for extent, name in ((words, "w"), (kh, "dy"), (kw, "dx")))

    def element(n: Any, b: Any, y: Any, x: Any, p: Any, q: Any, v: Any) -> Any:
        row, column = _seen(rows, y, dy), _seen(columns, x, dx)
        both = ones(image, (n, row, w, p, column), weight[b, w, dy, dx, q, v])
        return te.sum(both, axis=[w, dy, dx])

    n, _, height, width = shape.result
    pairs = image.static_shape[3], weight_bits
    return tensor((n, blocks, height, width, *pairs, block), element, f"{NAME}.counts")


def _totals(shape: Shape, image: Tensor) -> Tensor:
    """Define the sums of the data of each window, by those of each pixel."""
    n, height, words, bits, width = image.static_shape
    rows, columns = shape.rows, shape.columns
    w, plane = over(words, "w"), over(bits, "p")

    def pixel(i: Any, y: Any, x: Any) -> Any:
        bit = ones(image, (i, y, w, plane, x)).astype(RESULT) << plane.astype(RESULT)
        return te.sum(bit, axis=[w, plane])

    pixels = tensor((n, height, width), pixel, f"{NAME}.pixels")
    dy, dx = over(rows.kernel, "dy"), over(columns.kernel, "dx")

    def window(i: Any, y: Any, x: Any) -> Any:
        row, column = _seen(rows, y, dy), _seen(columns, x, dx)
        return te.sum(pixels[i, row, column], axis=[dy, dx])

    return tensor((n, rows.out, columns.out), window, f"{NAME}.totals")


def prepack(workload: Workload, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return the inputs with the codes of weights ``(o, c, kh, kw)`` packed."""
    codes = given_weight(workload, arrays, shapes.shape_of(workload).weight)
    return {**arrays, "weight": packed_weight(Encoding.of(workload), codes)}


def reference(workload: Workload, seed: int) -> Reference:
    """Return inputs and the exact result."""
    shape, layout = shapes.shape_of(workload), Layout(str(workload["layout"]))
    encoding, generator = Encoding.of(workload), np.random.default_rng(seed)
    data = drawn(shape.image, encoding.data_bits, generator)
    weight = drawn(shape.weight, encoding.weight_bits, generator)
    exact = shapes.convolve(shape, data, encoding.values(weight)).astype(np.int64)
    made = layout.store(exact.astype(RESULT))
    plain = {"data": layout.store(data), "weight": weight}
    bound = {"result": np.zeros(made.shape)}
    return Reference(prepack(workload, plain), {"result": made}, bound, plain)


BITSERIAL_CONV2D = Operator(
    NAME, workload, define, reference,
    by_device({"cpu": "dlcompiler.ops.bitserial.schedule:CPU"}), prepack,
)  # fmt: skip
