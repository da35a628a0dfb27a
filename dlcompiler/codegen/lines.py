"""Find the line number of each statement in the printed loop IR."""

from __future__ import annotations

from collections.abc import Iterator

from dlcompiler.errors import InternalError
from dlcompiler.ir import (
    Allocate,
    Assert,
    Barrier,
    ExternCall,
    For,
    If,
    IntrinsicCall,
    Let,
    Prefetch,
    PrimFunc,
    Seq,
    Stmt,
    Store,
)


def statement_lines(func: PrimFunc) -> dict[int, int]:
    """Return the line number of each statement, by ``id``, in the text of `print_func`.

    The numbers are those of `dlcompiler.ir.Printed.line_of`; nothing is printed, which saves time.
    """
    lines = enumerate(printed_statements(func.body), start=2)
    return {id(stmt): line for line, stmt in lines if stmt is not None}


def printed_statements(stmt: Stmt) -> Iterator[Stmt | None]:
    """Yield the statement that each printed line shows; None for ``else:``."""
    match stmt:
        case Seq(statements) if statements:
            for statement in statements:
                yield from printed_statements(statement)
        case Store() | Seq() | Prefetch() | Assert() | Barrier():
            yield stmt
        case ExternCall() | IntrinsicCall():
            yield stmt
        case For(_, _, _, body) | Allocate(_, body) | Let(_, _, body):
            yield stmt
            yield from printed_statements(body)
        case If(_, then, otherwise):
            yield stmt
            yield from printed_statements(then)
            if otherwise is not None:
                yield None
                yield from printed_statements(otherwise)
        case _:
            raise InternalError("number the lines", f"unknown statement {type(stmt).__name__}")
