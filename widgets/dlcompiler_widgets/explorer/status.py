"""The text of the status line: the result of the last action."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dlcompiler.errors import DLCompilerError


@dataclass(frozen=True)
class Status:
    """The text of the status line, with its tone and details."""

    text: str
    tone: Literal["info", "error"] = "info"
    details: tuple[tuple[str, str], ...] = ()
    """Further lines, each with its label: got, because, hint."""

    def to_json(self) -> dict[str, Any]:
        """Return the status as JSON for the front end."""
        return {"text": self.text, "tone": self.tone, "details": [list(d) for d in self.details]}


def status_of_bug(operation: str, error: Exception) -> Status:
    """Return the status for an unexpected error: its message, and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{Path(frame.filename).name}:{frame.lineno}, in {frame.name}" for frame in frames]
    text = f"{operation}: {type(error).__name__}: {error}"
    return Status(text, "error", (("where", places[-1]),) if places else ())


def status_of(error: DLCompilerError) -> Status:
    """Return the status for an error, with its parts as details."""
    details = tuple((label, str(value)) for label, value in error.parts() if value is not None)
    return Status(f"{error.operation}: {error.problem}", "error", details)
