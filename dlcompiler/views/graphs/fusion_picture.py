"""The picture of fusion: calls in the regions of their kernels, and each edge with its verdict.

`fusion_picture` is the view model. The static drawing (`fusion_scene`), the widget, the table and
the tests use the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypedDict, get_args

from dlcompiler.views.graphs.blocks import MOST_BOXES, Block, blocks_of
from dlcompiler.views.graphs.fused_graph import CallNode, FusedGraph, Verdict
from dlcompiler.views.graphs.module_card import shortened
from dlcompiler.views.graphs.nested import Arrangement, Frame, Leaf, arranged
from dlcompiler.views.render.boxes import box_size, count
from dlcompiler.views.render.units import format_bytes

Level = Literal["blocks", "kernels", "calls"]
LEVELS: tuple[Level, ...] = get_args(Level)
MOST_NODES = 1_500
"""Most calls that are drawn one by one; [1]."""
_FULL_TEXT = 240
"""Most calls whose boxes have more than two lines: a page has a limited number of elements; [1]."""
_MOST_LINES = 5
_HEAD_PX, _LETTER_PX = 20.0, 7.0
_NAME = 34
_WORDS = 60
"""Most characters of a name, and of a line below it; [1]."""
HOW_TO_READ = (
    "Values flow down the arrows. A frame is a kernel: its calls are fused, and the values inside "
    "are not stored. A thick blue arrow is a fused edge; a dashed orange one is not fused, and its "
    "value is stored. A thin grey arrow comes from an input, about which nothing is decided. A "
    "double border is a kernel or a block that can be opened. Weights and constants are not drawn: "
    "a box says how many it reads."
)

Facts = list[tuple[str, str]]


class NodeBox(TypedDict):
    """A box of the picture."""

    key: str
    kind: Literal["input", "call", "kernel", "block"]
    x: float
    y: float
    w: float
    h: float
    lines: list[str]
    facts: Facts
    """What is said of it: labels and values."""
    kernel: int | None
    """Number of its kernel; None for an input and a block."""
    is_closed: bool
    """Whether it stands for several calls, and can be opened."""
    words: str
    """What a search finds it by."""


class FrameBox(TypedDict):
    """A frame: an open kernel or an open block."""

    key: str
    kind: Literal["kernel", "block"]
    x: float
    y: float
    w: float
    h: float
    text: str
    facts: Facts
    kernel: int | None


class EdgeLine(TypedDict):
    """An arrow of the picture."""

    key: str
    source: str
    """Key of the box where it begins."""
    target: str
    kind: Literal["fused", "not fused", "input"]
    d: str
    head: str
    """Its arrow head."""
    text: str
    """The verdict in a line."""
    verdicts: list[int]
    """Numbers of its verdicts in the table; [1]."""


class FusionPicture(TypedDict):
    """The picture of a graph; lengths in pixels from the top left corner."""

    title: str
    summary: str
    how_to_read: str
    width: float
    height: float
    level: Level
    levels: list[Level]
    """The levels that differ in this graph."""
    frames: list[FrameBox]
    nodes: list[NodeBox]
    edges: list[EdgeLine]


@dataclass(frozen=True, slots=True)
class Shown:
    """How much of a graph is shown."""

    level: Level | None = None
    """None: as much as can be read."""
    turned: frozenset[str] = frozenset()
    """Keys of blocks and kernels that are open although the level closes them, or the other way
    round."""
    new: frozenset[str] = field(default=frozenset())
    """Names of calls that are stressed: those that a pass has made."""


def fusion_picture(graph: FusedGraph, shown: Shown = Shown()) -> FusionPicture:
    """Return the picture of a graph.

    Parameters
    ----------
    graph : FusedGraph
        The graph.
    shown : Shown
        How much of it is shown.
    """
    return _Picture(graph, shown).model()


def nodes_shown(graph: FusedGraph, shown: Shown) -> int:
    """Return how many boxes are drawn; [1].

    Parameters
    ----------
    graph, shown
        As of `fusion_picture`.
    """
    picture = _Picture(graph, shown)
    picture.parts()
    return len(picture.texts)


def usual_level(graph: FusedGraph) -> Level:
    """Return the level that can be read at first look."""
    if len(graph.nodes) <= MOST_BOXES:
        return "calls"
    if len(graph.kernels) <= MOST_BOXES // 2 or not blocks_of(graph):
        return "kernels"
    return "blocks"


def kernel_key(number: int) -> str:
    """Return the key of a kernel on the page."""
    return f"kernel {number}"


class _Picture:
    """Makes the picture of a graph."""

    def __init__(self, graph: FusedGraph, shown: Shown) -> None:
        self.graph = graph
        self.turned = shown.turned
        self.new = shown.new
        self.level: Level = shown.level or usual_level(graph)
        self.is_large = len(graph.nodes) > _FULL_TEXT
        self.blocks = blocks_of(graph)
        self.block_of = {k: n for n, block in enumerate(self.blocks) for k in block.kernels}
        self.texts: dict[str, list[str]] = {}
        self.box_of: dict[int, str] = {}
        """Key of the box that a node is drawn in."""

    def model(self) -> FusionPicture:
        graph = self.graph
        root = Frame("", tuple(self.parts()), down=26.0, pad=6.0)
        lifted: dict[tuple[str, str], list[int]] = {}
        number = 0
        for edge in graph.edges:
            pair = self.box_of[edge.source], self.box_of[edge.target]
            if pair[0] != pair[1]:
                lifted.setdefault(pair, [])
                lifted[pair] += [] if edge.verdict is None else [number]
            number += edge.verdict is not None
        made = arranged(root, list(lifted))
        levels = [level for level in LEVELS if level != "blocks" or self.blocks]
        if all(len(kernel.nodes) < 2 for kernel in graph.kernels):
            levels.remove("calls" if self.level == "kernels" else "kernels")
        return {
            "title": f"Graph of {shortened(graph.function)}",
            "summary": summary(graph),
            "how_to_read": HOW_TO_READ,
            "width": round(made.width, 1),
            "height": round(made.height, 1),
            "level": self.level,
            "levels": levels,
            "frames": self._frames(root, made),
            "nodes": [self._node(key, made) for key in self.texts],
            "edges": [self._edge(pair, at, made) for pair, at in lifted.items()],
        }

    # -- what is a box, and what is a frame --------------------------------------------------------

    def parts(self) -> list[Leaf | Frame]:
        """Return boxes and frames in the order of the nodes."""
        found: dict[str, Leaf | Frame] = {}
        for n, node in enumerate(self.graph.nodes):
            if node.kernel is None:
                found[f"node {n}"] = self._call(n)
                continue
            block = self.block_of.get(node.kernel) if self.level == "blocks" else None
            if block is None:
                if kernel_key(node.kernel) not in found:
                    found[kernel_key(node.kernel)] = self._kernel(node.kernel)
            elif f"block {block}" not in found:
                found[f"block {block}"] = self._block(block)
        return list(found.values())

    def _is_open(self, key: str, usual: bool) -> bool:
        return usual != (key in self.turned)

    def _block(self, number: int) -> Leaf | Frame:
        key, block = f"block {number}", self.blocks[number]
        if not self._is_open(key, False):
            nodes = [n for k in block.kernels for n in self.graph.kernels[k].nodes]
            return self._leaf(key, self._block_lines(block, len(nodes)), nodes)
        parts = tuple(self._kernel(k) for k in block.kernels)
        return Frame(key, parts, _HEAD_PX, _width(block.name), down=24.0)

    def _kernel(self, number: int) -> Leaf | Frame:
        kernel, key = self.graph.kernels[number], kernel_key(number)
        if len(kernel.nodes) == 1:
            (n,) = kernel.nodes
            return self._call(n)
        is_open = self.level == "calls" or (self.level == "blocks" and number in self.block_of)
        if not self._is_open(key, is_open):
            return self._leaf(key, self._kernel_lines(number), kernel.nodes)
        parts = tuple(self._call(n) for n in kernel.nodes)
        return Frame(key, parts, _HEAD_PX, _width(kernel.name), down=18.0)

    def _leaf(self, key: str, lines: list[str], nodes: Sequence[int]) -> Leaf:
        self.texts[key] = lines
        self.box_of.update(dict.fromkeys(nodes, key))
        return Leaf(key, *box_size(lines))

    def _call(self, number: int) -> Leaf:
        node = self.graph.nodes[number]
        lines = call_lines(node)
        if self.is_large:
            # A call without a name of its own has that of its operator: conv2d_3.
            is_named = not node.name.startswith(node.operator.rpartition(".")[2] or " ")
            lines = lines[: 1 + is_named]
        return self._leaf(f"node {number}", lines, [number])

    def _kernel_lines(self, number: int) -> list[str]:
        kernel = self.graph.kernels[number]
        calls = [self.graph.nodes[n] for n in kernel.nodes]
        names = [shortened(call.name, _NAME) for call in calls]
        if len(names) > _MOST_LINES:
            names = [*names[: _MOST_LINES - 1], f"… {len(names) - _MOST_LINES + 1} more"]
        return [*names, *_ends(kernel.result, calls)]

    def _block_lines(self, block: Block, calls: int) -> list[str]:
        last = self.graph.kernels[block.kernels[-1]]
        size = count(calls, "call")
        if calls > len(block.kernels):
            size = f"{count(len(block.kernels), 'kernel')}, {size}"
        return [shortened(block.name, _NAME), size, f"→ {shortened(last.result, _WORDS)}"]

    # -- the model ---------------------------------------------------------------------------------

    def _frames(self, root: Frame, made: Arrangement) -> list[FrameBox]:
        found: list[FrameBox] = []
        stack = [part for part in reversed(root.children) if isinstance(part, Frame)]
        while stack:
            frame = stack.pop()
            kind, _, number = frame.key.partition(" ")
            rect = made.boxes[frame.key]
            is_kernel = kind == "kernel"
            name = (
                self.graph.kernels[int(number)].name if is_kernel else self.blocks[int(number)].name
            )
            found.append({
                "key": frame.key, "kind": "kernel" if is_kernel else "block",
                "x": round(rect.x, 1), "y": round(rect.y, 1), "w": round(rect.w, 1),
                "h": round(rect.h, 1), "text": shortened(name, int((rect.w - 16) / _LETTER_PX)),
                "facts": self._facts(frame.key), "kernel": int(number) if is_kernel else None,
            })  # fmt: skip
            stack += [part for part in reversed(frame.children) if isinstance(part, Frame)]
        return found

    def _node(self, key: str, made: Arrangement) -> NodeBox:
        rect = made.boxes[key]
        kind, _, text = key.partition(" ")
        number = int(text)
        kernel = self.graph.nodes[number].kernel if kind == "node" else None
        is_input = kind == "node" and self.graph.nodes[number].is_input
        names = [n for n, box in self.box_of.items() if box == key] if kind != "node" else [number]
        words = " ".join(
            f"{self.graph.nodes[n].name[:80]} {self.graph.nodes[n].operator}" for n in names
        )
        return {
            "key": key,
            "kind": "input" if is_input else "call" if kind == "node" else kind,  # type: ignore[typeddict-item]
            "x": round(rect.x, 1), "y": round(rect.y, 1), "w": round(rect.w, 1),
            "h": round(rect.h, 1), "lines": self.texts[key], "facts": self._facts(key),
            "kernel": number if kind == "kernel" else kernel, "is_closed": kind != "node",
            "words": words.lower(),
        }  # fmt: skip

    def _facts(self, key: str) -> Facts:
        kind, _, number = key.partition(" ")
        if kind == "node":
            return self._facts_of_call(self.graph.nodes[int(number)])
        if kind == "kernel":
            return self._facts_of_kernel(int(number))
        block = self.blocks[int(number)]
        calls = sum(len(self.graph.kernels[k].nodes) for k in block.kernels)
        same = [("same structure as", shortened(block.like, 200))] if block.like else []
        return [("block", shortened(block.name, 200)), ("kernels", str(len(block.kernels))),
                ("calls", str(calls)), *same]  # fmt: skip

    def _facts_of_call(self, node: CallNode) -> Facts:
        found = [("input" if node.is_input else "call", shortened(node.name, 200))]
        if not node.is_input:
            found.append(("operator", shortened(node.operator, 80)))
        found += [("pattern", node.pattern)] if node.pattern else []
        found.append(("result", shortened(node.result, 200)))
        if node.weights:
            found.append(("reads", _weights(node.weights, node.weight_bytes)))
        if node.name in self.new:
            found.append(("made by", "the pass that is shown"))
        if node.kernel is not None and len(self.graph.kernels[node.kernel].nodes) > 1:
            found.append(("in the kernel", shortened(self.graph.kernels[node.kernel].name, 200)))
        elif node.kernel is not None:
            found.append(("buffer", self.graph.kernels[node.kernel].buffer))
        return [(label, value) for label, value in found if value]

    def _facts_of_kernel(self, number: int) -> Facts:
        kernel = self.graph.kernels[number]
        calls = [self.graph.nodes[n] for n in kernel.nodes]
        inside = (e.verdict for e in self.graph.edges if e.target in kernel.nodes)
        saved = sum(v.bytes for v in inside if v is not None and v.is_fused)
        read = sum(call.weights for call in calls), sum(call.weight_bytes for call in calls)
        anchor = [call.name for call in calls if call.pattern == "anchor"]
        found = [
            ("kernel", shortened(kernel.name, 200)),
            ("calls", shortened(", ".join(f"{c.name} ({c.operator})" for c in calls), 400)),
            ("anchor", shortened(anchor[0], 80) if anchor else ""),
            ("result", shortened(kernel.result, 200)),
            ("buffer", kernel.buffer),
            ("reads", _weights(*read) if read[0] else ""),
            ("fusion saves", f"{format_bytes(saved)} moved" if saved > 0 else ""),
        ]
        return [(label, value) for label, value in found if value]

    def _edge(self, pair: tuple[str, str], numbers: list[int], made: Arrangement) -> EdgeLine:
        all_ = self.graph.verdicts
        verdicts = [all_[n] for n in numbers]
        is_fused = bool(verdicts) and all(v.is_fused for v in verdicts)
        return {
            "key": f"{pair[0]} → {pair[1]}", "source": pair[0], "target": pair[1],
            "kind": "fused" if is_fused else "not fused" if verdicts else "input",
            "d": made.path(pair), "head": made.head(pair), "text": _edge_text(verdicts),
            "verdicts": numbers,
        }  # fmt: skip


def summary(graph: FusedGraph) -> str:
    """Return a graph in a sentence."""
    calls = sum(len(kernel.nodes) for kernel in graph.kernels)
    edges = [e.verdict for e in graph.edges if e.verdict is not None]
    fused = sum(v.is_fused for v in edges)
    if not edges and all(len(kernel.nodes) < 2 for kernel in graph.kernels):
        return f"{count(calls, 'call')}, each by itself."
    text = f"{count(calls, 'call')} in {count(len(graph.kernels), 'kernel')}"
    return f"{text}; fused edges between calls: {fused} of {len(edges)}."


def call_lines(node: CallNode) -> list[str]:
    """Return the lines in the box of a call or a parameter."""
    if node.is_input:
        return [
            shortened(node.name, _NAME),
            *([shortened(node.result, _WORDS)] if node.result else []),
        ]
    name = [shortened(node.name, _NAME)]
    if node.operator and node.operator != node.name:
        name.append(shortened(node.operator, _NAME))
    return [*name, *_ends(node.result, [node])]


def _ends(result: str, calls: Sequence[CallNode]) -> list[str]:
    """Return the lines at the end of a box: the result, and what it reads."""
    number = sum(call.weights for call in calls)
    size = sum(call.weight_bytes for call in calls)
    arrow = "returns" if any(call.is_result for call in calls) else "→"
    return [
        *([f"{arrow} {shortened(result, _WORDS)}"] if result else []),
        *([f"reads {_weights(number, size)}"] if number else []),
    ]


def _weights(number: int, size: int) -> str:
    return f"{count(number, 'weight')}, {format_bytes(size)}"


def _width(name: str) -> float:
    return min(len(name), _NAME) * _LETTER_PX + 16


def _edge_text(verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return "an input: nothing is decided about it"
    first = verdicts[0]
    state = "fused" if first.is_fused else "not fused"
    rest = f" (and {len(verdicts) - 1} more edges)" if len(verdicts) > 1 else ""
    effect = f"; {first.effect}" if first.effect else ""
    asked = f" You asked to {first.asked}." if first.wish else ""
    return (
        f"{shortened(first.a, _NAME)} → {shortened(first.b, _NAME)}: {state} by the rule "
        f"“{first.rule}”{effect}.{asked}{rest}"
    )
