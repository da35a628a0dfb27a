"""Products of stacks of matrices, and sums of products, by products of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dlcompiler.graph.ir import Call, Expr, Tuple
from dlcompiler.graph.passes.decompose.rules import (
    Rule,
    Written,
    reshaped,
    turned,
)
from dlcompiler.graph.passes.tools import KnownTypes, attrs_of, call_like, operator_of, shape_of
from dlcompiler.ops.contraction import equation_of


def dense(call: Call, types: KnownTypes) -> Written | None:
    """Write a dense layer of a tensor as one of its rows."""
    shape, out = shape_of(call.args[0], types), shape_of(call, types)
    if shape is None or out is None or len(shape) == 2:
        return None
    rows = reshaped(call, call.args[0], (math.prod(shape[:-1]), shape[-1]), "rows")
    made = call_like(call, "nn.dense", rows, call.args[1], suffix="product",
                     out_dtype=attrs_of(call)["out_dtype"])  # fmt: skip
    return Written("leading dimensions are rows", reshaped(call, made, out, ""))


def matmul(call: Call, types: KnownTypes) -> Written | None:
    """Write a product of stacks of matrices as a dense layer or one stack of products."""
    attrs = attrs_of(call)
    a, b = call.args
    left, right, out = (shape_of(node, types) for node in (a, b, call))
    if left is None or right is None or out is None:
        return None
    if types.is_constant(b) and len(right) == 2 and not attrs["transpose_a"]:
        weight = b if attrs["transpose_b"] else turned(call, b, (1, 0), "weight")
        made = call_like(call, "nn.dense", a, weight, suffix="product",
                         out_dtype=attrs["out_dtype"])  # fmt: skip
        return dense(made, types) or Written("a constant matrix is packed", made)
    if len(left) == len(right) == 2 or (len(left) == len(right) == 3 and left[0] == right[0]):
        return None
    if len(right) == 2 and not attrs["transpose_a"]:
        rows = reshaped(call, a, (math.prod(left[:-1]), left[-1]), "rows")
        made = call_like(call, "nn.matmul", rows, b, suffix="product", **_kept(attrs))
        return Written("leading dimensions are rows", reshaped(call, made, out, ""))
    lead = out[:-2]
    stacks = [
        _stack(call, node, shape, lead, suffix)
        for node, shape, suffix in ((a, left, "left"), (b, right, "right"))
    ]
    made = call_like(call, "nn.batch_matmul", *stacks, suffix="product", **_kept(attrs))
    if operator_of(call) == "nn.batch_matmul" and len(lead) == 1:
        return Written("both stacks have all matrices", made)
    return Written("leading dimensions are one stack", reshaped(call, made, out, ""))


def _kept(attrs: dict[str, object]) -> dict[str, object]:
    return {name: attrs[name] for name in ("transpose_a", "transpose_b", "out_dtype")}


def _stack(call: Call, node: Expr, shape: Sequence[int], lead: Sequence[int], suffix: str) -> Expr:
    """Return matrices as one stack, repeated where the leading dimensions ask for it."""
    own = tuple(shape[:-2])
    matrix = tuple(shape[-2:])
    if own != tuple(lead):
        node = call_like(call, "broadcast_to", node, suffix=suffix, shape=(*lead, *matrix))
    if len(lead) == 1:
        return node
    return reshaped(call, node, (math.prod(lead), *matrix), suffix)


def einsum(call: Call, types: KnownTypes) -> Written | None:
    """Write the sum of products of two tensors as products of matrices."""
    (operands,) = call.args
    if not isinstance(operands, Tuple) or len(operands.fields) != 2:
        return None
    shapes = [shape_of(node, types) for node in operands.fields]
    out, kind = shape_of(call, types), types.tensor(call)
    kinds = {types.tensor(node).dtype for node in operands.fields}
    if out is None or None in shapes or kinds != {kind.dtype}:
        return None
    known = [shape for shape in shapes if shape is not None]
    equation = equation_of(attrs_of(call)["equation"], [len(shape) for shape in known])
    first, second = equation.operands
    extents = dict(zip(first + second, known[0] + known[1], strict=True))
    again = dict(zip(first, known[0], strict=True)) | dict(zip(second, known[1], strict=True))
    is_plain = all(len(set(names)) == len(names) for names in (first, second))
    is_repeated = extents != again or any(
        shape != tuple(extents[name] for name in names)
        for names, shape in zip((first, second), known, strict=True)
    )
    batch = [n for n in equation.result if n in first and n in second]
    rows = [n for n in first if n not in second]
    columns = [n for n in second if n not in first]
    inner = [n for n in first if n in second and n not in equation.result]
    lone = [n for n in (*rows, *columns) if n not in equation.result]
    if not is_plain or is_repeated or lone or not inner:
        return None

    def size(names: Sequence[str]) -> int:
        return math.prod(extents[name] for name in names)

    def side(node: Expr, names: Sequence[str], own: Sequence[str], suffix: str) -> Expr:
        order = [names.index(name) for name in (*batch, *own, *inner)]
        return reshaped(call, turned(call, node, order, suffix),
                        (size(batch), size(own), size(inner)), suffix)  # fmt: skip

    left = side(operands.fields[0], first, rows, "left")
    right = side(operands.fields[1], second, columns, "right")
    if batch:
        made = call_like(call, "nn.batch_matmul", left, right, suffix="product", transpose_b=True)
    else:
        rows_only = reshaped(call, left, (size(rows), size(inner)), "left")
        columns_only = reshaped(call, right, (size(columns), size(inner)), "right")
        made = call_like(call, "nn.dense", rows_only, columns_only, suffix="product")
    names = (*batch, *rows, *columns)
    value = reshaped(call, made, [extents[name] for name in names], "parts")
    order = [names.index(name) for name in equation.result]
    return Written("its sums are products of matrices", turned(call, value, order, ""))


RULES: dict[str, Rule] = {
    "nn.dense": dense,
    "nn.matmul": matmul,
    "nn.batch_matmul": matmul,
    "einsum": einsum,
}
"""Operator -> the rule for its calls."""
