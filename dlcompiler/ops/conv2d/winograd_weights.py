"""Transform the weights of minimal filtering, and pack them into panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.ops.conv2d.shapes import Shape, shape_of
from dlcompiler.ops.conv2d.winograd_transforms import (
    TAPS,
    chosen,
    on_both_sides,
    transforms,
    weight_row,
)
from dlcompiler.ops.helpers import tensor
from dlcompiler.ops.packing import GIVEN
from dlcompiler.ops.rounding import Array, Wide
from dlcompiler.ops.stages import unroll
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.space import Workload
from dlcompiler.target import Target
from dlcompiler.te import Tensor

PANEL = 16
"""Output channels of a panel, which are contiguous in packed weights and in sums."""


def packed_shape(shape: Shape, tile: int) -> tuple[int, ...]:
    """Return the packed shape: (panels, tile rows, tile columns, channels, panel width)."""
    size = tile + TAPS - 1
    return -(-shape.o // PANEL), size, size, shape.c, PANEL


def pack(weight: Array, tile: int) -> Array:
    """Transform weights (o, c, 3, 3) by ``G g G^T`` and pack them into panels.

    Returns
    -------
    array
        ``(⌈o / 16⌉, tile + 2, tile + 2, c, 16)``, transformed in float64 and rounded once.
    """
    g = transforms(tile, TAPS).matrix("weight")
    return _in_panels(on_both_sides(g, weight.astype(np.float64))).astype(weight.dtype)


def _in_panels(transformed: Wide) -> Wide:
    o, c, size, _ = transformed.shape
    panels = -(-o // PANEL)
    padded = np.zeros((panels * PANEL, c, size, size))
    padded[:o] = transformed
    result: Wide = padded.reshape(panels, PANEL, c, size, size).transpose(0, 3, 4, 2, 1)
    return np.ascontiguousarray(result)


def packing(workload: Workload, target: Target) -> tuple[Schedule, tuple[Tensor, ...]]:
    """Return the kernel that does the same as `pack`, with transforms in the workload's dtype.

    Returns
    -------
    tuple
        The schedule, and its parameters ``weight_given`` of shape ``(o, c, 9)`` and ``weight``.
    """
    shape, tile = shape_of(workload), workload["tile"]
    t = transforms(tile, TAPS)
    given = te.placeholder((shape.o, shape.c, TAPS**2), shape.dtype, "weight" + GIVEN)
    panels = -(-shape.o // PANEL)

    def number(value: float) -> Any:
        return te.const(value, shape.dtype)

    def of_weight(row: Any, values: Sequence[Any]) -> Any:
        return chosen(row, [weight_row(t, k, values, number) for k in range(t.size)])

    def tap(p: Any, c: Any, a: Any, v: Any) -> Any:
        o = p * PANEL + v
        return te.if_then_else(o < shape.o, given[o, c, a], number(0))

    taps = tensor((panels, shape.c, TAPS**2, PANEL), tap, "taps")
    rows = tensor(
        (t.size, panels, shape.c, TAPS, PANEL),
        lambda i, p, c, b, v: of_weight(i, [taps[p, c, a * TAPS + b, v] for a in range(TAPS)]),
        "rows",
    )
    packed = tensor(
        packed_shape(shape, tile),
        lambda p, i, j, c, v: of_weight(j, [rows[i, p, c, b, v] for b in range(TAPS)]),
        "weight",
    )
    s = create_schedule(packed)
    _schedule_packing(s, (taps, rows, packed), min(target.lanes(shape.dtype), PANEL))
    if target.cores > 1:
        s[packed].parallel(packed.op.axis[0])
    return s, (given, packed)


def _schedule_packing(s: Schedule, stages: Sequence[Tensor], lanes: int) -> None:
    taps, rows, packed = stages
    p, i, j, c, v = packed.op.axis
    v, lane = s[packed].split(v, lanes)
    s[packed].reorder(p, c, v, i, j, lane)
    s[packed].vectorize(lane)
    unrolled = [(packed, j)]
    for stage, which in ((rows, 0), (taps, 2)):
        s[stage].compute_at(s[packed], v)
        s[stage].set_scope("local")
        axes = list(stage.op.axis)
        s[stage].vectorize(axes[-1])
        if stage is rows:
            s[rows].reorder(*axes[1:-1], axes[0], axes[-1])
        unrolled.append((stage, axes[which]))
    unroll(s, unrolled)
