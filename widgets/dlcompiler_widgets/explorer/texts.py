"""The text tabs of the workbench, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import DLCompilerError
from dlcompiler.ir import PrimFunc
from dlcompiler.pipeline import lower_program
from dlcompiler.target import Target
from dlcompiler.views import program
from dlcompiler.views.code.kernels_text import kernel_lines
from dlcompiler.views.code.notation_view import notation_lines
from dlcompiler.views.code.program import MOST_LINES, Line
from dlcompiler.views.code.python_view import python_view
from dlcompiler_widgets.explorer.status import status_of

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Mode, Session

Json = dict[str, Any]


@dataclass(frozen=True)
class Text:
    """One tab of the pane with texts."""

    text: str
    """Label of the tab."""
    title: str
    """What the tab shows, for its tooltip and for screen readers; it contains the label."""
    lines: Callable[[Session], Json]
    """What to show: ``lines`` as in `views.program.Program`; ``note``; how many are not shown,
    ``before`` and ``left_out``; ``error``; ``is_stale``; ``passes`` as in `views.pass_steps`."""
    language: str = ""
    """Shown for targets of this language only; empty: for all."""


def _program(session: Session, mode: Mode) -> Json:
    """Return the lowered program, compared with the program before the last step."""
    node = session.schedule.node
    shown = session.lowered(node, mode)
    if isinstance(shown, DLCompilerError):
        return {"lines": [], "note": "", "left_out": 0, "error": status_of(shown).to_json()}
    before = session.lowered(node.parent, mode) if node.parent else None
    view = program(shown, before if isinstance(before, PrimFunc) else None)
    added, removed = view["added"], view["removed"]
    note = f"{node.title()}: +{added} −{removed} lines" if added or removed else ""
    return {"lines": view["lines"], "note": note, "left_out": view["left_out"], "error": None}


def _whole(lines: list[Line], note: str) -> Json:
    shown = lines[:MOST_LINES]
    return {"lines": shown, "note": note, "left_out": len(lines) - len(shown), "error": None}


def _notation(session: Session) -> Json:
    return _whole(notation_lines(session.schedule), "what each stage computes in this state")


def _kernels(session: Session) -> Json:
    """Return the kernels of a program for a simulated device, with their launches."""
    try:
        made = lower_program(session.schedule, session.args, session.target, session.name)
    except DLCompilerError as error:
        return {"lines": [], "note": "", "left_out": 0, "error": status_of(error).to_json()}
    return _whole(kernel_lines(made), f"what {session.target.name} is given")


def _python(session: Session) -> Json:
    return _whole(python_view(session.schedule), "the steps that lead to this state")


def _of_state(name: str, make: Callable[[Session], Json]) -> Callable[[Session], Json]:
    """Return `make` with a cache by state; its result must depend on the state alone."""
    return lambda session: session.texts.get(
        (name, session.schedule.node.id), lambda: make(session)
    )


TEXTS: dict[str, Text] = {
    "notation": Text("notation", "notation: the expression", _of_state("notation", _notation)),
    "loops": Text(
        "loops",
        "loops as scheduled",
        _of_state("loops", lambda session: _program(session, "loops")),
    ),
    "passes": Text(
        "passes", "passes, one by one", lambda session: session.pass_browser.lines(session)
    ),
    "final": Text(
        "final",
        "final program, after all passes",
        _of_state("final", lambda session: _program(session, "final")),
    ),
    "llvm": Text("LLVM", "LLVM IR", lambda session: session.code.lines(session, "llvm"), "llvm"),
    "assembly": Text(
        "assembly",
        "assembly of the target",
        lambda session: session.code.lines(session, "assembly"),
        "llvm",
    ),
    "kernels": Text("kernels", "kernels and launches", _of_state("kernels", _kernels), "loops"),
    "python": Text("Python", "Python: the steps", _of_state("python", _python)),
}
FIRST = "loops"
"""The tab that is open at first."""


def tabs_of(target: Target) -> dict[str, Text]:
    """Return the tabs that apply to a target."""
    return {name: text for name, text in TEXTS.items() if text.language in ("", target.language)}
