"""Find and write the operands that an expression evaluates unconditionally."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from dlcompiler.ir import (
    Binary,
    Broadcast,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Logical,
    Not,
    Ramp,
    Select,
    Var,
)


def operands(node: Expr) -> Sequence[Expr]:
    """Return the operands of `node` that are always evaluated, whichever side is chosen."""
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


def write_operands(root: Expr, written: Container[int], write: Callable[[Expr], object]) -> None:
    """Write the operands of `root` bottom-up, without recursion.

    A sum of a thousand terms is a thousand nodes deep, which is Python's limit of recursion.

    Parameters
    ----------
    root
        An expression that is about to be written.
    written
        The ids of the nodes that are written; `write` adds to it.
    write
        Writes a node whose operands are written.
    """
    pending = list(operands(root))
    while pending:
        missing = [
            operand
            for operand in operands(pending[-1])
            if not isinstance(operand, Const | Var) and id(operand) not in written
        ]
        if missing:
            pending.extend(missing)
        else:
            write(pending.pop())
