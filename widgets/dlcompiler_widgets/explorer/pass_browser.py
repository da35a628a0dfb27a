"""Pass browser: the program after each pass of the pipeline, with the lines that changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import DLCompilerError, ScheduleError
from dlcompiler.pipeline import Change, lower
from dlcompiler.pipeline.pipelines import passes_of
from dlcompiler.views.code.pass_steps import pass_difference, pass_steps
from dlcompiler_widgets.explorer.remembered import Remembered
from dlcompiler_widgets.explorer.status import Status, status_of

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

Json = dict[str, Any]

_STATES, _TEXTS = 16, 64


class PassBrowser:
    """The pass that is open, and the results of the pipeline for recently shown states."""

    def __init__(self) -> None:
        self.chosen = ""
        """Name of the pass that the user chose; '' at first."""
        self._runs: Remembered[str, list[Change] | DLCompilerError] = Remembered(_STATES)
        self._texts: Remembered[tuple[str, str], Json] = Remembered(_TEXTS)

    def open(self, session: Session, args: Mapping[str, Any]) -> None:
        """Open the pass ``name``; it stays open when the state changes."""
        run = self.run(session)
        names = [] if isinstance(run, DLCompilerError) else [change.name for change in run]
        if args.get("name") not in names:
            raise ScheduleError(
                "show a pass", "there is no such pass", got=repr(args.get("name")),
                expected=", ".join(names),
            )  # fmt: skip
        self.chosen = str(args["name"])
        session.status = Status(f"Shown: the program after {self.chosen}.")

    def lines(self, session: Session) -> Json:
        """Return the program after the open pass, and the list of passes."""
        key = (session.schedule.node.id, self.chosen)
        return self._texts.get(key, lambda: self._text(session))

    def _text(self, session: Session) -> Json:
        run = self.run(session)
        if isinstance(run, DLCompilerError):
            return {"lines": [], "note": "", "left_out": 0, "error": status_of(run).to_json()}
        steps = pass_steps(run, passes_of(session.target), self.chosen)
        change = run[steps["open"] - 1]
        view = pass_difference(change)
        changed = f"+{view['added']} −{view['removed']} lines"
        return {
            "lines": view["lines"],
            "note": "changed nothing" if change.is_unchanged else changed if change.before else "",
            "left_out": view["left_out"],
            "error": None,
            "passes": steps,
        }

    def run(self, session: Session) -> list[Change] | DLCompilerError:
        """Return the change by each pass in the current state, or the error of lowering."""
        return self._runs.get(session.schedule.node.id, lambda: _observed(session))


def _observed(session: Session) -> list[Change] | DLCompilerError:
    seen: list[Change] = []
    try:
        lower(
            session.schedule,
            session.args,
            name=session.name,
            target=session.target,
            observers=[seen.append],
        )
    except DLCompilerError as error:
        return error
    return seen
