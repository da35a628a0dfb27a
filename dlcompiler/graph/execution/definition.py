"""Kernels of a graph as tensor expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from dlcompiler import te
from dlcompiler.errors import GraphError
from dlcompiler.graph.inference import Types
from dlcompiler.graph.ir import (
    Call,
    Constant,
    Function,
    Node,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    children,
    post_order,
    tensor_types,
)
from dlcompiler.graph.operators import REGISTRY, Result
from dlcompiler.graph.operators.base import Array, describe, origin_of
from dlcompiler.target import Target
from dlcompiler.te import PlaceholderOp, Tensor

Tensors: TypeAlias = "Tensor | tuple[Tensors, ...]"
"""What a node stands for: a tensor, or tuples of them."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A kernel as one graph of tensor expressions."""

    inputs: tuple[Tensor, ...]
    """A placeholder for each tensor of the parameters, from left to right."""
    weights: tuple[tuple[Tensor, Array], ...]
    """Placeholders for the arrays that stand inside the kernel."""
    outputs: tuple[Tensor, ...]
    """What it stores, from left to right."""
    values: Mapping[Node, Tensors]
    """What each node of the kernel became."""

    @property
    def args(self) -> tuple[Tensor, ...]:
        """All parameters: the inputs, the arrays from inside, the outputs."""
        return (*self.inputs, *(tensor for tensor, _ in self.weights), *self.outputs)

    @property
    def unread(self) -> tuple[Tensor, ...]:
        """Inputs that no output depends on."""
        read = {op.output(0) for op in te.post_order(self.outputs) if isinstance(op, PlaceholderOp)}
        return tuple(tensor for tensor in self.inputs if tensor not in read)


def kernel_function(call: Call, types: Types) -> Function:
    """Return the function of a kernel; for a call of an operator, one that only calls it."""
    if isinstance(call.op, Function):
        return call.op
    params = tuple(Var(f"p{n}", types[arg]) for n, arg in enumerate(call.args))
    return Function(params, Call(call.op, params, call.attrs, call.name), types[call])


def define(
    function: Function,
    types: Types,
    target: Target,
    known: Mapping[Node, Tensors] = MappingProxyType({}),
) -> Definition:
    """Define a kernel by tensor expressions.

    Parameters
    ----------
    function : Function
        Its body consists of calls of operators.
    types : Types
        Types of its nodes.
    target : Target
        The machine: on CPUs, some operators are loops that run in order.
    known : mapping, optional
        Tensors that stand for parameters and calls.

    Raises
    ------
    GraphError
        If an extent is known only in a run, or the body has something else than calls.
    """
    values: dict[Node, Tensors] = {}
    inputs: list[Tensor] = []
    weights: list[tuple[Tensor, Array]] = []
    for n, param in enumerate(function.params):
        given = known.get(param)
        if isinstance(given, Tensor):
            inputs.append(given)
            values[param] = given
        else:
            values[param] = _placeholders(types[param], f"p{n}", inputs)
    values.update(known)
    for node in post_order(function.body):
        if node not in values and not isinstance(node, Op):
            values[node] = _tensors(node, values, weights, types, target)
    outputs: list[Tensor] = []
    for tensor in _flat(values[function.body]):
        is_own = not isinstance(tensor.op, PlaceholderOp) and tensor not in outputs
        outputs.append(tensor if is_own else _copy(tensor, f"out{len(outputs)}"))
    return Definition(tuple(inputs), tuple(weights), tuple(outputs), values)


def _placeholders(kind: Type, name: str, found: list[Tensor]) -> Tensors:
    """Return placeholders for a type, and add them to those that were found."""
    if isinstance(kind, TupleType):
        return tuple(_placeholders(f, f"{name}_{n}", found) for n, f in enumerate(kind.fields))
    assert isinstance(kind, TensorType)
    found.append(te.placeholder(known_shape(kind, name), kind.dtype, name))
    return found[-1]


def known_shape(kind: TensorType, what: str) -> tuple[int, ...]:
    """Return the extents of a type.

    Raises
    ------
    GraphError
        If one is known only in a run.
    """
    shape = tuple(extent for extent in kind.shape if isinstance(extent, int))
    if len(shape) != kind.rank:
        raise GraphError(
            "build a model", "an extent is known only in a run", got=f"{what}: {kind!r}",
            hint="give the parameters of the model types of known shape",
        )  # fmt: skip
    return shape


def _tensors(
    node: Node, values: Mapping[Node, Tensors], weights: list[tuple[Tensor, Array]], types: Types,
    target: Target,
) -> Tensors:  # fmt: skip
    match node:
        case Constant(value):
            return _constant(np.asarray(value), types.tensor(node).dtype, weights)
        case Tuple(fields):
            return tuple(values[field] for field in fields)
        case TupleGetItem(whole, index):
            parts = values[whole]
            assert isinstance(parts, tuple)
            return parts[index]
        case Call(Op(name)):
            operator = REGISTRY[name]
            if operator.define is None:
                raise GraphError(
                    describe(operator, node), "only NumPy computes it", excerpt=origin_of(node)
                )
            for arg in node.args:
                for n, kind in enumerate(tensor_types(types[arg])):
                    known_shape(kind, f"{describe(operator, node)}, argument {n}")
            inputs = tuple(types[arg] for arg in node.args)
            result = Result(operator.complete(node), inputs, types[node])
            args = [values[arg] for arg in node.args]
            if operator.nest is not None and target.device == "cpu" and _has_elements(types[node]):
                return operator.nest(result, target, *args)
            return operator.define(result, *args)
    raise GraphError(
        "define a kernel", "has something else than calls of operators",
        got=type(node).__name__ + (f" over {len(children(node))} nodes" if children(node) else ""),
    )  # fmt: skip


def _has_elements(kind: Type) -> bool:
    return all(0 not in part.shape for part in tensor_types(kind))


def _constant(value: Array, dtype: str, weights: list[tuple[Tensor, Array]]) -> Tensor:
    if value.ndim == 0:
        element = te.const(value.item(), dtype)
        scalar: Tensor = te.compute((), lambda: element, name="constant")
        return scalar
    weights.append((te.placeholder(value.shape, dtype, f"w{len(weights)}"), value))
    return weights[-1][0]


def _copy(tensor: Tensor, name: str) -> Tensor:
    """Return a tensor with the same elements: a kernel stores each of its results."""
    copy: Tensor = te.compute(tensor.shape, lambda *i: tensor[i], name=name)
    return copy


def _flat(value: Tensors) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [tensor for field in value for tensor in _flat(field)]
