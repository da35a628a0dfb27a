"""View model of an accelerator's memories: values, each with its elements and its lifetime.

A value begins when an instruction writes elements without reading them. It lasts until its last
read before the elements are written anew; instructions that update elements prolong it. What is
overwritten without having been read is no value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from dlcompiler.pipeline.memory_maps import MemoryMap
from dlcompiler.simulate.accelerators.accesses import Access, Elements, accesses_of
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
class Memories:
    """The values of a program within a window."""

    map: MemoryMap
    values: tuple[Value, ...]
    """Values that are of use in the window."""
    unused: dict[str, int]
    """Memory -> loads that nothing reads; [1]."""
    depths: dict[str, int]
    """Memory -> its elements; [1]."""
    groups: tuple[str, ...]
    stages: frozenset[str]
    first: int
    last: int

    def of(self, memory: str) -> list[Value]:
        """Return the values of a memory in the order of their writes."""
        return [value for value in self.values if value.memory == memory]


def memories_of(map_: MemoryMap) -> Memories:
    """Return the view model of the memories of a program."""
    groups: dict[Group, int] = {}
    values: list[Value] = []
    begin = 0
    depths: dict[str, int] = {}
    for part, run in enumerate(map_.runs):
        depths |= {m.name: m.depth for m in run.program.accelerator.memories}
        values += _Tracker(run, part, begin, groups_of(run, groups)).values()
        begin += run.cycles
    last = map_.last or max([begin, *(v.last_use for v in values)])
    first = min(map_.first, max(last - 1, 0))
    used = (v for v in values if v.uses and v.last_use > first and v.start < last)
    unused: dict[str, int] = {}
    for value in values:
        if not value.uses and _is_load(map_.runs[value.part], value.step):
            unused[value.memory] = unused.get(value.memory, 0) + 1
    names = tuple(name for name, _ in groups)
    stages = frozenset(name for name, is_stage in groups if is_stage)
    return Memories(map_, tuple(used), unused, depths, names, stages, first, last)


def _is_load(run: TimedRun, step: int) -> bool:
    return run.program.steps[step].instruction.kind == "load"


@dataclass
class _Tracker:
    """Follows the accesses of a run in the order of time."""

    run: TimedRun
    part: int
    begin: int
    group: Ints
    made: list[Value] = field(default_factory=list)

    def values(self) -> list[Value]:
        accesses = list(accesses_of(self.run.program))
        memories = self.run.program.accelerator.memories
        self.owner = {memory.name: np.full(memory.depth, -1, np.int64) for memory in memories}
        # In a program without races, what an instruction reads is overwritten only after it ended.
        for step in np.argsort(self.run.start, kind="stable").tolist():
            for access in _reads_first(accesses[step]):
                if access.how == "write":
                    self._write(step, access)
                else:
                    self._use(step, access)
        return self.made

    def _write(self, step: int, access: Access) -> None:
        low, high, count = _extent(access.elements)
        if not count:
            return
        start, end = int(self.run.start[step]), int(self.run.end[step])
        self.owner[access.memory][access.elements] = len(self.made)
        self.made.append(Value(
            access.memory, low, high, count, int(self.group[step]), step, self.part,
            start + self.begin, end + self.begin,
        ))  # fmt: skip

    def _use(self, step: int, access: Access) -> None:
        owners = self.owner[access.memory][access.elements]
        start, end = (int(a[step]) + self.begin for a in (self.run.start, self.run.end))
        for number in set(owners.tolist()) - {-1}:
            value = self.made[number]
            value.first_use = start if value.first_use < 0 else value.first_use
            value.last_use = max(value.last_use, end)
            value.uses += 1


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


def alive_over_time(values: Sequence[Value]) -> tuple[Ints, Ints]:
    """Return cycles, and how many elements are alive from each of them on.

    Examples
    --------
    >>> one = Value("inp", 0, 4, 4, 0, 0, 0, start=10, written=12, last_use=30, uses=1)
    >>> cycles, alive = alive_over_time([one])
    >>> cycles.tolist(), alive.tolist()
    ([10, 30], [4, 0])
    """
    ends = [(v.start, v.count) for v in values] + [(v.last_use, -v.count) for v in values]
    if not ends:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    times, changes = np.array(sorted(ends), np.int64).T
    cycles, index = np.unique(times, return_inverse=True)
    alive = np.cumsum(np.bincount(index, changes)).astype(np.int64)
    return cycles, alive
