"""Write assertions: a failing one stores its number in the status and ends the function.

The status is in memory of the caller, so that concurrent calls are independent. It is exchanged
atomically: the first failure is kept. Other threads return when they next read the status.
"""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.codegen.llvm.writer import Function
from dlcompiler.ir import Assert, ExternCall, Stmt
from dlcompiler.ir.rewrite import children


def are_in(stmt: Stmt) -> bool:
    """Tell whether a statement contains assertions, or calls of Python functions."""
    if isinstance(stmt, Assert) or (isinstance(stmt, ExternCall) and stmt.convention == "packed"):
        return True
    return any(are_in(child) for child in children(stmt) if isinstance(child, Stmt))


def write(
    w: Function, condition: str, status: str, message: str, values: Sequence[str] = ()
) -> str:
    """Append a check like `write_check`, and add its message, a template, to the module.

    The first check that fails stores its `values` in memory directly after the status.
    """
    w.module.messages.append(message)
    holds, exchanged = _branch(w, condition, status, len(w.module.messages))
    if values:
        is_first = w.value(f"extractvalue {{ i64, i1 }} {exchanged}, 1")
        report, leave = w.name("report"), w.name("leave")
        w.branch(is_first, report, leave)
        w.open(report)
        for place, value in enumerate(values, 1):
            word = w.value(f"getelementptr inbounds i64, ptr {status}, i64 {place}")
            w.effect(f"store i64 {value}, ptr {word}, align 8")
        w.jump(leave)
        w.open(leave)
    return holds


def write_check(w: Function, condition: str, status: str, number: int) -> str:
    """Append a check and open the block that runs if it fails; the caller must end that block.

    Returns
    -------
    str
        The label of the block that continues if the condition holds.
    """
    return _branch(w, condition, status, number)[0]


def _branch(w: Function, condition: str, status: str, number: int) -> tuple[str, str]:
    """Append a check; return the label for success and the result of the exchange."""
    holds, fails = w.name("holds"), w.name("fails")
    w.branch(condition, holds, fails)
    w.open(fails)
    exchanged = w.value(f"cmpxchg ptr {status}, i64 0, i64 {number} monotonic monotonic")
    return holds, exchanged


def write_look(w: Function, status: str) -> str:
    """Append a test whether another thread has failed; open and return blocks as `write`."""
    value = w.value(f"load atomic i64, ptr {status} monotonic, align 8")
    holds, fails = w.name("holds"), w.name("failed")
    w.branch(w.pure(f"icmp eq i64 {value}, 0"), holds, fails)
    w.open(fails)
    return holds
