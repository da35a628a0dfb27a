"""Read a vector expression at one lane: the accesses of a vector statement become scalar."""

from __future__ import annotations

from collections.abc import Mapping

from dlcompiler import dtypes
from dlcompiler.ir import Broadcast, Call, Cast, Const, Expr, Ramp, Var, binary, rewrite
from dlcompiler.ir.rewrite import Node


def at_lane(expr: Expr, lane: Expr, vectors: Mapping[Var, Expr]) -> Expr:
    """Return the value of a vector expression at one lane; a scalar stays as it is.

    Parameters
    ----------
    expr
        An index, or the predicate of an access.
    lane
        Number of the lane.
    vectors
        The values of variables that are vectors.

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
                return at_lane(vectors[node], lane, vectors)
            case Cast(value, dtype) if dtypes.lanes(dtype) > 1:
                return Cast(value, dtypes.element(dtype))
            case Const(number, dtype) if dtypes.lanes(dtype) > 1:
                return Const(number, dtypes.element(dtype))
            case Call(name, args, dtype) if dtypes.lanes(dtype) > 1:
                return Call(name, args, dtypes.element(dtype))
        return node

    return rewrite(expr, rule)
