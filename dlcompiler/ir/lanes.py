"""Read a vector expression at one lane: a vector statement becomes scalar ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dlcompiler import dtypes
from dlcompiler.ir.expr import Broadcast, Call, Cast, Const, Expr, Ramp, Var, binary
from dlcompiler.ir.rewrite import Node, rewrite


def at_lane(expr: Expr, lane: Expr, vectors: Mapping[Var, Callable[[Expr], Expr]]) -> Expr:
    """Return the value of a vector expression at one lane; a scalar stays as it is.

    Parameters
    ----------
    expr
        An index, a predicate, or a value that is stored.
    lane
        Number of the lane.
    vectors
        For each variable that is a vector, a function from the number of a lane to its value there.

    Examples
    --------
    >>> from dlcompiler.ir import Binary, index_const
    >>> i, lane = Var("i"), Var("lane")
    >>> ramp = Ramp(i, index_const(2), 8)
    >>> print(at_lane(ramp, lane, {}), at_lane(Binary("add", ramp, Broadcast(i, 8)), lane, {}))
    i + lane*2 i + lane*2 + i
    """

    def rule(node: Node) -> Node:
        match node:
            case Ramp(base, stride):
                return binary("add", base, binary("mul", lane, stride))
            case Broadcast(value):
                return value
            case Var() if node in vectors:
                return vectors[node](lane)
            case Cast(value, dtype) if dtypes.lanes(dtype) > 1:
                return Cast(value, dtypes.element(dtype))
            case Const(number, dtype) if dtypes.lanes(dtype) > 1:
                return Const(number, dtypes.element(dtype))
            case Call(name, args, dtype) if dtypes.lanes(dtype) > 1:
                return Call(name, args, dtypes.element(dtype))
        return node

    return rewrite(expr, rule)
