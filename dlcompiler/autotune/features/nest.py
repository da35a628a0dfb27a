"""Features of loop nests: work, parallelism, vectors, registers, and how buffers are reused.

For each statement and each buffer that it touches: what moves between the caches if each holds the
largest part of the nest that fits it: a loop whose touched lines fit misses each line once.
**Source:** the kinds of features follow L. Zheng et al., "Ansor: Generating High-Performance Tensor
Programs for Deep Learning", OSDI 2020, appendix B; the choice and the model of caches are our own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from dlcompiler.autotune.features.columns import Column, logarithmic, plain
from dlcompiler.autotune.features.geometry import Access
from dlcompiler.autotune.features.numbers import (
    Num,
    add,
    at_most,
    ceildiv,
    divide,
    equal,
    floordiv,
    gcd,
    least,
    most,
    multiply,
    product,
    select,
    subtract,
)
from dlcompiler.autotune.features.statements import Statement
from dlcompiler.target import Target

LINE_BYTES = 64
PAGE_BYTES = 4096
_LINES_OF_PAGE = PAGE_BYTES // LINE_BYTES
_FULL = 0.75
"""Part of a cache that a working set may fill before it no longer stays."""
_BYTES_PER_CYCLE = (32.0, 16.0, 6.0)
"""What one core reads from L2, L3 and memory, about; [byte / cycle]."""
_LATENCY = 4.0
"""Of a multiply-add; [cycle]."""
_SPILL_CYCLES = 1.2
"""What each sum takes in a step as soon as not all fit the registers: it is loaded, added to and
stored (measured on Zen 3 for products and convolutions: 1.0 to 1.35); [cycle]."""
_LOOP_CYCLES = 1.0
"""Of an iteration of a loop besides its body; [cycle]."""


def nest_columns(statements: tuple[Statement, ...], target: Target) -> Iterator[Column]:
    """Yield the features of all statements, and of the program."""
    compute: Num = 0
    moved: list[Num] = [0, 0, 0]
    total: Num = 0
    data = _data_bytes(statements)
    for statement in statements:
        nest = _Nest(statement, target, data)
        yield from nest.columns()
        compute = add(compute, nest.compute_cycles)
        waits: Num = 0
        for level, cycles in enumerate(nest.memory_cycles):
            moved[level] = add(moved[level], cycles)
            waits = most(waits, cycles)
        total = add(total, most(nest.compute_cycles, waits))
    yield logarithmic("program.compute cycles", compute)
    for name, cycles in zip(("L2", "L3", "memory"), moved, strict=True):
        yield logarithmic(f"program.{name} cycles", cycles)
    yield logarithmic("program.roofline cycles", total)


def _data_bytes(statements: tuple[Statement, ...]) -> Num:
    """Return what all buffers of the program hold; [byte]."""
    buffers: dict[str, Num] = {}
    for statement in statements:
        for access in statement.accesses:
            size = multiply(product(access.shape), access.itemsize)
            buffers[access.name] = most(buffers.get(access.name, 0), size)
    total: Num = 0
    for size in buffers.values():
        total = add(total, size)
    return total


class _Nest:
    """The nest around one statement."""

    def __init__(self, statement: Statement, target: Target, data: Num) -> None:
        self.statement = statement
        self.data = data
        self.target = target
        self.loops = statement.loops
        self.native = target.lanes(statement.geometry.stage.tensor.dtype)
        self.trips: list[Num] = [1]
        """Of each depth: how often what is inside is started."""
        for loop in self.loops:
            self.trips.append(multiply(self.trips[-1], loop.extent))
        self.lines = [
            [_lines(access, depth) for depth in range(len(self.loops) + 1)]
            for access in statement.accesses
        ]
        self.footprints = [self._footprint(depth) for depth in range(len(self.loops) + 1)]
        """Of each depth: bytes of a cache that what the loops inside touch takes."""
        self.body = self._body_depth()
        self.lanes = product([loop.extent for loop in self.loops if loop.kind == "vectorized"])
        self.unrolled = product([loop.extent for loop in self.loops if loop.kind == "unrolled"])
        self.parallel = product([loop.extent for loop in self.loops if loop.kind == "parallel"])

    def _footprint(self, depth: int) -> Num:
        total: Num = 0
        for access, lines in zip(self.statement.accesses, self.lines, strict=True):
            room = multiply(lines[depth], _crowding(access, depth, lines[depth]))
            total = add(total, multiply(room, LINE_BYTES))
        return total

    def _body_depth(self) -> int:
        """Return the depth inside which all loops are vectors or copies: straight-line code."""
        depth = len(self.loops)
        while depth and self.loops[depth - 1].kind in ("vectorized", "unrolled"):
            depth -= 1
        return depth

    # -- columns ---------------------------------------------------------------------------------

    def columns(self) -> Iterator[Column]:
        """Yield the features of the statement."""
        name = self.statement.name
        for key, value in self._work():
            yield logarithmic(f"{name}.{key}", value)
        yield plain(f"{name}.imbalance", self.imbalance)
        yield plain(f"{name}.executed over needed", self._overshoot())
        yield plain(f"{name}.register pressure", self._pressure())
        slots = ("write", *(f"read{n}" for n in range(len(self.statement.reads))))
        for number, slot in enumerate(slots):
            for key, value in self._movement(number):
                yield logarithmic(f"{name}.{slot}.{key}", value)

    def _work(self) -> Iterator[tuple[str, Num]]:
        statement = self.statement
        geometry = statement.geometry
        own = product([loop.extent for loop in statement.own_loops])
        started = self.trips[len(geometry.enclosing)]
        region = product(geometry.region)
        shape = product([geometry.whole.number(e) for e in geometry.stage.tensor.shape])
        reduced = product([loop.extent for loop in statement.own_loops if loop.is_reduction])
        operations = sum(statement.operations.values())
        yield "iterations", multiply(started, own)
        yield "started", started
        yield "computed over stored", divide(multiply(started, region), most(shape, 1))
        yield "reduction", reduced
        yield "parallel", self.parallel
        yield "lanes", self.lanes
        yield "unrolled", self.unrolled
        yield "inner loop", self._inner()
        yield "accumulators", self.accumulators
        yield "operations", multiply(self.trips[-1], operations)
        yield "special functions", multiply(self.trips[-1], statement.operations["special"])
        yield "code", multiply(self.unrolled, operations + len(statement.accesses))
        yield "buffer bytes", multiply(region, statement.write.itemsize)

    def _inner(self) -> Num:
        """Return the iterations of the innermost loop that stays a loop."""
        return self.loops[self.body - 1].extent if self.body else 1

    @cached_property
    def accumulators(self) -> Num:
        """Vectors that the straight-line code stores to."""
        return ceildiv(self.statement.write.touched(self.body), self._lanes_of_vectors())

    def _lanes_of_vectors(self) -> Num:
        return least(most(self.lanes, 1), self.native)

    @property
    def imbalance(self) -> Num:
        """Time of the busiest core over the mean one."""
        cores = self.target.cores
        if cores == 1:
            return 1
        rounds = multiply(ceildiv(self.parallel, cores), cores)
        return divide(rounds, most(self.parallel, 1))

    def _overshoot(self) -> Num:
        """Return the iterations of its loops over those that its axes need."""
        geometry = self.statement.geometry
        reduced = [geometry.extents[axis] for axis in geometry.stage.op.reduce_axis]
        needed = multiply(product(geometry.region), product(reduced))
        return divide(product([loop.extent for loop in self.statement.own_loops]), most(needed, 1))

    def _pressure(self) -> Num:
        """Return the vectors that the straight-line code holds over the registers."""
        return divide(self.held, self._registers)

    @cached_property
    def held(self) -> Num:
        """Vectors that a step of the straight-line code holds.

        The sums, what is read along the lanes, and one of what is not.
        """
        steps = product([loop.extent for loop in self.loops[self.body :] if loop.is_reduction])
        total = add(self.accumulators, 1)
        for access in self.statement.reads:
            vectors = ceildiv(self._loads(access), steps)
            total = add(total, select(equal(self._step(access), 1), vectors, 0))
        return total

    def _movement(self, number: int) -> Iterator[tuple[str, Num]]:
        access = self.statement.accesses[number]
        yield "step", self._step(access)
        yield "bytes", multiply(access.touched(0), access.itemsize)
        yield "reuse", divide(self.trips[-1], most(access.touched(0), 1))
        distance, count = self._reuse(access)
        yield "reuse distance", distance
        yield "reuse count", count
        yield "loads", self._loads(access)
        for name, traffic in zip(("L1", "L2", "L3"), self.traffic[number], strict=True):
            yield f"beyond {name}", traffic

    @cached_property
    def traffic(self) -> list[tuple[Num, ...]]:
        """Of each access, the bytes that come from beyond L1, L2, L3."""
        levels = [_FULL * self.target.cache_bytes(level) for level in range(3)]
        return [tuple(self._traffic(lines, level) for level in levels) for lines in self.lines]

    def _step(self, access: Access) -> Num:
        """Return how far it moves from lane to lane, or along the innermost loop; [element]."""
        for loop, stride in zip(reversed(self.loops), reversed(access.strides), strict=True):
            if loop.kind == "vectorized":
                return _size(stride)
        return _size(access.strides[-1]) if access.strides else 0

    def _reuse(self, access: Access) -> tuple[Num, Num]:
        """Return how much is touched until a loop comes back to the same elements, and how often.

        The innermost loop outside the straight-line code along which the access stands still.
        """
        distance: Num = 0
        count: Num = 1
        for depth in range(self.body):
            extent = self.loops[depth].extent
            is_reused = multiply(equal(access.strides[depth], 0), at_most(2, extent))
            distance = select(is_reused, self.footprints[depth + 1], distance)
            count = select(is_reused, extent, count)
        return distance, count

    def _loads(self, access: Access) -> Num:
        """Return how many instructions the straight-line code needs for it."""
        touched = access.touched(self.body)
        step = self._step(access)
        lanes = self._lanes_of_vectors()
        return select(
            at_most(step, 0), touched, select(equal(step, 1), ceildiv(touched, lanes), touched)
        )

    def _traffic(self, lines: list[Num], capacity: float) -> Num:
        """Return the bytes that come from beyond a cache.

        Where the loops inside a loop fit, one run of that loop brings each line once: what its
        next iteration shares with the last is still there. Where all data of the program fit, they
        are there from the call before.
        """
        result: Num = multiply(multiply(lines[-1], LINE_BYTES), self.trips[-1])
        for depth in range(len(self.loops), -1, -1):
            fits = at_most(self.footprints[depth], capacity)
            around = max(depth - 1, 0)
            here = multiply(multiply(lines[around], LINE_BYTES), self.trips[around])
            result = select(fits, here, result)
        return select(at_most(self.data, capacity), 0, result)

    # -- cycles ----------------------------------------------------------------------------------

    @property
    def speedup(self) -> Num:
        """By how many cores it is shared."""
        return least(self.parallel, self.target.cores)

    @cached_property
    def compute_cycles(self) -> Num:
        """Cycles of arithmetic and loads, if all that is read is in L1; predicted."""
        started = self.trips[self.body]
        operations = max(sum(self.statement.operations.values()), 1)
        in_body = divide(multiply(self.trips[-1], operations), most(started, 1))
        arithmetic = divide(in_body, multiply(self._lanes_of_vectors(), 4))
        write, *reads = self.statement.accesses
        loads: Num = 0
        for access in reads:
            loads = add(loads, self._loads(access))
        steps = product([loop.extent for loop in self.loops[self.body :] if loop.is_reduction])
        if self._accumulates:
            in_memory = multiply(multiply(self.accumulators, steps), _SPILL_CYCLES)
            fits = at_most(self.held, self._registers)
            arithmetic = most(arithmetic, select(fits, 0, in_memory))
        else:
            loads = add(loads, self._loads(write))
        body = most(arithmetic, divide(loads, 2))
        if any(loop.is_reduction for loop in self.statement.own_loops):
            body = most(body, multiply(steps, _LATENCY))
        total = multiply(started, add(body, _LOOP_CYCLES))
        if self._accumulates:
            # Before and after each run of the reduction the sums are loaded and stored.
            total = add(total, multiply(self.trips[self._first_step], self.accumulators))
        return divide(total, most(self.speedup, 1))

    @property
    def _first_step(self) -> int:
        """The depth of the reduction loops around the straight-line code."""
        depth = self.body
        while depth and self.loops[depth - 1].is_reduction:
            depth -= 1
        return depth

    @property
    def _accumulates(self) -> bool:
        """Whether the loop around the straight-line code adds to what registers hold."""
        return self.body > 0 and self.loops[self.body - 1].is_reduction

    @property
    def _registers(self) -> int:
        return self.target.vector_registers

    @cached_property
    def memory_cycles(self) -> tuple[Num, ...]:
        """Cycles of reading from L2, from L3, from memory; predicted."""
        result = []
        for level, rate in enumerate(_BYTES_PER_CYCLE):
            total: Num = 0
            for traffic in self.traffic:
                total = add(total, traffic[level])
            result.append(divide(divide(total, rate), most(self.speedup, 1)))
        return tuple(result)


def _crowding(access: Access, depth: int, lines: Num) -> Num:
    """Return how many times more of a cache an access takes than its lines are.

    Rows that begin a power of two apart begin at few places of a page, and so share few sets.
    """
    if len(access.shape) < 2:
        return 1
    rows, last = access.widths[depth][-2:]
    pitch = multiply(access.shape[-1], access.itemsize)
    places = floordiv(PAGE_BYTES, gcd(pitch, PAGE_BYTES))
    along = ceildiv(multiply(last, access.itemsize), LINE_BYTES)
    used = least(multiply(along, least(rows, places)), _LINES_OF_PAGE)
    return divide(most(least(lines, _LINES_OF_PAGE), used), most(used, 1))


def _size(value: Num) -> Num:
    return most(value, subtract(0, value))


def _lines(access: Access, depth: int) -> Num:
    """Return how many lines of a cache the loops from `depth` on touch, at most."""
    *outer, last = access.widths[depth] or (1,)
    rows = multiply(product(outer), ceildiv(multiply(last, access.itemsize), LINE_BYTES))
    return least(
        rows, add(ceildiv(multiply(product(access.shape), access.itemsize), LINE_BYTES), 1)
    )
