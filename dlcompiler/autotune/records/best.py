"""The best config of a workload: from its own records, from another shape's, or the default."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dlcompiler.autotune.records.record import Record, target_key
from dlcompiler.autotune.records.remap import remapped
from dlcompiler.autotune.records.store import RecordStore
from dlcompiler.autotune.workloads import completed, operator_of
from dlcompiler.errors import UserError
from dlcompiler.measurement.provenance import kind_of_times
from dlcompiler.ops import Operator
from dlcompiler.runtime.provenance import Kind
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Space, Workload
from dlcompiler.target import Target, resolve
from dlcompiler.te import Tensor
from dlcompiler.terminal import escaped

_MOST_NEIGHBOURS = 8


@dataclass(frozen=True, slots=True)
class Choice:
    """A config for a workload, and where it comes from."""

    workload: Workload
    """The workload that it is for."""
    config: Config
    """The config."""
    source: Literal["record", "neighbour", "default"]
    """``record``: the fastest that was measured; ``neighbour``: made from the fastest of another
    shape; ``default``: the analytic one."""
    record: Record | None
    """The record that the config comes from; None for the default."""
    note: str
    """A sentence that says where the config comes from."""


def best(
    workload: Workload,
    target: str | Target = "cpu",
    db: str | Path | RecordStore = ":memory:",
    *,
    threads: int | None = None,
    template: Operator | None = None,
) -> Record | None:
    """Return the record of the shortest time; None: there is none.

    Only times of the target's kind count: measured ones for this machine, predicted ones for a GPU
    that is simulated.

    Parameters
    ----------
    workload : Workload
        What was tuned.
    target : str or Target
        The machine.
    db : path or RecordStore
        The records; the file is only read.
    threads : int, optional
        Number of threads of parallel loops; by default, the target's cores.
    template : Operator, optional
        The operator of the workload, as `autotune.template` makes it; by default, the one of the
        library.

    Raises
    ------
    TuningError
        If the file cannot be used.
    """
    machine = resolve(target)
    workload = completed(operator_of(workload, template), workload)
    with _opened(db) as store:
        kind = kind_of_times(machine)
        key = target_key(machine, threads or machine.cores)
        return None if kind is None else store.best(workload, key, kind)


def best_choice(
    workload: Workload,
    target: str | Target = "cpu",
    db: str | Path | RecordStore = ":memory:",
    *,
    threads: int | None = None,
    template: Operator | None = None,
) -> Choice:
    """Return the config to use for a workload, even if it was never measured.

    It is the config of the fastest record of the workload. If there is none, it is made from the
    fastest record of the nearest shape of the same operator on this machine: values are taken by
    name, and moved to the nearest ones that this space allows. Otherwise it is the default.

    Parameters
    ----------
    workload, target, db, threads, template
        As in `best`.

    Notes
    -----
    The distance of two shapes is that of the logarithms of their numeric parameters; the others,
    such as the dtype, must be equal. A config of another shape was not measured for this one, and
    may be slow.
    """
    machine = resolve(target)
    item = operator_of(workload, template)
    workload = completed(item, workload)
    default = item.default_config(workload, machine)
    place = _Place(item, workload, machine, item.space(workload, machine), default)
    key = target_key(machine, threads or machine.cores)
    with _opened(db) as store:
        records = store.records(target=key, op=workload.op)
    for record in _in_order(place, _timed(records, kind_of_times(machine))):
        choice = place.choice(record)
        if choice is not None:
            return choice
    note = f"the default config, because no record of {workload.op} on this machine can be used"
    return Choice(workload, default, "default", None, note)


def apply_best(
    workload: Workload,
    target: str | Target = "cpu",
    db: str | Path | RecordStore = ":memory:",
    *,
    threads: int | None = None,
    template: Operator | None = None,
) -> tuple[Schedule, tuple[Tensor, ...]]:
    """Return the schedule of the best known config, and the kernel's parameters to build it with.

    Parameters
    ----------
    workload, target, db, threads, template
        As in `best`.

    Returns
    -------
    schedule : Schedule
        The operator's schedule with the config.
    args : tuple of Tensor
        Inputs first, outputs last: ``dlc.build(schedule, args)``.

    Warns
    -----
    UserWarning
        If the config was not measured for this workload, with where it comes from.

    See Also
    --------
    best_choice : Returns the config, and where it comes from.
    """
    choice = best_choice(workload, target, db, threads=threads, template=template)
    if choice.source != "record":
        warnings.warn(escaped(f"{workload}: {choice.note}"), UserWarning, stacklevel=2)
    item = operator_of(workload, template)
    return item.template(choice.workload, resolve(target), choice.config)


@contextmanager
def _opened(db: str | Path | RecordStore) -> Iterator[RecordStore]:
    if isinstance(db, RecordStore):
        yield db
    else:
        with RecordStore(db, is_read_only=str(db) != ":memory:") as store:
            yield store


@dataclass(frozen=True, slots=True)
class _Place:
    """The workload, target and space that a config is chosen for."""

    operator: Operator
    workload: Workload
    target: Target
    space: Space
    default: Config

    def fits(self, record: Record) -> bool:
        """Tell whether a record is of this workload and of this version of its space."""
        same = record.config.fingerprint == self.space.fingerprint
        return same and record.workload == self.workload

    def choice(self, record: Record) -> Choice | None:
        """Return the config made from a record; None if the schedule refuses it."""
        try:
            if self.fits(record):
                config = self.space.adopt(record.config)
                note = (
                    f"{record.provenance}: {_seconds(record):.3g} s, run {record.run},"
                    f" {record.measured_at}"
                )
                return Choice(self.workload, config, "record", record, note)
            made = remapped(record.config.values, self.space, self.default)
            self.operator.template(self.workload, self.target, made.config)
        except UserError:
            return None
        is_own = record.workload == self.workload
        origin = "another version of its space" if is_own else str(record.workload)
        changed = f"; {', '.join(made.changes)}" if made.changes else ""
        note = f"not measured for this workload: from a record of {origin}{changed}"
        return Choice(self.workload, made.config, "neighbour", record, note)


def _in_order(place: _Place, records: Sequence[Record]) -> list[Record]:
    """Return the records in the order to try: those that fit, then those of near shapes."""
    own = sorted((record for record in records if place.fits(record)), key=_seconds)
    fastest: dict[Workload, Record] = {}
    for record in records:
        known = fastest.get(record.workload)
        if known is None or _seconds(record) < _seconds(known):
            fastest[record.workload] = record
    near = [(distance(place.workload, other), str(other), other) for other in fastest]
    near = sorted(item for item in near if math.isfinite(item[0]))[:_MOST_NEIGHBOURS]
    return [*own, *(fastest[other] for _, _, other in near)]


def _timed(records: Iterable[Record], kind: Kind | None) -> list[Record]:
    """Return the records of configs whose times are of a kind."""
    timed = (record for record in records if record.result.seconds is not None)
    timed = (record for record in timed if record.candidate is None)
    return [record for record in timed if record.provenance.kind == kind]


def _seconds(record: Record) -> float:
    return record.result.seconds or math.inf


def distance(first: Workload, second: Workload) -> float:
    """Return the distance between two shapes [log2]; infinite if they cannot be compared.

    Examples
    --------
    >>> small, wide = Workload.of("matmul", m=64, n=64), Workload.of("matmul", m=64, n=512)
    >>> distance(small, wide), distance(small, Workload.of("matmul", m=64))
    (3.0, inf)
    """
    ours, theirs = first.as_dict(), second.as_dict()
    if first.op != second.op or ours.keys() != theirs.keys():
        return math.inf
    total = 0.0
    for name, value in ours.items():
        other = theirs[name]
        if isinstance(value, int) and isinstance(other, int):
            total += (math.log2(max(value, 0.5)) - math.log2(max(other, 0.5))) ** 2
        elif value != other:
            return math.inf
    return math.sqrt(total)
