"""The exports of the workbench, by the name of their button."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import ScheduleError
from dlcompiler.schedule.saved.document import Saved, to_json, to_link
from dlcompiler.views.code.export import notebook_text, python_text
from dlcompiler_widgets.explorer.recording import Limits
from dlcompiler_widgets.explorer.replay import ReplayPage, replay_page
from dlcompiler_widgets.explorer.snapshot import PANES, panes_of
from dlcompiler_widgets.explorer.status import Status

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

_SENT = Limits(max_bytes=700_000, seconds=5.0)
"""Of a page that is sent to the browser; `Explorer.save_html` writes larger ones."""
_LARGEST_SENT = 950_000
"""Characters; front ends become slow with larger messages."""

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


def _sent_page(session: Session) -> str:
    html = replay_of(session, _SENT).html
    if len(html) > _LARGEST_SENT:
        raise ScheduleError(
            "export a replay page", "the page is too large to be sent to the browser",
            got=f"{len(html) / 1e6:.1f} MB", hint="explorer.save_html(path) writes it to a file",
        )  # fmt: skip
    return html


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
    "html": Export(
        "Replay page", "html", "text/html", _sent_page,
        "All visited states in one file that runs without a kernel and without a network.",
    ),
}  # fmt: skip


def replay_of(session: Session, limits: Limits) -> ReplayPage:
    """Return the page that replays a session."""
    kinds = [kind for kind in EXPORTS if kind != "html"]
    return replay_page(session, panes_of(session.target, PANES), kinds, limits)


def export(session: Session, args: Mapping[str, Any]) -> None:
    """Show the export of a ``kind``; without a kind, hide it."""
    kind = args.get("kind")
    if kind is None:
        session.exported = {}
        return
    if not isinstance(kind, str) or kind not in EXPORTS:
        raise ScheduleError("export", "there is no such kind", got=repr(kind))
    chosen = EXPORTS[kind]
    session.exported = {
        "kind": kind,
        "kinds": [{"name": name, "text": each.text} for name, each in EXPORTS.items()],
        "file": f"{file_name(session.name)}.{chosen.ending}",
        "media_type": chosen.media_type,
        "text": chosen.write(session),
        "note": chosen.note,
    }
    session.status = Status(f"{chosen.text}: copy it, or download it as a file.")


def file_name(name: str) -> str:
    """Return a file name made from the name of a function."""
    return re.sub(r"[^\w-]+", "-", name, flags=re.ASCII).strip("-")[:60] or "schedule"
