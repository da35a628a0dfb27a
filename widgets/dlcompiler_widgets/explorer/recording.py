"""Record the contents of each pane in each state, for pages without a kernel."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from dlcompiler.schedule import HistoryView, Node
from dlcompiler.views import history_tree
from dlcompiler.views.history.predicted import Predicted
from dlcompiler.views.history.tree import with_prediction
from dlcompiler.views.loops.loop_tree import LINES
from dlcompiler_widgets.explorer.branches import title_of
from dlcompiler_widgets.explorer.levels import Layout
from dlcompiler_widgets.explorer.pictures import PICTURES
from dlcompiler_widgets.explorer.progress import Cancelled, Progress, Watch
from dlcompiler_widgets.explorer.snapshot import PANES, layout_of
from dlcompiler_widgets.explorer.texts import TEXTS, tabs_of

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

Json = dict[str, Any]

TABS: Mapping[str, Mapping[str, Any]] = {"picture": PICTURES, "text": TEXTS}
NEEDED = ("bar", "tree")
"""Panes that are recorded whatever the limits are: without them there is nothing to click."""
CODE_TABS = ("llvm", "assembly", "ptx")
"""Texts that take long to make."""
PASSES_TAB = "passes"
BLOCK_TAB = "block"

_CODE_S = 10.0
"""How long the code of a state is waited for [s]."""
_LOOK_S = 0.1
"""Time between two looks at whether the recording was cancelled [s]."""
_YIELD_S = 0.0005
"""How long a recording in the background sleeps without the lock [s]: a thread that only releases a
lock and takes it again can keep others from it for seconds."""


@dataclass(frozen=True)
class Limits:
    """Limits of a recording."""

    max_bytes: int = 4_000_000
    """Bytes of JSON; the loops of all states are recorded even beyond this limit."""
    seconds: float = 30.0


@dataclass
class _Store:
    """A list of distinct values, filled until the limits are reached."""

    limits: Limits
    values: list[Any] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    limit: str = ""
    """The limit that was reached, in words; '' if none was."""
    _places: dict[str, int] = field(default_factory=dict)
    _end: float = 0.0

    def __post_init__(self) -> None:
        self._end = time.monotonic() + self.limits.seconds

    def must(self, value: Any) -> int:
        """Store a value that every page needs, even beyond the limits; return its index."""
        text = json.dumps(value)
        self.bytes += 0 if text in self._places else len(text)
        return self._place(text, value)

    def add(self, what: str, make: Callable[[], Any]) -> int | None:
        """Store a value and return its index; beyond the limits, count it as left out: None."""
        if time.monotonic() >= self._end:
            self.limit = self.limit or f"{self.limits.seconds:g} s"
        elif self.bytes < self.limits.max_bytes:
            value = make()
            text = json.dumps(value)
            size = 0 if text in self._places else len(text)
            if self.bytes + size <= self.limits.max_bytes:
                self.bytes += size
                return self._place(text, value)
        self.limit = self.limit or f"{self.limits.max_bytes / 1e6:g} MB"
        self.left_out[what] += 1
        return None

    def _place(self, text: str, value: Any) -> int:
        if text not in self._places:
            self._places[text] = len(self.values)
            self.values.append(value)
        return self._places[text]


def record(
    session: Session,
    panes: Sequence[str],
    kinds: Sequence[str],
    limits: Limits | None = None,
    watch: Watch | None = None,
) -> Json:
    """Record the contents of `panes` in all states that were visited.

    The states on the way to the current one come first. Of all states, the open tabs are recorded
    before the other tabs, then the other loops, the passes, exports, comparisons, and generated
    code, until the limits are reached.

    Parameters
    ----------
    session
        The session; it is not changed. The recording holds the lock of its schedule for the
        contents of one pane at a time; states that are added meanwhile are not recorded.
    panes
        Names of panes.
    kinds
        Names of exports.
    limits
        When to stop.
    watch
        Follows a recording in the background.

    Returns
    -------
    dict
        JSON-able: ``visible``, the panes that the level of the session shows; ``values``;
        ``states`` by id, each with its parent, step, title and, by pane, tab and chosen loop, the
        place of what is shown among the values; ``order``, the ids in the order of the visits;
        ``left_out``.

    Raises
    ------
    Cancelled
        If `watch` says so.
    """
    with session.schedule.lock:
        recorder = _Recorder(session, panes, kinds, limits or Limits(), watch)
    try:
        return recorder.run()
    finally:
        recorder.session.close()


class _Recorder:
    def __init__(
        self,
        session: Session,
        panes: Sequence[str],
        kinds: Sequence[str],
        limits: Limits,
        watch: Watch | None,
    ) -> None:
        self.kinds = kinds
        self.watch = watch
        self.panes = [name for name in panes if PANES[name].is_recorded]
        fork = session.schedule.fork("recorded")
        self.session = type(session)(fork, session.args, session.target, session.name)
        self.session.layout = Layout(session.layout.level)  # a preset would hide what is recorded
        self.session.machine, self.session.is_recording = session.machine.frozen(), True
        self.visible = layout_of(self.session, panes)["visible"]
        self.panes = [name for name in self.panes if name in self.visible]
        self.store = _Store(limits)
        way = session.schedule.node.path()[::-1]
        every = list(session.schedule.history.history.walk())
        self.nodes = [*way, *(node for node in every if node not in way)]
        self.states = {node.id: _state(node) for node in every}
        self.whole = {
            "visible": self.visible,
            "here": session.schedule.node.id,
            "order": [node.id for node in sorted(every, key=lambda node: node.number)],
            "tabs": {
                pane: PANES[pane].contents(session)["tab"] for pane in TABS if pane in self.panes
            },
            "redo": _redo(session),
            "history": _history(session),
        }
        self.predicted = session.predictions.known(session)

    def run(self) -> Json:
        """Record all states, the most important contents of all of them first."""
        parts: dict[str, Callable[[Node], None]] = {
            "loops": self.needed,
            "panes": self.first,
            "tabs": self.default,
            "thread blocks": self.phases,
            "other loops": self.other_loops,
            "passes": self.passes,
            "exports": self.exports,
            "comparisons": self.comparisons,
            "generated code": self.code,
        }
        states = len(self.nodes)
        for n, (doing, part) in enumerate(parts.items()):
            for m, node in enumerate(self.nodes):
                done = n * states + m
                self.report(Progress(doing, m + 1, states, done, len(parts) * states))
                part(node)
        return {
            "values": self.store.values,
            "states": self.states,
            **self.whole,
            "history": _predicted(self.whole["history"], self.predicted),
            "left_out": [f"{count} {what}" for what, count in self.store.left_out.items()],
            "limit": self.store.limit,
        }

    def report(self, progress: Progress) -> None:
        self.check()
        if self.watch is not None:
            self.watch.report(progress)

    def check(self) -> None:
        """End the recording if it was cancelled."""
        if self.watch is not None and self.watch.is_cancelled():
            raise Cancelled

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the schedule; between two times, others may have it."""
        self.check()
        with self.session.schedule.lock:
            yield
        if self.watch is not None:
            time.sleep(_YIELD_S)

    def wait(self, is_over: Callable[[float], bool], limit_s: float = math.inf) -> None:
        """Wait, without the lock, until `is_over`, which is given the time to wait for it [s]."""
        end = time.monotonic() + limit_s
        while not is_over(_LOOK_S) and time.monotonic() < end:
            self.check()

    def at(self, node: Node) -> None:
        with self.locked():
            self.session.schedule.jump(node.id)
            self.session.follow()

    def needed(self, node: Node) -> None:
        """Record the panes of a state that every page needs, such as its loops."""
        self.at(node)
        loops = [row["key"] for row in self.session.tree["rows"] if row["type"] not in LINES]
        self.states[node.id] |= {"chosen": self.session.chosen, "loops": loops}
        for pane in NEEDED:
            if pane in self.panes:
                self.keep(node, pane, "", "", self.store.must(self.shown(pane)))

    def first(self, node: Node) -> None:
        """Record the open tabs of a state, with the loop that is chosen by default."""
        self.at(node)
        for pane in self.panes:
            if pane not in NEEDED:
                self.pane(node, pane, [self.whole["tabs"].get(pane, "")])
        if self.session.target.device == "gpu":
            with self.locked():
                self.session.predictions.known(self.session)  # begins to count the kernels
            self.wait(self.session.wait_for_pictures)
            with self.locked():
                self.predicted |= self.session.predictions.known(self.session)

    def default(self, node: Node) -> None:
        """Record the other tabs of a state, with the loop that is chosen by default."""
        self.at(node)
        for pane, opened in self.whole["tabs"].items():
            self.pane(node, pane, [tab for tab in self.tabs(pane) if tab != opened])

    def other_loops(self, node: Node) -> None:
        self.at(node)
        for key in self.states[node.id]["loops"]:
            if key != self.states[node.id]["chosen"]:
                self.session.chosen = key
                for pane in self.panes:
                    if PANES[pane].follows_loop:
                        self.pane(node, pane, self.tabs(pane))

    def pane(self, node: Node, pane: str, tabs: Sequence[str]) -> None:
        chosen = (self.session.chosen or "") if PANES[pane].follows_loop else ""
        for tab in tabs:
            if tab in CODE_TABS:
                continue
            if tab:
                self.session.tabs[pane] = tab
            what = f"{pane}s" if pane in TABS else f"lists of {pane}"
            self.keep(node, pane, tab, chosen, self.store.add(what, partial(self.shown, pane)))

    def tabs(self, pane: str) -> list[str]:
        """Return the tabs of a pane that the level of the session shows; one without a name."""
        layout = self.session.layout
        offered = {"picture": layout.pictures(PICTURES)}
        if pane == "text":
            offered["text"] = layout.texts(tabs_of(self.session.target))
        return offered.get(pane, [""])

    def shown(self, pane: str) -> Json:
        with self.locked():
            value = PANES[pane].contents(self.session)
        model = value["model"] if pane == "picture" else value
        if (model or {}).get("is_pending"):
            self.wait(self.session.wait_for_pictures)
            with self.locked():
                value = PANES[pane].contents(self.session)
        return {**value, "measuring": {"state": "idle"}} if pane == "bar" else value

    def passes(self, node: Node) -> None:
        """Record the program after each pass that changed it, as tabs ``passes NAME``."""
        self.at(node)
        self.session.tabs["text"] = PASSES_TAB
        steps = (self.shown("text").get("passes") or {}).get("steps", [])
        for step in steps:
            if not step["is_unchanged"]:
                self.session.pass_browser.chosen = step["name"]
                place = self.store.add("passes", partial(self.shown, "text"))
                self.keep(node, "text", f"{PASSES_TAB} {step['name']}", "", place)
        self.session.pass_browser.chosen = ""

    def phases(self, node: Node) -> None:
        """Record the picture of a block for each phase of the timeline, as tabs ``block N``."""
        if "picture" not in self.panes:
            return
        self.at(node)
        self.session.tabs["picture"] = BLOCK_TAB
        if self.shown("picture")["tab"] != BLOCK_TAB:  # the program has no threads
            return
        model = self.shown("picture")["model"] or {"scene": {"marks": ()}}
        keys = {key for mark in model["scene"]["marks"] for key in mark.get("keys", ())}
        for number in sorted(int(key[6:]) for key in keys if key.startswith("phase ")):
            self.session.blocks.phase = number
            place = self.store.add("phases of blocks", partial(self.shown, "picture"))
            self.keep(node, "picture", f"{BLOCK_TAB} {number}", "", place)
        self.session.blocks.phase = None

    def code(self, node: Node) -> None:
        self.at(node)
        for tab in [tab for tab in CODE_TABS if tab in self.tabs("text")]:
            self.session.tabs["text"] = tab
            self.keep(node, "text", tab, "", self.store.add("listings of code", self.compiled))

    def compiled(self) -> Json:
        """Wait for the generated code of the open tab, and return its view."""
        shown = self.shown("text")
        if shown.get("is_stale"):  # only of what is compiled beside the page
            self.wait(self.session.code.compiling.wait, _CODE_S)
            shown = self.shown("text")
        return shown

    def exports(self, node: Node) -> None:
        self.at(node)
        for kind in self.kinds:
            place = self.store.add("exports", partial(self.exported, kind))
            self.keep(node, "export", kind, "", place)

    def exported(self, kind: str) -> Json | None:
        """Return the view of an export; None if the schedule cannot be exported in this form."""
        with self.locked():
            done = self.session.handle("export", {"kind": kind})
        return {**self.session.exported, "id": 0} if done else None

    def comparisons(self, a: Node) -> None:
        for b in self.nodes:
            if a is not b:
                place = self.store.add("comparisons", partial(self.compared, a, b))
                self.keep(a, "compare", b.id, "", place)

    def compared(self, a: Node, b: Node) -> Json:
        with self.locked():
            self.session.compared = {"a": a.id, "b": b.id}
            return PANES["compare"].contents(self.session)

    def keep(self, node: Node, pane: str, tab: str, chosen: str, place: int | None) -> None:
        if place is not None:
            shown = self.states[node.id]["shown"].setdefault(pane, {})
            shown.setdefault(tab, {})[chosen] = place


def _redo(session: Session) -> dict[str, str]:
    """Return, for each state on the path to the current one, the state that redo leads to."""
    schedule = session.schedule
    ways = {node.parent.id: node.id for node in schedule.node.path() if node.parent}
    if schedule.next_node:
        ways[schedule.node.id] = schedule.next_node.id
    return ways


def _history(session: Session) -> Json:
    """Return the rows of the history, without marking a current state."""
    history = session.schedule.history.history
    tree = history_tree(HistoryView(history, history.root.id), session.target.name)
    rows = [{**row, "label": row["label"].removesuffix(", current state")}
            for row in tree["rows"]]  # fmt: skip
    return {**tree, "rows": rows, "compared": {}}


def _predicted(history: Json, predicted: Mapping[str, Predicted]) -> Json:
    """Return the rows of the history with the times that were predicted while states were shown."""
    rows = [with_prediction(row, predicted.get(row["id"])) for row in history["rows"]]
    return {**history, "rows": rows}


def _state(node: Node) -> Json:
    return {
        "parent": node.parent.id if node.parent else None,
        "step": node.step.to_json() if node.step else None,
        "title": node.title(),
        "name": title_of(node),
        "shown": {},
    }
