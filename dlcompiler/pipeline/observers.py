"""Observers: callbacks that receive each pass with the program before and after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

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

    @property
    def effect(self) -> str:
        """What the pass changed, in a few words."""
        if self.is_unchanged:
            return "unchanged"
        nodes = list(walk(self.after.body))
        if self.before is None:
            loops = sum(isinstance(node, For) for node in nodes)
            buffers = sum(isinstance(node, Allocate) for node in nodes)
            return f"created {loops} loops, {buffers} buffers"
        if saved := storage_bytes(self.before) - storage_bytes(self.after):
            return f"{-saved:+,} bytes of buffers"
        difference = len(nodes) - sum(1 for _ in walk(self.before.body))
        return f"{difference:+} nodes" if difference else "rewritten"


Observer: TypeAlias = Callable[[Change], None]


class Step(Protocol):
    """What a pass did, on a function of the loop IR (`Change`) or on a graph."""

    @property
    def number(self) -> int:
        """Its place in the order."""
        ...

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def seconds(self) -> float:
        """How long it took; [s]."""
        ...

    @property
    def effect(self) -> str:
        """What it changed, in a few words."""
        ...


def show_changes(change: Step) -> None:
    """Print a line for each pass: what it changed and how long it took.

    Parameters
    ----------
    change
        What a pass did. `lower` and `build` call the function after each pass if it is one of their
        observers: ``dlc.lower(s, args, observers=[dlc.show_changes])``. So does
        ``graph.optimize``.
    """
    print(describe(change))  # noqa: T201  it is what a user asks for


def describe(change: Step) -> str:
    """Return what a pass did, in one line."""
    milliseconds = change.seconds * 1e3
    return f"{change.number:2} {change.name:<22} {change.effect:<40} {milliseconds:6.1f} ms"
