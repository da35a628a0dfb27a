"""Int8 layers as workloads of the operators of blocks."""

from __future__ import annotations

from typing import Any

from dlcompiler import ops
from dlcompiler.errors import DLCompilerError
from dlcompiler.graph.inference import Types
from dlcompiler.graph.passes.devices.layers import Layer
from dlcompiler.space import Workload
from dlcompiler.target import Target


def workload_of(layer: Layer, types: Types) -> Workload:
    """Return a layer as a workload of the operators of blocks."""
    data, attrs = types.tensor(layer.data).shape, layer.attrs
    filters = types.tensor(layer.calls[0]).shape[1]
    tail = {"shift": layer.shift, "bias": int(layer.bias is not None), "relu": int(layer.relu)}
    if layer.operator == "nn.dense":
        m, k = data
        return ops.operator("dense_packed").workload(m=m, k=k, n=filters, **tail)
    image: dict[str, Any] = dict(zip("nchw", data, strict=True))
    if layer.operator == "sum":
        kernel = image["h"], image["w"]
        return ops.operator("avg_pool2d_packed").workload(**image, kernel=kernel, **tail)
    image |= {"stride": attrs["strides"][0], "padding": tuple(attrs["padding"][:2])}
    if layer.operator == "nn.max_pool2d":
        kernel = tuple(attrs["pool_size"])
        return ops.operator("max_pool2d_packed").workload(**image, kernel=kernel)
    assert layer.weight is not None
    image |= {"o": filters, "kernel": tuple(types.tensor(layer.weight).shape[2:]), **tail}
    if layer.operator == "nn.conv2d_transpose":
        extra = tuple(attrs["output_padding"])
        return ops.operator("conv2d_transpose_packed").workload(**image, output_padding=extra)
    return ops.operator("conv2d_packed").workload(**image, groups=attrs["groups"])


def misfit(layer: Layer, types: Types, target: Target) -> str:
    """Return why an accelerator cannot compute a layer; "" if it can."""
    try:
        workload = workload_of(layer, types)
        ops.operator(workload.op).default_config(workload, target)
    except DLCompilerError as error:
        return error.problem
    return ""
