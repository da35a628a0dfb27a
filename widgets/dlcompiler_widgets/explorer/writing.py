"""Requests that change the expression of the workbench."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import DLCompilerError, ScheduleError
from dlcompiler.te.notation.program import program_text, read_program
from dlcompiler_widgets.explorer.status import Status, status_of

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

Json = dict[str, Any]

EXAMPLE = """\
C[i, j] += A[i, k] * B[k, j]
A: float32[512, 512]
B: float32[512, 512]"""
HOW_TO_WRITE = (
    "Write one statement in each line: = gives each element, += sums over the axes that are not "
    "on the left, max(…, axis=k) and others reduce over k. Then declare each tensor that is read "
    "in a line with its dtype and shape. A line 'k: 8' gives the extent of an axis that is no "
    "index of a tensor by itself."
)

MOST_FORMER = 8
"""Number of earlier expressions that are kept."""
LONGEST_TITLE = 60


def opened(session: Session, text: str, error: DLCompilerError | None = None) -> Json:
    """Return the contents of the editor: the text, and its error if there is one."""
    shown: Json = {
        "text": text, "how_to_write": HOW_TO_WRITE, "name": session.name, "error": None,
        "former": [{"text": _title(each)} for each in session.former],
    }  # fmt: skip
    if error is not None:
        place = getattr(error, "place", None)
        shown["error"] = {
            **status_of(error).to_json(),
            "line": place[0] if place else None,
            "column": place[1] if place else None,
            "excerpt": error.excerpt or "",
        }
    return shown


def write(session: Session, args: Mapping[str, Any]) -> Session | None:
    """Open the editor; with a ``text``, apply it; with ``close``, close it.

    The schedule of the expression that was shown before is kept: the number ``former`` returns to
    it. The same expression again keeps its schedule.

    Returns
    -------
    Session or None
        A session for the text's expression; None if the session stays the same.
    """
    if "former" in args:
        return _back(session, args["former"])
    text = args.get("text")
    if args.get("close") or not isinstance(text, str):
        session.writing = {} if args.get("close") else opened(session, text_of(session))
        said = "Write an expression, and apply it." if session.writing else ""
        if session.writing and not text_of(session, ""):
            said = f"{session.name} cannot be written as text: this is an example. Apply another."
        session.status = Status(said)
        return None
    try:
        program = read_program(text)
        if program_text(*program.outputs) == text_of(session, ""):
            session.writing = {}
            session.status = Status("The expression is the same: its schedule and steps stay.")
            return None
        made = session.another(program)
    except DLCompilerError as error:
        session.writing = opened(session, text, error)
        session.status = Status(f"The expression is not valid: {error.problem}", "error")
        return None
    names = ", ".join(tensor.name for tensor in made.schedule.outputs)
    made.former = (*session.former, session)[-MOST_FORMER:]
    made.status = Status(
        f"This is a new schedule of {names}; the old one is unchanged.", "info",
        (("hint", "the editor leads back to it"),),
    )  # fmt: skip
    return made


def _back(session: Session, number: object) -> Session:
    """Return a session for an earlier expression, with its steps; this one becomes an earlier one.

    Raises
    ------
    ScheduleError
        If there is no such number.
    """
    former = session.former
    if type(number) is not int or not 0 <= number < len(former):
        raise ScheduleError(
            "return to an earlier expression", "there is none of this number", got=f"{number!r:.80}"
        )
    chosen = former[number]
    made = chosen.another()
    made.tabs, made.layout = dict(session.tabs), session.layout
    made.former = (*former[:number], *former[number + 1 :], session)
    made.status = Status(f"Back at {_title(chosen)}.")
    return made


def _title(session: Session) -> str:
    """Return the first statement of a session's expression, and its number of steps."""
    statement = text_of(session, "an expression without notation").partition("\n")[0]
    cut = f"{statement[:LONGEST_TITLE]}…" if len(statement) > LONGEST_TITLE else statement
    steps = len(session.schedule.trace)
    return f"{cut} ({steps} step{'s' * (steps != 1)})"


def text_of(session: Session, default: str = EXAMPLE) -> str:
    """Return a session's expression as text; the default if it cannot be written as text."""
    root = session.schedule.history.history.root.state
    outputs = [tensor for stage in root.stages if stage.is_output for tensor in stage.tensors]
    try:
        return program_text(*outputs)
    except DLCompilerError:
        return default
