"""Put calls into one group because the user asks for it; refuse what would not be a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.errors import GraphError
from dlcompiler.graph.ir import Call, Node, op
from dlcompiler.graph.operators import Pattern
from dlcompiler.graph.passes.fusion.dataflow import STOP, Flow
from dlcompiler.graph.passes.fusion.groups import Partition, paths
from dlcompiler.graph.passes.fusion.reasons import RULES, name_of, words_of
from dlcompiler.graph.passes.fusion.wished import operands

STOP_OP = op(STOP)


def force(partition: Partition, a: Node, b: Node) -> None:
    """Merge the groups of two calls, with all that lies between them.

    Parameters
    ----------
    partition : Partition
        Groups that no rule has merged yet.
    a, b : Call
        Producer and consumer.

    Raises
    ------
    GraphError
        If `b` does not use `a`, or the group would not be a kernel.

    Notes
    -----
    A group must have one result. So it reaches up to the node where all uses of the producer come
    together, which may be behind the consumer.
    """
    producer, consumer = partition.at[a], partition.at[b]
    if partition.of(producer) is partition.of(consumer):
        return
    if a not in operands(b):
        raise GraphError(
            _operation(producer, consumer), f"{name_of(consumer)} does not use {name_of(producer)}",
            expected="a producer and its consumer",
        )  # fmt: skip
    between = _between(producer, consumer, partition)
    if (key := _why_not(between, partition)) is not None:
        raise _refused(producer, consumer, key, partition)
    sink = between[-1]
    for flow in between[:-1]:
        partition.merge(flow, sink)
    group = partition.of(sink)
    # A reduction inside must not be fused forward again by the rules.
    kinds = [flow.pattern for flow in between if flow.pattern <= Pattern.ANCHOR]
    group.pattern = max(group.pattern, *kinds)


def _between(a: Flow, b: Flow, partition: Partition) -> list[Flow]:
    """Return the nodes from a producer to the last that must be in its kernel, which comes last.

    Raises
    ------
    GraphError
        If the uses of the producer never come together.
    """
    sink = a.dominator
    while sink is not None:
        found = list(paths(a, sink))
        if b in found:
            return [a, *(flow for flow in found if flow is not sink), sink]
        sink = sink.dominator
    raise _refused(a, b, "result" if a.leaves_because else "no common consumer", partition)


def _why_not(flows: Sequence[Flow], partition: Partition) -> str | None:
    """Return the key of the rule that forbids a group; None if there is none."""
    groups = {partition.of(flow) for flow in flows}
    if any(isinstance(f.node, Call) and f.node.op is STOP_OP for f in flows):
        return "stop_fusion"
    if any(flow.pattern is Pattern.OPAQUE for flow in flows):
        return "opaque"
    if flows[-1].pattern is Pattern.TUPLE and flows[-1].leaves_because:
        return "result" if flows[0] in partition.returned else "no common consumer"
    if sum(group.anchor is not None for group in groups) > 1:
        return "two anchors"
    if not partition.can_merge(flows):
        return "kept apart"
    return "too many" if sum(group.size for group in groups) > partition.max_depth else None


def _operation(a: Flow, b: Flow) -> str:
    return f"fuse {name_of(a)} and {name_of(b)}"


def _refused(a: Flow, b: Flow, key: str, partition: Partition) -> GraphError:
    """Return the error for a wish that cannot be honoured, with the reason of the closed list."""
    rule, words = RULES[key], words_of(a, b, partition)
    remedy = rule.remedy.format_map(words)
    return GraphError(
        _operation(a, b), f"they cannot be one kernel ({key})",
        because=rule.reason.format_map(words),
        hint=None if remedy.startswith("none") else remedy,
    )  # fmt: skip
