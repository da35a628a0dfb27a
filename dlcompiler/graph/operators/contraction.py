"""Sums of products whose indices an equation names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.errors import ExpressionError
from dlcompiler.graph.ir.types import ANY, Dimension, TensorType, TupleType
from dlcompiler.graph.operators.attributes import Attribute, text
from dlcompiler.graph.operators.base import Array, CallTypes, GraphOperator, Pattern, Result
from dlcompiler.graph.operators.relations import same_dtype
from dlcompiler.graph.operators.values import rounded, wide
from dlcompiler.ops.contraction import Equation, einsum, equation_of


def _type(call: CallTypes) -> TensorType:
    kinds = call.tensors(0)
    if not kinds:
        call.fail("no tensor is given")
    dtype = same_dtype(call, kinds)
    if dtypes.is_bool(dtype):
        call.fail("takes numbers, not bool", hint="cast the inputs: cast(x, dtype=…)")
    try:
        equation = equation_of(call.attrs["equation"], [kind.rank for kind in kinds])
    except ExpressionError as error:
        call.fail(error.problem, got=f"{error.got}, {call.args[0]}", expected=error.expected)
    extents: dict[str, Dimension] = {}
    for names, kind in zip(equation.operands, kinds, strict=True):
        for name, extent in zip(names, kind.shape, strict=True):
            extents[name] = _joined(call, name, extents.get(name, extent), extent)
    return TensorType(tuple(extents[name] for name in equation.result), dtype)


def _joined(call: CallTypes, name: str, a: Dimension, b: Dimension) -> Dimension:
    """Return the extent of an index in two operands; those of ``...`` are broadcast."""
    if a is ANY or b is ANY:
        known = b if a is ANY else a
        return ANY if "." in name and known == 1 else known
    if a != b and ("." not in name or 1 not in (a, b)):
        call.fail(f"index {name.replace('.', '...')} has the extents {a} and {b}")
    return b if a == 1 else a


def _equation(call: Result) -> Equation:
    kind = call.inputs[0]
    assert isinstance(kind, TupleType)
    ranks = [field.rank for field in kind.fields if isinstance(field, TensorType)]
    return equation_of(call.attrs["equation"], ranks)


def _evaluate(call: Result, parts: Sequence[Array]) -> Array:
    equation = _equation(call)
    # Only a product of matrices may be optimised: sums ahead of products give other infinities.
    is_product = len(parts) == 2 and all(
        len(set(names)) == len(names) and set(equation.summed) <= set(names)
        for names in equation.operands
    )
    found = np.einsum(call.attrs["equation"], *map(wide, parts), optimize=is_product)
    return rounded(found, call.tensor)


def _define(call: Result, parts: Sequence[te.Tensor]) -> te.Tensor:
    return einsum(_equation(call), parts, call.tensor.dtype)


TABLE = (
    GraphOperator(
        "einsum", ("data",), _type, _evaluate, Pattern.ANCHOR, _define,
        (Attribute("equation", text, doc="letters of each tensor and of the result: 'ij,jk->ik'"),),
        "Sums of products, over the indices that the result does not have.",
    ),
)  # fmt: skip
"""The operators of this module."""
