"""Compute several products with the same data as one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any

from dlcompiler.errors import GraphError
from dlcompiler.graph.decisions import Decision
from dlcompiler.graph.inference import infer_types, types_of
from dlcompiler.graph.ir import (
    Call,
    Constant,
    Expr,
    Function,
    Module,
    Node,
    TensorType,
    Tuple,
    TupleGetItem,
)
from dlcompiler.graph.ir.structural import attrs_key
from dlcompiler.graph.operators import REGISTRY
from dlcompiler.graph.operators.layouts import layout_of
from dlcompiler.graph.passes.tools import (
    KnownTypes,
    attrs_of,
    call_like,
    decided,
    operator_of,
    rewrite_calls,
    with_log,
)

NAME = "combine_parallel"
LEAST_BRANCHES = 3
"""Fewest calls that are combined, as in Relay; [1]."""
MOST_NAMES = 8
"""Most calls that are named in the reason of a decision; [1]."""


def combine_parallel(
    module: Module, operator: str = "nn.conv2d", least: int = LEAST_BRANCHES
) -> Module:
    """Replace calls with the same data and attributes by one call with joined weights.

    *Before*::

        %0 = nn.dense(%x, %a);
        %1 = nn.dense(%x, %b);
        (%0, %1)

    *After*::

        %0 = (%a, %b);
        %1 = concatenate(%0);
        %2 = nn.dense(%x, %1);
        %3 = split(%2, indices_or_sections=[8], axis=-1);
        (%3.0, %3.1)

    Parameters
    ----------
    module : Module
        The module.
    operator : str
        The operator of the calls: a key of `AXES`.
    least : int
        Fewest calls that are combined; [1].

    Raises
    ------
    GraphError
        If calls of the operator cannot be combined, or `least` is no positive integer.
    """
    _check(operator, least)
    places = {
        call: (group, n)
        for group in _groups(module, operator, least)
        for n, call in enumerate(group)
    }
    made: dict[Call, Expr] = {}
    log: list[Decision] = []

    def rule(old: Call, new: Call, types: KnownTypes) -> Expr | None:
        if old not in places:
            return None
        group, place = places[old]
        if group[0] not in made:
            made[group[0]] = _combined(group, new, types)
        reason = f"{_some(group)} read the same data"
        log.append(decided(NAME, old, "rewritten", "same data", reason, kernels=int(place > 0)))
        return TupleGetItem(made[group[0]], place)

    return with_log(rewrite_calls(module, rule), log)


def _weight_axis(call: Call) -> int:
    return layout_of(attrs_of(call)["kernel_layout"]).index("O")


def _channel_axis(call: Call) -> int:
    attrs = attrs_of(call)
    return layout_of(attrs["out_layout"] or attrs["data_layout"]).index("C")


AXES: Mapping[str, tuple[Callable[[Call], int], Callable[[Call], int]]] = {
    "nn.conv2d": (_weight_axis, _channel_axis),
    "nn.dense": (lambda call: 0, lambda call: -1),
    "nn.batch_matmul": (
        lambda call: 1 if attrs_of(call)["transpose_b"] else 2, lambda call: 2,
    ),
}  # fmt: skip
"""Operator -> the dimension of the weights that becomes longer, and that of the result."""


def _some(group: list[Call]) -> str:
    """Return the names of calls; of many, the first ones: each call has the text in the log."""
    shown = [call.name for call in group[:MOST_NAMES]]
    rest = len(group) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def _check(operator: object, least: object) -> None:
    if not isinstance(operator, str) or operator not in AXES:
        is_known = isinstance(operator, str) and operator in REGISTRY
        raise GraphError(
            NAME, "calls of this operator cannot be combined" if is_known else "no operator",
            got=repr(operator), expected=", ".join(AXES),
        )  # fmt: skip
    if not isinstance(least, int) or isinstance(least, bool) or least < 1:
        raise GraphError(NAME, "least is no positive integer", got=repr(least))


def _groups(module: Module, operator: str, least: int) -> list[list[Call]]:
    """Return the groups of calls that are combined."""
    typed = infer_types(module)
    types = types_of(typed)
    # A node of two functions comes twice.
    beside: dict[tuple[object, ...], dict[Call, None]] = defaultdict(dict)
    binder: dict[Node, Function] = {
        param: f for f in typed.nodes() if isinstance(f, Function) for param in f.params
    }
    for node in typed.nodes():
        if operator_of(node) == operator and isinstance(node, Call):
            key = _key(node, types, binder)
            if key is not None:
                beside[key][node] = None
    return [[*group] for group in beside.values() if len(group) >= least]


def _key(
    call: Call, types: Mapping[Node, object], binder: Mapping[Node, Function]
) -> tuple[object, ...] | None:
    """Return what calls must have in common; None if a call cannot be combined.

    `binder` has the function of each parameter: weights must be known in the same scope.
    """
    weight = call.args[1]
    kind = types[weight]
    attrs = attrs_of(call)
    # It cannot depend on the other calls; the variable of a let can.
    is_leaf = isinstance(weight, Constant) or weight in binder
    if not isinstance(kind, TensorType) or not kind.is_static:
        return None
    if not is_leaf or attrs.get("groups", 1) != 1:
        return None
    if "kernel_layout" in attrs and layout_of(attrs["kernel_layout"]).is_blocked:
        return None
    axis = AXES[operator_of(call)][0](call)
    rest = (*kind.shape[:axis], *kind.shape[axis + 1 :])
    common = {k: v for k, v in call.attrs.items() if k not in ("channels", "units")}
    return (id(call.args[0]), attrs_key(common), rest, kind.dtype, binder.get(weight))


def _combined(group: list[Call], new: Call, types: KnownTypes) -> Call:
    """Return the one call, split into the results of the calls of a group."""
    weights, channels = AXES[operator_of(new)]
    axis, first = weights(new), group[0]
    extents = [types.tensor(call.args[1]).shape[axis] for call in group]
    sizes = [extent for extent in extents if isinstance(extent, int)]  # `_key` takes no others
    joined = call_like(
        first, "concatenate", Tuple(tuple(call.args[1] for call in group)), suffix="weights",
        axis=axis,
    )  # fmt: skip
    attrs: dict[str, Any] = {k: v for k, v in new.attrs.items() if k not in ("channels", "units")}
    whole = call_like(first, operator_of(new), new.args[0], joined, suffix="combined", **attrs)
    places = tuple(accumulate(sizes[:-1]))
    return call_like(
        first, "split", whole, suffix="parts", indices_or_sections=places, axis=channels(new)
    )
