"""The exports of the workbench, by the name of their button."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import DLCompilerError, ScheduleError
from dlcompiler.schedule.saved.document import Saved, to_json, to_link
from dlcompiler.views.code.export import notebook_text, python_text
from dlcompiler_widgets.explorer.exporting import Job
from dlcompiler_widgets.explorer.progress import Watch
from dlcompiler_widgets.explorer.recording import Limits
from dlcompiler_widgets.explorer.replay import ReplayPage, replay_page
from dlcompiler_widgets.explorer.snapshot import PANES, panes_of
from dlcompiler_widgets.explorer.status import Status, status_of

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

_SENT = Limits(max_bytes=600_000, seconds=60.0)
"""Of a page that is sent to the browser; `Explorer.save_html` writes larger ones."""
_LARGEST_SENT = 950_000
"""Characters; front ends become slow with larger messages."""
REPLAY = "html"
"""The kind that is made in the background."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Export:
    """One kind of export."""

    text: str
    """Label of its button."""
    ending: str
    """Ending of its file name."""
    media_type: str
    write: Callable[[Session], str]
    note: str
    """Explanation of what it is, and how it is used."""


def saved_of(session: Session) -> Saved:
    """Return the schedule of a session in the form that is saved."""
    return Saved(session.schedule, session.args, session.target.name, session.name)


def _sent_page(session: Session, watch: Watch | None = None) -> ReplayPage:
    page = replay_of(session, _SENT, watch)
    if len(page.html) > _LARGEST_SENT:
        raise ScheduleError(
            "export a replay page", "the page is too large to be sent to the browser",
            got=f"{len(page.html) / 1e6:.1f} MB",
            hint="explorer.save_html(path) writes it to a file",
        )  # fmt: skip
    return page


EXPORTS: dict[str, Export] = {
    "python": Export(
        "Python", "py", "text/x-python", lambda session: python_text(saved_of(session)),
        "A complete program that makes the same loop nest.",
    ),
    "notebook": Export(
        "Notebook", "ipynb", "application/x-ipynb+json",
        lambda session: notebook_text(saved_of(session)),
        "A notebook that makes, shows, verifies and measures this schedule.",
    ),
    "json": Export(
        "JSON", "json", "application/json", lambda session: to_json(saved_of(session)),
        "All states with their names and notes. Explorer.from_json(text) opens it again.",
    ),
    "link": Export(
        "Link", "txt", "text/plain", lambda session: to_link(saved_of(session)),
        "The steps to this state, packed. Explorer.from_link(text) opens it.",
    ),
    REPLAY: Export(
        "Replay page", "html", "text/html", lambda session: _sent_page(session).html,
        "All visited states in one file that runs without a kernel and without a network.",
    ),
}  # fmt: skip


def replay_of(session: Session, limits: Limits, watch: Watch | None = None) -> ReplayPage:
    """Return the page that replays a session."""
    kinds = [kind for kind in EXPORTS if kind != REPLAY]
    return replay_page(session, panes_of(session.target, PANES), kinds, limits, watch)


def export(session: Session, args: Mapping[str, Any]) -> None:
    """Show the export of a ``kind``; with ``cancel``, cancel its making; without either, hide it.

    What is shown is one value: the ``id`` of the export, its kind, its file name and its text
    always belong together. A replay page is made in the background.
    """
    if "cancel" in args:
        _cancel(session)
        return
    kind = args.get("kind")
    if kind is None:
        session.exporting.cancel()
        session.exported = {}
        return
    if not isinstance(kind, str) or kind not in EXPORTS:
        raise ScheduleError("export", "there is no such kind", got=f"{kind!r:.80}")
    chosen = EXPORTS[kind]
    session.exports_made += 1
    session.exported = {**_head(session, kind), **Job(session.exports_made).view()}
    if kind == REPLAY:
        _start(session)
        session.status = Status("The replay page is being recorded.")
        return
    try:
        text = chosen.write(session)
    except DLCompilerError as error:
        failed = {"state": "failed", "error": status_of(error).to_json(), "progress": None}
        session.exported = {**session.exported, **failed}
        raise
    session.exported = {**session.exported, "state": "ready", "text": text, "progress": None}
    session.status = Status(f"{chosen.text}: copy it, or download it as a file.")


def _head(session: Session, kind: str) -> Json:
    """Return what stays the same while an export is made."""
    chosen = EXPORTS[kind]
    return {
        "kind": kind,
        "kinds": [{"name": name, "text": each.text} for name, each in EXPORTS.items()],
        "file": f"{file_name(session.name)}.{chosen.ending}",
        "media_type": chosen.media_type,
        "note": chosen.note,
    }


def _start(session: Session) -> None:
    """Record the replay page; a recording that is running, or was not shown yet, is shown."""
    job = session.exporting.job
    if job is None or job.is_over:
        session.exporting.start(session.exports_made, partial(_made_page, session))
    show_job(session)


def _made_page(session: Session, watch: Watch) -> tuple[str, str]:
    page = _sent_page(session, watch)
    more = ". explorer.save_html(path) writes a larger page, with more of it" * bool(page.left_out)
    return page.html, f"{page.summary}{more}"


def show_job(session: Session) -> bool:
    """Show how far the replay page is; return whether it is what the export pane shows."""
    job = session.exporting.job
    if job is None or session.exported.get("kind") != REPLAY:
        return False
    note = EXPORTS[REPLAY].note
    session.exported = {
        **session.exported, **job.view(), "note": f"{note} {job.note}." if job.note else note,
    }  # fmt: skip
    if job.state != "running":
        job.is_shown = True
        session.status = job.error or Status(_ENDS[job.state])
    return True


_ENDS = {
    "ready": "Replay page: download it as a file.",
    "cancelled": "The recording of the replay page was cancelled.",
}


def _cancel(session: Session) -> None:
    running = session.exporting.cancel()
    session.status = Status("Cancelling …" if running else "No export is being made.")


def file_name(name: str) -> str:
    """Return a file name made from the name of a function."""
    return re.sub(r"[^\w-]+", "-", name, flags=re.ASCII).strip("-")[:60] or "schedule"
