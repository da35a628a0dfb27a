"""Compute a cheap producer again in each kernel that reads it, if that is predicted to pay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlcompiler.graph.decisions import Decision, Effect
from dlcompiler.graph.ir import Call, Function, Node, Op, calls, post_order, rewrite_from
from dlcompiler.graph.operators import REGISTRY, Pattern
from dlcompiler.graph.passes.fusion.kernels import (
    KernelGraph,
    body_of,
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
    A kernel is computed again only if it disappears: all its readers can take it. None of them may
    depend on another one, since the copies may then differ by rounding where both are compared:
    ``exp(x - max(x))`` of two copies of ``x`` may overflow.

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
    if graph.depend_on_each_other(readers):
        return "compared", saved
    if any(len(calls(body_of(r).body)) + len(calls(body_of(call).body)) > limits.max_depth
           for r in readers):  # fmt: skip
        return "too many", saved
    made = [with_producer(reader, call, reader.args.index(call), "") for reader in readers]
    if any(live_values(body_of(each).body) > limits.options.max_live for each in made):
        return "registers", saved
    return ("recomputed" if seconds > 0 else "dear"), saved


def _places(reader: Call, call: Call) -> list[int]:
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
