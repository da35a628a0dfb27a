"""Schedule a product of few rows or columns: threads compute each sum together.

Where a result has few rows or few columns, each element of the larger operand is used only a few
times, and the time is that of reading it. *After* `multiply_together` of ``C[i] = sum over k of
A[i, k] * x[k]``::

    for block in blockIdx.x(…):
        for lane in threadIdx.x(lanes_k):
            for row in threadIdx.y(groups):
                for k.outer in range(…):
                    parts.local += A[row, k.outer*lanes_k + lane] * x[…]        in vectors
                parts.shared[row, lane] = parts.local
        for row in threadIdx.y(groups):
            sums[row] = sum over lane of parts.shared[row, lane]                by all threads
        for row in threadIdx.y(groups):
            C[row] = sums[row]

If the larger operand is contiguous along k, neighbouring threads take neighbouring parts of k. If
it is contiguous along the other dimension, they take neighbouring elements of the result, and the
threads that share a sum are apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler.ir import Axis
from dlcompiler.ops.gpu.threads import bind
from dlcompiler.ops.gpu.tiles import Loops, Operand
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config
from dlcompiler.te import Tensor

_STEP = 4
"""Depth of a config for each group of steps that a thread makes at once [1]."""


def multiply_together(
    s: Schedule,
    result: Tensor,
    loops: Loops,
    sums: Tensor,
    operands: Sequence[Operand],
    cfg: Config,
) -> None:
    """Compute a product whose sums several threads compute together.

    The parameters are those of `tiles.multiply_in_tiles`.
    """
    form = _Form(operands, cfg)
    block = form.result(s, result, loops)
    s[sums].set_scope("shared")
    s[sums].compute_at(s[result], block)
    (k,) = s[sums].op.reduce_axis
    k, _ = s[sums].split(k, form.vector)
    _, lane = s[sums].split(k, cfg["lanes_k"])
    parts = s.rfactor(sums, lane, factor_axis=-1 if form.along_k else 0)
    (lane,) = s[sums].op.reduce_axis
    *stack, i, j = s[sums].op.axis
    group, tile = form.split(s, sums, i, j)
    s[sums].reorder(*stack, group, *tile, lane)
    bind(s[sums], {form.own: group, form.across: lane})
    form.sum_up(s, parts, (result, block))


class _Form:
    """The roles of the dimensions and of the thread axes."""

    def __init__(self, operands: Sequence[Operand], cfg: Config) -> None:
        left, right = operands
        self.operands, self.cfg = operands, cfg
        self.is_wide = int(right.stage.shape[-1]) >= int(left.stage.shape[-1])
        """Whether the result has more columns than rows: columns are then shared out."""
        self.larger = right if self.is_wide else left
        self.along_k = self.larger.runs_along_k
        """Whether neighbouring threads take neighbouring parts of k."""
        self.across, self.own = (
            ("threadIdx.x", "threadIdx.y") if self.along_k else ("threadIdx.y", "threadIdx.x")
        )
        self.vector = self.larger.lanes if self.along_k else 1
        (_, self.rows), (_, self.columns) = cfg["rows"], cfg["columns"]

    def split(self, s: Schedule, stage: Tensor, i: Axis, j: Axis) -> tuple[Axis, tuple[Axis, Axis]]:
        """Split the tile of a block into those of threads; return the threads and a tile's axes."""
        if self.is_wide:
            group, j = s[stage].split(j, self.columns)
        else:
            group, i = s[stage].split(i, self.rows)
        return group, (i, j)

    def result(self, s: Schedule, result: Tensor, loops: Loops) -> Axis:
        """Share a result out among blocks and threads; return the loop over blocks."""
        stage, groups = s[result], self.cfg["groups"]
        factors = [self.rows, self.columns]
        factors[self.is_wide] = factors[self.is_wide] * groups
        block_i, i = stage.split(loops.rows, factors[0])
        block_j, j = stage.split(loops.columns, factors[1])
        group, (i, j) = self.split(s, result, i, j)
        blocks = (*loops.stack, block_i, block_j)
        stage.reorder(*blocks, group, i, j)
        block = stage.fuse(*blocks)
        bind(stage, {"blockIdx.x": block, self.own: group})
        stage.unroll(i)
        stage.unroll(j)
        return block

    def sum_up(self, s: Schedule, parts: Tensor, at: tuple[Tensor, Axis]) -> None:
        """Let each thread sum up its part of k in registers, and put the sum in shared memory."""
        own = s.cache_write(parts, "local")
        s[parts].set_scope("shared")
        s[parts].compute_at(s[at[0]], at[1])
        axes = list(s[parts].op.axis)
        lane = axes.pop(-1 if self.along_k else 0)
        *stack, i, j = axes
        group, tile = self.split(s, parts, i, j)
        s[parts].reorder(*stack, lane, group, *tile)
        bind(s[parts], {self.across: lane, self.own: group})
        for axis in tile:
            s[parts].unroll(axis)

        s[own].compute_at(s[parts], group)
        k, vector = s[own].op.reduce_axis
        axes = list(s[own].op.axis)
        axes.pop(-1 if self.along_k else 0)
        steps, step = s[own].split(k, self.cfg["depth"] // _STEP)
        s[own].reorder(*s[own].op.axis[: -2 - self.along_k], steps, step, vector, *axes[-2:])
        s[own].pragma(step, "unroll_explicit", 0)
        for axis in (step, vector, *axes[-2:]):
            s[own].unroll(axis)
        for operand in self.operands:
            self._load(s, operand, own, step)

    def _load(self, s: Schedule, operand: Operand, reader: Tensor, at: Axis) -> None:
        """Load what a thread needs of an operand in a step to registers, in vectors if possible."""
        if operand.wide is not None:
            s[operand.wide].compute_inline()
        stage = s[operand.stage]
        stage.set_scope("local")
        stage.compute_at(s[reader], at)
        *_, k, x = stage.op.axis
        inner, outer = (k, x) if operand.runs_along_k else (x, k)
        stage.reorder(outer, inner)
        stage.unroll(outer)
        if self._loads_vectors(operand):
            stage.vectorize(inner)
        else:
            stage.unroll(inner)

    def _loads_vectors(self, operand: Operand) -> bool:
        if operand.runs_along_k:
            return self.vector > 1 and operand.lanes % self.vector == 0
        return operand is self.larger and operand.lanes % _STEP == 0


def threads_of(cfg: Any) -> Any:
    """Return the number of threads of a block."""
    return cfg["lanes_k"] * cfg["groups"]
