"""Find elements that are read before they are written, and outputs that are not fully written.

The answer for a load is *safe*, when one store before it covers all that it reads, *violated*, with
a point of the program and an element that no store can have written by then, or *unknown*::

    def main(A: float32[8], C: float32[7]):        initialisation of main: violated
        allocate T: float32[8]                       C is written: safe
        for i in range(7):                           T is read: violated
            T[i] = A[i]                                T[7] is read at j=6, but not written before
        for j in range(7):
            C[j] = T[j + 1]

Safe comes from boxes (`coverage`); violated from corners of what is read, each of which is compared
with every store by the search of `dependence_systems`. The iterations of a parallel loop are taken
in order: if the result depends on the order, that is a race (`races`). Threads of a block may read
elements that other threads wrote before a barrier.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dlcompiler.analysis.accesses import Access, Accesses, Loop, collect_accesses
from dlcompiler.analysis.coverage import covered_box
from dlcompiler.analysis.dependence_systems import may_write
from dlcompiler.analysis.guards import Guards
from dlcompiler.analysis.races import ORDER, Status, format_element, format_values
from dlcompiler.analysis.values import DataDependent, evaluate
from dlcompiler.arith import Affine
from dlcompiler.ir import Assert, Buffer, PrimFunc, is_in_block, walk_statements

MAX_POINTS = 128


@dataclass(frozen=True, slots=True)
class Unwritten:
    """An element that is needed but not written."""

    element: tuple[int, ...]
    point: Mapping[Loop, int]
    """The loops around the load, with their values; empty at the end of the program."""


@dataclass(frozen=True, slots=True)
class BufferVerdict:
    """The verdict whether a load reads only written elements, or an output is fully written."""

    buffer: Buffer
    read: Access | None
    status: Status
    witness: Unwritten | None = None

    @property
    def reason(self) -> str:
        """Which element is not written; '' where none is known."""
        if self.witness is None:
            return ""
        element = format_element(self.buffer, self.witness.element)
        if self.read is None:
            return f"{element} is never written"
        at = f" at {format_values(self.witness.point)}" if self.witness.point else ""
        return f"{element} is read{at}, but not written before"

    def __str__(self) -> str:
        line = f"{self.buffer.name} is {'read' if self.read else 'written'}: {self.status}"
        return f"{line}\n  {self.reason}" if self.witness else line


@dataclass(frozen=True, slots=True)
class InitialisationReport:
    """The verdicts on all outputs, and on all loads from buffers that the program writes."""

    name: str
    verdicts: tuple[BufferVerdict, ...]

    @property
    def status(self) -> Status:
        """The worst verdict: violated, then unknown, then safe."""
        return max((v.status for v in self.verdicts), key=ORDER.index, default="safe")

    @property
    def violations(self) -> tuple[BufferVerdict, ...]:
        """The loads and outputs with an element that is shown not to be written."""
        return tuple(v for v in self.verdicts if v.status == "violated")

    def __str__(self) -> str:
        lines = [f"initialisation of {self.name}: {self.status}"]
        for verdict in self.verdicts:
            lines += [f"  {line}" for line in str(verdict).splitlines()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)


def analyze_initialisation(func: PrimFunc) -> InitialisationReport:
    """Tell whether a function reads only what it has written, and writes its outputs in full.

    Parameters
    ----------
    func
        A lowered function. Its outputs count as not written when it begins.

    Returns
    -------
    InitialisationReport
    """
    return initialisation_of(collect_accesses(func))


def initialisation_of(accesses: Accesses, *, max_points: int = MAX_POINTS) -> InitialisationReport:
    """Analyse the initialisation of a function from its accesses; see `analyze_initialisation`.

    Where no proof of safety is found, at most `max_points` points are searched for a violation.
    """
    checker = _Checker(accesses, max_points)
    return InitialisationReport(accesses.func.name, tuple(checker.verdicts()))


class _Checker:
    def __init__(self, accesses: Accesses, max_points: int) -> None:
        self.func = accesses.func
        self.items = list(enumerate(accesses.items))
        self.analyzer = accesses.analyzer
        self.max_points = max_points
        self.is_checked = any(isinstance(node, Assert) for node in walk_statements(self.func.body))
        """Whether indices that may be outside are checked before they are used."""
        self.stores: dict[Buffer, list[tuple[int, Access]]] = {}
        for position, access in self.items:
            if access.is_write:
                self.stores.setdefault(access.buffer, []).append((position, access))

    def verdicts(self) -> Iterator[BufferVerdict]:
        for output in self.func.outputs:
            yield self.output(output)
        seen: set[tuple[int, ...]] = set()
        for position, read in self.items:
            place = _ids((read.buffer, *read.indices, *read.conditions, *read.loops))
            if not read.is_write and place not in seen:
                seen.add(place)
                yield self.read(position, read)

    def output(self, buffer: Buffer) -> BufferVerdict:
        stores = self.stores.get(buffer, [])
        if not all(isinstance(extent, int) for extent in buffer.shape):
            return BufferVerdict(buffer, None, "unknown")
        shape = buffer.static_shape
        if 0 in shape:
            return BufferVerdict(buffer, None, "safe")
        nothing = Guards((), self.analyzer)
        ends = [(Affine.of_constant(0), Affine.of_constant(n - 1)) for n in shape]
        for _, store in stores:
            box = covered_box(store, (), (), self.analyzer)
            if box is not None and all(
                sweep.has(end, nothing, self.analyzer)
                for sweep, pair in zip(box, ends, strict=True)
                for end in pair
            ):
                return BufferVerdict(buffer, None, "safe")
        for corner in itertools.islice(_corners(shape), self.max_points):
            if not any(may_write(store, corner, None, True, self.analyzer) for _, store in stores):
                return BufferVerdict(buffer, None, "violated", Unwritten(corner, {}))
        return BufferVerdict(buffer, None, "unknown")

    def read(self, position: int, read: Access) -> BufferVerdict:
        stores = self.stores.get(read.buffer, [])
        if any(n < position and self.covers(store, read) for n, store in stores):
            return BufferVerdict(read.buffer, read, "safe")
        for values in self.points(read):
            at = {loop.var: value for loop, value in values.items()}
            try:
                if not all(evaluate(condition, at) for condition in read.conditions):
                    continue
                element = tuple(evaluate(index, at) for index in read.indices)
                epoch = None if read.epoch is None else evaluate(read.epoch, at)
            except DataDependent:
                continue
            if self.is_checked and _is_outside(element, read.buffer):
                continue  # an assertion before the access ends the program
            if not any(
                may_write(store, element, values, n < position, self.analyzer, epoch)
                for n, store in stores
            ):
                unwritten = Unwritten(element, values)
                return BufferVerdict(read.buffer, read, "violated", unwritten)
        return BufferVerdict(read.buffer, read, "unknown")

    def covers(self, store: Access, read: Access) -> bool:
        pairs = zip(store.loops, read.loops, strict=False)
        shared = [a for a, b in itertools.takewhile(lambda pair: pair[0] is pair[1], pairs)]
        if self.has_barrier(store, read):  # elements that other threads wrote count as written
            shared = [loop for loop in shared if not is_in_block(loop.kind)]
        box = covered_box(store, shared, read.conditions, self.analyzer)
        if box is None:
            return False
        guards = Guards(read.conditions, self.analyzer)
        indices = (self.analyzer.affine(index) for index in read.indices)
        return all(
            sweep.has(index, guards, self.analyzer)
            for sweep, index in zip(box, indices, strict=True)
        )

    def has_barrier(self, store: Access, read: Access) -> bool:
        """Tell whether all threads always pass a barrier between a store and a later load."""
        if store.epoch is None or read.epoch is None:
            return False
        passed = self.analyzer.affine(read.epoch).plus(self.analyzer.affine(store.epoch), -1)
        return self.analyzer.bounds(passed).low > 0

    def points(self, read: Access) -> Iterator[dict[Loop, int]]:
        """Yield points of the loops around a load: all if there are few, else corners."""
        sizes = [loop.size for loop in read.loops]
        if any(size is None for size in sizes):
            return
        known = [size for size in sizes if size is not None]
        for point in itertools.islice(_corners(known), self.max_points):
            yield dict(zip(read.loops, point, strict=True))


def _is_outside(element: Sequence[int], buffer: Buffer) -> bool:
    """Tell whether an index is certainly outside a buffer."""
    pairs = zip(element, buffer.shape, strict=True)
    return any(n < 0 or (isinstance(extent, int) and n >= extent) for n, extent in pairs)


def _corners(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield all points of a small box, or some corners of a large box."""
    last, first = tuple(size - 1 for size in sizes), tuple(0 for _ in sizes)
    if math.prod(sizes) == 0:
        return
    yield last
    if math.prod(sizes) <= MAX_POINTS:
        yield from itertools.product(*(range(size) for size in sizes))
        return
    yield first
    for n, size in enumerate(sizes):
        yield (*first[:n], size - 1, *first[n + 1 :])
        yield (*last[:n], 0, *last[n + 1 :])


def _ids(items: Sequence[object]) -> tuple[int, ...]:
    return tuple(id(item) for item in items)
