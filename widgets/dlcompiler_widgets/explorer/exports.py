"""What can be taken away from the workbench, by the name of its button."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import ScheduleError
from dlcompiler.schedule.saved import Saved, to_json, to_link
from dlcompiler.views.export import notebook_text, python_text
from dlcompiler_widgets.explorer.status import Status

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

Json = dict[str, Any]


@dataclass(frozen=True)
class Export:
    """One thing to take away."""

    text: str
    """On its button."""
    ending: str
    """Of its file."""
    media_type: str
    write: Callable[[Session], str]
    note: str
    """What it is, and how it is used."""


def saved_of(session: Session) -> Saved:
    """Return the schedule of a session as something to be saved."""
    return Saved(session.schedule, session.args, session.target.name, session.name)


EXPORTS: dict[str, Export] = {
    "python": Export(
        "Python", "py", "text/x-python", lambda session: python_text(saved_of(session)),
        "A program that runs by itself, to the same loop nest.",
    ),
    "notebook": Export(
        "Notebook", "ipynb", "application/x-ipynb+json",
        lambda session: notebook_text(saved_of(session)),
        "Cells that make, show, verify and measure this schedule.",
    ),
    "json": Export(
        "JSON", "json", "application/json", lambda session: to_json(saved_of(session)),
        "All states with their names and notes. Explorer.from_json(text) goes on from here.",
    ),
    "link": Export(
        "Link", "txt", "text/plain", lambda session: to_link(saved_of(session)),
        "The steps to this state, packed. Explorer.from_link(text) opens it.",
    ),
}  # fmt: skip


def export(session: Session, args: Mapping[str, Any]) -> None:
    """Show the export of a ``kind``; without one, show none."""
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
    """Return the name of a function as that of a file."""
    return re.sub(r"[^\w-]+", "-", name, flags=re.ASCII).strip("-")[:60] or "schedule"
