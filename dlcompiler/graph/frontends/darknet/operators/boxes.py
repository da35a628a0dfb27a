"""Layers that predict boxes, which Darknet chooses from outside of the network."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from dlcompiler.graph.frontends.darknet.node import Converter, DarknetNode
from dlcompiler.graph.ir import Expr


def _changed(node: DarknetNode, anchors: int, parts: Sequence[tuple[int, str, float]]) -> Expr:
    """Return images in which the channels of each anchor are changed part by part.

    A part is a number of channels, a function ("": none), and a factor that keeps the middle.
    """
    x = node.image()
    parts = [part for part in parts if part[0]]
    count, channels, *pixels = node.shape(x)
    entries = sum(size for size, _, _ in parts)
    if channels != anchors * entries:
        wanted = f"{anchors * entries}: {anchors} boxes of {entries} numbers"
        node.fail("its image has another number of channels", got=str(channels), expected=wanted)
    apart = node.reshape(x, (count, anchors, entries, *pixels))
    ends = tuple(accumulate(size for size, _, _ in parts))[:-1]
    pieces = node.call("split", apart, indices_or_sections=ends, axis=2)
    made = []
    for n, (_, function, factor) in enumerate(parts):
        piece: Expr = pieces[n]
        if function:
            piece = node.call(function, piece, **({"axis": 2} if "softmax" in function else {}))
        if factor != 1:
            piece = node.call("multiply", piece, node.scalar(factor, piece))
            piece = node.call("subtract", piece, node.scalar((factor - 1) / 2, piece))
        made.append(piece)
    return node.reshape(node.call("concatenate", node.tuple(made), axis=2), node.shape(x))


def _yolo(node: DarknetNode) -> Expr:
    """Return x and y of a box, objectness and classes as probabilities; its sides as they are."""
    classes, boxes = node.integer("classes", 20), node.integer("num", 1)
    boxes = len(node.integers("mask")) or boxes
    factor = node.number("scale_x_y", 1)
    function = "" if node.flag("new_coords") else "sigmoid"
    return _changed(node, boxes, [(2, function, factor), (2, "", 1), (1 + classes, function, 1)])


def _region(node: DarknetNode) -> Expr:
    """Return x and y of a box and its objectness as probabilities, and the softmax of classes.

    With ``background``, that is a class and not an objectness.
    """
    classes, boxes = node.integer("classes", 20), node.integer("num", 1)
    coords = node.integer("coords", 4, low=2)
    is_background, is_softmax = node.flag("background"), node.flag("softmax")
    node.without("tree")
    parts = [(2, "sigmoid", 1.0), (coords - 2, "", 1.0)]
    if is_softmax and is_background:
        return _changed(node, boxes, [*parts, (1 + classes, "nn.softmax", 1.0)])
    parts += [(1, "" if is_background else "sigmoid", 1.0)]
    return _changed(node, boxes, [*parts, (classes, "nn.softmax" if is_softmax else "sigmoid", 1)])


def _detection(node: DarknetNode) -> Expr:
    """Return a vector: of all places the classes, then the objectness of boxes, then the boxes."""
    x = node.vector()
    classes, coords, boxes = (node.integer(key, 1) for key in ("classes", "coords", "num"))
    places = node.integer("side", 7) ** 2
    count, size = node.shape(x)
    if size != places * ((1 + coords) * boxes + classes):
        node.fail("it has another number of elements", got=str(size),
                  expected=f"{places} · (({coords} + 1) · {boxes} + {classes})")  # fmt: skip
    if not node.flag("softmax"):
        return x
    parts = node.call("split", x, indices_or_sections=(places * classes,), axis=1)
    each = node.reshape(parts[0], (count, places, classes))
    chosen = node.reshape(node.call("nn.softmax", each, axis=-1), (count, places * classes))
    return node.call("concatenate", node.tuple([chosen, parts[1]]), axis=1)


TABLE: dict[str, Converter] = {"yolo": _yolo, "region": _region, "detection": _detection}
"""The converters of this module. All are outputs of the network."""
