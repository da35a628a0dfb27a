"""The operators conv2d_packed and dense_packed: sums of products of int8 blocks, with a tail.

A dense layer is a convolution of images of one row: its rows are the columns of the image, and its
kernel is 1 × 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler import te
from dlcompiler.errors import TuningError
from dlcompiler.ops.base import Operator, Reference, by_device
from dlcompiler.ops.helpers import tensor
from dlcompiler.ops.packed.tail import checked_tail, tail_of
from dlcompiler.space import Workload
from dlcompiler.te import Tensor

NAME = "conv2d_packed"
DENSE_NAME = "dense_packed"
BLOCK = 16
MOST = 1 << 20
PADDED = "padded"
"""Name of the stage with zeros around images."""


@dataclass(frozen=True, slots=True)
class Extents:
    """The extents of a convolution; channels are in blocks."""

    images: int
    channels: int
    """Blocks of input channels; [1]."""
    filters: int
    """Blocks of output channels; [1]."""
    height: int
    width: int
    kernel: tuple[int, int]
    stride: int
    padding: tuple[int, int]
    groups: int = 1
    """Groups of channels, each with filters of its own; [1]."""

    @property
    def depth(self) -> int:
        """Blocks of input channels that a filter reads; [1]."""
        return self.channels // self.groups

    @property
    def out(self) -> tuple[int, int]:
        """Height and width of the result."""
        sizes = zip((self.height, self.width), self.kernel, self.padding, strict=True)
        rows, columns = ((size + 2 * pad - k) // self.stride + 1 for size, k, pad in sizes)
        return rows, columns

    @property
    def updates(self) -> int:
        """Products of blocks; [1]."""
        rows, columns = self.out
        taps = self.kernel[0] * self.kernel[1]
        return self.images * self.depth * self.filters * rows * columns * taps


def extents_of(workload: Workload) -> Extents:
    """Return the extents of a workload, of either operator."""
    w = workload
    if w.op == DENSE_NAME:
        return Extents(1, w["k"] // BLOCK, w["n"] // BLOCK, 1, w["m"], (1, 1), 1, (0, 0))
    return Extents(
        w["n"], w["c"] // BLOCK, w["o"] // BLOCK, w["h"], w["w"], (w["kernel_h"], w["kernel_w"]),
        w["stride"], (w["pad_h"], w["pad_w"]), w["groups"],
    )  # fmt: skip


def workload(
    *,
    c: int,
    h: int,
    w: int,
    o: int,
    kernel: int | tuple[int, int],
    n: int = 1,
    stride: int = 1,
    padding: int | tuple[int, int] = 0,
    groups: int = 1,
    shift: int = 8,
    bias: int = 0,
    residual: int = 0,
    relu: int = 1,
) -> Workload:
    """Return the workload of a convolution of int8 blocks.

    Parameters
    ----------
    c, o : int
        Input and output channels, multiples of 16.
    h, w : int
        Height and width of the images.
    kernel, padding : int or tuple of int
        Extents of the kernel, and zeros on each side; (rows, columns).
    n : int
        Number of images.
    stride : int
        Distance of neighbouring windows.
    groups : int
        Groups of channels; each has whole blocks of input and output channels.
    shift, bias, residual, relu : int
        The tail: see `tail.Tail`.

    Raises
    ------
    TuningError
        A parameter is not valid.
    """
    kernel_h, kernel_w = _pair(kernel, "kernel")
    pad_h, pad_w = _pair(padding, "padding")
    positive = {
        "n": n, "c": c, "h": h, "w": w, "o": o, "kernel_h": kernel_h, "kernel_w": kernel_w,
        "stride": stride, "groups": groups,
    }  # fmt: skip
    for name, value in positive.items():
        _require(NAME, name, value, 1)
    for name, value in (("pad_h", pad_h), ("pad_w", pad_w)):
        _require(NAME, name, value, 0)
    _check_blocks(NAME, c=c, o=o)
    if c % (BLOCK * groups) or o % (BLOCK * groups):
        raise TuningError(
            f"workload of {NAME}", "a group has no whole blocks of channels",
            got=f"c={c}, o={o}, groups={groups}", expected=f"multiples of {BLOCK} in each group",
        )  # fmt: skip
    if h + 2 * pad_h < kernel_h or w + 2 * pad_w < kernel_w:
        raise TuningError(
            f"workload of {NAME}", "the kernel is larger than the padded image",
            got=f"{kernel_h}x{kernel_w} on {h + 2 * pad_h}x{w + 2 * pad_w}",
        )  # fmt: skip
    tail = checked_tail(NAME, shift=shift, bias=bias, residual=residual, relu=relu)
    return Workload.of(NAME, **positive, pad_h=pad_h, pad_w=pad_w, **tail)


def dense_workload(
    *, m: int, n: int, k: int, shift: int = 8, bias: int = 0, residual: int = 0, relu: int = 1
) -> Workload:
    """Return the workload of a dense layer of int8 blocks: m rows, k inputs, n outputs.

    Parameters
    ----------
    m : int
        Rows.
    n, k : int
        Outputs and inputs, multiples of 16.
    shift, bias, residual, relu : int
        The tail: see `tail.Tail`.

    Raises
    ------
    TuningError
        A parameter is not valid.
    """
    for name, value in (("m", m), ("n", n), ("k", k)):
        _require(DENSE_NAME, name, value, 1)
    _check_blocks(DENSE_NAME, n=n, k=k)
    tail = checked_tail(DENSE_NAME, shift=shift, bias=bias, residual=residual, relu=relu)
    return Workload.of(DENSE_NAME, m=m, n=n, k=k, **tail)


def _pair(value: Any, name: str) -> tuple[Any, Any]:
    if isinstance(value, tuple) and len(value) == 2:
        return value
    if type(value) is int:
        return value, value
    raise TuningError(
        f"workload of {NAME}", f"{name} is no size", got=repr(value), expected="an int, or two"
    )


def _require(op: str, name: str, value: Any, least: int) -> None:
    if type(value) is not int or not least <= value <= MOST:
        raise TuningError(
            f"workload of {op}", f"{name} is out of range", got=repr(value),
            expected=f"an int from {least} to {MOST}",
        )  # fmt: skip


def _check_blocks(op: str, **channels: int) -> None:
    for name, value in channels.items():
        if value % BLOCK:
            raise TuningError(
                f"workload of {op}", f"{name} is no multiple of a block", got=str(value),
                expected=f"a multiple of {BLOCK}", hint="add channels of zeros",
            )  # fmt: skip


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``data``, ``weight``, the tensors of the tail, and the result."""
    e, tail = extents_of(workload), tail_of(workload)
    data = te.placeholder((e.images, e.channels, e.height, e.width, 1, BLOCK), "int8", "data")
    weight = te.placeholder((e.filters, e.depth, *e.kernel, BLOCK, BLOCK), "int8", "weight")
    bias = te.placeholder((e.filters, 1, BLOCK), "int32", "bias") if tail.bias else None
    shape = (e.images, e.filters, *e.out, 1, BLOCK)
    residual = te.placeholder(shape, "int32", "residual") if tail.residual else None
    given = [tensor for tensor in (bias, residual) if tensor is not None]
    return data, weight, *given, computed(workload, data, weight, bias, residual)


