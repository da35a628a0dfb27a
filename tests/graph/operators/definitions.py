"""Calls of operators, their definitions as tensor expressions, and the comparison of values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.errors import GraphError
from dlcompiler.graph.ir import Call, TupleType, op
from dlcompiler.graph.operators import REGISTRY, CallTypes, Result
from dlcompiler.ops.rounding import UNITS
from dlcompiler.te.evaluation.evaluate import evaluate_within
from tests.graph.operators.operator_cases import Case, dtypes_of, type_of


def calls_of(name: str, case: Case) -> Iterator[tuple[str, Result]]:
    """Yield the dtypes that an operator takes in a case, with the call."""
    operator = REGISTRY[name]
    attrs = operator.complete(Call(op(name), (op("x"),) * len(case.inputs), case.attrs))
    for dtype in dtypes_of(case.inputs):
        inputs = tuple(type_of(entry, dtype) for entry in case.inputs)
        try:
            kind = operator.relation(CallTypes(operator, list(inputs), attrs))
        except GraphError:
            continue
        yield dtype, Result(attrs, inputs, kind)


def flat(value: Any) -> list[Any]:
    """Return the arrays in a value, which may be a tuple of tuples."""
    return [p for field in value for p in flat(field)] if isinstance(value, tuple) else [value]


def placeholders(kind: Any, name: str) -> tuple[Any, list[te.Tensor]]:
    """Return the placeholders of a type, and all of them in order."""
    if isinstance(kind, TupleType):
        parts = [placeholders(field, f"{name}_{n}") for n, field in enumerate(kind.fields)]
        return tuple(made for made, _ in parts), [t for _, inside in parts for t in inside]
    made = te.placeholder(kind.shape, kind.dtype, name)
    return made, [made]


def defined(
    name: str, result: Result, values: Sequence[Any]
) -> tuple[Mapping[te.Tensor, Any], list[te.Tensor]]:
    """Return the values of the placeholders of a call, and the outputs."""
    made = [placeholders(kind, f"x{n}") for n, kind in enumerate(result.inputs)]
    tensors = [t for _, inside in made for t in inside]
    arrays = dict(zip(tensors, [v for part in values for v in flat(part)], strict=True))
    outputs = REGISTRY[name].define(result, *(tensor for tensor, _ in made))
    return arrays, list(outputs) if isinstance(outputs, tuple) else [outputs]


def read_by(outputs: Sequence[te.Tensor], arrays: Mapping[te.Tensor, Any]) -> dict[te.Tensor, Any]:
    """Return the values that outputs are computed from."""
    used = {t.output(0) for t in te.post_order(outputs) if isinstance(t, te.PlaceholderOp)}
    return {tensor: array for tensor, array in arrays.items() if tensor in used}


def check(
    output: te.Tensor, found: Any, arrays: Mapping[te.Tensor, Any], *, is_smooth: bool = True
) -> None:
    """Compare the value of an output with its definition.

    Integers and elements that are only moved must be equal. The bound of others is that of
    `te.tolerance`, and one rounding of the value. What is not smooth has no bound: the value must
    be equal, with the same roundings.
    """
    given = read_by([output], arrays)
    if not dtypes.is_float(output.dtype) or not is_smooth:
        np.testing.assert_array_equal(found, te.evaluate(output, given))
        return
    (exact,), (bound,) = evaluate_within([output], given)
    # Subnormal numbers are rounded by an absolute amount.
    once = UNITS[output.dtype] * np.abs(exact) + np.finfo("float32").tiny
    bound = np.where(bound > 0, bound + once, 0)
    # Sixteen bits may be too few for a bound near the edge of a function's domain.
    is_known = np.isfinite(bound) | ~np.isfinite(exact)
    assert dtypes.bytes_of(output.dtype) < 4 or np.all(is_known), bound
    wide = found.astype("float64")
    is_same = (wide == exact) | (np.isnan(wide) & np.isnan(exact))
    is_near = np.abs(wide - exact) <= bound
    assert np.all(is_near | is_same | ~np.isfinite(bound)), np.max(np.abs(wide - exact))
