"""Why each edge was fused or not: the closed list of rules, and which one decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from dlcompiler.graph.decisions import Decision, Effect
from dlcompiler.graph.inference import Types
from dlcompiler.graph.ir import Call, Node, Op, Tuple, TupleGetItem, Var, nbytes, tensor_types
from dlcompiler.graph.operators import Pattern
from dlcompiler.graph.passes.fusion.dataflow import STOP, Flow
from dlcompiler.graph.passes.fusion.groups import Partition, paths

NAME = "fuse_ops"


@dataclass(frozen=True, slots=True)
class Rule:
    """A reason for a verdict, and what would lead to another one."""

    reason: str
    """About ``{a}``, the producer, and ``{b}``, its consumer."""
    remedy: str = ""


RULES: Mapping[str, Rule] = {
    "elementwise after anchor": Rule(
        "{b} needs only the element of {a} that was just computed",
        "graph.keep_apart({a}, {b})",
    ),
    "same loops": Rule(
        "{b} can compute each element of {a} where it reads it", "graph.keep_apart({a}, {b})"
    ),
    "same row": Rule(
        "{b} needs the result of {a} for its own row only, and the row stays in the cache",
        "graph.keep_apart({a}, {b})",
    ),
    "recomputed": Rule(
        "{a} is cheap: computing it in each of its readers, such as {b}, is predicted to be faster "
        "than to write and read it",
        "graph.keep_apart({a}, {b})",
    ),
    "siblings": Rule(
        "{a} and {b} read {value} in the same loops, and do not need each other",
        "graph.keep_apart({a}, {b})",
    ),
    "other loops": Rule(
        "{a} and {b} read {value}, but a reduction needs other loops than the other one",
        "reduce the same dimensions of one shape",
    ),
    "forced": Rule("it was asked for", "leave out the wish"),
    "kept apart": Rule("it was asked to stay apart", "leave out graph.keep_apart"),
    "stop_fusion": Rule("an annotation stops fusion at {a}", "remove annotation.stop_fusion"),
    "opaque": Rule("{opaque} cannot be fused: it is computed as a whole", "none"),
    "result": Rule("{a} is needed as a value of its own: {because}", "do not return it"),
    "two anchors": Rule(
        "{a} and {b} are in the groups of {anchor_a} and {anchor_b}, and each needs a loop nest "
        "of its own",
        "none: it would be recomputed, or both kept in memory all the same",
    ),
    "into an anchor": Rule(
        "{b} starts a loop nest of its own, and reads each element of {a} more than once",
        "compute it again for each read, or fold it into the weights",
    ),
    "reduction": Rule(
        "{a} is a reduction: its result is complete only after its loops",
        "compute the consumer after the reduction of each row: FusionOptions(rows=True), or a "
        "normalisation as one operator",
    ),
    "other rows": Rule(
        "{b} needs what is computed from other rows than its own, or reduces other dimensions",
        "reduce the last dimensions, and keep them (keepdims)",
    ),
    "cache": Rule(
        "after a reduction, more of a row would be used again than stays in the cache",
        "raise FusionOptions.max_row_bytes, or make rows shorter",
    ),
    "moved after anchor": Rule(
        "{b} needs other elements of {a} than the one just computed, and {a} is in the group of "
        "{anchor_a}",
        "move {b} before {anchor_a}, or change the layout of {anchor_a}",
    ),
    "repeated after anchor": Rule(
        "{b} repeats {a} along a dimension, and {a} is in the group of {anchor_a}",
        "repeat the other operand instead",
    ),
    "no common consumer": Rule(
        "{a} is used by {users}, which never come together again",
        "compute it once for each of them",
    ),
    "path": Rule(
        "on the way from {a} to {sink}, where its uses come together, {blocks} cannot be in "
        "one loop nest with it",
        "compute {a} once for each use",
    ),
    "tuple": Rule("{a} is a field of a tuple that is no part of a kernel", "join the fields"),
    "not in all": Rule(
        "not all readers of {a} can compute it themselves: one starts a loop nest of its own, or "
        "needs other elements",
        "fuse it with each of the others by hand: call it once for each of them",
    ),
    "compared": Rule(
        "the results of two readers of {a} come together, or one needs that of the other: two "
        "copies may differ by rounding where they are compared",
        "compute it once",
    ),
    "several results": Rule(
        "the kernel of {a} has several results, and only one with one result is computed again",
        "make each result a call of its own, or leave out FusionOptions.siblings",
    ),
    "dear": Rule(
        "computing {a} again is predicted to take longer than to write and read it",
        "none: it is stored",
    ),
    "registers": Rule(
        "an element would need more than {live} values at once",
        "raise FusionOptions.max_live",
    ),
    "too many": Rule("the group would have more than {limit} nodes", "raise max_depth"),
}
"""Rules by their keys, in plain words."""


def decisions_of(partition: Partition, types: Types) -> list[Decision]:
    """Return a decision for each edge between two calls, in the order of the consumers.

    An edge that leads through tuples is one edge.
    """
    return [
        _decision(producer, flow, partition, types)
        for flow in partition.flows
        if _is_call(flow)
        for producer in _producers(flow, partition)
    ]


def decision_by_name(
    a: str, b: str, key: str, effect: Effect, words: Mapping[str, str]
) -> Decision:
    """Return a decision about two calls that are given by their names."""
    rule, all_words = RULES[key], {**words, "a": a, "b": b}
    is_fused = key in ("recomputed", "siblings")
    return Decision(
        NAME, (a, b), "fused" if is_fused else "not fused", key,
        rule.reason.format_map(all_words), rule.remedy.format_map(all_words),
        ("not fused",) if is_fused else ("fused",), effect,
    )  # fmt: skip


def _is_call(flow: Flow) -> bool:
    return isinstance(flow.node, Call) and isinstance(flow.node.op, Op)


def _producers(flow: Flow, partition: Partition) -> list[Flow]:
    """Return the calls whose results a call uses, each once, in order."""
    found: dict[Flow, None] = {}
    stack: list[Node] = list(reversed(flow.node.args)) if isinstance(flow.node, Call) else []
    while stack:
        match stack.pop():
            case Tuple(fields):
                stack += reversed(fields)
            case TupleGetItem(value):
                stack.append(value)
            case Call(Op()) as producer:
                found[partition.at[producer]] = None
    return list(found)


def _decision(a: Flow, b: Flow, partition: Partition, types: Types) -> Decision:
    is_fused = partition.of(a) is partition.of(b)
    key = _why_fused(a, b, partition) if is_fused else _why_not(a, b, partition)
    words = words_of(a, b, partition)
    rule = RULES[key]
    return Decision(
        NAME, (name_of(a), name_of(b)), "fused" if is_fused else "not fused", key,
        rule.reason.format_map(words), rule.remedy.format_map(words),
        ("not fused",) if is_fused else ("fused",), _effect(a, b, partition, types),
    )  # fmt: skip


def _why_fused(a: Flow, b: Flow, partition: Partition) -> str:
    if (a.node, b.node) in partition.forced:
        return "forced"
    if partition.before_rows and partition.before_rows[a] is not partition.before_rows[b]:
        return "same row"
    is_behind_anchor = a.pattern is Pattern.ANCHOR or a in partition.behind_anchor
    return "elementwise after anchor" if is_behind_anchor else "same loops"


def _why_not(a: Flow, b: Flow, partition: Partition) -> str:  # noqa: C901 - a list of rules
    """Return the key of the first rule that keeps two calls apart."""
    own, other = partition.of(a), partition.of(b)
    if partition.is_kept_apart(a, b):
        return "kept apart"
    if STOP in (_operator(a), _operator(b)):
        return "stop_fusion"
    if Pattern.OPAQUE in (a.pattern, b.pattern):
        return "opaque"
    if a.leaves_because or a in partition.returned:
        return "result"
    if own.anchor is not None and other.anchor is not None:
        return "two anchors"
    if b.pattern is Pattern.ANCHOR:
        return "into an anchor"
    if (key := partition.refused.get(partition.at[own.root])) is not None:
        return key
    if a.pattern is Pattern.REDUCTION:
        return "reduction"
    if a.dominator is None or (a.dominator.leaves_because and _is_tuple(a.dominator)):
        return "no common consumer"
    if own.anchor is not None:
        return "repeated after anchor" if b.pattern is Pattern.BROADCAST else "moved after anchor"
    if partition.is_too_large(a, a.dominator):
        return "too many"
    return "tuple" if _is_tuple(a.dominator) else "path"


def _is_tuple(flow: Flow) -> bool:
    return flow.pattern is Pattern.TUPLE


def words_of(a: Flow, b: Flow, partition: Partition) -> dict[str, str]:
    """Return what the placeholders of the rules stand for."""
    sink = a.dominator
    between = () if sink is None else paths(a, sink)
    # The first ones only: a value may have thousands of uses, each with a decision.
    blocking = islice(
        (f for f in between if partition.of(f) is not partition.of(a) and _is_call(f)), 3
    )
    groups = partition.of(a), partition.of(b)
    anchors = ["" if g.anchor is None else name_of(partition.at[g.anchor]) for g in groups]
    because = a.leaves_because or (sink.leaves_because if sink else "")
    return {
        "a": name_of(a), "b": name_of(b), "because": because,
        "opaque": name_of(a if a.pattern is Pattern.OPAQUE else b),
        "anchor_a": anchors[0], "anchor_b": anchors[1],
        "users": " and ".join(name_of(user) for user, _ in a.uses[:3]),
        "sink": "" if sink is None else name_of(sink),
        "blocks": " and ".join(map(name_of, blocking)) or "its consumers",
        "limit": str(partition.max_depth),
    }  # fmt: skip


def _operator(flow: Flow) -> str:
    return flow.node.op.name if isinstance(flow.node, Call) and _is_call(flow) else ""  # type: ignore[union-attr]  # a call of an operator


def name_of(flow: Flow) -> str:
    """Return the name of a node in decisions."""
    node = flow.node
    return node.name if isinstance(node, Call | Var) and node.name else type(node).__name__.lower()


def _effect(a: Flow, b: Flow, partition: Partition, types: Types) -> Effect:
    """Return what fusing an edge saves, or would save.

    The consumer does not read the value, and if no other kernel reads it, it is not stored either.
    """
    tensors = tensor_types(types[a.node])
    if not all(tensor.is_static for tensor in tensors):
        return Effect(kernels=1)
    size = sum(map(nbytes, tensors))
    into = partition.of(b)
    is_only_reader = not a.leaves_because and all(
        user is b or partition.of(user) is into for user, _ in a.uses
    )
    return Effect(bytes=size * (2 if is_only_reader else 1), kernels=1)
