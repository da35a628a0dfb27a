"""The operator max_pool2d_packed: the largest elements of windows of int8 blocks.

It is exact. Padding has no elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.errors import TuningError
from dlcompiler.ops.base import Operator, Reference, by_device
from dlcompiler.ops.helpers import over, tensor
from dlcompiler.ops.packed.avg_pool import pool_window
from dlcompiler.ops.packed.blocks import STANDARD, Sizes
from dlcompiler.ops.packed.extents import MAX_POOL, Extents, extents_of
from dlcompiler.ops.packed.reference import blocks_of_images, unblocked
from dlcompiler.ops.packed.sums import identity, padded
from dlcompiler.space import Workload
from dlcompiler.te import Tensor

LEAST = -128
"""The smallest element of int8."""


def workload(
    *, c: int, h: int, w: int, kernel: Sizes, n: int = 1, stride: int = 1, padding: Sizes = 0,
    block: str = str(STANDARD),
) -> Workload:  # fmt: skip
    """Return the workload of the largest elements of windows of int8 blocks.

    Parameters
    ----------
    padding : int or tuple of int
        Rows and columns without elements on each side, less than the window has.
    c, h, w, kernel, n, stride, block
        See `conv2d.workload`.

    Raises
    ------
    TuningError
        A parameter is not valid.
    """
    blocks, image = pool_window(
        MAX_POOL, n=n, c=c, h=h, w=w, kernel=kernel, stride=stride, padding=padding, block=block
    )
    if image["pad_h"] >= image["kernel_h"] or image["pad_w"] >= image["kernel_w"]:
        raise TuningError(
            f"workload of {MAX_POOL}", "a window has no elements", got=f"padding={padding}",
            expected="less padding than the window has rows and columns",
        )  # fmt: skip
    return Workload.of(MAX_POOL, **image, block=str(blocks))


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``data`` and the result, both as `sums.define` has them."""
    e = extents_of(workload)
    shape = (e.images, e.channels, e.height, e.width, e.blocks.batch, e.blocks.inputs)
    data = te.placeholder(shape, "int8", "data")
    return data, largest(workload, data)


def largest(workload: Workload, data: Tensor) -> Tensor:
    """Return the largest elements of the windows of given blocks.

    The stage ``wide`` multiplies by ones: the GEMM core widens elements to int32, in which the ALU
    compares. A load of int32 would move four times the bytes.
    """
    e = extents_of(workload)
    image, ones = padded(data, e), identity(e)
    i, p, q = (over(n, name) for n, name in zip((e.blocks.inputs, *e.kernel), "ipq", strict=True))

    def widened(n: Any, o: Any, y: Any, x: Any, r: Any, j: Any) -> Any:
        seen = image[n, o, y, x, r, i].astype("int32")
        return te.sum(seen * ones[j, i].astype("int32"), axis=[i])

    wide = tensor(image.shape, widened, "wide")

    def element(n: Any, o: Any, y: Any, x: Any, r: Any, j: Any) -> Any:
        row, column = y * e.stride + p, x * e.stride + q
        where = _inside(e, row, column)
        return te.max(wide[n, o, row, column, r, j], axis=[p, q], where=where, init=LEAST)

    shape = (e.images, e.channels, *e.out, e.blocks.batch, e.blocks.outputs)
    pooled = tensor(shape, element, "pooled")
    return tensor(shape, lambda *at: pooled[at].astype("int8"), "result")


def _inside(e: Extents, row: Any, column: Any) -> Any:
    """Return the condition that an element of the padded image is one of the image; None if all."""
    (above, left), conditions = e.padding, []
    if above:
        conditions += [row >= above, row < e.height + above]
    if left:
        conditions += [column >= left, column < e.width + left]
    return te.all(*conditions) if conditions else None


def reference(workload: Workload, seed: int) -> Reference:
    """Return random blocks and the exact result."""
    e = extents_of(workload)
    data, result = define(workload)
    generator = np.random.default_rng(seed)
    blocks = generator.integers(LEAST, 127, data.static_shape, "int8", endpoint=True)
    (above, left), (rows, columns) = e.padding, e.out
    pads = ((0, 0), (0, 0), (above, above), (left, left))
    image = np.pad(unblocked(blocks), pads, constant_values=LEAST)
    found = np.full((*image.shape[:2], rows, columns), LEAST, np.int8)
    for p, q in np.ndindex(*e.kernel):
        seen = image[:, :, p :: e.stride, q :: e.stride][:, :, :rows, :columns]
        found = np.maximum(found, seen)
    expected = blocks_of_images(found, e.blocks.batch, e.blocks.outputs)
    name = result.op.name
    return Reference({"data": blocks}, {name: expected}, {name: np.zeros(expected.shape)})


MAX_POOL2D_PACKED = Operator(
    MAX_POOL, workload, define, reference,
    by_device({"accelerator": "dlcompiler.ops.packed.max_pool_schedule:SCHEDULE"}),
)  # fmt: skip
