"""Features of programs: work, parallelism, vectors, registers, and how buffers are reused.

**Source:** the kinds of features follow L. Zheng et al., "Ansor: Generating High-Performance Tensor
Programs for Deep Learning", OSDI 2020, appendix B; the choice and the model of caches are our own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from dlcompiler.autotune.features.caches import LEVELS, WorkingSets, warm_levels
from dlcompiler.autotune.features.columns import Column, logarithmic, plain
from dlcompiler.autotune.features.cycles import compute_cycles, memory_cycles
from dlcompiler.autotune.features.nest import Nest
from dlcompiler.autotune.features.numbers import Num, divide, most, product
from dlcompiler.autotune.features.statements import Statement
from dlcompiler.target import Target

_BEYOND = ("L2", "L3", "memory")
ROOFLINE = "program.roofline cycles"
"""Name of the feature that predicts the cycles of a call: the sum over the statements of the
tightest limit of each."""


@dataclass(frozen=True, slots=True, eq=False)
class Described:
    """The features of a statement, with its cycles of arithmetic and of memory."""

    columns: tuple[Column, ...]
    compute: Num
    """Cycles of its arithmetic and loads."""
    moved: tuple[Num, ...]
    """Cycles of reading from L2, L3 and memory."""


Memo: TypeAlias = dict[tuple[object, ...], Described]
"""Cache of described statements: most are the same in many skeletons of a space."""


def program_columns(
    statements: tuple[Statement, ...], target: Target, memo: Memo
) -> Iterator[Column]:
    """Yield the features of all statements, and of the program.

    ``program.roofline cycles`` is the sum over the statements of the tightest limit of each.
    """
    compute: Num = 0
    moved: list[Num] = [0, 0, 0]
    total: Num = 0
    warm = warm_levels(statements, target)
    for statement in statements:
        key = (warm, *statement.signature)
        known = memo.get(key)
        if known is None:
            known = memo[key] = _described(statement, target, warm)
        yield from known.columns
        longest = known.compute
        compute = compute + known.compute
        for level, cycles in enumerate(known.moved):
            moved[level] = moved[level] + cycles
            longest = most(longest, cycles)
        total = total + longest
    yield logarithmic("program.compute cycles", compute)
    for name, cycles in zip(_BEYOND, moved, strict=True):
        yield logarithmic(f"program.{name} cycles", cycles)
    yield logarithmic(ROOFLINE, total)


def _described(statement: Statement, target: Target, warm: tuple[Num, ...]) -> Described:
    nest = Nest(statement, target)
    sets = WorkingSets(nest, warm)
    columns = tuple(_statement_columns(nest, sets))
    return Described(columns, compute_cycles(nest), memory_cycles(sets))


def _statement_columns(nest: Nest, sets: WorkingSets) -> Iterator[Column]:
    name = nest.statement.name
    for key, value in _work(nest):
        yield logarithmic(f"{name}.{key}", value)
    yield plain(f"{name}.imbalance", nest.imbalance)
    yield plain(f"{name}.executed over needed", nest.overshoot)
    yield plain(f"{name}.register pressure", divide(nest.held, nest.target.vector_registers))
    slots = ("write", *(f"read{n}" for n in range(len(nest.statement.reads))))
    for number, slot in enumerate(slots):
        for key, value in _movement(nest, sets, number):
            yield logarithmic(f"{name}.{slot}.{key}", value)


def _work(nest: Nest) -> Iterator[tuple[str, Num]]:
    statement = nest.statement
    geometry = statement.geometry
    own = product([loop.extent for loop in statement.own_loops])
    started = nest.trips[len(geometry.enclosing)]
    region = product(geometry.region)
    shape = product(geometry.whole.extents(geometry.stage.tensor))
    operations = sum(statement.operations.values())
    yield "iterations", started * own
    yield "started", started
    yield "computed over stored", divide(started * region, most(shape, 1))
    yield "reduction", product([loop.extent for loop in statement.own_loops if loop.is_reduction])
    yield "parallel", nest.parallel
    yield "lanes", nest.lanes
    yield "unrolled", nest.unrolled
    yield "inner loop", nest.inner
    yield "accumulators", nest.accumulators
    yield "operations", nest.trips[-1] * operations
    yield "special functions", nest.trips[-1] * statement.operations["special"]
    yield "code", nest.unrolled * (operations + len(statement.accesses))
    yield "buffer bytes", region * statement.write.itemsize


def _movement(nest: Nest, sets: WorkingSets, number: int) -> Iterator[tuple[str, Num]]:
    access = nest.statement.accesses[number]
    yield "step", nest.step(access)
    yield "bytes", access.touched(0) * access.itemsize
    yield "reuse", divide(nest.trips[-1], most(access.touched(0), 1))
    distance, count = sets.reuse(access)
    yield "reuse distance", distance
    yield "reuse count", count
    yield "loads", nest.loads(access)
    for name, traffic in zip(LEVELS, sets.traffic[number], strict=True):
        yield f"beyond {name}", traffic
