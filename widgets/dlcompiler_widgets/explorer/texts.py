"""The text tabs of the workbench, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlcompiler import codegen
from dlcompiler.errors import DLCompilerError, ScheduleError
from dlcompiler.ir import PrimFunc
from dlcompiler.pipeline import emit_source, lower_program
from dlcompiler.target import Target
from dlcompiler.views import program
from dlcompiler.views.code.code_text import Code, code_text, place_of
from dlcompiler.views.code.kernels_text import kernel_lines
from dlcompiler.views.code.notation_view import notation_lines
from dlcompiler.views.code.program import MOST_LINES, Line
from dlcompiler.views.code.python_view import python_view
from dlcompiler.views.code.source_text import source_code
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
    applies: Callable[[Target], bool] = lambda target: True
    """Whether there is such a text for a target."""


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


def _source(session: Session, language: str | None = None) -> Json:
    """Return the source code in a language; by default the one that is generated for the target."""
    name = language or session.target.language
    made = session.texts.get(
        (f"source code in {name}", session.schedule.node.id), lambda: _emitted(session, language)
    )
    code = made["code"]
    if not isinstance(code, Code):
        return {"lines": [], "note": "", "left_out": 0, "error": code}
    shown = code_text(code, place_of(code, session.chosen))
    return {**shown, "note": f"{_LANGUAGES.get(name, name)}, as it is generated", "error": None}


def _emitted(session: Session, language: str | None) -> Json:
    try:
        made = session.accelerators.generated(session)
        if made is None:
            made = emit_source(session.schedule, session.args, session.target, session.name)
        return {"code": source_code(*made, language)}
    except DLCompilerError as error:
        return {"code": status_of(error).to_json()}


def _also_in(language: str) -> Text:
    """Return the tab for a language in which the programs for a target can be read, too."""
    name = _LANGUAGES[language]
    return Text(
        name,
        f"{name}: the kernels as code",
        lambda session: _source(session, language),
        lambda target: language in target.also_in,
    )


def _python(session: Session) -> Json:
    return _whole(python_view(session.schedule), "the steps that lead to this state")


def _of_state(name: str, make: Callable[[Session], Json]) -> Callable[[Session], Json]:
    """Return `make` with a cache by state; its result must depend on the state alone."""
    return lambda session: session.texts.get(
        (name, session.schedule.node.id), lambda: make(session)
    )


def _is_written_in(language: str) -> Callable[[Target], bool]:
    return lambda target: target.language == language


def _has_other_source(target: Target) -> bool:
    return target.language in codegen.REGISTRY and target.language not in ("llvm", "loops")


_LANGUAGES = {
    "llvm": "LLVM IR",
    "loops": "loop IR, which is simulated",
    "c": "C",
    "cuda": "CUDA C",
    "ptx": "PTX",
    "opencl": "OpenCL C",
}
_IN_LLVM = _is_written_in("llvm")
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
    "llvm": Text("LLVM", "LLVM IR", lambda session: session.code.lines(session, "llvm"), _IN_LLVM),
    "assembly": Text(
        "assembly",
        "assembly of the target",
        lambda session: session.code.lines(session, "assembly"),
        _IN_LLVM,
    ),
    "kernels": Text(
        "kernels", "kernels and launches", _of_state("kernels", _kernels), _is_written_in("loops")
    ),
    "source": Text("source code", "source code, as it is generated", _source, _has_other_source),
    "cuda": _also_in("cuda"),
    "ptx": _also_in("ptx"),
    "opencl": _also_in("opencl"),
    "python": Text("Python", "Python: the steps", _of_state("python", _python)),
}
FIRST = "loops"
"""The tab that is open at first."""
_GENERATED = ("llvm", "assembly", "kernels", "source", "cuda", "ptx", "opencl")


def tabs_of(target: Target) -> dict[str, Text]:
    """Return the tabs that apply to a target."""
    return {name: text for name, text in TEXTS.items() if text.applies(target)}


def instead_of(tab: str, offered: Sequence[str]) -> str:
    """Return the tab to show for one that is not offered: other generated code, or the loops."""
    wanted = (*(_GENERATED if tab in _GENERATED else ()), FIRST)
    return next((name for name in wanted if name in offered), offered[0])


def why_no_text(tab: str, target: Target) -> ScheduleError:
    """Return the reason why there is no such text for a target."""
    language = _LANGUAGES.get(target.language, target.language)
    other = next((text.text for name, text in tabs_of(target).items() if name in _GENERATED), None)
    return ScheduleError(
        f"show {TEXTS[tab].title}", f"there is none for {target.name}",
        because=f"programs for {target.name} are generated as {language}",
        hint=f"the tab {other!r} shows them" if other else None,
    )  # fmt: skip
