"""The contents of each pane of the workbench, read from a session."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dlcompiler.errors import DLCompilerError
from dlcompiler.target import Target
from dlcompiler.views import branch_name, history_tree, palette
from dlcompiler.views.moves.advice import advice as advice_on
from dlcompiler_widgets.explorer.best_known import speed_of
from dlcompiler_widgets.explorer.branches import comparison
from dlcompiler_widgets.explorer.learner import why_nothing
from dlcompiler_widgets.explorer.levels import more_at, primitives_at
from dlcompiler_widgets.explorer.measured import ladder_of
from dlcompiler_widgets.explorer.noting import known
from dlcompiler_widgets.explorer.pictures import PICTURES, pictures_of
from dlcompiler_widgets.explorer.status import status_of, status_of_bug
from dlcompiler_widgets.explorer.targets import targets_of, why_not_measured
from dlcompiler_widgets.explorer.texts import TEXTS, instead_of, tabs_of, why_no_text

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

Json = dict[str, Any]

MOST_PALETTES = 64
"""Palettes that are kept, by state, loop and level: tabs and undo come back to them."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pane:
    """A pane of the workbench: what it shows, where, and for which targets."""

    contents: Callable[[Session], Json]
    """What ``draw`` of its class in ``js/`` gets."""
    place: Literal["above", "grid", "below"] = "grid"
    """Panes above and below the grid are there at every level; they hide themselves if empty."""
    follows_loop: bool = True
    """Whether the contents depend on the chosen loop; a recording then holds them for each loop."""
    is_recorded: bool = True
    """Whether `recording` stores the contents in each state; the other panes have code of their
    own there and in ``js/replay.js``."""
    is_private: bool = False
    """Whether the contents go to the page as a message; a trait could be saved with a notebook."""
    applies: Callable[[Target], bool] = lambda target: True
    """Whether there is something to show for a target."""


def bar(session: Session) -> Json:
    """Return the contents of the bar: name, target, undo and redo of the whole schedule."""
    node, following = session.schedule.node, session.schedule.next_node
    return {
        "name": session.name,
        "target": session.target.name,
        "steps": len(session.schedule.trace),
        "targets": targets_of(session),
        "not_measured": why_not_measured(session),
        "predicting": session.learner.is_on,
        "not_predicting": why_nothing(session),
        "branch": branch_name(node),
        "undo": node.title() if node.parent else None,
        "redo": following.title() if following else None,
        "known": known(node, session.target.name),
        "python": session.schedule.trace.to_python(),
        "layout": session.layout.to_json(),
    }


def tree(session: Session) -> Json:
    """Return the loop nest."""
    return dict(session.tree)


def moves(session: Session) -> Json:
    """Return the possible steps for the chosen loop."""
    level, on_chip = session.layout.level, session.target.accelerator is not None
    offered = primitives_at(level, on_chip=on_chip)
    key = (session.schedule.node.id, session.chosen, level)
    if key not in session.palettes:
        if len(session.palettes) >= MOST_PALETTES:
            session.palettes.clear()
        session.palettes[key] = palette(session.schedule, session.chosen, offered, session.target)
    return {**session.palettes[key], "more": more_at(level, on_chip=on_chip)}


def picture(session: Session) -> Json:
    """Return the picture of the open tab; only this one is computed."""
    names = session.layout.pictures(session.tabs_shown("picture", pictures_of(session)))
    tab = session.tabs["picture"] if session.tabs["picture"] in names else names[0]
    open_ = PICTURES[tab]
    shown: Json = {
        "tab": tab,
        "tabs": [
            {"name": name, "text": PICTURES[name].text, "group": PICTURES[name].group}
            for name in names
        ],
        "kind": open_.kind,
        "model": None,
        "error": None,
    }
    try:
        shown["model"] = open_.draw(session)
    except DLCompilerError as error:
        shown["error"] = status_of(error).to_json()
    return shown


