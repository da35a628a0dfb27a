"""Groups of calls that become one kernel: union-find, and the rules that merge them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from dlcompiler.graph.ir import Node
from dlcompiler.graph.operators import Pattern
from dlcompiler.graph.passes.fusion.dataflow import Flow

MAX_DEPTH = 256
"""Most nodes of a group, as in Relay; [1]."""


@dataclass(eq=False, slots=True)
class Group:
    """Nodes that become one kernel."""

    pattern: Pattern
    """That of the node; with an anchor in the group, the greater one."""
    root: Node
    """The node whose value the group returns."""
    anchor: Node | None = None
    """The node with a loop nest of its own, if there is one."""
    size: int = 1
    """Number of nodes; [1]."""
    parent: Group | None = None

    def find(self) -> Group:
        """Return the group that this one was merged into."""
        group = self
        while group.parent is not None:
            group = group.parent
        if group is not self:
            self.parent = group
        return group


@dataclass(slots=True)
class Partition:
    """The groups of the nodes of a function, while rules merge them."""

    flows: Sequence[Flow]
    max_depth: int = MAX_DEPTH
    apart: frozenset[tuple[Node, Node]] = frozenset()
    """Pairs of nodes that must not be in one group."""
    forced: frozenset[tuple[Node, Node]] = frozenset()
    """Pairs of nodes that were asked to be in one group."""
    at: dict[Node, Flow] = field(init=False)
    groups: dict[Flow, Group] = field(init=False)
    returned: set[Flow] = field(init=False)
    """Nodes whose value is a field of a tuple that is a result."""
    behind_anchor: set[Flow] = field(init=False, default_factory=set)
    """Nodes that an anchor was merged into, or a node behind it."""
    before_rows: dict[Flow, Group] = field(init=False, default_factory=dict)
    """The groups of the published rule, if `fuse_rows` merged more."""
    by_rows: set[Group] = field(init=False, default_factory=set)
    """Groups that `fuse_rows` made."""
    refused: dict[Flow, str] = field(init=False, default_factory=dict)
    """Results of groups that `fuse_rows` did not merge with their consumers, and the rule."""

    def __post_init__(self) -> None:
        self.at = {flow.node: flow for flow in self.flows}
        self.returned = {
            flow
            for flow in self.flows
            if any(u.pattern is Pattern.TUPLE and u.leaves_because for u, _ in flow.uses)
        }
        self.groups = {
            flow: Group(
                flow.pattern, flow.node, flow.node if flow.pattern is Pattern.ANCHOR else None
            )
            for flow in self.flows
        }

    def of(self, flow: Flow) -> Group:
        """Return the group that a node is in now."""
        return self.groups[flow].find()

    def run(self) -> None:
        """Merge groups by the rules of Relay, in its three phases."""
        for phase in (0, 1, 2):
            for flow in self.flows:
                self._try(flow, phase)

    def _try(self, flow: Flow, phase: int) -> None:  # noqa: C901 - the rules, in their order
        """Merge the group of a node into that of its post-dominator, if the rules allow it."""
        sink, own = flow.dominator, self.groups[flow]
        if own.pattern is Pattern.OPAQUE or sink is None:
            return
        if self.is_too_large(flow, sink):
            return
        target = self.groups[sink]
        if phase == 2:
            is_tuple = target.pattern is Pattern.TUPLE
            merged = target.find().pattern
            if own.pattern <= Pattern.INJECTIVE and is_tuple and merged <= Pattern.INJECTIVE:
                self._merge_if(flow, sink, _injective)
            return
        if own.find() is target.find() or target.pattern is Pattern.TUPLE:
            return
        match own.pattern:
            case Pattern.ANCHOR:
                if phase == 0 and flow.dominated_by is Pattern.ELEMENTWISE:
                    self._merge_if(flow, sink, _broadcast)
            case Pattern.ELEMENTWISE | Pattern.BROADCAST:
                reach = flow.dominated_by
                if reach <= Pattern.INJECTIVE or reach is Pattern.REDUCTION:
                    self._merge_if(flow, sink, _injective_up_to_any)
            case Pattern.INJECTIVE | Pattern.TUPLE:
                if phase == 1:
                    self._merge_if(flow, sink, _injective)

    def _merge_if(self, flow: Flow, sink: Flow, allows: Callable[[Pattern, bool], bool]) -> None:
        """Merge all nodes from one to its post-dominator if each group on the way allows it."""
        between = list(paths(flow, sink))
        if not all(allows(self.of(each).pattern, each is sink) for each in between):
            return
        merged = [flow, *(each for each in between if each is not sink)]
        if not self.can_merge([*merged, sink]):
            return
        if self.of(flow).anchor is not None:
            self.behind_anchor.update(between)
        for each in merged:
            self.merge(each, sink)

    def merge(self, child: Flow, parent: Flow) -> None:
        """Merge the group of one node into that of another."""
        own, into = self.of(child), self.of(parent)
        if own is into:
            return
        into.size += own.size
        own.parent = into
        if own.anchor is not None:
            into.anchor = own.anchor
            into.pattern = max(own.pattern, into.pattern)

    def can_merge(self, merged: Sequence[Flow]) -> bool:
        """Tell whether merging the groups of nodes keeps all pairs apart that must be."""
        if not self.apart:
            return True
        together = {self.of(flow) for flow in merged}
        return not any(
            self.of(self.at[a]) in together and self.of(self.at[b]) in together
            for a, b in self.apart
            if a in self.at and b in self.at
        )

    def is_kept_apart(self, a: Flow, b: Flow) -> bool:
        """Tell whether a pair that must stay apart is in the groups of two nodes."""
        groups = {self.of(a), self.of(b)}
        return any(
            {self.of(self.at[x]), self.of(self.at[y])} == groups
            for x, y in self.apart
            if x in self.at and y in self.at
        )

    def is_too_large(self, flow: Flow, sink: Flow) -> bool:
        """Tell whether a group with the nodes up to a post-dominator has more than `max_depth`."""
        found: set[Group] = set()
        size = 0
        for each in chain((flow, sink), paths(flow, sink)):
            group = self.of(each)
            if group not in found:
                found.add(group)
                size += group.size
                if size > self.max_depth:
                    return True
        return False


def paths(flow: Flow, sink: Flow) -> Iterator[Flow]:
    """Yield the nodes on all paths from a node to its post-dominator, with that, once."""
    seen: set[Flow] = set()
    stack = [iter(flow.uses)]
    while stack:
        user, _ = next(stack[-1], (None, None))
        if user is None:
            stack.pop()
        elif user not in seen:
            seen.add(user)
            yield user
            if user is not sink:
                stack.append(iter(user.uses))


def _broadcast(pattern: Pattern, _is_sink: bool) -> bool:
    return pattern <= Pattern.BROADCAST


def _injective(pattern: Pattern, _is_sink: bool) -> bool:
    return pattern <= Pattern.INJECTIVE


def _injective_up_to_any(pattern: Pattern, is_sink: bool) -> bool:
    """Allow injective groups on the way, and also reductions and anchors at its end."""
    most = Pattern.ANCHOR if is_sink else Pattern.INJECTIVE
    return pattern <= most
