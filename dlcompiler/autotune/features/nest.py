"""Model of the loop nest around a statement: iterations, vectors and registers."""

from __future__ import annotations

from functools import cached_property

from dlcompiler.autotune.features.geometry import Access, Loop
from dlcompiler.autotune.features.numbers import (
    Num,
    ceildiv,
    divide,
    equal,
    least,
    most,
    product,
    select,
    subtract,
)
from dlcompiler.autotune.features.statements import Statement
from dlcompiler.target import Target


class Nest:
    """A statement with its loops, on a target.

    Its *straight-line code* is the code of its innermost vectorized and unrolled loops.

    Parameters
    ----------
    statement : Statement
        The statement, with all loops around it.
    target : Target
        A CPU.
    """

    def __init__(self, statement: Statement, target: Target) -> None:
        self.statement = statement
        self.target = target
        self.loops: tuple[Loop, ...] = statement.loops
        self.trips: list[Num] = [1]
        """For each depth, from 0 to the number of loops: how often the code inside is executed."""
        for loop in self.loops:
            self.trips.append(self.trips[-1] * loop.extent)
        self.body = self._body_depth()
        """The depth of the straight-line code."""
        self.lanes = self._product("vectorized")
        self.unrolled = self._product("unrolled")
        self.parallel = self._product("parallel")

    def _product(self, kind: str) -> Num:
        return product([loop.extent for loop in self.loops if loop.kind == kind])

    def _body_depth(self) -> int:
        depth = len(self.loops)
        while depth and self.loops[depth - 1].kind in ("vectorized", "unrolled"):
            depth -= 1
        return depth

    # -- loops -----------------------------------------------------------------------------------

    @property
    def inner(self) -> Num:
        """Iterations of the innermost loop that is neither vectorized nor unrolled."""
        return self.loops[self.body - 1].extent if self.body else 1

    @property
    def reduces(self) -> bool:
        """Whether the statement belongs to a reduction."""
        return any(loop.is_reduction for loop in self.statement.own_loops)

    @property
    def accumulates(self) -> bool:
        """Whether the loop around the straight-line code accumulates in registers."""
        return self.body > 0 and self.loops[self.body - 1].is_reduction

    @property
    def first_step(self) -> int:
        """Depth of the outermost of the reduction loops directly around the straight-line code."""
        depth = self.body
        while depth and self.loops[depth - 1].is_reduction:
            depth -= 1
        return depth

    @cached_property
    def steps(self) -> Num:
        """Number of reduction steps in the straight-line code."""
        return product([loop.extent for loop in self.loops[self.body :] if loop.is_reduction])

    @property
    def overshoot(self) -> Num:
        """Iterations of the loops divided by those needed; above 1 if splits leave tails."""
        geometry = self.statement.geometry
        reduced = [geometry.extents[axis] for axis in geometry.stage.op.reduce_axis]
        needed = product(geometry.region) * product(reduced)
        return divide(product([loop.extent for loop in self.statement.own_loops]), most(needed, 1))

    # -- cores -----------------------------------------------------------------------------------

    @property
    def speedup(self) -> Num:
        """Number of cores that can share the parallel loops."""
        return most(least(self.parallel, self.target.cores), 1)

    @property
    def imbalance(self) -> Num:
        """Time of the busiest core divided by the mean time of all cores."""
        cores = self.target.cores
        if cores == 1:
            return 1
        return divide(ceildiv(self.parallel, cores) * cores, most(self.parallel, 1))

    # -- vectors ---------------------------------------------------------------------------------

    @cached_property
    def vector(self) -> Num:
        """Number of lanes of a vector, at most those of a vector register of the target."""
        native = self.target.lanes(self.statement.geometry.stage.tensor.dtype)
        return least(most(self.lanes, 1), native)

    @cached_property
    def accumulators(self) -> Num:
        """Number of vectors that the straight-line code stores to."""
        return ceildiv(self.statement.write.touched(self.body), self.vector)

    @cached_property
    def held(self) -> Num:
        """Vector registers that a step of the straight-line code needs.

        They hold the accumulators, the inputs read along the lanes, and one broadcast input.
        """
        total = self.accumulators + 1
        for access in self.statement.reads:
            is_vector = equal(self.step(access), 1)
            total = total + select(is_vector, ceildiv(self.loads(access), self.steps), 0)
        return total

    def step(self, access: Access) -> Num:
        """Return the stride of an access between lanes, or else along the innermost loop [element].

        The stride has no sign.
        """
        for loop, stride in zip(reversed(self.loops), reversed(access.strides), strict=True):
            if loop.kind == "vectorized":
                return _size(stride)
        return _size(access.strides[-1]) if access.strides else 0

    def loads(self, access: Access) -> Num:
        """Return how many instructions the straight-line code needs for an access."""
        touched = access.touched(self.body)
        return select(equal(self.step(access), 1), ceildiv(touched, self.vector), touched)


def _size(value: Num) -> Num:
    return most(value, subtract(0, value))
