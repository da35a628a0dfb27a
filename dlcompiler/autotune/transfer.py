"""What the records of other shapes of an operator teach a tuner about this one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dlcompiler.autotune.best import distance
from dlcompiler.autotune.models.base import FeatureSource
from dlcompiler.autotune.models.experience import Experience, experience_of
from dlcompiler.autotune.models.knobs import KnobFeatures
from dlcompiler.autotune.plan import Plan
from dlcompiler.autotune.proposal import Tuner
from dlcompiler.autotune.records import Record
from dlcompiler.autotune.store import RecordStore
from dlcompiler.autotune.tuners import tuner as make_tuner
from dlcompiler.errors import UserError
from dlcompiler.ops import Operator
from dlcompiler.space import Space, Workload
from dlcompiler.target import Target

MOST_SHAPES = 8
"""The nearest ones count."""
MOST_RECORDS = 2048
"""Of a shape: the last ones count."""
WITHOUT_MODEL = frozenset({"random", "grid", "genetic", "descent"})
"""Tuners that nothing can be taught."""

Describe = Callable[[Workload, Space], FeatureSource]
"""Returns what describes the points of a shape's space."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """What was taken from records of other shapes."""

    experience: Experience | None
    """Measured points, described; None: there were none."""
    note: str
    """How many records, of which shapes; empty for none."""


def lesson_of(
    records: Iterable[Record],
    workload: Workload,
    columns: tuple[str, ...],
    space_of: Callable[[Workload], Space],
    describe: Describe,
) -> Lesson:
    """Take what can be learned from records of other shapes of an operator.

    Parameters
    ----------
    records : iterable of Record
        Of one machine; those of `workload` itself, and those of another version of their space, are
        left out.
    workload : Workload
        The shape that is to be tuned.
    columns : tuple of str
        What each number is that describes its points.
    space_of : callable
        Returns the space of another shape.
    describe : callable
        Returns what describes the points of its space.
    """
    by_shape: dict[Workload, list[Record]] = {}
    for record in records:
        if record.workload != workload:
            by_shape.setdefault(record.workload, []).append(record)
    shapes: list[tuple[FeatureSource, list[int], list[float | None]]] = []
    names, count = [], 0
    for other in sorted(by_shape, key=lambda other: (distance(workload, other), str(other))):
        if len(shapes) == MOST_SHAPES:
            break
        rates = _rates(by_shape[other][-MOST_RECORDS:], other, space_of)
        if any(rate is not None for rate in rates.values()):
            source = describe(other, space_of(other))
            shapes.append((source, list(rates), list(rates.values())))
            names.append(str(other))
            count += len(rates)
    if not shapes:
        return Lesson(None, "")
    note = f"learns from {count} records of other shapes: {', '.join(names)}"
    return Lesson(experience_of(columns, shapes), note)


def informed_tuner(plan: Plan, store: RecordStore) -> tuple[Tuner, str]:
    """Return the tuner of a plan, taught by the records of other shapes, and what it was taught."""
    if plan.tuner in WITHOUT_MODEL:
        return make_tuner(plan.tuner, plan.space, plan.seed), ""

    def space_of(workload: Workload) -> Space:
        return plan.operator.space(workload, plan.target)

    def describe(workload: Workload, space: Space) -> FeatureSource:
        return describe_space(plan.operator, workload, plan.target, space)

    features = describe(plan.workload, plan.space)
    records = store.records(target=plan.machine, op=plan.workload.op)
    lesson = lesson_of(records, plan.workload, features.columns, space_of, describe)
    made = make_tuner(
        plan.tuner, plan.space, plan.seed, features=features, experience=lesson.experience
    )
    return made, "" if made.model is None else lesson.note


def describe_space(
    operator: Operator, workload: Workload, target: Target, space: Space
) -> FeatureSource:
    """Return what describes the points of a space to a cost model: its knobs."""
    del operator, workload, target
    return KnobFeatures(space)


def _rates(
    records: Iterable[Record], workload: Workload, space_of: Callable[[Workload], Space]
) -> dict[int, float | None]:
    """Return the calls per second of the points of a shape; None for those that failed [1/s]."""
    found: dict[int, float | None] = {}
    try:
        space = space_of(workload)
    except UserError:  # of an operator that was different then
        return found
    for record in records:
        if record.config.fingerprint != space.fingerprint:
            continue
        try:
            point = space.index_of(record.config)
        except UserError:
            continue
        seconds = record.result.seconds
        found[point] = None if seconds is None else 1 / seconds
    return found
