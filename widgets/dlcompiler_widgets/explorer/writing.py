"""Requests that change the expression of the workbench."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import DLCompilerError
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


def opened(session: Session, text: str, error: DLCompilerError | None = None) -> Json:
    """Return the contents of the editor: the text, and its error if there is one."""
    shown: Json = {"text": text, "how_to_write": HOW_TO_WRITE, "name": session.name, "error": None}
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

    Returns
    -------
    Session or None
        A new session for the text's expression; None if the session stays the same.
    """
    text = args.get("text")
    if args.get("close") or not isinstance(text, str):
        session.writing = {} if args.get("close") else opened(session, text_of(session))
        session.status = Status("Write an expression, and apply it." if session.writing else "")
        return None
    try:
        made = session.another(read_program(text))
    except DLCompilerError as error:
        session.writing = opened(session, text, error)
        session.status = Status(f"The expression is not valid: {error.problem}", "error")
        return None
    names = ", ".join(tensor.name for tensor in made.schedule.outputs)
    made.status = Status(f"This is a new schedule of {names}; the old one is unchanged.")
    return made


def text_of(session: Session) -> str:
    """Return a session's expression as text; if it cannot be written as text, an example."""
    root = session.schedule.history.history.root.state
    outputs = [tensor for stage in root.stages if stage.is_output for tensor in stage.tensors]
    try:
        return program_text(*outputs)
    except DLCompilerError:
        return EXAMPLE
