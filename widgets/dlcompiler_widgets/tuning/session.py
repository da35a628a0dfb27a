"""State of a tuning dashboard, and the actions of its user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dlcompiler.autotune import Trial, TuningRun
from dlcompiler.errors import TuningError
from dlcompiler.views.tuning import Order, Watched
from dlcompiler.views.tuning.best_so_far import Against, Shown
from dlcompiler.views.tuning.chart import NARROWEST, USUAL, WIDEST
from dlcompiler.views.tuning.headline import sentence
from dlcompiler.views.tuning.series import index_of
from dlcompiler.views.tuning.trials_table import COLUMNS, page_of

TABS = {
    "predicted": "Predicted and measured",
    "importance": "What matters",
    "why": "Why this one",
    "knobs": "Knobs",
    "map": "Map",
    "time": "Time",
}
"""The pictures beside the curve, shown one at a time."""
PLANE = ""
"""Chosen instead of a knob: the map then shows the first two principal components."""


@dataclass
class Session:
    """The state of a dashboard; it is separate from the state of the run."""

    run: TuningRun
    seen: Watched
    against: Against = "trials"
    shown: Shown = "rate"
    tab: str = "predicted"
    across: str = PLANE
    up: str = PLANE
    chosen: int | None = None
    """Number of the chosen trial."""
    a: int | None = None
    """Number of the trial that is compared with `b`."""
    b: int | None = None
    code_of: int | None = None
    """Number of the trial whose code is shown."""
    order: Order = field(default_factory=Order)
    widths: dict[str, float] = field(default_factory=lambda: {"progress": USUAL, "picture": USUAL})
    status: str = "Choose a trial: click on a sign in a picture, or on a row of the table."
    is_error: bool = False
    is_passing: bool = False
    """Whether the text is about a run that goes on."""

    def trial(self, index: int | None) -> Trial | None:
        """Return a trial by its number."""
        trials = self.run.trials
        if index is None or not 0 <= index < len(trials):
            return None
        return trials[index]

    def say(self, text: str, is_passing: bool = False) -> None:
        """Set the text of the status line; one that `is_passing` ends with the run."""
        self.status, self.is_error, self.is_passing = text, False, is_passing

    def end_passing(self) -> None:
        """Set the status to the result of the run, if it is over and the status says otherwise."""
        if self.is_passing and self.seen.is_over:
            self.say(f"The run is {sentence(self.seen)}.")


Args = Mapping[str, Any]


def handle(session: Session, op: str, args: Args) -> None:
    """Do an action of the user.

    Raises
    ------
    TuningError
        If there is no such action, or its arguments are invalid.
    """
    action = ACTIONS.get(op)
    if action is None:
        raise TuningError("use the dashboard", "there is no such action", got=repr(op))
    action(session, args)


def _choose(session: Session, args: Args) -> None:
    index = _trial(session, args)
    session.chosen = index
    page = page_of(session.seen, session.order, index)
    if page is not None:
        session.order = replace(session.order, page=page)
    session.say(f"Trial {index} is chosen.")


def _compare(session: Session, args: Args) -> None:
    """Set the chosen trial as A or B of a comparison; without a side, stop comparing."""
    side = args.get("side")
    if side not in ("a", "b"):
        session.a = session.b = None
        session.say("No trials are compared.")
        return
    if args.get("key") is not None:
        session.chosen = _trial(session, args)
    index = session.chosen
    if side == "a":
        session.a = index
    else:
        session.b = index
    session.tab = "why"
    if session.a is None or session.b is None:
        missing = "B" if session.b is None else "A"
        session.say(f"Trial {index} is {side.upper()}. Choose another, and make it {missing}.")
    else:
        session.say(f"Compared: A, trial {session.a}, with B, trial {session.b}.")


def _tab(session: Session, args: Args) -> None:
    session.tab = _known(args.get("name"), TABS, "a picture")


def _axis(session: Session, args: Args) -> None:
    session.against = _known(args.get("against", session.against), ("trials", "seconds"), "an axis")
    session.shown = _known(args.get("shown", session.shown), ("rate", "time"), "an axis")


def _map(session: Session, args: Args) -> None:
    names = [knob.name for knob in session.seen.space.knobs]
    across = _known(args.get("across", session.across), [PLANE, *names], "a knob")
    up = _known(args.get("up", session.up), [PLANE, *names], "a knob")
    if PLANE in (across, up) and across != up:
        # Two knobs, or none: the other side follows the one that was changed.
        if PLANE in (args.get("across"), args.get("up")):
            across = up = PLANE
        else:
            other = next((name for name in names if name not in (across, up)), names[0])
            across, up = across or other, up or other
    session.across, session.up = across, up


def _sort(session: Session, args: Args) -> None:
    by = _known(args.get("by"), COLUMNS, "a column")
    order = session.order
    turned = not order.is_descending if by == order.by else by in ("index", "gflops")
    session.order = replace(order, by=by, is_descending=turned, page=0)


def _filter(session: Session, args: Args) -> None:
    outcome = args.get("outcome") or None
    if outcome is not None:
        _known(outcome, session.seen.counts, "an outcome")
    session.order = replace(session.order, outcome=outcome, page=0)


def _page(session: Session, args: Args) -> None:
    page = args.get("page")
    if not isinstance(page, int) or page < 0:
        raise TuningError("turn a page", "there is no such page", got=repr(page))
    session.order = replace(session.order, page=page)


def _code(session: Session, args: Args) -> None:
    """Show the code of the chosen trial, or hide it."""
    session.code_of = None if session.code_of == session.chosen else session.chosen


def _size(session: Session, args: Args) -> None:
    for name in session.widths:
        width = args.get(name)
        if isinstance(width, int | float) and width == width:
            session.widths[name] = float(min(max(width, NARROWEST), WIDEST))


def _stop(session: Session, args: Args) -> None:
    session.run.stop()
    session.say("The run is stopping; its trials are kept.", is_passing=True)


def _pause(session: Session, args: Args) -> None:
    session.run.pause()
    session.say("Paused: no trial runs until you resume.", is_passing=True)


def _resume(session: Session, args: Args) -> None:
    session.run.resume()
    session.say("The run continues.", is_passing=True)


ACTIONS: Mapping[str, Callable[[Session, Args], None]] = {
    "choose": _choose,
    "compare": _compare,
    "tab": _tab,
    "axis": _axis,
    "map": _map,
    "sort": _sort,
    "filter": _filter,
    "page": _page,
    "code": _code,
    "size": _size,
    "stop": _stop,
    "pause": _pause,
    "resume": _resume,
}


def _trial(session: Session, args: Args) -> int:
    """Return the trial that a request names."""
    index = index_of(str(args.get("key")))
    if index is None or session.seen.row(index) is None:
        raise TuningError("choose a trial", "there is no such trial", got=repr(args.get("key")))
    return index


def _known(value: Any, known: Any, what: str) -> Any:
    if not isinstance(value, str) or value not in known:  # anything can come from a browser
        raise TuningError(
            "use the dashboard", f"this is not {what}", got=f"{value!r:.80}",
            expected=", ".join(map(str, known)),
        )  # fmt: skip
    return value
