"""Write a vector operation as scalar operations on its lanes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dlcompiler import dtypes
from dlcompiler.arith import Analyzer
from dlcompiler.errors import InternalError
from dlcompiler.ir import (
    Binary,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Load,
    Logical,
    Not,
    Ramp,
    Select,
    Var,
    binary,
)
from dlcompiler.ir.expr import lanes_of
from dlcompiler.passes.flatten_storage import flat_index


class Lanes:
    """The scalar expressions of the lanes of vectors.

    Parameters
    ----------
    variables
        The lanes of each variable that is a vector.
    loaded
        The lanes of loads that the code has made already, by ``id``.
    """

    def __init__(
        self, variables: Mapping[Var, Sequence[Var]], loaded: Mapping[int, Sequence[Var]]
    ) -> None:
        self.variables = variables
        self.loaded = loaded
        # By `id` of the vector. It is kept, so that no new node gets its id.
        self._known: dict[tuple[int, int], tuple[Expr, Expr]] = {}

    def lane(self, expr: Expr, number: int) -> Expr:
        """Return one lane of an expression; a scalar is the same in all lanes."""
        if dtypes.lanes(expr.dtype) == 1:
            return expr
        key = id(expr), number
        if key not in self._known:
            self._known[key] = expr, self._lane(expr, number)
        return self._known[key][1]

    def all(self, expr: Expr, count: int) -> list[Expr]:
        """Return the lanes of an expression."""
        return [self.lane(expr, number) for number in range(count)]

    def _lane(self, expr: Expr, number: int) -> Expr:  # noqa: C901 - one case per node
        def of(part: Expr) -> Expr:
            return self.lane(part, number)

        match expr:
            case Ramp(base, stride):
                return _nth(base, stride, number)
            case Broadcast(value):
                return value
            case Var():
                return self.variables[expr][number]
            case Const(value, dtype):
                return Const(value, dtypes.element(dtype))
            case Load() if id(expr) in self.loaded:
                return self.loaded[id(expr)][number]
            case Load(buffer, indices, predicate):
                mask = None if predicate is None else of(predicate)
                return Load(buffer, tuple(map(of, indices)), mask)
            case Binary(op, a, b):
                return Binary(op, of(a), of(b))
            case Compare(op, a, b):
                return Compare(op, of(a), of(b))
            case Logical(op, a, b):
                return Logical(op, of(a), of(b))
            case Not(value):
                return Not(of(value))
            case Cast(value, dtype):
                return Cast(of(value), dtypes.element(dtype))
            case Select(condition, a, b):
                return Select(of(condition), of(a), of(b))
            case IfThenElse(condition, a, b):
                return IfThenElse(of(condition), of(a), of(b))
            case Call(name, args, dtype):
                return Call(name, tuple(map(of, args)), dtypes.element(dtype))
        raise InternalError("write a vector", f"unknown expression {type(expr).__name__}")


def _nth(base: Expr, stride: Expr, number: int) -> Expr:
    if number == 0:
        return base
    if isinstance(stride, Const):
        return binary("add", base, Const(int(stride.value) * number, base.dtype))
    return binary("add", base, binary("mul", stride, Const(number, base.dtype)))


def aligned_start(buffer: Buffer, indices: tuple[Expr, ...], analyzer: Analyzer) -> Expr | None:
    """Return the position of the first lane, if the lanes are a vector in memory.

    Parameters
    ----------
    buffer
        What is accessed.
    indices
        Its indices, some of which are vectors.
    analyzer
        Knows the variables.

    Returns
    -------
    Expr or None
        A multiple of the number of lanes. None if the lanes are not neighbours, or may begin
        elsewhere.
    """
    count, lanes = lanes_of(indices), Lanes({}, {})
    try:
        places = [
            flat_index(buffer, tuple(lanes.lane(index, number) for index in indices))
            for number in range(count)
        ]
    except KeyError:  # a part of an index is a variable
        return None
    start = analyzer.affine(places[0])
    for number, place in enumerate(places):
        distance = analyzer.affine(place).plus(start, -1)
        if not distance.is_constant or distance.constant != number:
            return None
    factors = (start.constant, *(term.factor for term in start.terms.values()))
    return None if any(factor % count for factor in factors) else places[0]
