"""Exports that take long: made in a background thread, with their progress; can be cancelled."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from dlcompiler.errors import DLCompilerError
from dlcompiler_widgets.explorer.progress import Cancelled, Progress, Watch
from dlcompiler_widgets.explorer.status import Status, status_of, status_of_bug

PUSH_S = 0.2
"""Shortest time between two reports of the progress [s]."""

Json = dict[str, Any]
State = Literal["running", "ready", "cancelled", "failed"]


@dataclass
class Job:
    """An export that is being made, or its result."""

    id: int
    state: State = "running"
    progress: Progress = field(default_factory=Progress)
    text: str = ""
    """The text of the file, when it is ready."""
    note: str = ""
    """What the file contains."""
    error: Status | None = None
    """Why it failed."""
    is_cancelled: bool = False
    is_shown: bool = False
    """Whether the page has shown the result."""

    @property
    def is_over(self) -> bool:
        """Whether it was cancelled, has failed, or its result was shown."""
        return self.is_cancelled or self.is_shown or self.state in ("cancelled", "failed")

    def view(self) -> Json:
        """Return what changes while the export is made, as the page shows it."""
        return {
            "id": self.id,
            "state": self.state,
            "text": self.text,
            "progress": self.progress.to_json() if self.state == "running" else None,
            "error": self.error.to_json() if self.error else None,
        }


Make = Callable[[Watch], tuple[str, str]]
"""Makes the text of a file, and a sentence about it."""


class Exporting:
    """Makes one export at a time in a background thread."""

    def __init__(self) -> None:
        self.on_change: Callable[[Job], None] | None = None
        """Called from the thread when the progress has changed, and when the job has ended."""
        self.job: Job | None = None
        self._thread: threading.Thread | None = None

    def start(self, id: int, make: Make) -> Job:
        """Start a job; the one that is running is cancelled."""
        self.cancel()
        self.job = job = Job(id)
        self._thread = threading.Thread(
            target=self._run, args=(job, make), name="exporting", daemon=True
        )
        self._thread.start()
        return job

    def cancel(self) -> bool:
        """Cancel the running job; return whether there was one."""
        if self.job is None or self.job.state != "running":
            return False
        self.job.is_cancelled = True
        return True

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the last job has ended."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def close(self) -> None:
        """Cancel the running job, and report nothing more."""
        self.on_change = None
        self.cancel()

    def _run(self, job: Job, make: Make) -> None:
        reported = time.monotonic()

        def report(progress: Progress) -> None:
            nonlocal reported
            job.progress = progress
            if time.monotonic() - reported >= PUSH_S:
                reported = time.monotonic()
                self._changed(job)

        try:
            job.text, job.note = make(Watch(report, lambda: job.is_cancelled))
            job.state = "cancelled" if job.is_cancelled else "ready"
        except Cancelled:
            job.state = "cancelled"
        except DLCompilerError as error:
            job.error, job.state = status_of(error), "failed"
        except Exception as error:
            # A bug, too, must reach the page: nobody looks at what a thread prints.
            job.error, job.state = status_of_bug("export", error), "failed"
        self._changed(job)

    def _changed(self, job: Job) -> None:
        report = self.on_change
        if report is not None:
            report(job)
