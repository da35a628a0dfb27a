"""Kernels of a model on an accelerator: int8 layers in blocks, packed and unpacked by the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler import ops, te
from dlcompiler.errors import GraphError
from dlcompiler.graph.execution.anchors import Packing
from dlcompiler.graph.execution.definition import Definition, known_shape
from dlcompiler.graph.inference import Types
from dlcompiler.graph.ir import Constant, Expr, Function, Node
from dlcompiler.graph.operators.base import Array
from dlcompiler.graph.passes.devices.offload import BLOCK, Layer, layers_of
from dlcompiler.ops.packed.sums import computed
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.space import Workload
from dlcompiler.target import Target
from dlcompiler.te import Tensor


@dataclass(frozen=True, slots=True)
class OffloadedKernel:
    """A layer in blocks: its definition, its schedule, and how its weights are packed."""

    definition: Definition
    schedule: Schedule
    packings: Mapping[int, Packing]
    operator: str


def offloaded_kernel(
    function: Function, types: Types, target: Target, constants: frozenset[int]
) -> OffloadedKernel:
    """Define and schedule an int8 layer for an accelerator.

    Parameters
    ----------
    function : Function
        A kernel that `offload` has found to be an int8 layer.
    types : Types
        Types of its nodes.
    target : Target
        The accelerator.
    constants : frozenset of int
        Parameters that are constants of the model: they are packed when it is built.

    Raises
    ------
    GraphError
        The kernel is no int8 layer, or its weights are no constants.
    """
    found = list(layers_of(function, types))
    layer = found[0][1] if len(found) == 1 else f"it has {len(found)} convolutions or dense layers"
    if isinstance(layer, str) or function.body is not layer.calls[0]:
        raise GraphError(
            f"build a kernel for {target.name}", "it is no int8 layer",
            because=layer if isinstance(layer, str) else "more is fused with it",
            hint="graph.offload(module) annotates the layers that are",
        )  # fmt: skip
    workload = workload_of(layer, types)
    return _Maker(function, types, constants, layer, workload).made(target)


def workload_of(layer: Layer, types: Types) -> Workload:
    """Return a layer as a workload of the operators of blocks."""
    data, weight = (types.tensor(arg).shape for arg in layer.anchor.args[:2])
    tail = {"shift": layer.shift, "bias": int(layer.bias is not None), "relu": int(layer.relu)}
    if len(data) == 2:
        m, k = data
        return ops.operator("dense_packed").workload(m=m, k=k, n=weight[0], **tail)
    n, c, h, w = data
    attrs: Mapping[str, Any] = layer.attrs
    return ops.operator("conv2d_packed").workload(
        n=n, c=c, h=h, w=w, o=weight[0], kernel=tuple(weight[2:]), stride=attrs["strides"][0],
        padding=tuple(attrs["padding"][:2]), groups=attrs["groups"], **tail,
    )  # fmt: skip


@dataclass
class _Maker:
    """Makes the tensors of a kernel: plain data, packed weights, a plain result."""

    function: Function
    types: Types
    constants: frozenset[int]
    layer: Layer
    workload: Workload

    def made(self, target: Target) -> OffloadedKernel:
        """Return the kernel."""
        item = ops.operator(self.workload.op)
        data, weight, *bias, _ = item.define(self.workload)
        inside: list[tuple[Tensor, Array]] = []
        placed: dict[Node, Tensor] = {}
        packings: dict[int, Packing] = {}
        anchor = self.layer.anchor
        shape = known_shape(self.types.tensor(anchor.args[0]), "the data")
        plain = te.placeholder(shape, "int8", "data")
        placed[anchor.args[0]] = plain
        packed = [(anchor.args[1], weight, _blocks_of_weights)]
        if self.layer.bias is not None:
            packed.append((self.layer.bias, bias[0], _blocks_of_bias))
        for node, tensor, pack in packed:
            if isinstance(node, Constant):
                inside.append((tensor, pack(np.asarray(node.value))))
            else:
                packings[self._number(node)] = pack
                placed[node] = tensor
        blocks = te.compute(data.shape, self._blocked(plain), name="blocks")
        result = computed(self.workload, blocks, weight, *bias)
        shape = known_shape(self.types.tensor(self.function.body), "the result")
        out = te.compute(shape, self._unblocked(result), name="out")
        inputs = tuple(placed[param] for param in self.function.params)
        definition = Definition(inputs, tuple(inside), (out,), {self.function.body: out})
        s = create_schedule([out.op])
        config = item.default_config(self.workload, target)
        item.schedule_for(target).apply(s, (result,), config, target)
        return OffloadedKernel(definition, s, packings, item.name)

    def _number(self, node: Expr) -> int:
        """Return the number of a parameter that is a constant of the model."""
        number = self.function.params.index(node) if node in self.function.params else -1
        if number not in self.constants:
            raise GraphError(
                "build a kernel of blocks", "its weights are no constants of the model",
                because="they are packed when the model is built",
                hint="graph.build(module, params={…}) binds them",
            )  # fmt: skip
        return number

    def _blocked(self, plain: Tensor) -> Any:
        if plain.ndim == 2:
            return lambda n, c, y, x, r, i: plain[x, c * BLOCK + i]
        return lambda n, c, y, x, r, i: plain[n, c * BLOCK + i, y, x]

    def _unblocked(self, result: Tensor) -> Any:
        if self.workload.op == "dense_packed":
            return lambda x, o: result[0, o // BLOCK, 0, x, 0, o % BLOCK]
        return lambda n, o, y, x: result[n, o // BLOCK, y, x, 0, o % BLOCK]


def _blocks_of_weights(array: Array) -> Array:
    """Return weights OIHW, or of a dense layer, in blocks."""
    whole = array.reshape(*array.shape, *[1] * (4 - array.ndim))
    o, c, h, w = whole.shape
    split = whole.reshape(o // BLOCK, BLOCK, c // BLOCK, BLOCK, h, w)
    return np.ascontiguousarray(split.transpose(0, 2, 4, 5, 1, 3))


def _blocks_of_bias(array: Array) -> Array:
    return np.ascontiguousarray(array.reshape(-1, 1, BLOCK))
