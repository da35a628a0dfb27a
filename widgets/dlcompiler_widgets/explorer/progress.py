"""The progress of a recording, and how it is followed and cancelled from another thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


class Cancelled(Exception):  # noqa: N818 - what the user wanted
    """The recording was cancelled."""


@dataclass(frozen=True)
class Progress:
    """How far a recording is."""

    doing: str = "starting"
    """What is recorded now."""
    state: int = 0
    """Number of the state that is recorded now, from 1."""
    states: int = 0
    """Number of all states; each is visited once for each kind of contents."""
    done: int = 0
    """Visits of states that are done."""
    all: int = 1
    """Visits of states in all."""

    def to_json(self) -> Json:
        """Return the progress as the page shows it."""
        at = f"state {self.state} of {self.states}" if self.states else ""
        return {"text": f"{self.doing}: {at}" if at else self.doing,
                "done": self.done, "all": self.all}  # fmt: skip


@dataclass(frozen=True)
class Watch:
    """Follows a recording in the background, and ends it; called from the thread that records."""

    report: Callable[[Progress], None]
    is_cancelled: Callable[[], bool]
