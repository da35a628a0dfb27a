"""Scaled dot-product attention."""

from __future__ import annotations

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.graph.ir.types import ANY, TensorType
from dlcompiler.graph.operators.attributes import Attribute, boolean, finite, optional
from dlcompiler.graph.operators.base import Array, CallTypes, GraphOperator, Pattern, Result
from dlcompiler.graph.operators.relations import (
    broadcast,
    of_floats,
    same_dtype,
    same_extent,
)
from dlcompiler.graph.operators.values import rounded, wide
from dlcompiler.ops.attention import Attention, attention, default_scale

_NAMES = ("query", "key", "value")


def _type(call: CallTypes) -> TensorType:
    of_floats(call)
    query, key, value = kinds = [call.tensor(i) for i in range(3)]
    same_dtype(call, kinds)
    for name, kind in zip(_NAMES, kinds, strict=True):
        if kind.rank < 2 or kind.rank != query.rank:
            call.fail(f"argument {name} has {kind.rank} dimensions",
                      expected="2 or more, as many for each")  # fmt: skip
    _check_lead(call, key, value)
    for what, a, b in (
        ("elements of a query and a key", query.shape[-1], key.shape[-1]),
        ("numbers of keys and values", key.shape[-2], value.shape[-2]),
    ):
        if not same_extent(a, b):
            call.fail(f"the {what} differ: {a} and {b}")
    if call.attrs["scale"] is None and query.shape[-1] is ANY:
        call.fail("the number of elements of a query is not known", hint="give a scale")
    if len(call.args) > 3:
        _check_mask(call, (*query.shape[:-1], key.shape[-2]))
    return TensorType((*query.shape[:-1], value.shape[-1]), query.dtype)


def _check_lead(call: CallTypes, key: TensorType, value: TensorType) -> None:
    """Check the dimensions before the last two; heads of queries may share keys."""
    query = call.tensor(0)
    for n in range(query.rank - 2):
        a, b, c = query.shape[n], key.shape[n], value.shape[n]
        is_heads = n == query.rank - 3
        is_shared = is_heads and isinstance(a, int) and isinstance(b, int) and b and a % b == 0
        if not same_extent(b, c) or not (same_extent(a, b) or is_shared):
            call.fail(
                f"dimension {n} has the extents {a}, {b} and {c}",
                expected="equal ones" + (", or more queries by a whole factor" if is_heads else ""),
            )


def _check_mask(call: CallTypes, shape: tuple[object, ...]) -> None:
    mask = call.tensor(3)
    if mask.dtype not in ("bool", call.tensor(0).dtype):
        call.fail(f"argument mask has dtype {mask.dtype}",
                  expected=f"bool or {call.tensor(0).dtype}")  # fmt: skip
    wanted = TensorType(shape, "bool").shape  # type: ignore[arg-type]  # extents of tensors
    found = broadcast(call, [mask.shape, wanted])
    if not all(map(same_extent, found, wanted)) or len(found) != len(wanted):
        call.fail("argument mask is larger than the products of queries and keys",
                  expected=f"at most {wanted}")  # fmt: skip


def _scale(call: Result) -> float:
    query = call.inputs[0]
    assert isinstance(query, TensorType)
    depth = query.shape[-1]
    given: float | None = call.attrs["scale"]
    return given if given is not None else default_scale(depth if isinstance(depth, int) else 1)


def _evaluate(
    call: Result, query: Array, key: Array, value: Array, mask: Array | None = None
) -> Array:
    q, k, v = (wide(x) for x in (query, key, value))
    if q.ndim > 2 and k.shape[-3] and q.shape[-3] != k.shape[-3]:
        k, v = (np.repeat(x, q.shape[-3] // k.shape[-3], -3) for x in (k, v))
    scores = q @ np.swapaxes(k, -1, -2) * _scale(call)
    if mask is not None:
        is_bool = dtypes.is_bool(dtypes.from_numpy(mask.dtype))
        scores = np.where(mask, scores, -np.inf) if is_bool else scores + wide(mask)
    if call.attrs["is_causal"]:
        scores = np.where(np.tri(*scores.shape[-2:]) > 0, scores, -np.inf)
    largest = scores.max(-1, keepdims=True, initial=-np.inf)
    powers = np.exp(scores - np.where(largest == -np.inf, 0, largest))
    total = powers.sum(-1, keepdims=True)
    return rounded(powers @ v / np.where(total == 0, 1, total), call.tensor)


def _define(
    call: Result, query: te.Tensor, key: te.Tensor, value: te.Tensor,
    mask: te.Tensor | None = None,
) -> te.Tensor:  # fmt: skip
    of = Attention(_scale(call), call.attrs["is_causal"])
    return attention(query, key, value, mask, of)


TABLE = (
    GraphOperator(
        "nn.scaled_dot_product_attention", (*_NAMES, "mask?"), _type, _evaluate, Pattern.ANCHOR,
        _define,
        (Attribute("is_causal", boolean, False, "a query sees no key behind it"),
         Attribute("scale", optional(finite), None, "factor of the products; None: 1 / √e")),
        "Means of values (…, h, s, v), weighted by products of queries (…, h, l, e) and keys.",
        kernel="attention",
    ),
)  # fmt: skip
"""The operators of this module."""
