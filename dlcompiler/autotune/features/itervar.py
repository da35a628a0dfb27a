"""AutoTVM's features of each loop: *itervar* and, sampled along the nest, *curve*.

**Source:** T. Chen et al., "Learning to Optimize Tensor Programs", NeurIPS 2018, appendix A: the
loop's length, its place and annotation, the operations inside, and for each buffer how much one
iteration touches and how often it comes back; relations between two of these along the nest are
sampled at fixed places, and so do not depend on how deep it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dlcompiler.autotune.features.columns import Column, logarithmic, plain
from dlcompiler.autotune.features.geometry import Access
from dlcompiler.autotune.features.numbers import Num, at_most, divide, most, multiply, select
from dlcompiler.autotune.features.statements import Statement
from dlcompiler.target import Target

ANNOTATIONS = (
    "blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z",
    "unrolled", "vectorized", "parallel", "serial", "vthread",
)  # fmt: skip
"""What a loop may be, in AutoTVM's order."""
SAMPLES = 20
"""Places at which a curve is sampled: 0, then 1, 2, 4, … [log2]."""


def itervar_columns(
    statements: tuple[Statement, ...], target: Target, memo: object
) -> Iterator[Column]:
    """Yield what AutoTVM says of every loop around every statement, outermost first."""
    del target, memo
    for statement in statements:
        nest = _Nest.of(statement)
        for depth, loop in enumerate(statement.loops):
            name = f"{statement.name}.loop{depth}"
            yield logarithmic(f"{name}.length", loop.extent)
            yield plain(f"{name}.level", depth)
            yield logarithmic(f"{name}.topdown", nest.topdown[depth])
            yield logarithmic(f"{name}.bottomup", nest.bottomup[depth])
            for annotation in ANNOTATIONS:
                yield plain(f"{name}.{annotation}", int(loop.kind == annotation))
            for kind in ("add", "mul", "div"):
                yield plain(f"{name}.{kind}", statement.operations[kind])
            for slot, access in zip(nest.slots, statement.accesses, strict=True):
                for key, value in nest.touch(access, depth):
                    yield logarithmic(f"{name}.{slot}.{key}", value)


def curve_columns(
    statements: tuple[Statement, ...], target: Target, memo: object
) -> Iterator[Column]:
    """Yield AutoTVM's relation features of every buffer of every statement.

    Of all loops at which a buffer's reuse (or what is outside) is at most a power of two, the most
    elements that the buffer's accesses touch inside.
    """
    del target, memo
    for statement in statements:
        nest = _Nest.of(statement)
        for slot, access in zip(nest.slots, statement.accesses, strict=True):
            touches = [dict(nest.touch(access, depth)) for depth in range(len(statement.loops))]
            counts = [touch["count"] for touch in touches]
            for key, along in (
                ("reuse", [touch["reuse"] for touch in touches]),
                ("topdown", list(nest.topdown)),
            ):
                for number in range(SAMPLES):
                    limit = 0 if number == 0 else 1 << (number - 1)
                    value = _largest(counts, along, limit)
                    yield logarithmic(f"{statement.name}.{slot}.count at {key} {limit}", value)


def _largest(values: list[Num], along: list[Num], limit: float) -> Num:
    """Return the largest value whose partner is at most `limit`; 0: there is none."""
    result: Num = 0
    for value, partner in zip(values, along, strict=True):
        result = most(result, select(at_most(partner, limit), value, 0))
    return result


@dataclass(frozen=True, slots=True, eq=False)
class _Nest:
    """The nest around a statement."""

    statement: Statement
    topdown: tuple[Num, ...]
    """Of each loop, iterations of it and all around it."""
    bottomup: tuple[Num, ...]
    """Of each loop, iterations of it and all inside."""
    slots: tuple[str, ...]

    @staticmethod
    def of(statement: Statement) -> _Nest:
        extents = [loop.extent for loop in statement.loops]
        return _Nest(
            statement,
            _running(extents),
            _running(extents[::-1])[::-1],
            ("write", *(f"read{n}" for n in range(len(statement.reads)))),
        )

    def touch(self, access: Access, depth: int) -> Iterator[tuple[str, Num]]:
        """Yield AutoTVM's numbers of a buffer at a loop.

        ``stride``, how far one iteration moves it; ``mod``, the indices that the loop moves it
        over; ``count``, the elements that are touched inside; ``reuse``, how often each.
        ``T_count`` and ``T_reuse`` are those of the loops inside without this one.
        """
        stride, extent = access.strides[depth], self.statement.loops[depth].extent
        count, inner = access.touched(depth), access.touched(depth + 1)
        inside = self.bottomup[depth + 1] if depth + 1 < len(self.bottomup) else 1
        yield "stride", most(stride, multiply(stride, -1))
        yield "mod", select(at_most(most(stride, multiply(stride, -1)), 0), 1, extent)
        yield "count", count
        yield "reuse", divide(self.bottomup[depth], most(count, 1))
        yield "T_count", inner
        yield "T_reuse", divide(inside, most(inner, 1))


def _running(values: list[Num]) -> tuple[Num, ...]:
    """Return the products of the first values."""
    result: list[Num] = []
    total: Num = 1
    for value in values:
        total = multiply(total, value)
        result.append(total)
    return tuple(result)
