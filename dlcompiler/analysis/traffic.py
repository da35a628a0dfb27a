"""Predict the bytes that move between the levels of memory, from footprints.

The model assumes that a working set fits: for each nest it finds the outermost loop of which one
iteration touches no more than the level holds. During one run of this loop, each cache line is
loaded once, and written back once if it was written. Nothing is kept between two runs. The traffic
is the footprint of the loop times the number of its runs.

- Lines are counted, not elements: with a large stride a line comes for each element.
- What is written before it is read is not fetched; a buffer allocated inside is not written back.
- A level that cores share is divided among the iterations of a parallel loop that run at once.
- Conflicts, prefetching and the order in which lines leave are left out. A simulated cache (fully
  associative, least recently used leaves) moves the same, within a tenth, where an iteration fits
  with room to spare; near the edge the prediction may be off several times over.

**Source:** M. E. Wolf, M. S. Lam, "A Data Locality Optimizing Algorithm", PLDI 1991, section 3
(footprints and reuse of a loop nest); K. Goto, R. A. van de Geijn, "Anatomy of High-Performance
Matrix Multiplication", TOMS 34(3), 2008, section 4 (which tile stays in which level).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dlcompiler.analysis.footprint import Footprint, Footprints, Nest, ProgramFootprint
from dlcompiler.analysis.references import Reference
from dlcompiler.ir import Buffer
from dlcompiler.target import CacheLevel, Target


@dataclass(frozen=True, slots=True, eq=False)
class Fill:
    """The bytes that all runs of a loop move into a cache level and out of it."""

    level: CacheLevel
    nest: Nest
    """The outermost loop of which an iteration fits; the whole program if all of it fits."""
    buffer: Buffer
    fetched_bytes: int
    """Loaded from the next farther level; [byte]."""
    written_bytes: int
    """Written back to the next farther level; [byte]."""

    @property
    def moved_bytes(self) -> int:
        """Sum of both directions; [byte]."""
        return self.fetched_bytes + self.written_bytes


def compulsory_bytes(footprint: ProgramFootprint) -> int:
    """Return the least traffic to and from memory: each input and output once; [byte].

    Examples
    --------
    >>> from dlcompiler import te
    >>> from dlcompiler.schedule import create_schedule
    >>> from dlcompiler.lowering import build_nests
    >>> A = te.placeholder((1000,), name="A")
    >>> B = te.compute((1000,), lambda i: A[i] * 2.0, name="B")
    >>> compulsory_bytes(ProgramFootprint(build_nests(create_schedule(B.op).state, [A, B], "f")))
    8000
    """
    items = footprint.one(footprint.root)
    outside = set(footprint.func.buffers)
    outputs = set(footprint.func.outputs)
    return sum(
        item.bytes for buffer, item in items.items()
        if buffer in outside and (item.is_exact or buffer in outputs)
    )  # fmt: skip


def traffic(footprint: ProgramFootprint, target: Target) -> dict[str, list[Fill]]:
    """Predict the traffic of each cache level by its name, nearest first."""
    return {level.name: list(_fills(footprint, level, target)) for level in target.caches}


def moved_to_memory(footprint: ProgramFootprint, target: Target) -> int:
    """Predict how many bytes are moved between the last cache and memory; [byte]."""
    if not target.caches:
        return sum(item.moved_bytes for item in _fills(footprint, _NO_CACHE, target))
    return sum(item.moved_bytes for item in _fills(footprint, target.caches[-1], target))


def moved_bytes(
    footprint: ProgramFootprint, level: CacheLevel, target: Target, buffer: Buffer
) -> int:
    """Predict how many bytes of a buffer move in and out of a level; [byte]."""
    fills = _fills(footprint, level, target)
    return sum(fill.moved_bytes for fill in fills if fill.buffer is buffer)


_NO_CACHE = CacheLevel("none", 0, line=64, shared_by=1)


def share_bytes(level: CacheLevel, at_once: int, target: Target) -> int:
    """Return the part of a cache level for each iteration that runs at the same time; [byte]."""
    return level.bytes // max(min(level.shared_by, at_once, target.cores), 1)


def occupied_bytes(item: Footprint, line_bytes: int) -> int:
    """Return the size of a footprint in a cache, in whole lines; [byte]."""
    if item.elements == item.buffer.size:
        return item.bytes  # no part of a line is left over but at the end
    return max(item.lines * line_bytes, item.bytes)


def working_set_bytes(items: Footprints, line_bytes: int) -> int:
    """Return the size of several footprints in a cache; [byte]."""
    return sum(occupied_bytes(item, line_bytes) for item in items.values())


def _fills(footprint: ProgramFootprint, level: CacheLevel, target: Target) -> Iterator[Fill]:
    stack = [(footprint.root, 1)]
    while stack:
        nest, at_once = stack.pop()
        if nest.loop is not None and nest.loop.kind == "parallel":
            at_once = max(at_once, nest.trips)
        room = share_bytes(level, at_once, target)
        fits = working_set_bytes(footprint.one(nest), footprint.line_bytes) <= room
        if fits:
            yield from _of(footprint, level, nest, nest.references, nest.runs, 1)
            continue
        own: dict[Buffer, list[Reference]] = {}
        for item in nest.own:
            own.setdefault(item.access.buffer, []).append(item)
        if own:
            yield from _of(footprint, level, nest, own, nest.runs * nest.trips, 0)
        stack += [(child, at_once) for child in reversed(nest.children)]


def _of(
    footprint: ProgramFootprint,
    level: CacheLevel,
    nest: Nest,
    accesses: Mapping[Buffer, Sequence[Reference]],
    runs: int,
    inside: int,
) -> Iterator[Fill]:
    """Yield the traffic of accesses; `inside` is the number of loops of the nest that run."""
    if accesses is nest.references:
        items = footprint.whole(nest)
    else:
        items = footprint.touched({b: list(a) for b, a in accesses.items()}, nest.depth)
    for buffer, item in items.items():
        first = accesses[buffer][0].access
        is_own = buffer not in footprint.func.buffers and first.shared_from >= nest.depth
        if is_own and inside:
            continue
        size = occupied_bytes(item, footprint.line_bytes) * runs
        yield Fill(
            level,
            nest,
            buffer,
            0 if first.is_write else size,
            size if item.is_written else 0,
        )
