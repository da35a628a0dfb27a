"""Observers: callbacks that receive each pass with the program before and after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from dlcompiler.ir import For, PrimFunc, walk
from dlcompiler.ir.stmt import Allocate
from dlcompiler.passes import storage_bytes


@dataclass(frozen=True)
class Change:
    """The program before and after one pass; `before` is None for the first step."""

    number: int
    name: str
    before: PrimFunc | None
    after: PrimFunc
    seconds: float

    @property
    def is_unchanged(self) -> bool:
        """Tell whether the pass returned its input."""
        return self.before is self.after


Observer: TypeAlias = Callable[[Change], None]


def show_changes(change: Change) -> None:
    """Print a line for each pass: what it changed and how long it took.

    Parameters
    ----------
    change
        What a pass did. `lower` and `build` call the function after each pass if it is one of their
        observers: ``dlc.lower(s, args, observers=[dlc.show_changes])``.
    """
    print(describe(change))  # noqa: T201  it is what a user asks for


def describe(change: Change) -> str:
    """Return what a pass did, in one line."""
    milliseconds = change.seconds * 1e3
    return f"{change.number:2} {change.name:<22} {_effect(change):<40} {milliseconds:6.1f} ms"


def _effect(change: Change) -> str:
    if change.is_unchanged:
        return "unchanged"
    nodes = list(walk(change.after.body))
    if change.before is None:
        loops = sum(isinstance(node, For) for node in nodes)
        buffers = sum(isinstance(node, Allocate) for node in nodes)
        return f"created {loops} loops, {buffers} buffers"
    if saved := storage_bytes(change.before) - storage_bytes(change.after):
        return f"{-saved:+,} bytes of buffers"
    difference = len(nodes) - sum(1 for _ in walk(change.before.body))
    return f"{difference:+} nodes" if difference else "rewritten"
