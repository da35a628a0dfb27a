"""What must be computed before an expression is, whatever is chosen."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.ir import (
    Binary,
    Broadcast,
    Call,
    Cast,
    Compare,
    Expr,
    IfThenElse,
    Logical,
    Not,
    Ramp,
    Select,
)


def operands(node: Expr) -> Sequence[Expr]:
    """Return what `node` needs before it is written, whatever is chosen."""
    match node:
        case Binary() | Compare():
            return node.a, node.b
        case Cast() | Broadcast() | Not():
            return (node.value,)
        case Ramp(base, stride, _):
            return base, stride
        case Select(condition, a, b):
            return condition, a, b
        case IfThenElse(condition, _, _):
            return (condition,)
        case Logical(_, a, _):
            return (a,)
        case Call(_, arguments, _):
            return arguments
    return ()
