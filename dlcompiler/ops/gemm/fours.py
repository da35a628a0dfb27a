"""Products of int8 by dot products of four numbers, on CPUs.

Each sum takes four products at a time (`dlcompiler.ops.fours`). The stages between the operands and
C are those of `dlcompiler.ops.gemm.definition`, with k in groups of four, and two more:

=============  =================================================================================
``.left``      A, not transposed, plus 128 as uint8: shape ``(…, m, ceil(k / 4), 4)``
``.right``     B, not transposed: shape ``(…, ceil(k / 4), n, 4)``, and 0 beyond the matrix
``.sums``      the product of both
``.constant``  128 for each k
``.offsets``   the product of ``.constant`` and ``.right``: what the sums are too large by
``C``          the epilogue of the sums less the offsets
=============  =================================================================================

If A has a zero point z, the constant is 128 + z.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler import te
from dlcompiler.ir import Axis
from dlcompiler.ops.fours import product as dot
from dlcompiler.ops.fours import schedule_dots, schedule_offsets, unsigned, zeros
from dlcompiler.ops.gemm.definition import (
    EXTRA_COLUMNS,
    EXTRA_ROWS,
    Stages,
    define,
    of_i_j,
    operands_of,
    runs_along,
    swapped,
)
from dlcompiler.ops.gemm.product import Product, tile_lanes
from dlcompiler.ops.gemm.result_loops import HINT, schedule_result
from dlcompiler.ops.helpers import over, tensor
from dlcompiler.schedule import Schedule, Stage
from dlcompiler.space import Config, Workload
from dlcompiler.target import Target
from dlcompiler.te import Tensor

_COPIED = 64
"""Neighbours of A that are copied together [byte]."""


def define_for_cpu(workload: Workload) -> tuple[Tensor, ...]:
    """Return A, B, the operands of the epilogue, and C, through the stages for CPUs."""
    product = Product.of(workload)
    if not product.goes_by_fours:
        return define(workload)
    op, steps = workload.op, product.steps
    A, B = operands_of(product)
    left, right = _left(product, A, op), _right(product, B, op)
    constant = zeros(steps, f"{op}.constant", product.zero_point)
    *stack, rows, _, _ = left.shape
    columns = right.shape[-2]

    def dots(factor: Any, places: Sequence[Any], j: Any) -> Any:
        g, q = over(steps, "g"), over(4, "q")
        return te.sum(dot(factor(g, q), right[(*places, g, j, q)]), axis=[g, q])

    def total(*indices: Any) -> Any:
        *places, i, j = indices
        return dots(lambda g, q: left[(*places, i, g, q)], places, j)

    def offset(*indices: Any) -> Any:
        *places, j = indices
        return dots(lambda g, q: constant[g, q], places, j)

    sums = tensor((*stack, rows, columns), of_i_j(total, len(stack)), f"{op}.sums", op)
    offsets = tensor((*stack, columns), offset, f"{op}.offsets")
    operands = product.epilogue.placeholders(product.shapes["C"], product.sums_dtype)

    def element(*indices: Any) -> Any:
        *places, _, j = indices
        value = sums[indices] - offsets[(*places, j)]
        return product.epilogue.element(value, indices, operands)

    named = of_i_j(element, len(stack))
    return A, B, *operands.values(), tensor(product.shapes["C"], named, "C")


def _left(product: Product, A: Tensor, op: str) -> Tensor:
    def element(*indices: Any) -> Any:
        *places, i, g, q = indices
        place = swapped((te.minimum(i, product.m - 1), 4 * g + q), product.layout[0] == "T")
        value = unsigned(A[(*places, *place)])
        # Beyond k the other factor is 0.
        return te.if_then_else(4 * g + q < product.k, value, te.const(0, "uint8"))

    shape = (*product.batch, product.m + EXTRA_ROWS, product.steps, 4)
    return tensor(shape, element, f"{op}.left")


def _right(product: Product, B: Tensor, op: str) -> Tensor:
    if product.packed:
        width = product.packed
        shape: tuple[int, ...] = (product.steps, product.panels * width, 4)
        return tensor(shape, lambda g, j, q: B[j // width, g, j % width, q], f"{op}.right")

    def element(*indices: Any) -> Any:
        *places, g, j, q = indices
        value = B[(*places, *swapped((4 * g + q, j), product.layout[1] == "T"))]
        is_inside = te.all(j < product.n, 4 * g + q < product.k)
        return te.if_then_else(is_inside, value, te.const(0, "int8"))

    # The last panel may reach as far beyond the matrix (`space.is_panel`).
    shape = (*product.batch, product.steps, 2 * product.n + EXTRA_COLUMNS, 4)
    return tensor(shape, element, f"{op}.right")


# -- the schedule ---------------------------------------------------------------------------------


def offsets_of(C: Tensor) -> Tensor | None:
    """Return the offsets of a result of `define_for_cpu`; None if it does not go by fours."""
    return next((t for t in C.op.input_tensors if t.name.endswith(".offsets")), None)


def schedule_fours(s: Schedule, C: Tensor, offsets: Tensor, cfg: Config, target: Target) -> None:
    """Schedule a product on a CPU: the sums of a tile of C stay in registers over all of k.

    Parameters
    ----------
    s : Schedule
        A fresh schedule of `C`.
    C, offsets : Tensor
        The result of `define_for_cpu`, and its offsets.
    cfg : Config
        A config of `space`.
    target : Target
        A CPU.
    """
    stages = Stages.of(C)
    left, right, sums = stages.left, stages.right, stages.sums
    packed = _packed_columns(right)
    is_transposed = runs_along(right, right.op.axis[-3])
    lanes = tile_lanes(packed, target.lanes("int32"))
    axes = () if packed else _panels_of(s, right, cfg["tile_n"])
    panels, blocks, innermost = schedule_result(s, C, cfg, lanes)

    s[sums].set_scope("local")
    s[sums].compute_at(s[C], innermost)
    *_, rows, j = s[sums].op.axis
    vectors, vector = s[sums].split(j, lanes)
    steps = s[sums].op.reduce_axis[:1]
    schedule_dots(s[sums], vector, steps, [rows, vectors], target, cfg["unroll_k"])
    s[sums].unroll(vectors)
    s[offsets].compute_at(s[C], panels)
    schedule_offsets(s, offsets, cfg["tile_n"], lanes, target)
    if axes:
        s[right].compute_at(s[C], panels)
        outermost = _schedule_right(s[right], axes, is_transposed=is_transposed)
        if cfg["parallel"] == "blocks":
            s[right].parallel(outermost)
    else:
        s[right].compute_inline()
    s[left].compute_at(s[C], blocks)
    _schedule_left(s[left])
    s[sums].unroll(rows)  # the extent of this loop depends on the splits before


def _packed_columns(right: Tensor) -> int:
    """Return the columns in a panel of a packed B; 0 if it is not packed."""
    (given,) = right.op.input_tensors
    return given.static_shape[-2] if given.ndim > right.ndim else 0


def _panels_of(s: Schedule, right: Tensor, columns: int) -> tuple[Axis, ...]:
    """Store B in panels of columns; return its last four axes: panel, group, column, and q."""
    if len(right.shape) == 3:
        return s[right].transform_layout(lambda g, j, q: [j // columns, g, j % columns, q])
    axes = s[right].transform_layout(lambda b, g, j, q: [b, j // columns, g, j % columns, q])
    return axes[-4:]


def _schedule_right(stage: Stage, axes: Sequence[Axis], *, is_transposed: bool) -> Axis:
    """Copy B; return the outermost loop."""
    panel, group, column, q = axes
    stage.pragma(panel, HINT, 1)
    stage.pragma(group, HINT, 1)
    if is_transposed:
        stage.reorder(panel, column, group, q)
        stage.vectorize(q)
        return panel
    stage.reorder(group, panel, column, q)
    stage.unroll(q)
    return group


def _schedule_left(stage: Stage) -> None:
    """Copy A along k."""
    *_, group, q = stage.op.axis
    steps, k = stage.split(stage.fuse(group, q), _COPIED)
    stage.pragma(steps, HINT, 1)
    stage.vectorize(k)
