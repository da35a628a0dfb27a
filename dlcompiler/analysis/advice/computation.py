"""Advice about computation: recomputed stages, dependent additions, conditions in loops."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from dlcompiler import dtypes
from dlcompiler.analysis.advice.locality import WORTH
from dlcompiler.analysis.advice.subject import Finding, Rule, Subject
from dlcompiler.analysis.footprint import Nest
from dlcompiler.ir import Binary, Expr, Load, Store, walk
from dlcompiler.runtime.timing import format_ratio
from dlcompiler.schedule import AttachedAt, StageState, Step

LEAST_RATIO = 1.2
"""Least factor of recomputation that is reported."""
LATENCY_CYCLES = 4
"""Latency of an addition or a multiply-add of floats [cycle].

**Source:** A. Fog, Instruction tables, 2022: 4 on Intel cores since Skylake, 3 or 4 on AMD Zen.
"""
LEAST_CHAIN = 8
"""Shortest chain of additions that is reported."""


def recomputation(subject: Subject) -> Iterator[Finding]:
    """Find stages whose elements are computed several times."""
    state = subject.schedule.state
    times: dict[str, int] = {}
    for store, count in subject.counts.items():
        refs = getattr(store, "origin", ())
        if refs and count.is_exact and not any(ref.axis.startswith("(") for ref in refs):
            times[refs[0].stage] = times.get(refs[0].stage, 0) + count.times
    for name, made in times.items():
        stage = state.stage(name) if state.has_stage(name) else None
        if stage is None or not isinstance(stage.attachment, AttachedAt):
            continue
        axes = (*stage.op.axis, *stage.op.reduce_axis)
        needed = math.prod(axis.static_extent for axis in axes)
        ratio = made / needed if needed else 1.0
        if ratio < LEAST_RATIO:
            continue
        yield Finding(
            name, "",
            f"{name} is computed {format_ratio(ratio)} as often as needed, in {made:,} steps "
            f"where {needed:,} "
            f"suffice: each iteration of {_where(subject, stage)} recomputes what it reads",
            "high" if ratio >= 2 else "medium", _outward(subject, stage),
        )  # fmt: skip


def _where(subject: Subject, stage: StageState) -> str:
    assert isinstance(stage.attachment, AttachedAt)
    host = subject.schedule.state.stage(stage.attachment.stage)
    return f"{host.paths[stage.attachment.axis]} of {host.name}"


def _outward(subject: Subject, stage: StageState) -> Step | None:
    """Return the step that attaches a stage one loop further out, or computes it at the root."""
    at = stage.attachment
    assert isinstance(at, AttachedAt)
    host = subject.schedule.state.stage(at.stage)
    outside = host.leaves[: host.position(at.axis)] if host.has_leaf(at.axis) else ()
    steps = (
        subject.step("compute_at", stage.name, parent=host.name, axis=host.paths[leaf])
        for leaf in reversed(outside)
    )
    return next((step for step in steps if step), None) or subject.step("compute_root", stage.name)


def latency_chain(subject: Subject) -> Iterator[Finding]:
    """Find innermost reductions to one element, where each addition waits for the previous one."""
    for nest in subject.innermost:
        buffer = subject.written(nest)
        if buffer is None or not dtypes.is_float(buffer.dtype) or not subject.is_reduction(nest):
            continue
        loops = [subject.name(each)[1] for each in _chain(subject, nest)]
        length = math.prod(each.trips for each in _chain(subject, nest))
        if length < LEAST_CHAIN or subject.share(nest) < WORTH:
            continue
        if any(subject.stride(item, nest) for item in subject.writes(nest)):
            continue
        outside = [each.loop.kind for each in subject.chain(nest) if each.loop is not None]
        if "vectorized" in outside or "unrolled" in outside[:-1]:
            continue
        stage, path = subject.name(nest)
        is_sum = _is_sum(subject, nest)
        value = "sum" if is_sum else "result"
        data = [
            each for each in subject.chain(nest)
            if each.trips > 1 and not subject.is_reduction(each) and subject.name(each)[0] == stage
        ]  # fmt: skip
        todo = f"move a data loop inside, so that several {value}s are computed at a time"
        if not data:
            todo = f"let rfactor make several partial {value}s, which a loop inside computes"
        yield Finding(
            stage, path,
            f"each of {length:,} steps of {', '.join(loops)} {'adds to' if is_sum else 'updates'} "
            f"the same element as the step before, and waits {LATENCY_CYCLES} cycles for that "
            f"{value}: {todo}",
            "high", _data_inside(subject, nest) if data else _partial(subject, nest),
        )  # fmt: skip


def _is_sum(subject: Subject, nest: Nest) -> bool:
    """Tell whether the reduction of a loop is a sum; other stages may be computed in the loop."""
    stores = [item.access.statement for item in subject.writes(nest)]
    return any(
        isinstance(store, Store)
        and isinstance(store.value, Binary)
        and store.value.op == "add"
        and store.origin[0].stage == subject.name(nest)[0]
        for store in stores
    )


def _chain(subject: Subject, nest: Nest) -> list[Nest]:
    """Return the reduction loops whose consecutive steps update one element, outermost first."""
    inside = itertools.takewhile(subject.is_reduction, reversed(subject.chain(nest)))
    return list(inside)[::-1]


def _data_inside(subject: Subject, nest: Nest) -> Step | None:
    stage, axis = subject.stage(nest), subject.axis(nest)
    if stage is None or axis is None:
        return None
    data = [leaf for leaf in stage.leaves if leaf.kind == "data" and stage.kind(leaf) == "serial"]
    for leaf in reversed(data):
        inside = stage.leaves[stage.position(leaf) + 1 :]
        axes: list[str] = [stage.paths[each] for each in (*inside, leaf)]
        step = subject.step("reorder", stage.name, axes=list(axes))
        if step is not None:
            return step
    return None


def _partial(subject: Subject, nest: Nest) -> Step | None:
    """Return a step on the way to partial results: split the only reduction loop, or rfactor."""
    stage, path = subject.name(nest)
    if len(_chain(subject, nest)) > 1:
        return subject.step("rfactor", stage, axis=path, factor_axis=0)
    return subject.step("split", stage, axis=path, factor=min(LEAST_CHAIN, nest.trips // 2))


def inner_guard(subject: Subject) -> Iterator[Finding]:
    """Find conditions on loads that are evaluated in every iteration of an innermost loop."""
    for nest in subject.innermost:
        if nest.loop is None or subject.share(nest) < WORTH or nest.loop.kind == "unrolled":
            continue
        around = {id(c) for item in subject.writes(nest) for c in item.access.conditions}
        guarded = [
            item for item in nest.own
            if not item.access.is_write
            and any(
                id(c) not in around and nest.loop.var in subject.variables(c) and not _reads_data(c)
                for c in item.access.conditions
            )
        ]  # fmt: skip
        heavy = [item for item in subject.writes(nest) if subject.is_reduction(nest)]
        if not guarded or not heavy:
            continue
        stage, path = subject.name(nest)
        name = guarded[0].access.buffer.name
        yield Finding(
            stage, path,
            f"each of {nest.runs * nest.trips:,} iterations of {path} evaluates a condition to "
            f"decide whether it reads {name}: compute the padded values once, in a separate stage",
            "medium", _own_stage(subject, stage),
        )  # fmt: skip


def _reads_data(condition: Expr) -> bool:
    """Tell whether a condition depends on data, as that of an argmax does: it is no padding."""
    return any(isinstance(node, Load) for node in walk(condition))


def _own_stage(subject: Subject, reader: str) -> Step | None:
    """Return a step that stores an inlined stage instead of recomputing it."""
    inlined = [stage.name for stage in subject.schedule.state.stages if stage.is_inlined]
    return subject.first(*(subject.step("compute_root", name) for name in inlined))


RULES = (
    Rule(
        "recomputation",
        "J. Ragan-Kelley et al., Halide, PLDI 2013, section 2: locality, parallelism and "
        "redundant work",
        recomputation,
    ),
    Rule(
        "reduction with a single sum",
        "A. Fog, Optimizing Software in C++, chapter 11: loop-carried dependency chains",
        latency_chain,
    ),
    Rule(
        "condition in an inner loop",
        "Halide, BoundaryConditions and partition in Schedule.h: conditions belong outside",
        inner_guard,
    ),
)
