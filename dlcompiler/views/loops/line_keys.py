"""Map lines of the printed loop IR to loops; the debug information of code names these lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dlcompiler.ir import Allocate, For, IntrinsicCall, Let, PrimFunc, Seq, Stmt, Store, print_func
from dlcompiler.ir.stmt import Origin


@dataclass(frozen=True)
class SourceLine:
    """A line of a printed program, with the data that views of generated code need."""

    text: str
    """Without its indentation."""
    keys: tuple[str, ...]
    """Keys, as in the loop tree, of the stages and the loops that the line comes from."""
    within: tuple[str, ...]
    """Keys of the loops around it, the innermost first."""


def loop_key(stage: str, path: str = "") -> str:
    """Return the key of the loop `path` of a stage; without a path, that of the stage."""
    return f"{stage}/{path}" if path else stage


def source_lines(func: PrimFunc) -> list[SourceLine]:
    """Return the lines of a program; line `n` of the debug information is item ``n - 1``."""
    printed = print_func(func)
    around: list[tuple[int, list[str]]] = []
    lines: list[SourceLine] = []
    for number, text in enumerate(printed.text.splitlines(), 1):
        stripped = text.lstrip(" ")
        depth = len(text) - len(stripped)
        while around and around[-1][0] >= depth:
            around.pop()
        statement = printed.statement_at.get(number)
        keys = keys_of(statement)
        within = dict.fromkeys(key for _, outer in reversed(around) for key in outer)
        lines.append(SourceLine(stripped, tuple(keys), tuple(within)))
        if isinstance(statement, For):
            around.append((depth, [key for key in keys if "/" in key]))
    return lines


def keys_of(statement: Stmt | None) -> list[str]:
    """Return the keys of the stages and the loops that a statement comes from.

    A let statement (``best.next = …``) has the keys of the first assignment after it.
    """
    while isinstance(statement, Let | Seq):
        statement = (
            statement.body if isinstance(statement, Let) else next(iter(statement.statements), None)
        )
        if not isinstance(statement, Let | Seq | Store | IntrinsicCall):
            return []
    if not isinstance(statement, For | Store | Allocate | IntrinsicCall):
        return []
    return list(dict.fromkeys(_origin_keys(statement.origin)))


def _origin_keys(origin: Origin) -> Iterator[str]:
    for ref in origin:
        yield loop_key(ref.stage)
        # "(init)" is a part of the stage, not one of its loops.
        if ref.axis and not ref.axis.startswith("("):
            yield loop_key(ref.stage, ref.axis)
