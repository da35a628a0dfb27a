"""Layered layout of a graph whose nodes stand in frames, which may stand in frames.

A frame is laid out by itself; outside it is one large box. So what belongs together stands
together, and frames never overlap. An edge that crosses the border of a frame has a *port* there: a
place at its upper or lower side. Edges that skip a layer have a lane in it; all long edges of one
value share their lane, since they carry the same value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from dlcompiler.views.graphs.coordinates import Segment, middles
from dlcompiler.views.graphs.crossings import ordered

_LANE_PX = 6.0
_ACROSS_PX = 14.0


@dataclass(frozen=True, slots=True)
class Leaf:
    """A node."""

    key: str
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Frame:
    """Nodes and frames that stand together."""

    key: str
    children: tuple[Leaf | Frame, ...]
    head: float = 0.0
    """Height of the line with its name; [px]."""
    least: float = 0.0
    """Least width; [px]."""
    down: float = 16.0
    """Distance between its layers; [px]."""
    pad: float = 8.0
    """Distance of its contents from its border; [px]."""


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle: its top left corner and its size [px]."""

    x: float
    y: float
    w: float
    h: float

    def moved(self, x: float, y: float) -> Rect:
        """Return it at another place."""
        return Rect(self.x + x, self.y + y, self.w, self.h)


Edge: TypeAlias = tuple[str, str]
Way: TypeAlias = list[tuple[float, float, float]]
"""Vertical pieces of an edge: place, top and bottom; curves lead from each to the next."""
_Item: TypeAlias = tuple[str, str, int]
"""A child, or a port or lane of the value of a leaf: its kind, a key, and the layer of a lane."""


@dataclass(slots=True)
class Arrangement:
    """Where everything is: lengths from the top left corner [px]."""

    width: float = 0.0
    height: float = 0.0
    boxes: dict[str, Rect] = field(default_factory=dict)
    """Leaves and frames by their keys."""
    ways: dict[Edge, Way] = field(default_factory=dict)
    enter: dict[Edge, Way] = field(default_factory=dict)
    """The last part of edges that come from outside."""
    leave: dict[str, Way] = field(default_factory=dict)
    """The first part of edges that lead outside, by the leaf whose value it is."""

    def path(self, edge: Edge) -> str:
        """Return the path of an edge, as SVG writes it."""
        (x, top, bottom), *rest = self.ways[edge]
        steps = [f"M{x:.1f} {top:.1f}", f"L{x:.1f} {bottom:.1f}" if bottom > top else ""]
        for to_x, to_top, to_bottom in rest:
            if abs(to_x - x) < 0.05:
                steps.append(f"L{to_x:.1f} {to_top:.1f}")
            else:
                middle = (bottom + to_top) / 2
                steps.append(
                    f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_top:.1f}"
                )
            if to_bottom > to_top:
                steps.append(f"L{to_x:.1f} {to_bottom:.1f}")
            x, bottom = to_x, to_bottom
        return "".join(steps)

    def head(self, edge: Edge) -> str:
        """Return the path of the arrow head of an edge."""
        x, _, y = self.ways[edge][-1]
        return f"M{x - 4:.1f} {y - 6:.1f}l4 6l4 -6"


def arranged(root: Frame, edges: Sequence[Edge]) -> Arrangement:
    """Lay out a frame.

    Parameters
    ----------
    root : Frame
        What is drawn; its own border is not.
    edges : sequence of (str, str)
        Keys of leaves: source and target, each pair once. Neither the leaves nor the frames are on
        a cycle.

    Examples
    --------
    >>> chain = Frame("", (Leaf("a", 20, 10), Leaf("b", 20, 10)), down=10, pad=0)
    >>> arranged(chain, [("a", "b")]).boxes["b"]
    Rect(x=0.0, y=20.0, w=20, h=10)
    """
    paths: dict[str, tuple[str, ...]] = {}
    _note_paths(root, (), paths)
    return _FrameLayout(root, 0, paths, edges).run()


def _note_paths(
    part: Leaf | Frame, above: tuple[str, ...], paths: dict[str, tuple[str, ...]]
) -> None:
    own = (*above, part.key)
    if isinstance(part, Leaf):
        paths[part.key] = own
        return
    for child in part.children:
        _note_paths(child, own, paths)


