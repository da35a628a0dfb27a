"""Classic TVM's ``tvm.relay.testing.layers``: layers with variables for their weights."""

from typing import Any

from dlcompiler import graph
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.relay.expressions import as_expr
from dlcompiler.graph import op
from dlcompiler.graph.builders import layers


def conv2d(data: Any, weight: Any = None, **kwargs: Any) -> graph.Call:
    """Convolve; ``name=`` names the call, and the weight if none is given."""
    name = kwargs.pop("name", "conv2d")
    given = graph.var(f"{name}_weight") if weight is None else as_expr(weight)
    return op.nn.conv2d(as_expr(data), given, name=name, **kwargs)


def conv2d_transpose(data: Any, weight: Any = None, **kwargs: Any) -> graph.Call:
    """Convolve with the transposed filter; ``name=`` as in `conv2d`."""
    name = kwargs.pop("name", "conv2d_transpose")
    given = graph.var(f"{name}_weight") if weight is None else as_expr(weight)
    return op.nn.conv2d_transpose(as_expr(data), given, name=name, **kwargs)


def dense_add_bias(
    data: Any, weight: Any = None, bias: Any = None, units: int | None = None, **kwargs: Any
) -> graph.Call:
    """Multiply by weights and add a bias; ``name=`` as in `conv2d`."""
    name = kwargs.pop("name", "dense")
    by = graph.var(f"{name}_weight") if weight is None else as_expr(weight)
    add = graph.var(f"{name}_bias") if bias is None else as_expr(bias)
    product = op.nn.dense(as_expr(data), by, units=units, name=name, **kwargs)
    return op.nn.bias_add(product, add, axis=-1)


def batch_norm_infer(data: Any, name: str = "batch_norm", **kwargs: Any) -> graph.Expr:
    """Normalise with fixed statistics."""
    return layers.batch_norm(as_expr(data), name, **kwargs)


__getattr__ = reporter(__name__)
__all__ = ["batch_norm_infer", "conv2d", "conv2d_transpose", "dense_add_bias"]
