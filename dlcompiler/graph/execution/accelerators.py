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
from dlcompiler.graph.passes.devices.layers import BLOCK, Layer, layers_of
from dlcompiler.graph.passes.devices.workloads import workload_of
from dlcompiler.ops import Operator
from dlcompiler.ops.packed.max_pool import largest
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
    layer = found[0][1] if len(found) == 1 else f"it has {len(found)} operators of int8 layers"
    if isinstance(layer, str) or function.body is not layer.calls[0]:
        raise GraphError(
            f"build a kernel for {target.name}", "it is no int8 layer",
            because=layer if isinstance(layer, str) else "more is fused with it",
            hint="graph.offload(module) annotates the layers that are",
        )  # fmt: skip
    workload = workload_of(layer, types)
    return _Maker(function, types, constants, layer, workload).made(target)


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
        data, *given, _ = item.define(self.workload)
        inside: list[tuple[Tensor, Array]] = []
        placed: dict[Node, Tensor] = {}
        packings: dict[int, Packing] = {}
        shape = known_shape(self.types.tensor(self.layer.data), "the data")
        placed[self.layer.data] = plain = te.placeholder(shape, "int8", "data")
        nodes = {"weight": self.layer.weight, "bias": self.layer.bias}
        for tensor in given:
            node, pack = nodes[tensor.op.name], self._packing(item, tensor.op.name)
            if isinstance(node, Constant):
                inside.append((tensor, pack(np.asarray(node.value))))
            else:
                assert node is not None
                packings[self._number(node)] = pack
                placed[node] = tensor
        blocks = te.compute(data.shape, self._blocked(plain), name="blocks")
        define = largest if self.layer.operator == "nn.max_pool2d" else computed
        result = define(self.workload, blocks, *given)
        shape = known_shape(self.types.tensor(self.function.body), "the result")
        out = te.compute(shape, self._unblocked(result, len(shape)), name="out")
        inputs = tuple(placed[param] for param in self.function.params)
        definition = Definition(inputs, tuple(inside), (out,), {self.function.body: out})
        s = create_schedule([out.op])
        config = item.default_config(self.workload, target)
        item.schedule_for(target).apply(s, (result,), config, target)
        return OffloadedKernel(definition, s, packings, item.name)

    def _packing(self, item: Operator, name: str) -> Packing:
        """Return the function that packs the weights or the bias."""
        return lambda array: item.prepack(self.workload, {name: array})[name]

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

    def _unblocked(self, result: Tensor, rank: int) -> Any:
        if self.layer.operator == "nn.dense":
            return lambda x, o: result[0, o // BLOCK, 0, x, 0, o % BLOCK]
        if rank == 2:
            return lambda n, o: result[n, o // BLOCK, 0, 0, 0, o % BLOCK]
        return lambda n, o, y, x: result[n, o // BLOCK, y, x, 0, o % BLOCK]
