"""View model of an accelerator's memories: values, each with its elements and its lifetime.

A value begins when an instruction writes elements without reading them. It lasts until its last
read before the elements are written anew; instructions that update elements prolong it. What is
overwritten without having been read is no value.

A program may have 100,000 instructions, of which most access the same few ranges of elements. So
the values are arrays: the accesses of all instructions are sorted by range and time at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from dlcompiler.pipeline.memory_maps import MemoryMap
from dlcompiler.simulate.accelerators.accesses import Access, Accesses, Elements, accesses_of
from dlcompiler.simulate.accelerators.timing.run import TimedRun
from dlcompiler.views.device.timeline_lanes import Group, Ints, groups_of


@dataclass(slots=True)
class Value:
    """Elements that were written together, while they are of use."""

    memory: str
    low: int
    """Its first element."""
    high: int
    """The element behind its last one."""
    count: int
    """Number of elements; [1]."""
    group: int
    """Of the instruction that wrote it, as in the timeline."""
    step: int
    """The instruction that wrote it."""
    part: int
    start: int
    """First cycle in which it is written; [clock]."""
    written: int
    """First cycle in which it is complete; [clock]."""
    first_use: int = -1
    """First cycle in which it is read; [clock]."""
    last_use: int = -1
    """First cycle after its last use; [clock]."""
    uses: int = 0
    """Instructions that read or update it; [1]."""

    def is_alive(self, cycle: int) -> bool:
        """Tell whether it is in its memory in a cycle, or being written."""
        return self.start <= cycle < self.last_use


@dataclass(frozen=True, eq=False)
class Values:
    """Values as arrays, in the order of their writes; the fields are those of `Value`."""

    names: tuple[str, ...]
    """Of the memories."""
    memory: Ints
    """Number of the memory in `names`; (values,)."""
    low: Ints
    high: Ints
    count: Ints
    group: Ints
    step: Ints
    part: Ints
    start: Ints
    written: Ints
    first_use: Ints
    last_use: Ints
    uses: Ints

    def __len__(self) -> int:
        return len(self.low)

    def where(self, chosen: npt.NDArray[np.bool_]) -> Values:
        """Return some of the values."""
        return Values(self.names, *(column[chosen] for column in self._columns()))

    def of(self, memory: str) -> Values:
        """Return the values of a memory."""
        known = self.names.index(memory) if memory in self.names else -1
        return self.where(self.memory == known)

    def is_alive(self, cycle: int) -> npt.NDArray[np.bool_]:
        """Tell which of them are in their memories in a cycle, or being written; (values,)."""
        return (self.start <= cycle) & (cycle < self.last_use)

    def rows(self) -> Iterator[Value]:
        """Yield each value."""
        columns = (column.tolist() for column in self._columns())
        return (Value(self.names[n], *rest) for n, *rest in zip(*columns, strict=True))

    def _columns(self) -> list[Ints]:
        return [getattr(self, each.name) for each in fields(self) if each.name != "names"]


@dataclass(frozen=True, eq=False)
class Memories:
    """The values of a program within a window."""

    map: MemoryMap
    found: Values
    """Values that are of use in the window."""
    unused: dict[str, int]
    """Memory -> loads that nothing reads; [1]."""
    depths: dict[str, int]
    """Memory -> its elements; [1]."""
    groups: tuple[str, ...]
    stages: frozenset[str]
    first: int
    last: int

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """The values, one after another."""
        return tuple(self.found.rows())

    def of(self, memory: str) -> list[Value]:
        """Return the values of a memory in the order of their writes."""
        return [value for value in self.values if value.memory == memory]


def memories_of(map_: MemoryMap) -> Memories:
    """Return the view model of the memories of a program."""
    values, groups = _values_of(map_.runs)
    depths = {m.name: m.depth for run in map_.runs for m in run.program.accelerator.memories}
    whole = max(map_.cycles, int(values.last_use.max(initial=0)))
    last = min(map_.last or whole, whole)
    first = min(map_.first, max(last - 1, 0))
    is_used = values.uses > 0
    used = values.where(is_used & (values.last_use > first) & (values.start < last))
    unused: dict[str, int] = {}
    for value in values.where(~is_used).rows():
        if map_.runs[value.part].program.steps[value.step].instruction.kind == "load":
            unused[value.memory] = unused.get(value.memory, 0) + 1
    names = tuple(name for name, _ in groups)
    stages = frozenset(name for name, is_stage in groups if is_stage)
    return Memories(map_, used, unused, depths, names, stages, first, last)


@lru_cache(maxsize=2)  # the windows of one program have the same values
def _values_of(runs: tuple[TimedRun, ...]) -> tuple[Values, tuple[Group, ...]]:
    """Return all values of a program, and the groups of its instructions."""
    groups: dict[Group, int] = {}
    names = dict.fromkeys(m.name for run in runs for m in run.program.accelerator.memories)
    parts: list[list[Ints]] = []
    begin = 0
    for part, run in enumerate(runs):
        events = _Events.of(run, tuple(names))
        parts.append(events.values(part, begin, groups_of(run, groups)))
        begin += run.cycles
    columns = (np.concatenate(own) for own in zip(*parts, strict=True))
    return Values(tuple(names), *columns), tuple(groups)


@dataclass(frozen=True, eq=False)
class _Events:
    """The accesses of a run in the order of time; an instruction reads before it writes."""

    run: TimedRun
    step: Ints
    """The instruction of each; (events,)."""
    entry: Ints
    """What each accesses: a number in the lists below; (events,)."""
    accesses: list[Access]
    memory: Ints
    """Of each entry, the memory by its number; (entries,)."""
    is_write: npt.NDArray[np.bool_]
    """(entries,)"""

    @staticmethod
    def of(run: TimedRun, names: tuple[str, ...]) -> _Events:
        """Return the accesses of a run."""
        found: Accesses = accesses_of(run.program)
        entries = [list(_reads_first(kind)) for kind in found.kinds]
        firsts = np.cumsum([0, *map(len, entries)])
        # In a program without races, what an instruction reads is overwritten only after it ended.
        order = np.argsort(run.start, kind="stable")
        kinds = found.kind[order]
        counts = np.diff(firsts)[kinds]
        step = np.repeat(order, counts)
        within = np.arange(len(step)) - np.repeat(np.cumsum(counts) - counts, counts)
        entry = np.repeat(firsts[kinds], counts) + within
        accesses = [access for kind in entries for access in kind]
        memory = np.array([names.index(access.memory) for access in accesses], np.int64)
        is_write = np.array([access.how == "write" for access in accesses], bool)
        return _Events(run, step, entry, accesses, memory, is_write)

    def values(self, part: int, begin: int, group: Ints) -> list[Ints]:
        """Return the columns of the values that the accesses write; see `Values`."""
        extents = np.array([_extent(a.elements) for a in self.accesses], np.int64).reshape(-1, 3)
        writes = self.is_write[self.entry] & (extents[self.entry, 2] > 0)
        number = np.where(writes, np.cumsum(writes) - 1, -1)
        step, entry = self.step[writes], self.entry[writes]
        start, end = self.run.start + begin, self.run.end + begin
        users, owners = self._uses(number)
        first_use = np.full(len(step), np.iinfo(np.int64).max)
        last_use = np.full(len(step), -1)
        np.minimum.at(first_use, owners, start[self.step[users]])
        np.maximum.at(last_use, owners, end[self.step[users]])
        uses = np.bincount(owners, minlength=len(step))
        first_use[uses == 0] = -1
        low, high, count = extents[entry].T
        return [
            self.memory[entry], low, high, count, group[step], step, np.full(len(step), part),
            start[step], end[step], first_use, last_use, uses,
        ]  # fmt: skip

    def _uses(self, number: Ints) -> tuple[Ints, Ints]:
        """Return pairs of an event that reads a value and the number of the value.

        Parameters
        ----------
        number
            For each event, the number of the value that it writes; -1 if it writes none.
        """
        found: list[Ints] = [np.zeros(0, np.int64)]
        count = int(number.max(initial=0)) + 1
        for event, atom in self._pairs(number):
            order = np.lexsort((event, atom))
            event, atom = event[order], atom[order]
            place = np.arange(len(event))
            written = np.maximum.accumulate(np.where(number[event] >= 0, place, -1))
            begins = np.maximum.accumulate(np.where(np.diff(atom, prepend=-1) != 0, place, 0))
            is_use = (number[event] < 0) & ~self.is_write[self.entry[event]] & (written >= begins)
            found.append(event[is_use] * count + number[event[written[is_use]]])
        users, owners = np.divmod(np.unique(np.concatenate(found)), count)
        return users, owners

    def _pairs(self, number: Ints) -> Iterator[tuple[Ints, Ints]]:
        """Yield events with the ranges of elements that they access, some ranges at a time.

        The ranges of a memory are cut where any access begins or ends, so that an access consists
        of whole ranges.
        """
        for memory in np.unique(self.memory).tolist():
            mine = np.flatnonzero(self.memory == memory)
            runs = {entry: _runs(self.accesses[entry].elements) for entry in mine.tolist()}
            cuts = np.unique(np.concatenate([np.concatenate(run) for run in runs.values()]))
            atoms = {
                entry: np.concatenate([
                    np.arange(a, b)
                    for a, b in np.searchsorted(cuts, np.stack(run, axis=1)).tolist()
                ] or [np.zeros(0, np.int64)])
                for entry, run in runs.items()
            }  # fmt: skip
            events = np.flatnonzero(self.memory[self.entry] == memory)
            yield from self._in_portions(events, atoms, len(cuts))

    def _in_portions(
        self, events: Ints, atoms: dict[int, Ints], count: int
    ) -> Iterator[tuple[Ints, Ints]]:
        """Yield the pairs of some events, of at most about `_MOST_PAIRS` at a time."""
        sizes = np.zeros(len(self.accesses), np.int64)
        for entry, own in atoms.items():
            sizes[entry] = len(own)
        total = int(sizes[self.entry[events]].sum())
        step = max(count * _MOST_PAIRS // max(total, 1), 1)
        for low in range(0, count, step):
            kept = {e: own[(low <= own) & (own < low + step)] for e, own in atoms.items()}
            for entry, own in kept.items():
                sizes[entry] = len(own)
            firsts = np.cumsum(sizes) - sizes
            flat = np.concatenate([kept[entry] for entry in sorted(kept)])
            repeats = sizes[self.entry[events]]
            within = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
            where = np.repeat((firsts - firsts[min(kept)])[self.entry[events]], repeats) + within
            yield np.repeat(events, repeats), flat[where]


_MOST_PAIRS = 1 << 22
"""Pairs of an access and a range of elements that are sorted at once; [1]."""


def _runs(elements: Elements) -> tuple[Ints, Ints]:
    """Return the first element of each dense range, and the one behind its last."""
    if isinstance(elements, slice):
        return np.array([elements.start]), np.array([elements.stop])
    breaks = np.flatnonzero(np.diff(elements) > 1)
    firsts = np.concatenate([elements[:1], elements[breaks + 1]])
    lasts = np.concatenate([elements[breaks], elements[-1:]])
    return firsts, lasts + 1


def _reads_first(accesses: Sequence[Access]) -> Iterator[Access]:
    yield from (each for each in accesses if each.how != "write")
    yield from (each for each in accesses if each.how == "write")


def _extent(elements: Elements) -> tuple[int, int, int]:
    """Return the first element, the one behind the last, and the number of elements."""
    if isinstance(elements, slice):
        return elements.start, elements.stop, elements.stop - elements.start
    if not len(elements):
        return 0, 0, 0
    return int(elements[0]), int(elements[-1]) + 1, len(elements)


def alive_over_time(start: Ints, last_use: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Return cycles, and how many elements are alive from each of them on.

    Parameters
    ----------
    start, last_use, count
        Of each value, as in `Value`; (values,).

    Examples
    --------
    >>> cycles, alive = alive_over_time(np.array([10]), np.array([30]), np.array([4]))
    >>> cycles.tolist(), alive.tolist()
    ([10, 30], [4, 0])
    """
    times, changes = np.concatenate([start, last_use]), np.concatenate([count, -count])
    cycles, index = np.unique(times, return_inverse=True)
    alive = np.cumsum(np.bincount(index, changes, len(cycles))).astype(np.int64)
    return cycles, alive
