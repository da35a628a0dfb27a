"""Choose what is quantized: calls with weights, and the values that are stored as integers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dlcompiler.errors import GraphError
from dlcompiler.graph.inference import infer_types, types_of
from dlcompiler.graph.ir import (
    Call,
    Constant,
    Expr,
    Module,
    Node,
    TensorType,
    children,
    post_order,
)
from dlcompiler.graph.operators.base import Array
from dlcompiler.graph.passes.base import PassContext, run_passes
from dlcompiler.graph.passes.bind import bind
from dlcompiler.graph.passes.pipeline import PASSES
from dlcompiler.graph.passes.tools import attrs_of, operator_of

OPERATION = "quantize a model"
PRODUCTS = ("nn.conv2d", "nn.dense", "nn.matmul")
"""Operators that are computed in integers if their weights are constants."""
MOVES = ("nn.max_pool2d", "nn.global_max_pool2d", "reshape", "transpose", "squeeze",
         "expand_dims", "nn.batch_flatten", "strided_slice")  # fmt: skip
"""Operators whose results are elements of their operand: they keep its scale."""
_BEHIND = ("add", "nn.bias_add", "nn.relu", "nn.relu6", "clip")
"""Operators that are computed with the sums of a product, if their other operand is constant."""
_READERS = (
    *PRODUCTS,
    *MOVES,
    "add",
    "concatenate",
    "nn.avg_pool2d",
    "nn.global_avg_pool2d",
    "mean",
)
"""Operators before which a result of a product is stored as integers."""
_BEFORE = ("infer_types", "eliminate_dead_code", "simplify_inference", "canonicalize_ops",
           "fold_constants", "simplify_expr", "fold_scale_axis")  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """What is quantized in a module."""

    module: Module
    """With batch normalisation in the weights."""
    products: Mapping[Call, Node]
    """Each call with weights -> what computes its data, whose scale it has."""
    results: Mapping[Call, Expr]
    """Each call with weights -> its result, with bias and activation."""
    points: Sequence[Expr]
    """Values that are stored as integers, in the order in which they are computed."""


def prepared(module: Module, params: Mapping[str, Array]) -> Module:
    """Return a module with its weights, into which batch normalisation is folded."""
    if not isinstance(module, Module):
        raise GraphError(OPERATION, "not a module", got=type(module).__name__)
    named = {step.name: step for step in PASSES}
    steps = [named[name] for name in (*_BEFORE, "fold_constants", "simplify_expr")]
    return infer_types(run_passes(bind(module, params), steps, PassContext(3)))


def plan_of(module: Module, skip: Collection[str]) -> Plan:
    """Choose the calls and the values that are quantized.

    Parameters
    ----------
    module : Module
        Of `prepared`.
    skip : collection of str
        Names of calls that stay as they are.

    Raises
    ------
    GraphError
        A name is that of no call with constant weights, there are no such calls, or weights are
        infinite or NaN.
    """
    users: dict[Node, list[Node]] = defaultdict(list)
    users[module.main.body].append(module.main)
    nodes = list(post_order(module.main.body))
    for node in nodes:
        for child in children(node):
            users[child].append(node)
    types = types_of(module)
    calls = [n for n in nodes if isinstance(n, Call) and _has_weights(n, types)]
    names = [call.name for call in calls]
    if unknown := [name for name in skip if name not in names]:
        raise GraphError(OPERATION, "skip names no call with constant weights", got=unknown[0],
                         expected=", ".join(names) or "there is none")  # fmt: skip
    chosen = [call for call in calls if call.name not in skip]
    if not chosen:
        raise GraphError(OPERATION, "no call with constant weights in float32 is left")
    for call in chosen:
        _check_weights(call)
    products = {call: _source(call.args[0]) for call in chosen}
    results = {call: _result(call, users) for call in chosen}
    points = set(products.values())
    points |= {
        _source(value) for value in results.values()
        if any(operator_of(user) in _READERS for user in users[value])
    }  # fmt: skip
    return Plan(module, products, results, [n for n in nodes if n in points])  # type: ignore[misc]  # values


def _has_weights(call: Call, types: Mapping[Node, object]) -> bool:
    if operator_of(call) not in PRODUCTS or not isinstance(call.args[1], Constant):
        return False
    kinds = [types[node] for node in (*call.args, call)]
    if any(not isinstance(kind, TensorType) or kind.dtype != "float32" for kind in kinds):
        return False
    weight = call.args[1].type
    return operator_of(call) != "nn.matmul" or (
        weight.rank == 2 and not attrs_of(call)["transpose_a"]
    )


def _check_weights(call: Call) -> None:
    weight = call.args[1]
    assert isinstance(weight, Constant)
    if not np.isfinite(weight.value).all():
        raise GraphError(OPERATION, f"the weights of {call.name} have infinities or NaN",
                         hint="look at the model, or name the call in skip")  # fmt: skip


def _source(value: Node) -> Node:
    """Return the value whose elements a value consists of."""
    while operator_of(value) in MOVES:
        assert isinstance(value, Call)
        value = value.args[0]
    return value


def _result(call: Call, users: Mapping[Node, Sequence[Node]]) -> Expr:
    """Return the last value of a product, its bias and its activation."""
    value: Expr = call
    while len(users[value]) == 1:
        (user,) = users[value]
        if not isinstance(user, Call) or operator_of(user) not in _BEHIND:
            break
        if not all(arg is value or isinstance(arg, Constant) for arg in user.args):
            break
        value = user
    return value
