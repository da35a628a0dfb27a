"""Count the memory that each loop of a program touches: distinct elements, bytes, cache lines.

The program is counted before vector operations (``lower(..., simple_mode=True)``). Accesses to one
buffer are united: elements that two overlapping windows share count once. If the count differs
between iterations, it is that of the iteration that touches most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, product

from dlcompiler import dtypes
from dlcompiler.analysis.accesses import Loop, collect_accesses
from dlcompiler.analysis.lines import lines_of, lines_of_all
from dlcompiler.analysis.references import Reader, Reference
from dlcompiler.analysis.regions import Region, region, union
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import Buffer, PrimFunc, Var

MOST_PLACES = 64
"""Most combinations of iterations of the loops outside that are tried, all or some of them."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """The part of a buffer that is touched."""

    buffer: Buffer
    elements: int
    """Distinct elements; [1]."""
    lines: int
    """Distinct cache lines, at most, where the buffer begins with a line; [1]."""
    is_exact: bool
    """Whether the count is exact; otherwise it is an upper bound."""
    is_read: bool
    is_written: bool

    @property
    def bytes(self) -> int:
        """Size of the touched elements; [byte]."""
        return self.elements * dtypes.bytes_of(self.buffer.dtype)


Footprints = Mapping[Buffer, Footprint]


@dataclass(slots=True, eq=False)
class Nest:
    """A loop, or the whole program, with all accesses in it."""

    loop: Loop | None
    """None: the whole program."""
    depth: int
    """Number of loops around its inside, itself included."""
    runs: int
    """How often it is entered, without regard to guards; [1]."""
    references: dict[Buffer, list[Reference]] = field(default_factory=dict)
    children: list[Nest] = field(default_factory=list)
    own: list[Reference] = field(default_factory=list)
    """The accesses that are in no loop inside."""

    @property
    def trips(self) -> int:
        """Number of iterations; [1]."""
        return 1 if self.loop is None else self.loop.size or 0

    def walk(self) -> Iterator[Nest]:
        """Yield the loop itself and all loops inside, in the order of the text."""
        yield self
        for child in self.children:
            yield from child.walk()


class ProgramFootprint:
    """Footprints of a program's loops, computed on demand.

    Parameters
    ----------
    func
        A lowered program, before vector operations.
    line_bytes
        Size of a cache line; [byte].

    Raises
    ------
    ScheduleError
        If the sizes are known only when the program runs.

    Examples
    --------
    >>> from dlcompiler import te
    >>> from dlcompiler.schedule import create_schedule
    >>> from dlcompiler.lowering import build_nests
    >>> A = te.placeholder((10,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] + A[i + 1] + A[i + 2], name="B")
    >>> footprint = ProgramFootprint(build_nests(create_schedule(B.op).state, [A, B], "main"))
    >>> nest = footprint.root.children[0]
    >>> [item.elements for item in footprint.one(nest).values()]
    [3, 1]
    >>> [item.elements for item in footprint.whole(nest).values()]
    [10, 8]
    """

    def __init__(self, func: PrimFunc, line_bytes: int = 64) -> None:
        if func.symbols:
            names = ", ".join(symbol.name for symbol in func.symbols)
            raise ScheduleError(
                "count footprints",
                "sizes are known only when the program runs",
                because=f"they depend on {names}",
            )
        self.func = func
        self.line_bytes = line_bytes
        self.accesses = collect_accesses(func, with_inputs=True)
        self.reader = Reader(self.accesses.items, self.accesses.analyzer)
        self._counted: dict[tuple[Nest, Buffer, int], Footprint] = {}

    @cached_property
    def root(self) -> Nest:
        """The program as a tree of loops."""
        root = Nest(None, 0, 1)
        known: dict[Loop, Nest] = {}
        for access in self.accesses.items:
            item = self.reader.read(access)
            if item is None:
                continue
            nest = root
            nest.references.setdefault(item.access.buffer, []).append(item)
            for depth, loop in enumerate(item.access.loops, 1):
                if loop not in known:
                    known[loop] = Nest(loop, depth, nest.runs * nest.trips)
                    nest.children.append(known[loop])
                nest = known[loop]
                nest.references.setdefault(item.access.buffer, []).append(item)
            nest.own.append(item)
        return root

    @cached_property
    def nests(self) -> list[Nest]:
        """All loops, in the order of the text."""
        return [nest for nest in self.root.walk() if nest.loop is not None]

    def one(self, nest: Nest) -> Footprints:
        """Return the footprints of one iteration; for the root, those of the whole program."""
        return {buffer: self.one_of(nest, buffer) for buffer in nest.references}

    def whole(self, nest: Nest) -> Footprints:
        """Return the footprints of all iterations together, for one run of the loop."""
        return {buffer: self.whole_of(nest, buffer) for buffer in nest.references}

    def one_of(self, nest: Nest, buffer: Buffer) -> Footprint:
        """Return the footprint of one iteration in one buffer."""
        return self._known(nest, buffer, nest.depth)

    def whole_of(self, nest: Nest, buffer: Buffer) -> Footprint:
        """Return the footprint of all iterations together in one buffer."""
        return self._known(nest, buffer, max(nest.depth - 1, 0))

    def _known(self, nest: Nest, buffer: Buffer, depth: int) -> Footprint:
        key = nest, buffer, depth
        if key not in self._counted:
            self._counted[key] = self._of_buffer(buffer, nest.references[buffer], depth)
        return self._counted[key]

    def touched(self, accesses: Mapping[Buffer, list[Reference]], depth: int) -> Footprints:
        """Return the footprints of accesses in the loops from `depth` on; outer loops are fixed."""
        return {buffer: self._of_buffer(buffer, a, depth) for buffer, a in accesses.items()}

    def _of_buffer(self, buffer: Buffer, items: list[Reference], depth: int) -> Footprint:
        # A load and a store of one element in one statement are one access.
        distinct = list({item.signature: item for item in items}.values())
        elements, lines, exact = self._most(buffer, distinct, depth)
        return Footprint(
            buffer,
            elements,
            lines,
            exact,
            any(not item.access.is_write for item in items),
            any(item.access.is_write for item in items),
        )

    def _most(self, buffer: Buffer, items: list[Reference], depth: int) -> tuple[int, int, bool]:
        """Return how many elements and lines are touched, and whether these numbers are exact."""
        shape, analyzer = buffer.static_shape, self.accesses.analyzer
        groups: dict[object, list[Region]] = {}
        for item in items:
            groups.setdefault(_offsets(item, depth), []).append(region(item, depth, None, analyzer))
        most, lines, exact = 0, 0, True
        for regions in groups.values():
            parts, count, is_exact = union(regions, shape)
            most, exact = most + count, exact and is_exact
            lines += self._lines(buffer, parts, items, depth)
        most = min(most, math.prod(shape), sum(_points(item, depth) for item in items))
        varying = _varying(items, groups, depth)
        lines = min(lines, most, lines_of_all(buffer, self.line_bytes))
        if not varying:
            return most, lines, exact
        found = 0
        places, is_all = _places(varying, items[0].extents)
        for place in places:
            _, count, is_exact = union((region(i, depth, place, analyzer) for i in items), shape)
            found = max(found, count if is_exact else 0)
            if found >= most:
                return most, lines, True
        if is_all and found and all(item.is_known for item in items):
            return found, min(lines, found), True
        return most, lines, False

    def _lines(
        self, buffer: Buffer, parts: Iterable[Region], items: Sequence[Reference], depth: int
    ) -> int:
        moved = [
            sum_.factors.get(var, 0) * stride
            for item in items
            for var in item.fixed(depth)
            for sum_, stride in zip(item.indices, buffer.static_strides, strict=True)
            if sum_ is not None
        ]
        return sum(lines_of(part, buffer, math.gcd(*moved), self.line_bytes) for part in parts)


def _points(item: Reference, depth: int) -> int:
    """Return an upper bound on the elements that an access touches in the loops from `depth` on."""
    running = item.variables - set(item.fixed(depth))
    return math.prod(item.extents[var] for var in running)


def _offsets(item: Reference, depth: int) -> object:
    """Return the factors of outer loops in the indices; accesses with equal ones move together."""
    outside = item.fixed(depth)
    if not item.is_affine:
        return item
    return tuple(
        tuple((var, sum_.factors[var]) for var in outside if var in sum_.factors)
        for sum_ in item.indices
        if sum_ is not None
    )


def _varying(items: Iterable[Reference], groups: Mapping[object, object], depth: int) -> list[Var]:
    """Return the outer loop variables whose values may change the count."""
    found: dict[Var, None] = {}
    for item in items:
        if len(groups) > 1 or not item.is_affine:
            relevant = set(item.variables)
        else:
            relevant = {var for bound in item.bounds for var in bound.sum.factors}
        found.update((var, None) for var in item.fixed(depth) if var in relevant)
    return list(found)


def _places(
    varying: Sequence[Var], extents: Mapping[Var, int]
) -> tuple[Iterator[dict[Var, int]], bool]:
    """Return iterations of the outer loops to try, and whether these are all iterations.

    Middle points come first: iterations at a border often touch less.
    """
    total = math.prod(extents[var] for var in varying)
    is_all = total <= MOST_PLACES
    choices = []
    for var in varying:
        extent = extents[var]
        some = range(extent) if is_all else (extent // 2, 0, extent - 1)
        choices.append(list(dict.fromkeys((extent // 2, *some))) if extent else [])
    combinations = islice(product(*choices), MOST_PLACES)
    return (dict(zip(varying, values, strict=True)) for values in combinations), is_all
