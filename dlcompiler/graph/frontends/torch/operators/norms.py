"""Normalisations, by given moments or by those of the data."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.frontends.torch.node import AtenNode, Converter
from dlcompiler.graph.frontends.torch.operators.reductions import moments
from dlcompiler.graph.ir import Expr


def _factors(node: AtenNode, x: Expr, count: int) -> tuple[Expr, Expr]:
    """Return the scale and the shift of each channel, 1 and 0 if they are left out."""
    dtype = node.dtype(x)
    found = []
    for name, value in (("weight", 1), ("bias", 0)):
        if node.get(name) is None:
            found.append(node.cast(constant_of(np.full(count, value, "float32")), dtype))
        else:
            found.append(node.reshape(node.operand(name, dtype), (count,)))
    return found[0], found[1]


def _epsilon(node: AtenNode) -> float:
    return float(node["eps"])


def _batch_norm(node: AtenNode) -> list[Expr | None]:
    """Normalise by given moments; without any, by those of the batch."""
    x = node.tensor("input")
    channels = node.shape(x)[1]
    means = node.get("running_mean")
    if node.get("training", False) or means is None:
        return _by_own_moments(node, x, channels, means is not None)
    dtype = node.dtype(x)
    mean, spread = (node.operand(name, dtype) for name in ("running_mean", "running_var"))
    scale, shift = _factors(node, x, channels)
    made = node.call("nn.batch_norm", x, scale, shift, mean, spread, axis=1, epsilon=_epsilon(node))
    nothing = node.call("full", node.number(0, dtype), shape=(0,), dtype=dtype)
    return [made[0], nothing, nothing, None]


def _by_own_moments(
    node: AtenNode, x: Expr, channels: int, has_statistics: bool
) -> list[Expr | None]:  # fmt: skip
    if has_statistics:
        node.fail("it computes the moments of a batch, as in training", hint="module.eval()")
    rank = node.rank(x)
    scale, shift = (
        node.reshape(v, (channels, *(1,) * (rank - 2))) for v in _factors(node, x, channels)
    )
    axes = (0, *range(2, rank))
    mean, root = _mean_and_root(node, x, axes)
    normal = node.call("multiply", node.call("subtract", x, mean), root)
    made = node.call("add", node.call("multiply", normal, scale), shift)
    return [made, node.reshape(mean, (channels,)), node.reshape(root, (channels,))]


def _first(converter: Callable[[AtenNode], list[Expr | None]]) -> Callable[[AtenNode], Expr]:
    """Return the converter of an operator with the first of several results only."""

    def convert(node: AtenNode) -> Expr:
        found = converter(node)[0]
        assert found is not None
        return found

    return convert


def _layer_norm(node: AtenNode) -> list[Expr | None]:
    x = node.tensor("input")
    shape, count = node.shape(x), math.prod(node["normalized_shape"])
    lead = shape[: len(shape) - len(node["normalized_shape"])]
    rows = node.reshape(x, (*lead, count)) if len(lead) != len(shape) - 1 else x
    scale, shift = _factors(node, x, count)
    made = node.call("nn.layer_norm", rows, scale, shift, axis=-1, epsilon=_epsilon(node))
    mean, root = _mean_and_root(node, rows, (len(lead),))
    kept = (*lead, *(1,) * (len(shape) - len(lead)))
    return [node.reshape(made, shape), node.reshape(mean, kept), node.reshape(root, kept)]


def _mean_and_root(node: AtenNode, x: Expr, axes: tuple[int, ...]) -> tuple[Expr, Expr]:
    """Return the mean over dimensions, and one over the deviation."""
    mean, spread = moments(node, x, axes)
    return mean, node.call("rsqrt", node.call("add", spread, node.scalar(_epsilon(node), spread)))


def _rms_norm(node: AtenNode) -> Expr:
    x = node.tensor("input")
    dtype, shape = node.dtype(x), node.shape(x)
    count = math.prod(node["normalized_shape"])
    lead = shape[: len(shape) - len(node["normalized_shape"])]
    rows = node.reshape(x, (*lead, count)) if len(lead) != len(shape) - 1 else x
    epsilon = node["eps"]
    smallest = {"float64": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7}
    if epsilon is None:
        epsilon = smallest.get(dtype, 2.0**-23)
    made = node.call("nn.rms_norm", rows, _factors(node, x, count)[0], axis=-1,
                     epsilon=float(epsilon))  # fmt: skip
    return node.reshape(made, shape)


def _group_norm(node: AtenNode) -> list[Expr | None]:
    x = node.tensor("input")
    groups = int(node["group"] if "group" in node.given else node["num_groups"])
    scale, shift = _factors(node, x, node.shape(x)[1])
    made = node.call("nn.group_norm", x, scale, shift, num_groups=groups, axis=1,
                     epsilon=_epsilon(node))  # fmt: skip
    shape = node.shape(x)
    rows = node.reshape(x, (shape[0], groups, math.prod(shape[1:]) // max(groups, 1)))
    mean, root = _mean_and_root(node, rows, (2,))
    return [made, node.reshape(mean, (shape[0], groups)), node.reshape(root, (shape[0], groups))]


def _instance_norm(node: AtenNode) -> Expr:
    x = node.tensor("input")
    if not node["use_input_stats"]:
        return _first(_batch_norm)(node)
    scale, shift = _factors(node, x, node.shape(x)[1])
    return node.call("nn.instance_norm", x, scale, shift, axis=1, epsilon=_epsilon(node))


TABLE: dict[str, Converter] = {
    "_native_batch_norm_legit_no_training": _batch_norm, "native_batch_norm": _batch_norm,
    "_native_batch_norm_legit": _batch_norm, "_batch_norm_no_update": _batch_norm,
    "batch_norm": _first(_batch_norm), "native_layer_norm": _layer_norm,
    "layer_norm": _first(_layer_norm), "rms_norm": _rms_norm, "native_group_norm": _group_norm,
    "group_norm": _first(_group_norm), "instance_norm": _instance_norm,
}  # fmt: skip
"""The converters of this module."""