class _FrameLayout:
    """Lays out one frame; its children are laid out before."""

    def __init__(
        self, frame: Frame, depth: int, paths: Mapping[str, tuple[str, ...]], edges: Sequence[Edge]
    ) -> None:
        self.frame = frame
        self.depth = depth
        self.paths = paths
        self.edges = edges
        self.inner: dict[str, Arrangement] = {}
        self.widths: dict[_Item, float] = {}
        self.levels: dict[_Item, int] = {}
        self.segments: dict[tuple[_Item, _Item], Segment[_Item]] = {}

    def run(self) -> Arrangement:
        """Return where everything in the frame is, from its top left corner."""
        self._children()
        self._layers()
        self._wires()
        layers: list[list[_Item]] = [[] for _ in range(self.last + 1)]
        for item, level in self.levels.items():
            layers[level].append(item)
        layers = ordered(layers, self.segments)
        thin = frozenset(item for item in self.levels if item[0] != "child")
        at = middles(layers, self.widths, self.segments.values(), gap=_ACROSS_PX, thin=thin)
        return self._placed(layers, at)

    # -- what there is -----------------------------------------------------------------------------

    def _children(self) -> None:
        within: dict[str, list[Edge]] = defaultdict(list)
        for edge in self.edges:
            for child in {self._child(edge[0]), self._child(edge[1])} - {None}:
                within[str(child)].append(edge)
        for part in self.frame.children:
            own = within[part.key]
            if isinstance(part, Frame):
                found = _FrameLayout(part, self.depth + 1, self.paths, own).run()
            else:
                found = _of_leaf(part, own)
            self.inner[part.key] = found
            self.widths[_child_item(part.key)] = found.width

    def _child(self, leaf: str) -> str | None:
        """Return the child of the frame that holds a leaf; None for a leaf outside."""
        path = self.paths[leaf]
        is_inside = len(path) > self.depth + 1 and path[self.depth] == self.frame.key
        return path[self.depth + 1] if is_inside else None

    def _layers(self) -> None:
        """Put each child behind all that it reads; those that read nothing just before a reader."""
        reads: dict[str, set[str]] = {child.key: set() for child in self.frame.children}
        has_ports = False
        for source, target in self.edges:
            a, b = self._child(source), self._child(target)
            has_ports = has_ports or a is None
            if a is not None and b is not None and a != b:
                reads[b].add(a)
        level = _longest(reads)
        first: dict[str, int] = {}
        for key, others in reads.items():
            for other in others:
                first[other] = min(first.get(other, level[key]), level[key])
        for key in reads:
            at = first[key] - 1 if not reads[key] and key in first else level[key]
            self.levels[_child_item(key)] = at + has_ports
        self.last = max(self.levels.values(), default=0)

    def _wires(self) -> None:
        """Add ports and lanes, and the segments between them."""
        targets: dict[str, list[Edge]] = defaultdict(list)
        leaving: dict[str, None] = {}
        for edge in self.edges:
            a, b = self._child(edge[0]), self._child(edge[1])
            if b is None:
                leaving[edge[0]] = None
            elif a != b:
                targets[edge[0]].append(edge)
        below = self.last + 1
        for source in dict.fromkeys([*targets, *leaving]):
            for edge in targets[source]:
                item = _child_item(str(self._child(edge[1])))
                self._wire(source, item, self.levels[item], edge)
            if source in leaving:
                port = self._item(("out", source, 0), below)
                self._wire(source, port, below, None)
                self.last = below

    def _wire(self, source: str, target: _Item, level: int, edge: Edge | None) -> None:
        """Lead the value of a leaf to an item, through a lane in each layer between."""
        at, leaves = self._start(source)
        for between in range(self.levels[at] + 1, level):
            lane = self._item(("lane", source, between), between)
            self.segments[at, lane] = Segment(at, lane, leaves)
            at, leaves = lane, 0.0
        arrives = 0.0
        if edge is not None:
            inner = self.inner[target[1]]
            arrives = inner.enter[edge][0][0] - inner.width / 2
        self.segments.setdefault((at, target), Segment(at, target, leaves, arrives))

    def _start(self, source: str) -> tuple[_Item, float]:
        child = self._child(source)
        if child is None:
            return self._item(("in", source, 0), 0), 0.0
        inner = self.inner[child]
        return _child_item(child), inner.leave[source][-1][0] - inner.width / 2

    def _item(self, item: _Item, level: int) -> _Item:
        self.levels[item] = level
        self.widths[item] = _LANE_PX
        return item

    # -- where it is -------------------------------------------------------------------------------

    def _placed(self, layers: list[list[_Item]], at: Mapping[_Item, float]) -> Arrangement:
        frame, made = self.frame, Arrangement()
        widest = max((at[i] + self.widths[i] / 2 for i in at), default=0.0)
        made.width = max(widest + 2 * frame.pad, frame.least)
        shift = (made.width - widest) / 2
        self.x = {item: x + shift for item, x in at.items()}
        self.rows: list[tuple[float, float]] = []
        y = frame.pad + frame.head
        for layer in layers:
            heights = [self.inner[i[1]].height for i in layer if i[0] == "child"]
            if not heights:
                # Ports lie on the border: those above are passed before the name.
                edge = 0.0 if not self.rows else y - frame.down + frame.pad
                self.rows.append((edge, edge))
                continue
            for item in layer:
                if item[0] == "child":
                    self._place(made, item[1], y + (max(heights) - self.inner[item[1]].height) / 2)
            self.rows.append((y, y + max(heights)))
            y += max(heights) + frame.down
        made.height = y + frame.pad - (frame.down if frame.children else 0.0)
        self._route(made)
        return made

    def _place(self, made: Arrangement, key: str, y: float) -> None:
        inner = self.inner[key]
        x = self.x[_child_item(key)] - inner.width / 2
        made.boxes[key] = Rect(x, y, inner.width, inner.height)
        for other, rect in inner.boxes.items():
            if other != key:
                made.boxes[other] = rect.moved(x, y)
        for edge, way in inner.ways.items():
            made.ways[edge] = _moved(way, x, y)

    def _route(self, made: Arrangement) -> None:
        for edge in self.edges:
            source, target = edge
            a, b = self._child(source), self._child(target)
            if a is not None and a == b:
                continue
            if b is None:
                made.leave.setdefault(source, self._leaving(made, source, None))
            elif a is None:
                made.enter[edge] = [*self._passing(source, b), *self._entering(made, edge, b)]
            else:
                made.ways[edge] = [*self._leaving(made, source, b), *self._entering(made, edge, b)]

    def _leaving(self, made: Arrangement, source: str, to: str | None) -> Way:
        """Return the way of a value from its leaf down to the layer of a child, or outside."""
        child = str(self._child(source))
        box = made.boxes[child]
        way = _moved(self.inner[child].leave[source], box.x, box.y)
        x, top, _ = way[-1]
        way[-1] = (x, top, self.rows[self.levels[_child_item(child)]][1])
        return [*way, *self._passing(source, to)]

    def _passing(self, source: str, to: str | None) -> Way:
        """Return the way through ports and lanes, above the layer of a child."""
        child = self._child(source)
        way: Way = []
        if child is None:
            x = self.x["in", source, 0]
            way.append((x, 0.0, 0.0))
            start = 0
        else:
            start = self.levels[_child_item(child)]
        end = self.levels[("out", source, 0) if to is None else _child_item(to)]
        for level in range(start + 1, end):
            top, bottom = self.rows[level]
            way.append((self.x["lane", source, level], top, bottom))
        if to is None:
            x, y = self.x["out", source, 0], self.rows[end][0]
            way.append((x, y, y))
        return way

    def _entering(self, made: Arrangement, edge: Edge, child: str) -> Way:
        box = made.boxes[child]
        (x, y, bottom), *rest = _moved(self.inner[child].enter[edge], box.x, box.y)
        top = self.rows[self.levels[_child_item(child)]][0]
        return [(x, top, max(y, bottom)), *rest]


