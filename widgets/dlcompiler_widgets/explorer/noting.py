"""Store the result of a run as a note of its state, and describe it."""

from __future__ import annotations

from dlcompiler.errors import DLCompilerError, ProgramError, VerificationError
from dlcompiler.measurement import Verified
from dlcompiler.schedule import Node
from dlcompiler_widgets.explorer.branches import title_of
from dlcompiler_widgets.explorer.measuring import (
    Certificate,
    Measured,
    Problem,
    Result,
    certify,
    describe,
)
from dlcompiler_widgets.explorer.status import Status, status_of

FIRST = ("wrong", "failed", "measured")
"""The notes that are shown before others."""


def noted(node: Node, result: Result, target: str) -> Status:
    """Store a result for a target as a note of its state, and return a sentence about it."""
    match result:
        case Verified():
            _drop(node, "wrong", target)
            node.notes["verified"] = Certificate(certify(result), target)
            return Status(f"Verified: {title_of(node)}: {certify(result)}.")
        case Measured():
            _drop(node, "failed", target)
            node.notes["measured"] = result
            text = f"Measured: {title_of(node)}: {describe(result)} (n={result.shown.n})."
            return Status(text)
        case VerificationError() | ProgramError():
            _drop(node, "verified", target)
            node.notes["wrong"] = Problem(result.problem, target)
            return status_of(result)
        case DLCompilerError():
            node.notes["failed"] = Problem(result.problem, target)
            return status_of(result)
        case Exception():
            return Status(f"run: {type(result).__name__}: {result}", "error")
    return Status("The run was cancelled.")


def _drop(node: Node, kind: str, target: str) -> None:
    """Remove a note if it is about a target, or does not say which target it is about."""
    if getattr(node.notes.get(kind), "target", "") in ("", target):
        node.notes.pop(kind, None)


def known(node: Node, target: str) -> list[str]:
    """Return the notes of a state as text, with the target of those that are not about `target`.

    What is wrong comes first, then the time: the line that shows them may be too short for all.
    """
    kinds = sorted(node.notes, key=lambda kind: FIRST.index(kind) if kind in FIRST else len(FIRST))
    return [_about(kind, node.notes[kind], target) for kind in kinds]


def _about(kind: str, value: object, target: str) -> str:
    own = getattr(value, "target", "") or target
    return f"{kind} {value}" if own == target else f"{kind} for {own}: {value}"
