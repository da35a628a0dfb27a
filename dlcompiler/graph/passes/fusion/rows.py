"""Fuse reductions with what needs their results for the same row: one loop over rows.

A *row* is what a reduction combines: its last dimensions. A group of this kind has one shape of
rows. Each of its values is full (it has the shape that is reduced), or has one number for each row.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from dlcompiler import dtypes
from dlcompiler.graph.inference import Types
from dlcompiler.graph.ir import Call, Constant, Node, Op, TensorType
from dlcompiler.graph.operators import REGISTRY, Pattern
from dlcompiler.graph.operators.relations import chosen_axes
from dlcompiler.graph.passes.fusion.dataflow import Flow
from dlcompiler.graph.passes.fusion.groups import Group, Partition, paths
from dlcompiler.graph.passes.tools import attrs_of

Shape = tuple[int, ...]


def fuse_rows(partition: Partition, types: Types, max_row_bytes: int) -> None:
    """Merge groups that the rules made into groups that are computed row by row.

    Parameters
    ----------
    partition : Partition
        Groups of the published rule. `Partition.by_rows` and `refused` say what became of them.
    types : Types
        Types of the nodes.
    max_row_bytes : int
        Most bytes of a row that are used again after a reduction; [byte].

    Notes
    -----
    From each result of a group, all nodes up to its post-dominator are merged, as in the published
    phases. So a group has one result, and no value leaves it on the way.
    """
    members: dict[Group, list[Flow]] = defaultdict(list)
    for flow in partition.flows:
        members[partition.of(flow)].append(flow)
    partition.before_rows = {flow: partition.of(flow) for flow in partition.flows}
    for flow in partition.flows:
        sink = flow.dominator
        if sink is None or partition.of(flow).root is not flow.node:
            continue
        way = [flow, *paths(flow, sink)]
        groups = dict.fromkeys(partition.of(each) for each in way)
        merged = [each for group in groups for each in members[group]]
        if not any(each.pattern is Pattern.REDUCTION for each in merged):
            continue
        if (key := _why_not(merged, partition, types, max_row_bytes)) is not None:
            partition.refused[flow] = key
            continue
        for each in way:
            partition.merge(each, sink)
        into = partition.of(sink)
        into.pattern = Pattern.REDUCTION
        members[into] = sorted(merged, key=lambda each: each.index)
        partition.by_rows.add(into)


def _why_not(
    flows: Sequence[Flow], partition: Partition, types: Types, max_row_bytes: int
) -> str | None:
    """Return the key of the rule that forbids a group; None if there is none."""
    if len(flows) > partition.max_depth:
        return "too many"
    if not partition.can_merge(flows):
        return "kept apart"
    nodes = sorted(flows, key=lambda flow: flow.index)
    rows = _rows_of([flow.node for flow in nodes], types)
    if rows is None:
        return "other rows"
    return "cache" if rows.kept_bytes(types) > max_row_bytes else None


def _rows_of(nodes: Sequence[Node], types: Types) -> Rows | None:
    """Return the rows of a group; None if it cannot be computed row by row."""
    reductions = [node for node in nodes if _pattern(node) is Pattern.REDUCTION]
    found = {_reduced(node, types) for node in reductions if isinstance(node, Call)}
    if len(found) != 1 or None in found:
        return None
    ((shape, axes),) = found  # type: ignore[misc]  # None is not in it
    first = len(shape) - len(axes)
    if 0 in shape or not axes or axes != tuple(range(first, len(shape))):
        return None
    rows = Rows(tuple(nodes), shape, first)
    return rows if all(rows.fits(node, types) for node in nodes) else None


def _reduced(call: Call, types: Types) -> tuple[Shape, Shape] | None:
    """Return the shape that a reduction reads, and the dimensions that it combines."""
    attrs = attrs_of(call)
    if "axis" not in attrs:
        return None
    shape = _shape(call.args[0], types)
    return shape, chosen_axes(attrs, len(shape))


@dataclass(frozen=True)
class Rows:
    """A group that is computed row by row, in the order of its calls."""

    nodes: tuple[Node, ...]
    shape: Shape
    """That of full values."""
    first: int
    """The first dimension of a row; [1]."""

    def fits(self, node: Node, types: Types) -> bool:
        """Tell whether a row of a value needs only the same rows of those in the group."""
        if isinstance(node, Constant):
            return node.value.ndim == 0
        if not isinstance(node, Call) or not isinstance(types[node], TensorType):
            return False
        shape, pattern = _shape(node, types), _pattern(node)
        is_reshape = isinstance(node.op, Op) and bool(
            REGISTRY[node.op.name].notes.get("is_reshape")
        )
        inside = [arg for arg in node.args if arg in self.nodes and not isinstance(arg, Constant)]
        if pattern is Pattern.REDUCTION or shape == self.shape:
            return (pattern <= Pattern.BROADCAST or pattern is Pattern.REDUCTION) and all(
                _shape(arg, types) == self.shape or self._is_aligned(_shape(arg, types))
                for arg in inside
            )
        if not self._has_rows(shape):
            return False
        if is_reshape:
            return all(self._has_rows(_shape(arg, types)) for arg in inside)
        return pattern <= Pattern.BROADCAST and all(_shape(a, types) == shape for a in inside)

    def _has_rows(self, shape: Shape) -> bool:
        """Tell whether a shape has one number for each row, in their order."""
        return _long(shape) == _long(self.shape[: self.first])

    def _is_aligned(self, shape: Shape) -> bool:
        """Tell whether broadcasting repeats a value along rows only, so that each has its own."""
        padded = (1,) * (len(self.shape) - len(shape)) + shape
        return padded == self.shape[: self.first] + (1,) * (len(self.shape) - self.first)

    def kept_bytes(self, types: Types) -> int:
        """Return the bytes of a row that are used again after a reduction; [byte]."""
        stage: dict[Node, int] = {}
        used: dict[Node, list[int]] = defaultdict(list)
        for node in self.nodes:
            if not isinstance(node, Call):
                continue
            after = (
                stage[arg] + int(_pattern(arg) is Pattern.REDUCTION)
                for arg in node.args
                if arg in stage
            )
            stage[node] = max(after, default=0)
            for arg in node.args:
                used[arg].append(stage[node])
        extent = math.prod(self.shape[self.first :])
        kept = [
            types[value]
            for value, stages in used.items()
            if max(stages) > stage.get(value, min(stages)) and self._is_long(value, types)
        ]
        return sum(extent * dtypes.bytes_of(k.dtype) for k in kept if isinstance(k, TensorType))

    def _is_long(self, value: Node, types: Types) -> bool:
        """Tell whether a value has more than one number in a row."""
        shape = _shape(value, types)
        if value in self.nodes:
            return shape == self.shape
        return any(extent != 1 for extent in shape[-(len(self.shape) - self.first) :])


def _long(shape: Shape) -> Shape:
    return tuple(extent for extent in shape if extent != 1)


def _shape(node: Node, types: Types) -> Shape:
    """Return the shape of a value; one that nothing fits for a value without a known shape."""
    kind = types[node]
    if not isinstance(kind, TensorType) or not kind.is_static:
        return (-1,)
    return tuple(extent for extent in kind.shape if isinstance(extent, int))


def _pattern(node: Node) -> Pattern:
    if isinstance(node, Call) and isinstance(node.op, Op):
        return REGISTRY[node.op.name].pattern
    return Pattern.OPAQUE
