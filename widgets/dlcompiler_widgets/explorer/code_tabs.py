"""The tabs of generated code: LLVM IR and assembly, which are compiled in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from dlcompiler.views.code.code_text import Code, CodeText, code_text, place_of
from dlcompiler_widgets.explorer.compiling import Compiled, Compiling, job_of

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

Json = dict[str, Any]
Part = Literal["llvm", "assembly"]

_NOTES = {
    "llvm": "before LLVM's own passes",
    "assembly": "optimised for {target}",
}


class CodeTabs:
    """The state of the tabs of generated code: compiled states, and the lines shown last."""

    def __init__(self) -> None:
        self.compiling = Compiling()
        self._last: str | None = None
        self._first: dict[Part, int] = {}
        self._shown: dict[Part, tuple[Code, int, CodeText]] = {}

    def lines(self, session: Session, part: Part) -> Json:
        """Return the current state's code; until it is ready, the previous code, marked stale."""
        state = session.schedule.node.id
        compiled = self.compiling.get(state)
        is_stale = compiled is None
        if compiled is None:
            job = job_of(session.schedule, session.args, session.target, session.name)
            self.compiling.want(job)
            compiled = self.compiling.get(self._last) if self._last else None
        else:
            self._last = state
        return {
            "lines": [], "before": 0, "left_out": 0, "error": None,
            **self._part(session, part, compiled),
            "note": _note(session, part, is_stale=is_stale), "is_stale": is_stale,
        }  # fmt: skip

    def _part(self, session: Session, part: Part, compiled: Compiled | None) -> Json:
        if compiled is None:
            return {}
        code = compiled.llvm if part == "llvm" else compiled.assembly
        if not isinstance(code, Code):
            return {"error": code.to_json()}
        return dict(self._text(part, code, session.chosen))

    def _text(self, part: Part, code: Code, chosen: str | None) -> CodeText:
        first = self._first[part] = place_of(code, chosen, self._first.get(part, 0))
        last = self._shown.get(part)
        if last is None or last[0] is not code or last[1] != first:
            last = self._shown[part] = (code, first, code_text(code, first))
        return last[2]


def _note(session: Session, part: Part, *, is_stale: bool) -> str:
    if is_stale:
        return "compiling …"
    return _NOTES[part].format(target=session.target.name)
