"""Layers of products, softmax, embeddings and recurrent ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dlcompiler.graph.frontends.coreml import norms
from dlcompiler.graph.frontends.coreml.images import joined
from dlcompiler.graph.frontends.coreml.messages import Message
from dlcompiler.graph.frontends.coreml.node import Layer, LayerConverter
from dlcompiler.graph.frontends.coreml.recurrence import Direction, lstm
from dlcompiler.graph.frontends.coreml.weights import weights_of
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.ir import Expr

_GATES = ("inputGate", "forgetGate", "blockInput", "outputGate")
"""In our order."""
_LARGEST_CLIP = 500.0
"""A bound of cells that writers use where there is none."""


def _inner_product(node: Layer) -> Expr:
    """Multiply rows by weights; of more than three dimensions, the last three are one."""
    given, x = node.params, node.input()
    inner, units = given["inputChannels"], given["outputChannels"]
    if given["int8DynamicQuantize"]:
        node.fail("it rounds its data to 8 bits")
    shape = node.shape(x)
    split = -3 if len(shape) > 3 else -1
    rows = node.reshape(x, (*shape[:split], math.prod(shape[split:])))
    made: Expr = node.call("nn.dense", rows, node.weights("weights", (units, inner)))
    if given["hasBias"]:
        made = node.call("add", made, node.weights("bias", (units,)))
    return node.reshape(made, (*shape[:split], units, 1, 1) if len(shape) > 3 else
                        node.shape(made))  # fmt: skip


def _batched_matmul(node: Layer) -> Expr:
    given = node.params
    if len(node.inputs) > 1:
        attrs = {"transpose_a": given["transposeA"], "transpose_b": given["transposeB"]}
        return node.call("nn.matmul", node.input(0), node.input(1), **attrs)
    if given["int8DynamicQuantize"] or given["transposeA"]:
        node.fail("it rounds its data to 8 bits, or transposes them")
    inner, units = given["weightMatrixFirstDimension"], given["weightMatrixSecondDimension"]
    made = node.call("nn.dense", node.input(), node.weights("weights", (units, inner)))
    return node.call("add", made, node.weights("bias", (units,))) if given["hasBias"] else made


def _embedding(node: Layer) -> Expr:
    """Return rows of a table; the weights are its columns."""
    given, x = node.params, node.input()
    count, size = given["inputDim"], given["outputChannels"]
    is_flat = node.op_name == "embeddingND"
    table = node.weights("weights", (size, count)).value
    last = 1 if is_flat else 3
    shape = node.shape(x)
    if len(shape) <= last - 1 or any(n != 1 for n in shape[-last:]):
        node.fail("its indices have other dimensions", got=str(node.type(x)))
    indices = node.cast(node.reshape(x, shape[:-last]), "int32")
    made = node.call("take", constant_of(np.ascontiguousarray(table.T)), indices, axis=0)
    if given["hasBias"]:
        made = node.call("add", made, node.weights("bias", (size,)))
    return made if is_flat else node.reshape(made, (*shape[:-3], size, 1, 1))


def _softmax(node: Layer) -> Expr:
    x = node.input()
    axis = -3 if node.op_name == "softmax" else node.params["axis"]
    return node.call("nn.softmax", x, axis=node.axis(axis, node.rank(x)))


def _layer_norm(node: Layer) -> Expr:
    given, shape = node.params, node.integers("normalizedShape")
    epsilon = given["eps"] or 1e-5
    affine = node.weights("gamma", shape), node.weights("beta", shape)
    return norms.layer_norm(node, node.input(), range(-len(shape), 0), affine, epsilon)


def _one_direction(node: Layer) -> list[Expr]:
    given = node.params
    _check_functions(node, given["activations"])
    return _lstm(node, [given["weightParams"]], [given["reverseInput"]])


def _two_directions(node: Layer) -> list[Expr]:
    given = node.params
    _check_functions(node, [*given["activationsForwardLSTM"], *given["activationsBackwardLSTM"]])
    return _lstm(node, given["weightParams"], [False, True])


def _check_functions(node: Layer, functions: Sequence[Message]) -> None:
    names = [each.chosen() or "none" for each in functions]
    if names not in (["sigmoid", "tanh", "tanh"], ["sigmoid", "tanh", "tanh"] * 2):
        node.fail("it has other functions", got=repr(names)[:100],
                  expected="sigmoid, tanh, tanh")  # fmt: skip


def _lstm(
    node: Layer, weights: Sequence[Message | None], is_turned: Sequence[bool]
) -> list[Expr]:  # fmt: skip
    """Return an LSTM; data are (steps, batch, elements, 1, 1), and states have one step."""
    given = node.params
    params = given["params"]
    if params is None or len(weights) != len(is_turned) or None in weights:
        node.fail("its weights are missing")
    clip = params["cellClipThreshold"]
    if params["hasPeepholeVectors"] or params["coupledInputAndForgetGate"] or (
        0 < clip < _LARGEST_CLIP
    ):  # fmt: skip
        node.fail("its gates look at the cell, are joined, or its cells are bounded")
    x = node.input()
    steps, batch, inner = node.shape(x)[:3]
    hidden, count = given["outputVectorSize"], len(weights)
    data = node.reshape(x, (steps, batch, inner))
    directions = [
        Direction(
            _gates(node, part, "WeightMatrix", (hidden, inner)),
            _gates(node, part, "RecursionMatrix", (hidden, hidden)),
            _bias(node, part, hidden), turned,
        )
        for part, turned in zip(weights, is_turned, strict=True) if part is not None
    ]  # fmt: skip
    states = [_state(node, n, batch, hidden, count) for n in (1, 2)]
    rows, *last = lstm(node, data, states, directions, has_sequence=params["sequenceOutput"])
    ends = [
        node.reshape(part, (1, batch, hidden, 1, 1))
        for n in range(count) for part in (_part(node, each, n, hidden) for each in last)
    ]  # fmt: skip
    return [node.reshape(rows, (*node.shape(rows), 1, 1)), *ends][: node.count]


def _part(node: Layer, state: Expr, n: int, hidden: int) -> Expr:
    return node.call("strided_slice", state, begin=(n * hidden,), end=((n + 1) * hidden,),
                     axes=(1,))  # fmt: skip


def _state(node: Layer, place: int, batch: int, hidden: int, count: int) -> Expr:
    """Return the states of all directions before the first step: 0 if they are left out."""
    shape = (batch, hidden)
    if len(node.inputs) == 1:
        return node.call("full", node.scalar(0, "float32"), shape=(batch, hidden * count),
                         dtype="float32")  # fmt: skip
    parts = [node.reshape(node.input(place + 2 * n), shape) for n in range(count)]
    return node.call("concatenate", node.tuple(parts), axis=1)


def _gates(node: Layer, part: Message, ending: str, shape: tuple[int, ...]) -> Expr:
    """Return the weights of all gates, one below the other."""
    found = []
    for gate in _GATES:
        given = part[gate + ending]
        if given is None:
            node.fail(f"its {gate}{ending} is missing")
        found.append(weights_of(given, shape, f"array {gate}{ending} of {node.name!r}"))
    return constant_of(np.concatenate(found))


def _bias(node: Layer, part: Message, hidden: int) -> Expr | None:
    params = node.params["params"]
    if not params["hasBiasVectors"]:
        if params["forgetBias"]:
            node.fail("it adds 1 to the forget gate without biases")
        return None
    found = _gates(node, part, "BiasVector", (hidden,))
    if params["forgetBias"]:
        one = np.repeat(np.asarray([0, 1, 0, 0], np.float32), hidden)
        return node.call("add", found, constant_of(one))
    return found


def _scale(node: Layer) -> Expr:
    given = node.params
    made = node.call("multiply", node.input(), _column(node, "scale", "shapeScale"))
    if given["hasBias"]:
        made = node.call("add", made, _column(node, "bias", "shapeBias"))
    return made


def _add_bias(node: Layer) -> Expr:
    return node.call("add", node.input(), _column(node, "bias", "shape"))


def _column(node: Layer, name: str, shape_name: str) -> Expr:
    """Return weights (channels), or (channels, height, width), that broadcast to images."""
    shape = node.integers(shape_name, [1])
    return node.reshape(node.weights(name, shape),
                        (*shape, 1, 1) if len(shape) == 1 else shape)  # fmt: skip


def _constant(node: Layer) -> Expr:
    shape = node.integers("shape")
    found = node.weights("data", shape)
    return found if node.op_name == "loadConstantND" else node.reshape(
        joined(node, found, 3), (1, 1, *shape[-3:])
    )  # fmt: skip


TABLE: dict[str, LayerConverter] = {
    "innerProduct": _inner_product, "batchedMatmul": _batched_matmul, "embedding": _embedding,
    "embeddingND": _embedding, "softmax": _softmax, "softmaxND": _softmax,
    "layerNormalization": _layer_norm, "uniDirectionalLSTM": _one_direction,
    "biDirectionalLSTM": _two_directions, "scale": _scale, "bias": _add_bias,
    "loadConstant": _constant, "loadConstantND": _constant,
}  # fmt: skip
"""The converters of this module."""
