"""The texts of the workbench, by the name of their tab."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import DLCompilerError
from dlcompiler.ir import PrimFunc
from dlcompiler.views import program
from dlcompiler_widgets.explorer.status import status_of

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Mode, Session

Json = dict[str, Any]


@dataclass(frozen=True)
class Text:
    """One tab."""

    text: str
    lines: Callable[[Session], Json]
    """What to show: ``lines`` as in `views.program.Program`, ``note``, ``left_out``, ``error``."""


def _program(session: Session, mode: Mode) -> Json:
    """Return a lowered program, compared with the one before the last step."""
    node = session.schedule.node
    shown = session.lowered(node, mode)
    if isinstance(shown, DLCompilerError):
        return {"lines": [], "note": "", "left_out": 0, "error": status_of(shown).to_json()}
    before = session.lowered(node.parent, mode) if node.parent else None
    view = program(shown, before if isinstance(before, PrimFunc) else None)
    added, removed = view["added"], view["removed"]
    note = f"{node.title()}: +{added} −{removed} lines" if added or removed else ""
    return {"lines": view["lines"], "note": note, "left_out": view["left_out"], "error": None}


TEXTS: dict[str, Text] = {
    "loops": Text("loops as scheduled", lambda session: _program(session, "loops")),
    "final": Text("after all passes", lambda session: _program(session, "final")),
}
