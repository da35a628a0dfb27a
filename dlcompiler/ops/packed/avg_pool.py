"""The operator avg_pool2d_packed: averages of windows of int8 blocks, with a tail.

An average is the sum of a window, multiplied by ``scale`` and shifted to the right:
``clip(sum * scale >> shift)``. The shift rounds towards minus infinity. This is the mean, so
rounded, where ``2 ** shift == scale * rows * columns``: a window of 4 by 4 has ``scale=1,
shift=4``. For other windows it is close: 7 by 7 with ``scale=84, shift=12`` is 0.5% too large.
Padding counts as zeros. The window of a global average is the whole image.

The GEMM core adds: it multiplies by one block of weights, ``scale`` on its diagonal, in a cycle for
each element of a window. The ALU would take two, and read sums of int32 from DRAM.
"""

from __future__ import annotations

from typing import Any

from dlcompiler.errors import TuningError
from dlcompiler.ops.base import Operator, by_device
from dlcompiler.ops.packed.blocks import STANDARD, Blocks, Sizes, check_kernel, check_range
from dlcompiler.ops.packed.conv2d import window
from dlcompiler.ops.packed.extents import AVG_POOL
from dlcompiler.ops.packed.reference import reference
from dlcompiler.ops.packed.sums import define
from dlcompiler.ops.packed.tail import checked_tail
from dlcompiler.space import Workload

LARGEST_SCALE = 127
"""The scale is a weight of int8."""


def workload(
    *, c: int, h: int, w: int, kernel: Sizes, n: int = 1, stride: int = 1, padding: Sizes = 0,
    scale: int = 1, block: str = str(STANDARD), **tail: int,
) -> Workload:  # fmt: skip
    """Return the workload of averages of windows of int8 blocks.

    Parameters
    ----------
    scale : int
        By what sums are multiplied before they are shifted, 1 to 127.
    c, h, w, kernel, n, stride, padding, block, **tail
        See `conv2d.workload`; ``relu`` is 0 by default.

    Raises
    ------
    TuningError
        A parameter is not valid.
    """
    blocks, image = pool_window(
        AVG_POOL, n=n, c=c, h=h, w=w, kernel=kernel, stride=stride, padding=padding, block=block
    )
    check_range(AVG_POOL, 1, scale=scale)
    if scale > LARGEST_SCALE:
        raise TuningError(
            f"workload of {AVG_POOL}", "scale is no weight of int8", got=str(scale),
            expected=f"1 to {LARGEST_SCALE}",
        )  # fmt: skip
    own: dict[str, int | str] = {**image, "scale": scale, "block": str(blocks)}
    return Workload.of(AVG_POOL, **own, **checked_tail(AVG_POOL, **{"relu": 0, **tail}))


def pool_window(op: str, **params: Any) -> tuple[Blocks, dict[str, int]]:
    """Check the parameters of windows that have as many outputs as inputs; see `conv2d.window`."""
    blocks, image = window(op, **params)
    kernel = image["kernel_h"], image["kernel_w"]
    check_kernel(op, (image["h"], image["w"]), kernel, (image["pad_h"], image["pad_w"]))
    if blocks.inputs != blocks.outputs:
        raise TuningError(
            f"workload of {op}", "blocks have other numbers of outputs than of inputs",
            got=str(blocks), because="elements come into the memory of sums by products with ones",
        )  # fmt: skip
    return blocks, image


AVG_POOL2D_PACKED = Operator(
    AVG_POOL, workload, define, reference,
    by_device({"accelerator": "dlcompiler.ops.packed.schedule:SCHEDULE"}),
)  # fmt: skip
