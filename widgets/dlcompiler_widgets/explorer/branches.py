"""Requests about states of a schedule: set names and notes, and compare two states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import ScheduleError
from dlcompiler.schedule import Node, Schedule
from dlcompiler.views.history.compare import Side, StateComparison, compare_states
from dlcompiler.views.moves.figures import figures
from dlcompiler_widgets.explorer.status import Status

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

MOST_STATES = 2
"""States that one request measures."""


def describe(session: Session, args: Mapping[str, Any]) -> None:
    """Set the ``name`` or the ``note`` of the state with an ``id``."""
    node = _node(session, args.get("id"))
    texts = {kind: args[kind] for kind in ("name", "note") if kind in args}
    for kind, text in texts.items():
        if not isinstance(text, str):
            raise ScheduleError("describe a state", f"its {kind} is not a text", got=repr(text))
    session.schedule.describe(**texts, state=node.id)
    session.forget_export()
    called = f"{node.title()} is now named {node.name}." if node.name else "It has no name now."
    session.status = Status(called if "name" in texts else f"Noted on {node.title()}.")


def compare(session: Session, args: Mapping[str, Any]) -> None:
    """Set the states to compare, ``a`` or ``b``; if neither is given, stop comparing."""
    sides = [side for side in ("a", "b") if args.get(side) is not None]
    if not sides:
        session.compared = {}
        session.status = Status("No states are compared.")
        return
    nodes = {side: _node(session, args[side]) for side in sides}
    session.compared |= {side: node.id for side, node in nodes.items()}
    others = [letter for letter in ("a", "b") if letter not in session.compared]
    if others:
        (missing,) = others
        text = f"{sides[0].upper()} is {title_of(nodes[sides[0]])}. Choose {missing.upper()} next."
    else:
        a, b = (title_of(_node(session, session.compared[side])) for side in ("a", "b"))
        text = f"Compared: A, {a}, with B, {b}."
    session.status = Status(text)


def comparison(session: Session) -> StateComparison | None:
    """Return the comparison of the chosen states; None unless both are chosen."""
    if set(session.compared) != {"a", "b"}:
        return None
    a, b = (_side(session, session.compared[side]) for side in ("a", "b"))
    return compare_states(a, b, session.target.name)


def states_of(session: Session, args: Mapping[str, Any]) -> list[Schedule]:
    """Return schedules at the ``states`` that a request names; by default, at the current one."""
    ids = args.get("states", [session.schedule.node.id])
    if not isinstance(ids, list) or not 0 < len(ids) <= MOST_STATES:
        raise ScheduleError(
            "measure", "not a list of states", got=f"{ids!r:.80}",
            expected=f"the ids of 1 to {MOST_STATES} states",
        )  # fmt: skip
    schedules = []
    for node in [_node(session, id) for id in ids]:
        schedules.append(session.schedule.fork("measured"))
        schedules[-1].jump(node.id)
    return schedules


def title_of(node: Node) -> str:
    """Return the name of a state; without a name, the step that led to it."""
    return node.name or node.title()


def _side(session: Session, id: str) -> Side:
    node = _node(session, id)
    found = figures(node.state, session.args, session.target)
    return Side(node, session.lowered(node, "loops"), found)


def _node(session: Session, id: object) -> Node:
    nodes = session.schedule.history.history.nodes
    if not isinstance(id, str) or id not in nodes:
        raise ScheduleError("find a state", "there is no such state", got=f"{id!r:.80}")
    return nodes[id]
