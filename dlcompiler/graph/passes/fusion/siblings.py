"""Make kernels with the same input and the same loops one kernel with several results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from dlcompiler.graph.decisions import Decision, Effect
from dlcompiler.graph.ir import (
    Call,
    Constant,
    Expr,
    Function,
    Node,
    TensorType,
    TupleGetItem,
    calls,
    rewrite_from,
)
from dlcompiler.graph.passes.fusion.kernels import (
    KernelGraph,
    body_of,
    is_one_loop,
    kernel_graph,
    live_values,
    side_by_side,
    size_of,
)
from dlcompiler.graph.passes.fusion.limits import Limits
from dlcompiler.graph.passes.fusion.reasons import decision_by_name


def fuse_siblings(function: Function, limits: Limits) -> tuple[Function, list[Decision]]:
    """Join independent kernels that read the same value in the same loops.

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
        About pairs of kernels, by the names of the calls that give their results.

    Notes
    -----
    The results must have one shape, and no operator may be an anchor or a reduction: then one loop
    nest computes each element of each result, and reads the input once.
    """
    log: dict[tuple[str, ...], Decision] = {}
    while (graph := kernel_graph(function)) is not None:
        group = next(_groups(graph, limits, log), None)
        if group is None:
            break
        function = _joined(function, group)
    return function, list(log.values())


def _groups(
    graph: KernelGraph, limits: Limits, log: dict[tuple[str, ...], Decision]
) -> Iterator[list[Call]]:
    """Yield groups of siblings; one changes what the others depend on, so only the first counts."""
    beside: dict[tuple[Expr, TensorType | None], list[Call]] = defaultdict(list)
    for call in graph.kernels:
        if is_one_loop(call):
            kind = body_of(call).result
            shape = TensorType(kind.shape) if isinstance(kind, TensorType) else None
            for arg in call.args:
                if not isinstance(arg, Constant):
                    beside[arg, shape].append(call)
    for (arg, _), kernels in beside.items():
        group = kernels[:1]
        for call in kernels[1:]:
            key = _verdict(group, call, graph, limits)
            if key is None:
                continue
            first = group[0]
            place = call.args.index(arg)
            effect = Effect(size_of(call, place), 1)
            names = (_name(first), _name(call))
            log[names] = decision_by_name(
                *names, key, effect, {**limits.words, "value": _text(arg)}
            )
            if key == "siblings":
                group.append(call)
        if len(group) > 1:
            yield group


def _verdict(group: list[Call], call: Call, graph: KernelGraph, limits: Limits) -> str | None:
    """Return the key of the rule that decides whether a kernel joins a group; None: no siblings."""
    if call in group:
        return None
    if any(graph.depends(call, each) or graph.depends(each, call) for each in group):
        return None
    if any(limits.is_apart(each, call) for each in group):
        return "kept apart"
    whole = side_by_side([*group, call])
    if len(calls(body_of(whole).body)) > limits.max_depth:
        return "too many"
    return "registers" if live_values(body_of(whole).body) > limits.options.max_live else "siblings"


def _joined(function: Function, group: list[Call]) -> Function:
    """Return a function in which a group of kernels is one."""
    # None of them depends on another one, so what they read stays as it is.
    whole = side_by_side(group)
    fields: dict[Node, Expr] = {call: TupleGetItem(whole, n) for n, call in enumerate(group)}
    return rewrite_from(function, lambda old, new: fields.get(old, new))


def _name(call: Call) -> str:
    body = body_of(call).body
    return body.name if isinstance(body, Call) else call.name


def _text(node: Node) -> str:
    return getattr(node, "name", "") or type(node).__name__.lower()
