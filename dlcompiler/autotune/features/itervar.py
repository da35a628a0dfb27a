"""AutoTVM's features of each loop: *itervar* and, sampled along the nest, *curve*.

**Source:** T. Chen et al., "Learning to Optimize Tensor Programs", NeurIPS 2018, appendix A.
*itervar* has the length, depth and annotation of each loop, the operations inside, and for each
buffer the elements touched and their reuse. *curve* samples relations between two of these along
the nest at fixed points, so that the number of features does not depend on the depth of the nest.
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
"""Annotations of a loop, in AutoTVM's order."""
SAMPLES = 20
"""Sampling points of a curve: 0, then 1, 2, 4, … [log2]."""


def itervar_columns(
    statements: tuple[Statement, ...], target: Target, memo: object
) -> Iterator[Column]:
    """Yield AutoTVM's features of every loop around every statement, outermost first."""
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

    A feature is the largest number of elements that a buffer's accesses touch inside a loop, over
    all loops where the buffer's reuse (or the number of outer iterations) is at most 2ⁿ.
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
    """Return the largest value whose key is at most `limit`; 0 if there is none."""
    result: Num = 0
    for value, partner in zip(values, along, strict=True):
        result = most(result, select(at_most(partner, limit), value, 0))
    return result


@dataclass(frozen=True, slots=True, eq=False)
class _Nest:
    """A statement with the cumulative iteration counts of its loops."""

    statement: Statement
    topdown: tuple[Num, ...]
    """For each loop, the product of its iterations and those of all loops around it."""
    bottomup: tuple[Num, ...]
    """For each loop, the product of its iterations and those of all loops inside."""
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
        """Yield AutoTVM's features of a buffer at a loop.

        ``stride`` is the distance between two iterations; ``mod`` the number of indices that the
        loop covers; ``count`` the elements touched inside; ``reuse`` how often each is touched.
        ``T_count`` and ``T_reuse`` are the same for the loops inside, without this one.
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
    """Return the cumulative products of a list of values."""
    result: list[Num] = []
    total: Num = 1
    for value in values:
        total = multiply(total, value)
        result.append(total)
    return tuple(result)
