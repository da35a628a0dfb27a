"""Match an expression of a schedule against the declaration of an intrinsic (unification).

Each declared tensor stands for a part of a tensor of the schedule. The comparison of the two
expressions finds this part and where it begins. Indices are compared as sums (`arith`). Operands
of commutative operations may be in either order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dlcompiler.arith import Affine, Analyzer
from dlcompiler.ir import Binary, Const, Expr, TensorLoad, Var, free_vars
from dlcompiler.ir.operations import REORDERED
from dlcompiler.ir.rewrite import children
from dlcompiler.te import Tensor


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of an intrinsic: a part of a tensor of the schedule."""

    tensor: Tensor
    indices: tuple[Expr, ...]
    """The indices of its first element, in terms of the loops around the intrinsic."""
    dims: tuple[int, ...]
    """The dimension of the tensor that each declared dimension runs along."""


class Comparison:
    """Comparison of an expression of a schedule with the declaration of an intrinsic.

    Parameters
    ----------
    analyzer
        An analyzer with the ranges of all variables.
    running
        The variables of the loops that the intrinsic replaces; all others are constant.
    """

    def __init__(self, analyzer: Analyzer, running: frozenset[Var]) -> None:
        self.analyzer = analyzer
        self.running = running
        self.operands: dict[Tensor, Operand] = {}
        self.difference = ""
        """The first difference between the two, in words."""

    def is_same(self, mine: Expr, declared: Expr) -> bool:
        """Tell whether `mine` computes `declared` for some operands, and record these."""
        if mine.dtype != declared.dtype:
            return self._differ(f"{mine} is {mine.dtype}, {declared} {declared.dtype}")
        if isinstance(declared, TensorLoad) and isinstance(mine, TensorLoad):
            return self._is_bound(mine, declared)
        if mine.dtype == "index":
            return self._is_equal_index(mine, declared)
        if type(mine) is not type(declared) or _data(mine) != _data(declared):
            return self._differ(f"{mine} where {declared} is declared")
        pairs = _expressions(mine), _expressions(declared)
        if self._are_same(*pairs):
            return True
        if not (isinstance(mine, Binary) and mine.op in REORDERED):
            return False
        first = self.difference
        if self._are_same(pairs[0][::-1], pairs[1]):
            return True
        self.difference = first
        return False

    def _are_same(self, mine: Sequence[Expr], declared: Sequence[Expr]) -> bool:
        """Compare pairs of expressions in order; if one differs, restore the operands of before."""
        known, self.difference = dict(self.operands), ""
        if len(mine) == len(declared) and all(map(self.is_same, mine, declared)):
            return True
        self.operands = known
        return False

    def _is_equal_index(self, mine: Expr, declared: Expr) -> bool:
        if self._distance(mine, declared) == Affine.of_constant(0):
            return True
        return self._differ(f"{mine} where {declared} is declared")

    def _is_bound(self, mine: TensorLoad, declared: TensorLoad) -> bool:
        """Tell whether `mine` is the element `declared` of the operand for that tensor."""
        assert isinstance(mine.tensor, Tensor)
        assert isinstance(declared.tensor, Tensor)
        found = self._operand(mine.tensor, mine.indices, declared.indices)
        if found is None:
            return self._differ(f"{mine} is read where {declared} is declared")
        known = self.operands.setdefault(declared.tensor, found)
        if known.tensor is found.tensor and known.dims == found.dims:
            distances = map(self._distance, known.indices, found.indices)
            if all(distance == Affine.of_constant(0) for distance in distances):
                return True
        return self._differ(
            f"{mine} is read where {declared} is declared, and {declared.tensor.name} begins at "
            f"{known.tensor.name}[{', '.join(map(str, known.indices))}]"
        )

    def _operand(
        self, tensor: Tensor, indices: Sequence[Expr], declared: Sequence[Expr]
    ) -> Operand | None:
        """Return the operand in which the element at `indices` has the indices `declared`.

        Dimensions are assigned from the last to the first. Dimensions without a declared one must
        have a constant index. None if this is impossible.
        """
        wanted = list(enumerate(declared))
        starts: list[Expr] = []
        dims: dict[int, int] = {}
        for dim in reversed(range(len(indices))):
            start = self._start(indices[dim], wanted[-1][1]) if wanted else None
            if start is not None:
                dims[wanted.pop()[0]] = dim
            elif self.running & free_vars(indices[dim]):
                return None
            starts.append(indices[dim] if start is None else start)
        if wanted:
            return None
        return Operand(tensor, tuple(reversed(starts)), tuple(dims[n] for n in range(len(dims))))

    def _start(self, index: Expr, declared: Expr) -> Expr | None:
        """Return an index minus the declared index; None if the replaced loops change it."""
        distance = self._distance(index, declared).to_expr()
        return None if self.running & free_vars(distance) else distance

    def _distance(self, a: Expr, b: Expr) -> Affine:
        return self.analyzer.affine(a).plus(self.analyzer.affine(b), -1)

    def _differ(self, text: str) -> bool:
        self.difference = self.difference or text
        return False


def _expressions(expr: Expr) -> list[Expr]:
    return [child for child in children(expr) if isinstance(child, Expr)]


def _data(expr: Expr) -> tuple[object, ...]:
    """Return the fields of a node other than its operands."""
    if isinstance(expr, Const):
        return (repr(expr.value),)
    return (getattr(expr, "op", None), getattr(expr, "name", None))


def aligned(
    mine: Sequence[int], declared: Sequence[int], matches: Callable[[int, int], bool] = int.__eq__
) -> tuple[int, ...] | None:
    """Return the position in `mine` of each declared extent; all other extents must be 1.

    Extents are assigned from the last to the first. None if there is no such assignment.
    """
    places: list[int] = []
    wanted = list(declared)
    for place in reversed(range(len(mine))):
        if wanted and matches(mine[place], wanted[-1]):
            wanted.pop()
            places.append(place)
        elif mine[place] != 1:
            return None
    return None if wanted else tuple(reversed(places))