def computed(
    workload: Workload,
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    residual: Tensor | None = None,
) -> Tensor:
    """Return the result of given tensors in blocks.

    Parameters
    ----------
    workload : Workload
        Of `workload` or `dense_workload`.
    data, weight, bias, residual : Tensor
        As `define` makes them.
    """
    e = extents_of(workload)
    image = _padded(data, e)
    c, i = te.reduce_axis((0, e.depth), "c"), te.reduce_axis((0, BLOCK), "i")
    p, q = te.reduce_axis((0, e.kernel[0]), "p"), te.reduce_axis((0, e.kernel[1]), "q")

    def element(n: Any, o: Any, y: Any, x: Any, r: Any, j: Any) -> Any:
        channel = c if e.groups == 1 else o // (e.filters // e.groups) * e.depth + c
        left = image[n, channel, y * e.stride + p, x * e.stride + q, r, i].astype("int32")
        return te.sum(left * weight[o, c, p, q, j, i].astype("int32"), axis=[c, p, q, i])

    sums = tensor((e.images, e.filters, *e.out, 1, BLOCK), element, "sums")
    return tail_of(workload).stages(sums, bias, residual)


def _padded(data: Tensor, e: Extents) -> Tensor:
    """Return the images with zeros around them; without padding, the images."""
    above, left = e.padding
    if not above and not left:
        return data
    n, c, height, width, b, block = data.shape

    def element(i: Any, o: Any, y: Any, x: Any, r: Any, j: Any) -> Any:
        inside = te.all(
            y >= above, y < e.height + above, x >= left, x < e.width + left,
        )  # fmt: skip
        return te.if_then_else(inside, data[i, o, y - above, x - left, r, j], te.const(0, "int8"))

    shape = (n, c, height + 2 * above, width + 2 * left, b, block)
    return tensor(shape, element, PADDED)


def reference(workload: Workload, seed: int) -> Reference:
    """Return random blocks and the exact result."""
    e, generator = extents_of(workload), np.random.default_rng(seed)
    arrays: dict[str, npt.NDArray[Any]] = {}
    *inputs, result = define(workload)
    for given in inputs:
        most = 127 if given.dtype == "int8" else 1 << 12
        low, high, shape = -most - 1, most, given.static_shape
        values = generator.integers(low, high, shape, given.dtype, endpoint=True)
        arrays[given.op.name] = values
    above, left = e.padding
    pads = ((0, 0), (0, 0), (above, above), (left, left), (0, 0), (0, 0))
    image = np.pad(arrays["data"].astype(np.float64), pads)
    weight = arrays["weight"].astype(np.float64)
    rows, columns = e.out
    sums = np.zeros((e.images, e.filters, rows, columns, 1, BLOCK))
    for p, q in np.ndindex(*e.kernel):
        seen = image[:, :, p :: e.stride, q :: e.stride][:, :, :rows, :columns]
        grouped = seen.reshape(e.images, e.groups, e.depth, rows, columns, 1, BLOCK)
        taps = weight[:, :, p, q].reshape(e.groups, -1, e.depth, BLOCK, BLOCK)
        found = np.einsum("ngcyxbi,gocji->ngoyxbj", grouped, taps, optimize=True)
        sums += found.reshape(sums.shape)
    expected = tail_of(workload).exact(sums.astype(np.int64), arrays)
    name = result.op.name
    return Reference(arrays, {name: expected}, {name: np.zeros(expected.shape)})


CONV2D_PACKED = Operator(
    NAME, workload, define, reference,
    by_device({"accelerator": "dlcompiler.ops.packed.schedule:SCHEDULE"}),
)  # fmt: skip
DENSE_PACKED = Operator(
    DENSE_NAME, dense_workload, define, reference,
    by_device({"accelerator": "dlcompiler.ops.packed.schedule:SCHEDULE"}),
)  # fmt: skip
