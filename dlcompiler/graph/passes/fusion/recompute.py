"""Compute a cheap producer again in each kernel that reads it, if that is predicted to pay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlcompiler.graph.decisions import Decision, Effect
from dlcompiler.graph.ir import (
    Call,
    Function,
    Node,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    calls,
    post_order,
    rewrite_from,
)
from dlcompiler.graph.operators import REGISTRY, Pattern
from dlcompiler.graph.passes.fusion.kernels import (
    KernelGraph,
    body_of,
    is_exact,
    is_kernel_call,
    is_one_loop,
    kernel_graph,
    patterns_of,
    readers_of,
    size_of,
    with_producer,
    work_of,
)
from dlcompiler.graph.passes.fusion.limits import Limits
from dlcompiler.graph.passes.fusion.loops import live_values
from dlcompiler.graph.passes.fusion.reasons import decision_by_name

SUFFIX = "again"
"""What is appended to the names of calls that are computed again."""


def recompute(function: Function, limits: Limits) -> tuple[Function, list[Decision]]:
    """Join cheap kernels with each of the kernels that read them.

    Parameters
    ----------
    function : Function
        Its calls are kernels.
    limits : Limits
        What forbids it.

    Returns
    -------
    function : Function
        The function, the same one if nothing changes.
    log : list of Decision
        About the edges from a kernel to its readers.

    Notes
    -----
    A kernel is computed again only if it disappears: all its readers can take it, and it has one
    result. Unless it is exact, nothing may depend on two of its readers, since the copies may then
    differ by rounding where both are compared: ``exp(x - max(x))`` of two copies may overflow.

    **Source:** that case is described in XLA's fusion for CPUs (``cpu_instruction_fusion.cc``).
    """
    log: dict[tuple[str, ...], Decision] = {}
    while (graph := kernel_graph(function)) is not None:
        plans = _plans(graph, limits, log)
        if not plans:
            break
        function = _joined(function, plans)
    return function, list(log.values())


@dataclass(frozen=True)
class _Plan:
    """A kernel that becomes part of its readers."""

    producer: Call
    readers: tuple[Call, ...]


def _plans(graph: KernelGraph, limits: Limits, log: dict[tuple[str, ...], Decision]) -> list[_Plan]:
    """Return plans that do not touch the same kernels, and note what was decided."""
    plans: list[_Plan] = []
    touched: set[Node] = set()
    for call in graph.kernels:
        for decision in _parts(call, graph):
            log[decision.subject] = decision
        readers = tuple(u for u in dict.fromkeys(graph.users[call]) if is_kernel_call(u))
        if not readers or len(readers) < len(set(graph.users[call])) or not is_one_loop(call):
            continue
        if touched & {call, *readers}:
            continue
        key, saved = _verdict(call, readers, graph, limits)
        for decision in _decisions(call, readers, key, saved, limits):
            log[decision.subject] = decision
        if key == "recomputed":
            plans.append(_Plan(call, readers))
            touched |= {call, *readers}
    return plans


def _verdict(
    call: Call, readers: Sequence[Call], graph: KernelGraph, limits: Limits
) -> tuple[str, int]:
    """Return the key of the rule that decides, and how many bytes are moved less."""
    saved, seconds = _gain(call, readers, limits)
    for reader in readers:
        if (key := limits.forbids(call, reader)) is not None:
            return key, saved
    if not all(
        _takes(reader, place, call) for reader in readers for place in _places(reader, call)
    ):
        return "not in all", saved
    if not is_exact(call) and graph.meet(readers):
        return "compared", saved
    if any(len(calls(body_of(r).body)) + len(calls(body_of(call).body)) > limits.max_depth
           for r in readers):  # fmt: skip
        return "too many", saved
    made = [with_producer(reader, call, reader.args.index(call), "") for reader in readers]
    if any(live_values(body_of(each).body) > limits.options.max_live for each in made):
        return "registers", saved
    return ("recomputed" if seconds > 0 else "dear"), saved


def _places(reader: Call, call: Node) -> list[int]:
    return [n for n, arg in enumerate(reader.args) if arg is call]


def _gain(call: Call, readers: Sequence[Call], limits: Limits) -> tuple[int, float]:
    """Return how many bytes are moved less, and how many seconds that is predicted to save."""
    count, result = len(readers), size_of(call)
    before = result * (1 + count) + sum(size_of(call, n) for n in range(len(call.args)))
    after = sum(
        size_of(call, n)
        for reader in readers
        for n, arg in enumerate(call.args)
        if arg not in reader.args
    )
    saved = before - after
    rates = limits.options
    more = (count - 1) * work_of(call) / rates.flops_per_second
    return saved, saved / rates.bytes_per_second - more


def _takes(reader: Call, place: int, call: Call) -> bool:
    """Tell whether the published rule would fuse a kernel into what reads it, were that alone."""
    kernel, patterns = body_of(reader), patterns_of(reader)
    readers = list(readers_of(kernel.params[place], kernel.body))
    if any(not (isinstance(n, Call) and isinstance(n.op, Op)) for n in readers):
        return False
    greatest = max(REGISTRY[n.op.name].pattern for n in readers if isinstance(n, Call))  # type: ignore[union-attr]  # calls of operators
    if Pattern.ANCHOR not in patterns and Pattern.REDUCTION not in patterns:
        return greatest <= Pattern.INJECTIVE
    if max(patterns_of(call)) > Pattern.BROADCAST:
        return False
    anchors = [n for n in calls(kernel.body) if _is_anchor(n)]
    before = {below for anchor in anchors for below in post_order(anchor)}
    allowed = (Pattern.ELEMENTWISE, Pattern.BROADCAST, Pattern.REDUCTION)
    return greatest in allowed and not before.intersection(readers)


def _is_anchor(call: Call) -> bool:
    return isinstance(call.op, Op) and REGISTRY[call.op.name].pattern is Pattern.ANCHOR


def _decisions(
    call: Call, readers: Sequence[Call], key: str, saved: int, limits: Limits
) -> list[Decision]:
    """Return a decision for each edge; the effect of all stands at the first one."""
    found: list[Decision] = []
    producer = _name(body_of(call).body)
    for reader in readers:
        for place in _places(reader, call):
            for node in readers_of(body_of(reader).params[place], body_of(reader).body):
                effect = Effect() if found else Effect(saved, 1)
                found.append(decision_by_name(producer, _name(node), key, effect, limits.words))
    return found


def _parts(call: Call, graph: KernelGraph) -> list[Decision]:
    """Return a decision for each edge from a kernel with several results, which is not copied."""
    kernel = body_of(call)
    if isinstance(kernel.result, TensorType) or max(patterns_of(call)) > Pattern.INJECTIVE:
        return []
    found: list[Decision] = []
    values: list[Node] = [call, *(u for u in graph.users[call] if isinstance(u, TupleGetItem))]
    for value in values:
        part: Node = kernel.body
        if isinstance(part, Tuple) and isinstance(value, TupleGetItem):
            part = part.fields[value.index]
        for reader in dict.fromkeys(graph.users[value]):
            if is_kernel_call(reader):
                found += [
                    decision_by_name(_name(part), _name(n), "several results", Effect(), {})
                    for place in _places(reader, value)
                    for n in _calls_that_read(body_of(reader).params[place], body_of(reader).body)
                ]
    return found


def _calls_that_read(value: Node, body: Node) -> list[Node]:
    """Return the calls of a kernel that read a value or parts of it."""
    found: list[Node] = []
    for node in readers_of(value, body):
        found += _calls_that_read(node, body) if isinstance(node, TupleGetItem) else [node]
    return found


def _name(node: Node) -> str:
    return node.name if isinstance(node, Call) else type(node).__name__.lower()


def _joined(function: Function, plans: Sequence[_Plan]) -> Function:
    """Return a function in which the readers of each plan compute the producer themselves."""
    joins = {
        reader: (plan.producer, "" if n == 0 else SUFFIX)
        for plan in plans
        for n, reader in enumerate(plan.readers)
    }

    def rule(old: Node, new: Node) -> Node:
        if old not in joins:
            return new
        producer, suffix = joins[old]
        assert is_kernel_call(old)
        assert is_kernel_call(new)
        place = old.args.index(producer)
        made = new.args[place]
        assert is_kernel_call(made)
        return with_producer(new, made, place, suffix)

    return rewrite_from(function, rule)