def text(session: Session) -> Json:
    """Return the text of the open tab; for a tab that the target lacks, another one and why."""
    tabs = tabs_of(session.target)
    names = session.layout.texts(session.tabs_shown("text", tabs))
    wanted = session.tabs["text"]
    tab = wanted if wanted in names else instead_of(wanted, names)
    shown: Json = {"lines": [], "note": "", "left_out": 0, "error": None}
    if tab in tabs:
        shown |= tabs[tab].lines(session)
    if wanted not in tabs:
        why = why_no_text(wanted, session.target)
        shown["note"] = f"{TEXTS[wanted].title}: {why.problem}, {why.because}"
        if tab not in tabs:  # the only tab of a widget
            shown["error"] = status_of(why).to_json()
    return {
        "tab": tab,
        "tabs": [
            {"name": name, "text": TEXTS[name].text, "title": TEXTS[name].title} for name in names
        ],
        **shown,
    }


def history(session: Session) -> Json:
    """Return the states of the schedule."""
    predicted = session.predictions.of(session)
    tree = history_tree(session.schedule.history, session.target.name, predicted)
    return {**tree, "compared": session.compared}


def ladder(session: Session) -> Json:
    """Return the measured times of the current branch."""
    return dict(ladder_of(session))


def predict(session: Session) -> Json:
    """Return the question about the next step, or what came of the last prediction."""
    return session.learner.contents(session)


def advice(session: Session) -> Json:
    """Return the advice on the schedule."""
    kernels = None
    if session.target.device == "gpu":
        try:
            kernels = session.kernels.of(session, patience_s=0.0)
        except DLCompilerError as error:
            return {"rows": [], "summary": f"No advice: {error.problem}."}
        if kernels is None:
            return {"rows": [], "summary": "The kernels are being counted …", "is_pending": True}
    speed = speed_of(session)
    return dict(advice_on(session.schedule, session.args, session.target, speed, kernels))


def compare(session: Session) -> Json:
    """Return the comparison of two states; empty unless two states are chosen."""
    found = comparison(session)
    return {**found, "not_measured": why_not_measured(session)} if found else {}


def export(session: Session) -> Json:
    """Return the open export; empty if none is open."""
    return session.exported


def editor(session: Session) -> Json:
    """Return the contents of the expression editor; empty while it is closed."""
    return session.writing


PANES: dict[str, Pane] = {
    "bar": Pane(bar, "above", follows_loop=False),
    "tree": Pane(tree, follows_loop=False),
    "picture": Pane(picture),
    "text": Pane(text, follows_loop=False),
    "ladder": Pane(ladder, follows_loop=False),
    "moves": Pane(moves),
    "history": Pane(history, is_recorded=False),
    "advice": Pane(advice, follows_loop=False),
    "compare": Pane(compare, "below", is_recorded=False),
    "editor": Pane(editor, "above", is_recorded=False),
    "predict": Pane(predict, "above", is_recorded=False, is_private=True),
    "export": Pane(export, "above", is_recorded=False),
}
"""The panes in the order of the page. A name is also that of the trait in ``widget.py`` and of the
class in ``js/workbench.js``."""


def panes_of(target: Target, panes: Iterable[str]) -> list[str]:
    """Return those of `panes` that apply to a target; if none does, return all.

    So a widget with one pane keeps it; the pane says why it is empty.
    """
    names = list(panes)
    return [name for name in names if PANES[name].applies(target)] or names


def places_of(panes: Iterable[str]) -> dict[str, str]:
    """Return where on the page each of `panes` is: above the grid, in it, or below."""
    return {name: PANES[name].place for name in panes}


def layout_of(session: Session, panes: Iterable[str]) -> Json:
    """Return where each of `panes` is on the page, and which of them are visible.

    A level and a preset that would leave nothing of the grid hide nothing: a widget with one pane
    keeps it.
    """
    places = places_of(panes)
    there = panes_of(session.target, places)
    shown = [name for name in there if places[name] != "grid" or session.layout.shows(name)]
    is_empty = all(places[name] != "grid" for name in shown)
    return {"panes": places, "visible": there if is_empty else shown}


def snapshot(session: Session, panes: Iterable[str]) -> dict[str, Any]:
    """Return the contents of `panes` by name, with the chosen loop, the preview and the status."""
    shown: dict[str, Any] = {}
    for name in panes:
        try:
            shown[name] = PANES[name].contents(session)
        except Exception as error:
            # A bug in one pane: the others are drawn, and the page does not wait for ever.
            _LOG.exception("the pane %s cannot be drawn", name)
            session.status = status_of_bug(f"draw {name}", error)
    return {
        **shown,
        "chosen": session.chosen,
        "preview": session.preview,
        "status": session.status.to_json(),
    }
