"""Operators that make tensors of numbers, and those that change the dtype."""

from __future__ import annotations

import numpy as np

from dlcompiler import dtypes
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.frontends.torch.node import AtenNode, Converter
from dlcompiler.graph.ir import Expr


def _filled(value: float | None) -> Converter:
    """Return the converter of a tensor of one value; None: the argument ``fill_value``."""

    def convert(node: AtenNode) -> Expr:
        given = node.get("fill_value") if value is None else value
        if given is None:
            given = node.get("value")
        dtype = node.out_dtype
        if isinstance(given, Expr):
            number = node.cast(node.reshape(given, ()), dtype)
        else:
            number = node.number(given, dtype)
        return node.call("full", number, shape=node.out_shape, dtype=dtype)

    return convert


def _arange(node: AtenNode) -> Expr:
    start, step = node.get("start", 0), node.get("step", 1)
    end = node["end"]
    if any(isinstance(n, Expr) for n in (start, step, end)):
        node.fail("its bounds are computed when the model runs")
    dtype = dtypes.to_numpy(node.out_dtype)
    count = node.out_shape[0]
    values = np.asarray(start, "float64") + np.arange(count) * step if dtype.kind == "f" else (
        int(start) + np.arange(count, dtype="int64") * int(step)
    )  # fmt: skip
    return constant_of(values.astype(dtype))


def _scalar_tensor(node: AtenNode) -> Expr:
    return node.number(node["s"], node.out_dtype)


def _to(node: AtenNode) -> Expr:
    x, dtype = node.tensor("self"), node.out_dtype
    return node.call("copy", x) if node.dtype(x) == dtype else node.cast(x, dtype)


def _copied(node: AtenNode) -> Expr:
    """Return the second tensor with the shape and the dtype of the first."""
    x = node.operand("src", node.out_dtype)
    return node.call("broadcast_to", x, shape=node.out_shape)


def _tri(*, upper: bool) -> Converter:
    def convert(node: AtenNode) -> Expr:
        k = node.scalar(int(node["diagonal"]), "int64")
        return node.call("trilu", node.tensor("self"), k, upper=upper)

    return convert


TABLE: dict[str, Converter] = {
    "full": _filled(None), "full_like": _filled(None), "new_full": _filled(None),
    "fill": _filled(None), "zeros": _filled(0), "zeros_like": _filled(0), "new_zeros": _filled(0),
    "ones": _filled(1), "ones_like": _filled(1), "new_ones": _filled(1), "empty": _filled(0),
    "empty_like": _filled(0), "new_empty": _filled(0), "empty_strided": _filled(0),
    "arange": _arange, "scalar_tensor": _scalar_tensor, "_to_copy": _to, "to": _to, "copy": _copied,
    "tril": _tri(upper=False), "triu": _tri(upper=True),
}  # fmt: skip
"""The converters of this module."""