def _of_leaf(leaf: Leaf, edges: Sequence[Edge]) -> Arrangement:
    """Return a box by itself: edges enter and leave it in the middle."""
    made = Arrangement(leaf.width, leaf.height)
    made.boxes[leaf.key] = Rect(0.0, 0.0, leaf.width, leaf.height)
    x = leaf.width / 2
    made.leave[leaf.key] = [(x, leaf.height, leaf.height)]
    made.enter = {edge: [(x, 0.0, 0.0)] for edge in edges if edge[1] == leaf.key}
    return made


def _child_item(key: str) -> _Item:
    return ("child", key, 0)


def _moved(way: Way, x: float, y: float) -> Way:
    return [(at + x, top + y, bottom + y) for at, top, bottom in way]


def _longest(reads: Mapping[str, set[str]]) -> dict[str, int]:
    """Return the layer of each node by the longest way to it."""
    level: dict[str, int] = {}
    for first in reads:
        stack = [first]
        while stack:
            node = stack[-1]
            waiting = next((each for each in reads[node] if each not in level), None)
            if waiting is None:
                level[node] = 1 + max((level[each] for each in reads[node]), default=-1)
                stack.pop()
            elif len(stack) > len(reads):
                raise ValueError("the graph has a cycle")
            else:
                stack.append(waiting)
    return level
