"""State of a fusion view, and the actions of its user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dlcompiler.errors import GraphError
from dlcompiler.graph.decisions import Wish
from dlcompiler.views.graphs.fused_graph import FusedGraph, Verdict
from dlcompiler.views.graphs.fusion_picture import (
    LEVELS,
    MOST_NODES,
    Level,
    Shown,
    nodes_shown,
    usual_level,
)
from dlcompiler_widgets.graphs.analysis import FUSED_BEFORE, Analysed, Source, Wishes, analysed
from dlcompiler_widgets.graphs.measuring import Measured

Args = Mapping[str, Any]
FIRST_WORDS = "Point at an arrow to read its verdict. Click on a box, a frame or an arrow for more."


@dataclass
class Session:
    """The state of a view."""

    source: Source
    wishes: Wishes = ()
    found: Analysed = field(init=False)
    before: tuple[Wishes, FusedGraph] | None = None
    """The wishes and the graph before the last decision of the user."""
    at: int | None = None
    """Number of the pass after which the graph is shown; 0: as it was given; None: after all."""
    level: Level | None = None
    """What is drawn; None: as much as can be read."""
    turned: frozenset[str] = frozenset()
    """Keys of what was opened or closed by hand."""
    measured: dict[Wishes, Measured] = field(default_factory=dict)
    """By the wishes with which they were measured."""
    tried: dict[Wishes, Analysed] = field(default_factory=dict)
    """What the passes made with each set of wishes that the user tried."""
    status: str = FIRST_WORDS

    def __post_init__(self) -> None:
        self.wishes = tuple(self.source.module.wishes)
        self.found = analysed(self.source, self.wishes)
        self.tried[self.wishes] = self.found
        if self.found.failure is not None:
            self.status = f"The passes stopped: {self.found.failure.problem}."

    @property
    def graph(self) -> FusedGraph:
        """The graph that is shown."""
        return self.found.graph_after(self.at)

    @property
    def shown(self) -> Shown:
        """How much of it is shown."""
        new: frozenset[str] = frozenset()
        if self.at:
            new = frozenset(self.found.steps[self.at - 1].made)
        return Shown(self.level, self.turned, new)

    @property
    def why_not_decided(self) -> str:
        """Why no decision can be changed; "" if it can."""
        if self.source.is_fused:
            return FUSED_BEFORE
        if self.at is not None:
            return "this is the graph after an earlier pass. Show the last pass to decide"
        return ""


def handle(session: Session, op: str, args: Args) -> None:
    """Do an action of the user.

    Raises
    ------
    GraphError
        If there is no such action, its arguments are invalid, or it is refused.
    """
    action = ACTIONS.get(op)
    if action is None:
        raise GraphError("use the fusion view", "there is no such action", got=f"{op!r:.80}")
    action(session, args)


def _level(session: Session, args: Args) -> None:
    level = _known(args.get("level"), LEVELS, "a level")
    _check_size(session, Shown(level))
    session.level, session.turned = level, frozenset()


def _turn(session: Session, args: Args) -> None:
    """Open what is closed, or close what is open."""
    key = args.get("key")
    kind, _, number = str(key).partition(" ")
    if kind not in ("block", "kernel") or not number.isdecimal() or len(number) > 9:
        raise GraphError("open a box", "it holds nothing", got=f"{key!r:.80}")
    turned = session.turned ^ {str(key)}
    _check_size(session, Shown(session.level or usual_level(session.graph), turned))
    session.level = session.level or usual_level(session.graph)
    session.turned = turned


def _check_size(session: Session, shown: Shown) -> None:
    number = nodes_shown(session.graph, shown)
    if number > MOST_NODES:
        raise GraphError(
            "open the graph", "too many boxes for one picture", got=f"{number:,}",
            expected=f"at most {MOST_NODES:,}", hint="open single blocks",
        )  # fmt: skip


def _pass(session: Session, args: Args) -> None:
    number = args.get("number")
    count = len(session.found.changes)
    is_number = isinstance(number, int) and not isinstance(number, bool)
    if number is not None and not (is_number and 0 <= number <= count):
        raise GraphError("show a pass", "there is no such pass", got=f"{number!r:.80}")
    session.at = None if number == count else number
    session.level, session.turned = None, frozenset()
    name = "as it was given" if number == 0 else "after all passes"
    if session.at:
        name = f"after {session.found.steps[session.at - 1].name}"
    session.status = f"The graph {name}."


def _wish(session: Session, args: Args) -> None:
    """Force or forbid the fusion of an edge, or leave it to the rules again."""
    if why := session.why_not_decided:
        raise GraphError("change a decision", why)
    verdict = verdict_of(session, args)
    kind = _known(args.get("kind"), ("fuse", "keep apart", ""), "a decision")
    apart = {verdict.a, verdict.b}
    wishes = tuple(w for w in session.wishes if set(w.subject) != apart)
    if kind:
        wishes = (*wishes, Wish(kind, (verdict.a, verdict.b)))
    elif len(wishes) == len(session.wishes):
        raise GraphError(
            "take back a wish", "it was asked about other calls, of which passes made these",
            got=f"{verdict.a} → {verdict.b}",
        )  # fmt: skip
    before = _numbers(session.graph)
    _decide(session, wishes)
    words = {"fuse": "are fused, as you asked", "keep apart": "stay apart, as you asked",
             "": "are decided by the rules again"}  # fmt: skip
    same = " The numbers stay the same." if _numbers(session.graph) == before else ""
    session.status = f"{verdict.a[:60]} and {verdict.b[:60]} {words[kind]}.{same}"


def _numbers(graph: FusedGraph) -> tuple[object, ...]:
    return len(graph.kernels), graph.plan.bytes if graph.plan else None, graph.moved


def _reset(session: Session, args: Args) -> None:
    """Take back all wishes."""
    if why := session.why_not_decided:
        raise GraphError("change a decision", why)
    _decide(session, ())
    session.status = "All edges are decided by the rules."


def _decide(session: Session, wishes: Wishes) -> None:
    found = session.tried.get(wishes) or analysed(session.source, wishes)
    session.tried[wishes] = found
    session.before = (session.wishes, session.found.graph)
    # Kernels have other numbers now: what was opened by hand may be another one.
    level = session.level
    session.wishes, session.found, session.turned = wishes, found, frozenset()
    session.level = level


ACTIONS: Mapping[str, Callable[[Session, Args], None]] = {
    "level": _level,
    "turn": _turn,
    "pass": _pass,
    "wish": _wish,
    "reset": _reset,
}


def verdict_of(session: Session, args: Args) -> Verdict:
    """Return the verdict that a request names by its number."""
    number, all_ = args.get("verdict"), session.graph.verdicts
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < len(all_):
        raise GraphError("choose an edge", "there is no such edge", got=f"{number!r:.80}")
    return all_[number]


def _known(value: Any, known: Any, what: str) -> Any:
    if not isinstance(value, str) or value not in known:  # anything can come from a browser
        raise GraphError(
            "use the fusion view", f"this is not {what}", got=f"{value!r:.80}",
            expected=", ".join(map(repr, known)),
        )  # fmt: skip
    return value
