"""Layers with variables for their weights, and weights by seed, in the manner of relay.testing."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.graph import op
from dlcompiler.graph.inference import infer_types
from dlcompiler.graph.ir import (
    Expr,
    Function,
    Module,
    Node,
    TensorType,
    Var,
    free_vars,
    rewrite,
)
from dlcompiler.graph.passes.bind import bind

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Model:
    """A module, and arrays for those parameters that are weights."""

    module: Module
    params: Mapping[str, Array]
    """Weights by the names of the parameters."""

    @property
    def inputs(self) -> tuple[Var, ...]:
        """The parameters that a caller gives."""
        return tuple(p for p in self.module.main.params if p.name not in self.params)

    @property
    def bound(self) -> Module:
        """The module with its weights as constants."""
        return bind(self.module, self.params)


def model_of(result: Expr, inputs: tuple[Var, ...], seed: int) -> Model:
    """Return a model that computes an expression; its other variables are weights.

    Parameters
    ----------
    result : Expr
        The result.
    inputs : tuple of Var
        What a caller gives, with types.
    seed : int
        Decides the values of the weights.
    """
    named = {var.name: var for var in inputs}

    def shared(node: Node) -> Node:
        return named.setdefault(node.name, node) if isinstance(node, Var) else node

    result = rewrite(result, shared)  # the steps of a recurrence have the same weights
    weights = [var for var in free_vars(result) if var not in inputs]
    module = infer_types(Module.from_expr(Function((*inputs, *weights), result)))
    params = {param.name: _initial(param, seed) for param in module.main.params[len(inputs) :]}
    return Model(module, params)


def _initial(param: Var, seed: int) -> Array:
    """Return the first values of a weight, by the end of its name.

    Products and sums keep about the size of their inputs (K. He and others, ICCV 2015, equation
    10), so that deep models neither overflow nor vanish.
    """
    kind = param.type
    assert isinstance(kind, TensorType)
    shape = tuple(extent for extent in kind.shape if isinstance(extent, int))
    # The name decides, too: weights do not change when another layer is added.
    random = np.random.default_rng((seed, zlib.crc32(param.name.encode())))
    ending = param.name.rpartition("_")[2]
    if not dtypes.is_float(kind.dtype):
        most = 1000 if ending == "bias" else 20
        return random.integers(-most, most, shape, dtypes.to_numpy(kind.dtype), endpoint=True)
    match ending:
        case "bias" | "beta" | "mean":
            values = random.uniform(-0.1, 0.1, shape)
        case "gamma" | "var":
            values = random.uniform(0.8, 1.2, shape)
        case "embedding":
            values = random.standard_normal(shape)
        case _:
            fan_in = math.prod(shape[1:]) or 1
            values = random.standard_normal(shape) * math.sqrt(2 / fan_in)
    return values.astype(dtypes.to_numpy(kind.dtype))


# -- layers ---------------------------------------------------------------------------------------


def conv2d(data: Expr, name: str, **attrs: Any) -> Expr:
    """Convolve without a bias; attributes as in `op.nn.conv2d`."""
    return op.nn.conv2d(data, Var(f"{name}_weight"), name=name, **attrs)


def biased_conv2d(data: Expr, name: str, **attrs: Any) -> Expr:
    """Convolve and add a bias."""
    return op.nn.bias_add(conv2d(data, name, **attrs), Var(f"{name}_bias"), name=f"{name}_add")


def dense(data: Expr, name: str, units: int) -> Expr:
    """Multiply by weights and add a bias."""
    product = op.nn.dense(data, Var(f"{name}_weight"), units=units, name=name)
    return op.nn.bias_add(product, Var(f"{name}_bias"), axis=-1, name=f"{name}_add")


def batch_norm(data: Expr, name: str, **attrs: Any) -> Expr:
    """Normalise with fixed statistics."""
    statistics = (Var(f"{name}_{part}") for part in ("gamma", "beta", "moving_mean", "moving_var"))
    return op.nn.batch_norm(data, *statistics, name=name, **attrs)[0]


def relu(data: Expr, name: str) -> Expr:
    """Return the larger of an element and 0."""
    return op.nn.relu(data, name=name)


def layer_norm(data: Expr, name: str) -> Expr:
    """Normalise each row."""
    return op.nn.layer_norm(data, Var(f"{name}_gamma"), Var(f"{name}_beta"), name=name)
