"""The history of a schedule: an append-only graph of the states that were ever reached."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dlcompiler.display import render
from dlcompiler.errors import ScheduleError
from dlcompiler.schedule.state import State, Step

MAX_NAME = 60
MAX_NOTE = 2_000
"""Longest name and note of a state [characters]."""


@dataclass(slots=True, eq=False)
class Node:
    """One state, with the step that led to it.

    `children` and `notes` grow, and a user may change `name` and `note`. All else is fixed.
    """

    state: State
    parent: Node | None
    step: Step | None
    result: Any
    number: int
    """Order of creation, 0 for the root."""
    children: list[Node] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)
    """Labels such as ``measured`` or ``verified``, for display."""
    name: str = ""
    """What the user calls the state; set by `History.describe`."""
    note: str = ""
    """What the user wrote about the state."""

    @property
    def id(self) -> str:
        """The id of the state."""
        return self.state.id

    def path(self) -> list[Node]:
        """Return the nodes from the root to this one."""
        result: list[Node] = []
        node: Node | None = self
        while node is not None:
            result.append(node)
            node = node.parent
        return result[::-1]

    def title(self) -> str:
        """Return the step in words."""
        return "create" if self.step is None else str(self.step)


class History:
    """All states that the schedules of one `create_schedule` call went through.

    Several schedules (forks) share it, each with its own cursor. Applying the same step to the
    same state twice gives the same node, and so the same axes.
    """

    def __init__(self, root: State) -> None:
        self.root = Node(root, None, None, None, 0)
        self.nodes: dict[str, Node] = {root.id: self.root}
        self.lock = threading.RLock()

    def add(self, parent: Node, step: Step, state: State, result: Any) -> Node:
        """Record that `step` leads from `parent` to `state`."""
        with self.lock:
            if state.id in self.nodes:
                return self.nodes[state.id]
            if self.nodes.get(parent.id) is not parent:
                raise ScheduleError(
                    f"apply {step}",
                    "the state is only looked at: it is not part of the history",
                    hint="apply the step that led to it first",
                )
            node = Node(state, parent, step, result, len(self.nodes))
            parent.children.append(node)
            self.nodes[state.id] = node
            return node

    def describe(self, node: Node, name: str | None = None, note: str | None = None) -> None:
        """Set the name or the note of a state, or both; an empty text removes it.

        Parameters
        ----------
        node
            The state.
        name
            Shown instead of the id, and as the name of the branch that starts here. One line;
            no other state may have the same name.
        note
            Any text.

        Raises
        ------
        ScheduleError
            If the name or the note is refused; then neither is changed.
        """
        with self.lock:
            name = node.name if name is None else self._name(node, name)
            node.note = node.note if note is None else _note(note)
            node.name = name

    def _name(self, node: Node, name: str) -> str:
        name = " ".join(name.split())
        if len(name) > MAX_NAME or not name.isprintable():
            raise ScheduleError(
                "name a state", "a name is one short line", got=repr(name[: 2 * MAX_NAME]),
                expected=f"at most {MAX_NAME} printable characters",
            )  # fmt: skip
        for other in self.nodes.values():
            if name and other is not node and other.name == name:
                raise ScheduleError(
                    "name a state", "another state has this name", got=repr(name),
                    because=f"the state after {other.title()} is called so",
                )  # fmt: skip
        return name

    def node(self, id: str) -> Node:
        """Return the node whose state has an id, a unique prefix of an id, or a name."""
        prefix = str(id)
        if prefix in self.nodes:
            return self.nodes[prefix]
        named = [node for node in self.nodes.values() if prefix and node.name == prefix]
        if named:
            return named[0]
        found = [node for key, node in self.nodes.items() if prefix and key.startswith(prefix)]
        if len(found) != 1:
            raise ScheduleError(
                f"state {id!r}",
                "no such state in the history" if not found else "several states begin like this",
                expected=", ".join(key[:8] for key in self.nodes),
            )
        return found[0]

    def walk(self) -> Iterator[Node]:
        """Yield all nodes, parents first."""
        stack = [self.root]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def step_text(self, axis_id: str) -> str:
        """Return the step that made an axis, in words."""
        node = self.nodes.get(axis_id.partition("/")[0])
        return node.title() if node else "unknown step"


def _note(text: str) -> str:
    text = text.strip()
    if len(text) > MAX_NOTE:
        raise ScheduleError(
            "note on a state", "the note is too long", got=f"{len(text)} characters",
            expected=f"at most {MAX_NOTE}",
        )  # fmt: skip
    return text


@dataclass(frozen=True)
class HistoryView:
    """A history with a cursor; prints as a tree that marks the current state."""

    history: History
    cursor: str

    def __repr__(self) -> str:
        lines: list[str] = []
        self._draw(self.history.root, "", "", lines)
        return "\n".join(lines)

    def _draw(self, node: Node, first: str, rest: str, lines: list[str]) -> None:
        here = node.id == self.cursor
        notes = "".join(f"   {value}" for value in node.notes.values())
        notes = f"   [{node.name}]{notes}" if node.name else notes
        mark = "◉" if here else "●"
        lines.append(
            f"{first}{mark} {node.title()}   {node.id[:8]}{notes}{'   ← here' if here else ''}"
        )
        for n, child in enumerate(node.children):
            if n == len(node.children) - 1:
                self._draw(child, rest, rest, lines)
            else:
                self._draw(child, f"{rest}├─", f"{rest}│ ", lines)

    def _repr_html_(self) -> str:
        return render("history", self)
