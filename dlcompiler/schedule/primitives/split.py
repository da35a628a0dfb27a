"""Split a loop in two nested ones.

*Before*, then *after* ``split(i, factor=32)`` of a loop of 100::

    for i in range(100):                for i.outer in range(4):
        C[i] = …                            for i.inner in range(32):
                                                if i.outer*32 + i.inner < 100:
                                                    C[i.outer*32 + i.inner] = …

Always legal on a loop without annotation. A factor above the extent is replaced by the
extent, unless the new loop, or a loop that comes from it, is bound to threads. Then several stages
can have the same number of threads, and a guard skips the iterations beyond the end. If the extent
is known, the factor may be a symbol (`te.var`), called a knob: one kernel serves all factors, and
each call gives the factor, at least 1.
In TVM ``split``, in Halide ``split`` with the tail strategy ``GuardWithIf``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dlcompiler.ir import Axis, Extent
from dlcompiler.ir.names import unique_name
from dlcompiler.schedule.inference.bounds import split_extents
from dlcompiler.schedule.primitives.base import (
    Primitive,
    StepContext,
    is_knob,
    replace_leaves,
    require_leaf,
    require_loops,
    require_plain,
    require_positive,
    size_of,
)
from dlcompiler.schedule.state import Split, StageState, State
from dlcompiler.schedule.verdict import LEGAL, Illegal, Pending, Verdict, answering


@answering
def check(
    state: State, stage: StageState, *, axis: Any, factor: Any = None, nparts: Any = None
) -> Verdict:
    """Refuse an axis that is not a plain loop, and a factor that is not a positive integer."""
    require_loops(stage)
    require_leaf(state, stage, axis)
    if (factor is None) == (nparts is None):
        return Illegal(
            "structural",
            "exactly one of factor and nparts must be given",
            got=f"factor={factor!r}, nparts={nparts!r}",
            hint="factor is the extent of the inner loop, nparts that of the outer one",
        )
    name, value = ("factor", factor) if factor is not None else ("nparts", nparts)
    require_plain(stage, axis)
    if is_knob(value):
        if not isinstance(axis.extent, int):
            return Illegal(
                "limit",
                "a symbol splits only a loop of known extent",
                got=f"{stage.label(axis)}, extent {axis.extent}",
                because="that its iterations stay apart could not be shown in time",
                hint="split by a number, or split the whole axis by the symbol first",
            )
        return Pending(f"{value.name} must be at least 1, which each call checks")
    require_positive(value, name)
    return LEGAL


def apply(
    state: State,
    stage: StageState,
    context: StepContext,
    *,
    axis: Axis,
    factor: Extent | None = None,
    nparts: Extent | None = None,
) -> tuple[State, tuple[Axis, Axis]]:
    """Return the next state and (outer, inner)."""
    stage, pair = split_stage(stage, context, axis, factor, nparts)
    return state.with_stage(stage, context.state_id), pair


def split_stage(
    stage: StageState,
    context: StepContext,
    axis: Axis,
    factor: Extent | None,
    nparts: Extent | None,
) -> tuple[StageState, tuple[Axis, Axis]]:
    """Return the stage with `axis` split, and the pair of new axes (outer, inner)."""
    factor = factor if factor is None else size_of(factor)
    nparts = nparts if nparts is None else size_of(nparts)
    outer_extent, inner_extent = split_extents(axis.extent, factor, nparts)
    path = stage.paths[axis]
    outer_path = unique_name(f"{path}.outer", stage.paths.values())
    inner_path = unique_name(f"{path}.inner", stage.paths.values())
    outer = context.axis(outer_path, outer_extent, axis.kind)
    inner = context.axis(inner_path, inner_extent, axis.kind)
    relation = Split(axis, outer, inner, factor, nparts)
    stage = replace(
        stage,
        leaves=replace_leaves(stage, (axis,), (outer, inner)),
        relations=(*stage.relations, relation),
        paths={**stage.paths, outer: outer_path, inner: inner_path},
    )
    return stage, (outer, inner)


SPLIT = Primitive("split", {"axis": "axis", "factor": "int", "nparts": "int"}, check, apply)
