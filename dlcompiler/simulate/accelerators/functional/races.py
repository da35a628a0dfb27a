"""Races between engines: accesses of one place that no chain of tokens puts in an order.

Each instruction has a vector clock: for each engine, the number of its instructions that are known
to be done before. A pop takes over the clock of the push that it matches. Tokens of a queue match
in the order of their pushes in each interleaving, so the clocks do not depend on the order in which
the simulation happens to run the engines.

**Source:** C. Flanagan and S. N. Freund, "FastTrack: Efficient and Precise Dynamic Race Detection",
PLDI 2009.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dlcompiler.simulate.accelerators.functional.findings import Findings
from dlcompiler.simulate.accelerators.functional.transfers import Block
from dlcompiler.simulate.accelerators.work import Work
from dlcompiler.target.accelerators import Accelerator

Place = slice | npt.NDArray[np.int64]
_ALWAYS = 1 << 60


class Clocks:
    """The vector clocks of instructions, in any order that the tokens allow."""

    def __init__(self, engines: int, queues: int) -> None:
        self._now = [[0] * engines for _ in range(engines)]
        self._pushed: list[list[list[int]]] = [[] for _ in range(queues)]
        self._popped = [0] * queues
        self.lanes: list[list[int]] = [[] for _ in range(engines)]
        """Engine -> its instructions so far."""

    def begin(self, work: Work, step: int) -> npt.NDArray[np.int64]:
        """Return the clock of an instruction, with an entry behind those of the engines.

        The last entry stands for "before everything".
        """
        clock = self._now[work.engine]
        for queue in work.pops:
            other = self._pushed[queue][self._popped[queue]]
            self._popped[queue] += 1
            clock[:] = map(max, clock, other)
        self.lanes[work.engine].append(step)
        clock[work.engine] = len(self.lanes[work.engine])
        return np.array([*clock, _ALWAYS], dtype=np.int64)

    def end(self, work: Work) -> None:
        """Push the tokens of an instruction."""
        for queue in work.pushes:
            self._pushed[queue].append(list(self._now[work.engine]))


class Shadow:
    """Who wrote and read each place of a memory last."""

    def __init__(self, name: str, size: int, engines: int) -> None:
        self.name = name
        self._writer = np.full(size, engines, dtype=np.int8)
        # Zeros take no memory until they are written, which matters for DRAM.
        self._written = np.zeros(size, dtype=np.int32)
        self._read = np.zeros((engines, size), dtype=np.int32)

    def read(self, place: Place, engine: int, clock: npt.NDArray[np.int64]) -> Conflict | None:
        """Note a read, and return the write that it races with."""
        conflict = self._unordered_write(place, clock)
        self._read[engine, place] = clock[engine]
        return conflict

    def write(self, place: Place, engine: int, clock: npt.NDArray[np.int64]) -> Conflict | None:
        """Note a write, and return the write or read that it races with."""
        conflict = self._unordered_write(place, clock)
        for other in range(len(self._read)):
            if conflict is None and other != engine:
                reads = self._read[other, place]
                late = reads > clock[other]
                if late.any():
                    at = int(np.argmax(late))
                    conflict = Conflict(_element(place, at), other, int(reads[at]), "read")
        self._writer[place] = engine
        self._written[place] = clock[engine]
        return conflict

    def _unordered_write(self, place: Place, clock: npt.NDArray[np.int64]) -> Conflict | None:
        written, writer = self._written[place], self._writer[place]
        late = written > clock[writer]
        if not late.any():
            return None
        at = int(np.argmax(late))
        return Conflict(_element(place, at), int(writer[at]), int(written[at]), "written")


class Conflict:
    """An access that another one races with."""

    def __init__(self, element: int, engine: int, sequence: int, verb: str) -> None:
        self.element = element
        self.engine = engine
        self.sequence = sequence
        self.verb = verb


def _element(place: Place, offset: int) -> int:
    return place.start + offset if isinstance(place, slice) else int(place[offset])


class Races:
    """Find accesses that are in no order: in memories of several engines, and in DRAM."""

    def __init__(
        self, accelerator: Accelerator, works: Sequence[Work], dram_bytes: int, findings: Findings
    ) -> None:
        self._findings = findings
        self._names = [engine.name for engine in accelerator.engines]
        count = len(self._names)
        assert accelerator.queues is not None
        self.clocks = Clocks(count, len(accelerator.queues))
        self._shadows = {
            memory.name: Shadow(memory.name, memory.depth, count)
            for memory in accelerator.memories
            if len(accelerator.accessors(memory.name)) > 1
        }
        self._granule = np.gcd.reduce([memory.dram_bytes for memory in accelerator.memories])
        self._dram = None
        if stores_meet_loads(accelerator, works, dram_bytes, int(self._granule)):
            self._dram = Shadow("DRAM", dram_bytes // int(self._granule) + 1, count)
        self._clock = np.zeros(count + 1, dtype=np.int64)

    def begin(self, work: Work, step: int) -> None:
        """Begin an instruction."""
        self._clock = self.clocks.begin(work, step)

    def access(self, memory: str, place: Place, work: Work, step: int, *, is_write: bool) -> None:
        """Report that an access of a memory races with another one."""
        shadow = self._shadows.get(memory)
        if shadow is not None:
            self._note(shadow, place, work, step, is_write=is_write)

    def access_dram(self, block: Block, work: Work, step: int, *, is_write: bool) -> None:
        """Report that an access of DRAM races with another one."""
        if self._dram is not None:
            place = granules(block, int(self._granule))
            self._note(self._dram, place, work, step, is_write=is_write)

    def _note(self, shadow: Shadow, place: Place, work: Work, step: int, *, is_write: bool) -> None:
        note = shadow.write if is_write else shadow.read
        conflict = note(place, work.engine, self._clock)
        if conflict is None:
            return
        other = self.clocks.lanes[conflict.engine][conflict.sequence - 1]
        at = f"element {conflict.element} of {shadow.name}"
        if shadow is self._dram:
            at = f"byte {conflict.element * int(self._granule)} of DRAM"
        self._findings.report(
            "race",
            f"it {'writes' if is_write else 'reads'} {at}, which instruction {other} of"
            f" {self._names[conflict.engine]} {'writes' if conflict.verb == 'written' else 'reads'}"
            " at any time", step,
            because="no chain of tokens orders the two",
            hint=f"let {self._names[conflict.engine]} push a token after instruction {other}, and"
            f" {self._names[work.engine]} pop it here; or the other way round",
        )  # fmt: skip


def granules(block: Block, granule: int) -> Place:
    """Return the pieces of DRAM that a block touches, by number."""
    per = block.element_bytes // granule
    if block.is_dense:
        first = block.first * per
        return slice(first, first + block.rows * block.columns * per)
    rows = (block.first + np.arange(block.rows, dtype=np.int64) * block.stride) * per
    place = rows[:, None] + np.arange(block.columns * per, dtype=np.int64)
    return np.unique(place) if block.stride < block.columns else place.reshape(-1)


def stores_meet_loads(
    accelerator: Accelerator, works: Sequence[Work], dram_bytes: int, granule: int
) -> bool:
    """Tell whether a load may read what a store of another engine writes in DRAM.

    Each copy counts as the whole range from its first to its last byte.
    """
    spans: dict[str, list[tuple[int, int]]] = {"load": [], "store": []}
    sizes = {memory.name: memory.dram_bytes for memory in accelerator.memories}
    for work in works:
        if work.instruction.is_copy and not work.is_nop:
            fields, size = work.fields, sizes[work.instruction.memory]
            last = (fields["y_size"] - 1) * fields["x_stride"] + fields["x_size"]
            first = fields["dram_base"] * size
            spans[work.instruction.kind].append(
                (first // granule, (first + last * size) // granule)
            )
    if not spans["store"] or not spans["load"]:
        return False
    stores = np.array(spans["store"], dtype=np.int64)
    loads = np.array(spans["load"], dtype=np.int64)
    # Merge the ranges of stores, then look for the last one that begins before each load ends.
    stores = stores[np.argsort(stores[:, 0], kind="stable")]
    ends = np.maximum.accumulate(stores[:, 1])
    before = np.searchsorted(stores[:, 0], loads[:, 1]) - 1
    return bool(((before >= 0) & (ends[np.maximum(before, 0)] > loads[:, 0])).any())
