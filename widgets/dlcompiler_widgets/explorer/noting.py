"""What came of a run, noted on its state and said in words."""

from __future__ import annotations

from dlcompiler.errors import DLCompilerError, ProgramError, VerificationError
from dlcompiler.measurement import Verified
from dlcompiler.schedule import Node
from dlcompiler_widgets.explorer.measuring import Measured, Result, certify, describe
from dlcompiler_widgets.explorer.status import Status, status_of


def noted(node: Node, result: Result) -> Status:
    """Note a result on the state that it is about, and return it in words."""
    match result:
        case Verified():
            node.notes.pop("wrong", None)
            node.notes["verified"] = certify(result)
            return Status(f"Verified: {node.title()}: {certify(result)}.")
        case Measured():
            node.notes["measured"] = result
            text = f"Measured: {node.title()}: {describe(result)} (n={result.timing.n})."
            return Status(text)
        case VerificationError() | ProgramError():
            node.notes.pop("verified", None)
            node.notes["wrong"] = result.problem
            return status_of(result)
        case DLCompilerError():
            return status_of(result)
        case Exception():
            return Status(f"run: {type(result).__name__}: {result}", "error")
    return Status("The run was cancelled.")
