"""Summarise records by workload, machine and kind of time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dlcompiler.autotune.records.record import Record
from dlcompiler.autotune.trial import OUTCOMES, OutcomeName
from dlcompiler.runtime.provenance import Kind
from dlcompiler.space import Workload


@dataclass(frozen=True, slots=True)
class Group:
    """Summary of the records of one workload, one machine and one kind of times."""

    workload: Workload
    """What was tuned."""
    target: str
    """The machine, as `target_key` names it."""
    counts: Mapping[OutcomeName, int]
    """Number of trials with each outcome."""
    runs: int
    """Number of runs that stored the records."""
    best: Record | None
    """The fastest; None: nothing succeeded."""
    kind: Kind = "measured"
    """Whether its times are measured or simulated."""


def groups(records: Iterable[Record]) -> list[Group]:
    """Group records by workload, machine and kind of time, in the order of first occurrence."""
    by_place: dict[tuple[Workload, str, Kind], list[Record]] = {}
    for record in records:
        place = record.workload, record.target, record.provenance.kind
        by_place.setdefault(place, []).append(record)
    return [_group(*place, own) for place, own in by_place.items()]


def _group(workload: Workload, target: str, kind: Kind, records: list[Record]) -> Group:
    found = Counter(record.result.outcome for record in records)
    timed = [record for record in records if record.result.seconds is not None]
    return Group(
        workload,
        target,
        {name: found[name] for name in OUTCOMES if found[name]},
        len({record.run for record in records}),
        min(timed, key=lambda record: record.result.seconds or 0.0, default=None),
        kind,
    )
