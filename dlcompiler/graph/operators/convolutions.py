"""Convolutions and transposed convolutions of one, two and three spatial dimensions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.graph.ir.types import ANY, Dimension, TensorType
from dlcompiler.graph.operators.attributes import (
    Attribute,
    dtype_or_same,
    extents,
    layout,
    layout_or_same,
    optional,
    padding,
    positive,
)
from dlcompiler.graph.operators.base import (
    Array,
    Attributes,
    CallTypes,
    GraphOperator,
    NotKnown,
    Pattern,
    Relation,
    Result,
)
from dlcompiler.graph.operators.layouts import (
    Extents,
    Layouts,
    extents_of,
    layout_of,
    layout_with,
    shape_in,
)
from dlcompiler.graph.operators.relations import (
    of_numbers,
    same_extent,
    windows_over,
)
from dlcompiler.graph.operators.values import converted, rounded, wide
from dlcompiler.ops.conv2d.shapes import Window
from dlcompiler.ops.convolutions import Convolution, Windows, convolve, convolve_transposed

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}
"""Number of spatial dimensions -> their letters."""


def window_along(attrs: Attributes, n: int, kernel: int) -> Window:
    """Return the window of a call along its spatial dimension `n`, over no image."""
    pads, rank = attrs["padding"], len(attrs["strides"])
    return Window(0, kernel, attrs["strides"][n], pads[n], pads[rank + n], attrs["dilation"][n])


def windows_of(attrs: Attributes, kernel: tuple[int, ...]) -> Windows:
    """Return the windows of a call."""
    rank = len(kernel)
    pads = attrs["padding"]
    return Windows(kernel, attrs["strides"], pads[:rank], pads[rank:], attrs["dilation"])


# -- types ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Weights:
    """What is known about the weights of a convolution."""

    channels: Dimension
    kernel: tuple[Dimension, ...]


def _weights(call: CallTypes, rank: int, inputs: Extents, is_transposed: bool) -> _Weights:
    """Infer the type of the weights, or check it; return the channels and the kernel."""
    attrs, spatial = call.attrs, SPATIAL[rank]
    stored = layout_with(call, "kernel_layout", f"OI{spatial}")
    groups, dtype = attrs["groups"], call.tensor(0).dtype
    split = "O" if is_transposed else "I"
    """The letter whose extent is that of one group."""
    if call.args[1] is None:
        if attrs["channels"] is None or attrs["kernel_size"] is None:
            raise NotKnown
        sizes: Extents = dict(zip(spatial, attrs["kernel_size"], strict=True))
        both: Extents = {"O": attrs["channels"], "I": inputs["C"]}
        both[split] = _share(call, both[split], groups)
        call.assign(1, TensorType(shape_in(call, stored, both | sizes), dtype))
    weight = call.tensor(1)
    if weight.dtype != dtype and not attrs["out_dtype"]:
        call.fail("the dtypes differ", hint="give an out_dtype, or cast one of them")
    found = extents_of(call, 1, stored)
    channels = _times(found["O"], groups) if is_transposed else found["O"]
    _check(call, "channels", attrs["channels"], channels)
    for n, letter in enumerate(spatial):
        size = attrs["kernel_size"]
        _check(call, f"kernel_size {letter}", size and size[n], found[letter])
    expected = found["I"] if is_transposed else _times(found["I"], groups)
    if not same_extent(expected, inputs["C"]):
        call.fail(
            f"the data has {inputs['C']} channels, the weight is for {expected}",
            expected=None if groups == 1 else f"{groups} groups of equal numbers of channels",
        )
    for extent in (channels, inputs["C"]):
        _share(call, extent, groups)
    kernel = tuple(found[letter] for letter in spatial)
    if 0 in kernel:
        call.fail("the weight has a kernel without elements")
    return _Weights(channels, kernel)


def _share(call: CallTypes, extent: Dimension, groups: int) -> Dimension:
    """Return the channels of a group."""
    if not isinstance(extent, int):
        return ANY
    if extent % groups:
        call.fail(f"{groups} groups do not divide {extent} channels")
    return extent // groups


def _times(extent: Dimension, factor: int) -> Dimension:
    return extent * factor if isinstance(extent, int) else ANY


def _check(call: CallTypes, name: str, wanted: int | None, found: Dimension) -> None:
    if wanted is not None and not same_extent(wanted, found):
        call.fail(f"{name} is {wanted}, the weight has {found}")


def _result(call: CallTypes, sizes: Extents) -> TensorType:
    spatial = [letter for letter in sizes if letter not in "NC"]
    attrs = {**call.attrs, "out_layout": call.attrs["out_layout"] or call.attrs["data_layout"]}
    named = CallTypes(call.operator, call.args, attrs, call.call)
    stored = layout_with(named, "out_layout", "NC" + "".join(spatial))
    dtype = call.attrs["out_dtype"] or call.tensor(0).dtype
    if dtypes.is_bool(dtype):
        call.fail(f"out_dtype is {dtype}", expected="a dtype of numbers")
    return TensorType(shape_in(call, stored, sizes), dtype)


def convolved(rank: int) -> Relation:
    """Return the relation of convolutions with so many spatial dimensions."""

    def relation(call: CallTypes) -> TensorType:
        of_numbers(call)
        spatial = SPATIAL[rank]
        inputs = extents_of(call, 0, layout_with(call, "data_layout", f"NC{spatial}"))
        weights = _weights(call, rank, inputs, is_transposed=False)
        out: Extents = {"N": inputs["N"], "C": weights.channels}
        for n, (letter, size) in enumerate(zip(spatial, weights.kernel, strict=True)):
            out[letter] = ANY
            if isinstance(size, int):
                window = window_along(call.attrs, n, size)
                out[letter] = windows_over(call, inputs[letter], window, what=letter)
        return _result(call, out)

    return relation


def _transposed(rank: int) -> Relation:
    def relation(call: CallTypes) -> TensorType:
        of_numbers(call)
        spatial, attrs = SPATIAL[rank], call.attrs
        inputs = extents_of(call, 0, layout_with(call, "data_layout", f"NC{spatial}"))
        weights = _weights(call, rank, inputs, is_transposed=True)
        out: Extents = {"N": inputs["N"], "C": weights.channels}
        for n, (letter, size) in enumerate(zip(spatial, weights.kernel, strict=True)):
            extra = attrs["output_padding"][n]
            if extra >= max(attrs["strides"][n], attrs["dilation"][n]):
                call.fail(
                    f"output_padding is {attrs['output_padding']}",
                    expected="less than the strides, or than the dilation",
                )
            out[letter] = _grown(call, letter, inputs[letter], n, size)
        return _result(call, out)

    return relation


def _grown(call: CallTypes, letter: str, size: Dimension, n: int, kernel: Dimension) -> Dimension:
    """Return an extent of the result of a transposed convolution."""
    if not isinstance(size, int) or not isinstance(kernel, int):
        return ANY
    window = window_along(call.attrs, n, kernel)
    full = (size - 1) * window.stride + window.reach if size else 0
    found: int = full - window.before - window.after + call.attrs["output_padding"][n]
    if found < 0 or not size:
        call.fail(
            f"dimension {letter} of the result would have the extent {found}",
            hint="less padding, or a larger image",
        )
    return found


# -- values ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Plain:
    """The operands of a convolution in the order of PyTorch, with the dtype of the sums."""

    data: Array
    weight: Array
    windows: Windows
    groups: int

    @staticmethod
    def of(call: Result, data: Array, weight: Array) -> _Plain:
        """Return the operands of a call."""
        attrs, rank = call.attrs, len(call.attrs["strides"])
        dtype = call.tensor.dtype
        spatial = SPATIAL[rank]
        images = layout_of(attrs["data_layout"]).plain(data, f"NC{spatial}")
        order = f"IO{spatial}" if "output_padding" in attrs else f"OI{spatial}"
        kernels = layout_of(attrs["kernel_layout"]).plain(weight, order)
        windows = windows_of(attrs, kernels.shape[2:])
        return _Plain(
            wide(converted(images, dtype)), wide(converted(kernels, dtype)), windows,
            attrs["groups"],
        )  # fmt: skip

    def taps(self) -> Any:
        """Yield the position of each element of a window."""
        return itertools.product(*map(range, self.windows.kernel))

    def matrices(self) -> Array:
        """Return the weights by group: ``(groups, first / groups, second, …)``."""
        first, *rest = self.weight.shape
        return self.weight.reshape(self.groups, first // self.groups, *rest)

    def images(self, data: Array) -> Array:
        """Return images by group: ``(n, groups, channels of a group, elements)``."""
        n, c = data.shape[:2]
        elements = int(np.prod(data.shape[2:]))
        return data.reshape(n, self.groups, c // self.groups, elements)


def _store(call: Result, plain: Array) -> Array:
    attrs, rank = call.attrs, len(call.attrs["strides"])
    stored = layout_of(attrs["out_layout"] or attrs["data_layout"])
    return rounded(stored.store(plain, f"NC{SPATIAL[rank]}"), call.tensor)


def evaluate_convolution(call: Result, data: Array, weight: Array) -> Array:
    """Add up, for each element of a window, a product of matrices."""
    of = _Plain.of(call, data, weight)
    windows, sizes = of.windows, of.data.shape[2:]
    edges = [(0, 0), (0, 0), *zip(windows.before, windows.after, strict=True)]
    image = np.pad(of.data, edges)
    out = windows.out(sizes)
    n, channels = len(image), len(of.weight)
    elements = int(np.prod(out))
    total = np.zeros((n, of.groups, channels // of.groups, elements), image.dtype)
    for tap in of.taps():
        seen = image[_strided(windows, tap, out)]
        total += of.matrices()[(..., *tap)] @ of.images(seen)
    return _store(call, total.reshape(n, channels, *out))


def _strided(windows: Windows, tap: tuple[int, ...], out: tuple[int, ...]) -> Any:
    """Return which elements of the padded image an element of the windows reads."""
    found: list[Any] = [...]
    for place, count, step, distance in zip(
        tap, out, windows.strides, windows.dilation, strict=True
    ):
        first = place * distance
        found.append(slice(first, first + (count - 1) * step + 1 if count else first, step))
    return tuple(found)


def _evaluate_transposed(call: Result, data: Array, weight: Array) -> Array:
    """Add each element of the data, times the kernel, to the result."""
    of = _Plain.of(call, data, weight)
    windows, sizes = of.windows, of.data.shape[2:]
    extra = call.attrs["output_padding"]
    full = [(size - 1) * step + reach + more for size, step, reach, more in zip(
        sizes, windows.strides, windows.reach, extra, strict=True)]  # fmt: skip
    n, channels = len(of.data), of.weight.shape[1] * of.groups
    total = np.zeros((n, channels, *full), of.data.dtype)
    for tap in of.taps():
        by_group = of.matrices()[(..., *tap)].transpose(0, 2, 1) @ of.images(of.data)
        total[_strided(windows, tap, sizes)] += by_group.reshape(n, channels, *sizes)
    kept: Any = [slice(first, size - last) for first, last, size in zip(
        windows.before, windows.after, full, strict=True)]  # fmt: skip
    return _store(call, total[(..., *kept)])


# -- definitions ----------------------------------------------------------------------------------


def convolution_of(call: Result) -> Convolution:
    """Return what a call computes, in the words of the library."""
    attrs = call.attrs
    rank = len(attrs["strides"])
    weight = call.inputs[1]
    assert isinstance(weight, TensorType)
    kernels = layout_of(attrs["kernel_layout"])
    sizes = kernels.extents(weight.shape)
    kernel = tuple(sizes[letter] for letter in SPATIAL[rank])
    data = call.inputs[0]
    assert isinstance(data, TensorType)
    dtype = call.tensor.dtype
    is_same = dtype == data.dtype == weight.dtype
    return Convolution(
        windows_of(attrs, kernel), attrs["data_layout"], attrs["kernel_layout"],
        attrs["out_layout"], attrs["groups"], None if is_same else dtype,
    )  # fmt: skip


def _define(name: str) -> Callable[..., te.Tensor]:
    return lambda call, data, weight: convolve(data, weight, convolution_of(call), name)


def _define_transposed(name: str) -> Callable[..., te.Tensor]:
    return lambda call, data, weight: convolve_transposed(
        data, weight, convolution_of(call), call.attrs["output_padding"], name
    )


# -- layouts --------------------------------------------------------------------------------------


def convolution_layouts(call: Result, current: tuple[str, ...], wanted: str) -> Layouts | None:
    """Return the layouts for images in a layout: the weights follow its blocks."""
    del current
    spatial = SPATIAL[len(call.attrs["strides"])]
    images = layout_of(wanted)
    if sorted(images.dimensions) != sorted(f"NC{spatial}"):
        return None
    kernel = kernel_layout_for(call, wanted)
    if kernel is None:
        return None
    attrs = {"data_layout": wanted, "kernel_layout": kernel, "out_layout": ""}
    return Layouts((wanted, kernel), (wanted,), attrs)


def kernel_layout_for(call: Result, wanted: str) -> str | None:
    """Return the layout of the weights for a layout of the images; None if blocks do not divide."""
    images, spatial = layout_of(wanted), SPATIAL[len(call.attrs["strides"])]
    block = images.factor("C")
    is_transposed = "output_padding" in call.attrs
    if block == 1:
        is_last = images.index("C") > images.index(spatial[-1])
        first = "IO" if is_transposed else "OI"
        return f"{spatial}IO" if is_last else f"{first}{spatial}"
    if is_transposed:
        return None
    weight = call.inputs[1]
    assert isinstance(weight, TensorType)
    found = layout_of(call.attrs["kernel_layout"]).extents(weight.shape)
    if found["O"] % block or found["I"] * call.attrs["groups"] % block:
        return None
    if found["I"] % block:  # a group has fewer input channels than a block, as in depthwise ones
        return f"OI{spatial}{block}o" if found["I"] == 1 else None
    return f"OI{spatial}{block}i{block}o"


# -- the table ------------------------------------------------------------------------------------


def convolution_attributes(rank: int) -> tuple[Attribute, ...]:
    """Return the attributes of convolutions with so many spatial dimensions."""
    spatial = SPATIAL[rank]
    return (
        Attribute("strides", extents(rank), (1,) * rank, "distance between windows"),
        Attribute("padding", padding(rank), (0,) * 2 * rank, "zeros around the images"),
        Attribute("dilation", extents(rank), (1,) * rank, "distance between elements of a window"),
        Attribute("groups", positive, 1, "groups of channels, each with weights of its own"),
        Attribute("channels", optional(positive), None, "output channels; None: of the weight"),
        Attribute("kernel_size", optional(extents(rank)), None, "of a window; None: of the weight"),
        Attribute("data_layout", layout, f"NC{spatial}", "layout of the images"),
        Attribute("kernel_layout", layout, f"OI{spatial}", "layout of the weights"),
        Attribute("out_layout", layout_or_same, "", "layout of the result"),
        Attribute("out_dtype", dtype_or_same, "", "dtype of products, sums and result"),
    )


def _transposed_attributes(rank: int) -> tuple[Attribute, ...]:
    named = {attribute.name: attribute for attribute in convolution_attributes(rank)}
    named["padding"] = Attribute(
        "padding", padding(rank), (0,) * 2 * rank, "elements cut off from the result's border"
    )
    named["kernel_layout"] = Attribute(
        "kernel_layout", layout, f"IO{SPATIAL[rank]}", "layout of the weights"
    )
    named["output_padding"] = Attribute(
        "output_padding", extents(rank, 0), (0,) * rank, "more elements behind the result"
    )
    order = ("strides", "padding", "dilation", "channels", "kernel_size", "groups", "data_layout",
             "kernel_layout", "out_layout", "output_padding", "out_dtype")  # fmt: skip
    return tuple(named[name] for name in order)


def _convolution(rank: int) -> GraphOperator:
    name = f"conv{rank}d"
    return GraphOperator(
        f"nn.{name}", ("data", "weight"), convolved(rank), evaluate_convolution, Pattern.ANCHOR,
        _define(name), convolution_attributes(rank),
        "Sums of products of weights and windows of images; kernels are not flipped.",
        convolution_layouts, kernel="conv2d" if rank == 2 else "",
    )  # fmt: skip


def _transposed_convolution(rank: int) -> GraphOperator:
    name = f"conv{rank}d_transpose"
    return GraphOperator(
        f"nn.{name}", ("data", "weight"), _transposed(rank), _evaluate_transposed, Pattern.ANCHOR,
        _define_transposed(name), _transposed_attributes(rank),
        "The gradient of a convolution for its data: each element, times the kernel, is added up.",
        convolution_layouts,
    )  # fmt: skip


TABLE = (
    *(_convolution(rank) for rank in SPATIAL),
    *(_transposed_convolution(rank) for rank in SPATIAL),
)
"""The operators of this module."""
