"""Record a fusion view: what the page shows after each action that needs no kernel.

A recording has the decisions that were tried, each with all levels, each block opened by itself,
and the graph after each pass.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dlcompiler.views.graphs.fusion_picture import LEVELS, Level
from dlcompiler_widgets.assets import GRAPH_SHEETS
from dlcompiler_widgets.graphs import snapshot
from dlcompiler_widgets.graphs.session import Session
from dlcompiler_widgets.recorded_page import recorded_page

MOST_BYTES = 4_000_000
"""About how much is recorded, unless it is said otherwise; [byte]."""


@dataclass(frozen=True)
class GraphPage:
    """A page that was written."""

    html: str
    states: int
    """Number of pictures in it; [1]."""
    left_out: int
    """Number of pictures that there was no room for; [1]."""

    def __repr__(self) -> str:
        text = f"GraphPage({self.states} pictures, {len(self.html.encode()) / 1000:,.0f} kB"
        return f"{text}{f', {self.left_out} left out' if self.left_out else ''})"


def graph_page(session: Session, max_bytes: int, still: Any) -> GraphPage:
    """Return a page that replays a view.

    Parameters
    ----------
    session : Session
        Its state.
    max_bytes : int
        About how much is recorded; [byte].
    still : sequence of Markup
        What is shown where no script runs.
    """
    made = _Recording(max_bytes)
    for number, wishes in enumerate(dict.fromkeys([session.wishes, *session.tried])):
        for state in _views(_with(session, number, wishes)):
            made.add(number, state)
    data = {"values": made.values, "states": made.states, "wishes": _ways(session),
            "passes": len(session.found.steps)}  # fmt: skip
    head = snapshot.head(session, "")
    left = f" {made.left_out} pictures are left out, because of its size." if made.left_out else ""
    text = f"A recording of the {head['title'].lower()}. What needs a kernel says so.{left}"
    sheets = (*GRAPH_SHEETS, "replay")
    html = recorded_page(head["title"], text, still, data, entry="graph-replay", sheets=sheets)
    return GraphPage(html, len(made.states), made.left_out)


def _with(session: Session, number: int, wishes: Any) -> Session:
    """Return the session after other decisions; what it compares with is the first of them."""
    other = copy.copy(session)
    other.wishes, other.found = wishes, session.tried.get(wishes, session.found)
    other.before = (session.wishes, session.found.graph) if number else session.before
    other.level, other.turned, other.at = None, frozenset(), None
    return other


def _views(session: Session) -> Iterator[Session]:
    """Yield what a reader may look at, the most important first."""
    yield session
    for level in LEVELS:
        yield _at(session, level, "")
    for at in range(len(session.found.steps)):
        after = copy.copy(session)
        after.at = at
        yield after
    for level in LEVELS[:2]:
        for node in snapshot.picture(_at(session, level, ""))["nodes"]:
            if f"{node['kind']}s" == level:
                yield _at(session, level, node["key"])


def _at(session: Session, level: Level, key: str) -> Session:
    other = copy.copy(session)
    other.level, other.turned = level, frozenset({key} if key else ())
    return other


def _ways(session: Session) -> list[dict[str, int]]:
    """Return by which actions one set of decisions leads to another: ``verdict kind`` -> number."""
    known = list(dict.fromkeys([session.wishes, *session.tried]))
    found = []
    for wishes in known:
        ways: dict[str, int] = {"reset": known.index(())} if () in known else {}
        verdicts = session.tried.get(wishes, session.found).graph.verdicts
        for n, verdict in enumerate(verdicts):
            pair = {verdict.a, verdict.b}
            for other, aim in enumerate(known):
                rest = [{w for w in each if set(w.subject) != pair} for each in (wishes, aim)]
                mine = [w.kind for w in aim if set(w.subject) == pair]
                if aim != wishes and rest[0] == rest[1]:
                    ways[f"{n} {mine[0] if mine else ''}"] = other
        found.append(ways)
    return found


@dataclass
class _Recording:
    """What the page holds: values once each, and for each state which of them it shows."""

    max_bytes: int
    values: list[Any] = field(default_factory=list)
    states: dict[str, dict[str, int]] = field(default_factory=dict)
    left_out: int = 0

    def __post_init__(self) -> None:
        self.size = 0
        self.places: dict[str, int] = {}

    def add(self, wishes: int, session: Session) -> None:
        """Record a state, if there is room for it or it is the first; none behind one without."""
        if self.left_out:
            self.left_out += 1
            return
        (key,) = session.turned or ("",)
        at = "" if session.at is None else session.at
        name = f"{wishes}|{at}|{session.level or ''}|{key}"
        parts = {"head": snapshot.head(session, ""),
                 **{part: make(session) for part, make in snapshot.PARTS.items()}}  # fmt: skip
        texts = {part: json.dumps(value) for part, value in parts.items()}
        new = sum(len(text) for text in texts.values() if text not in self.places)
        if self.states and self.size + new > self.max_bytes:
            self.left_out += 1
            return
        self.size += new
        for part, text in texts.items():
            if text not in self.places:
                self.places[text] = len(self.values)
                self.values.append(parts[part])
        self.states[name] = {part: self.places[text] for part, text in texts.items()}
