"""Every operator of the table: its type, its meaning and its definition agree.

For each case and each dtype that the operator takes, the type relation gives the type of the value;
the definition as tensor expressions has this type; and it computes the value: exactly for integers
and where elements are only moved, otherwise within the bound that `te.tolerance` derives from the
definition, and one rounding of the value.
"""

import numpy as np
import pytest

from dlcompiler import dtypes, te
from dlcompiler.errors import GraphError
from dlcompiler.graph.interpreter import type_of_value
from dlcompiler.graph.ir import ANY, Call, TensorType, TupleType, op, tensor_types
from dlcompiler.graph.operators import REGISTRY, CallTypes, Result
from dlcompiler.ir.numeric import quiet
from dlcompiler.ops.rounding import UNITS
from dlcompiler.te.evaluation.evaluate import evaluate_within
from tests.graph.operators.cases import CASES
from tests.graph.operators.operator_cases import dtypes_of, type_of, value_of
from tests.share import cases_of

WITHOUT_DEFINITION: set[str] = set()
"""Operators that tensor expressions cannot say."""


def test_each_operator_has_cases():
    assert REGISTRY.keys() == CASES.keys()


def test_operators_without_a_definition_are_few():
    assert {name for name in REGISTRY if REGISTRY[name].define is None} == WITHOUT_DEFINITION


def calls_of(name, case):
    """Yield the dtypes that an operator takes, with the call."""
    operator = REGISTRY[name]
    call = Call(op(name), (), case.attrs)
    attrs = operator.complete(Call(op(name), (op("x"),) * len(case.inputs), call.attrs))
    for dtype in dtypes_of(case.inputs):
        inputs = tuple(type_of(entry, dtype) for entry in case.inputs)
        try:
            kind = operator.relation(CallTypes(operator, list(inputs), attrs))
        except GraphError:
            continue
        yield dtype, Result(attrs, inputs, kind)


def placeholders(kind, name):
    """Return the placeholders of a type, and all of them in order."""
    if isinstance(kind, TupleType):
        parts = [placeholders(field, f"{name}_{n}") for n, field in enumerate(kind.fields)]
        return tuple(made for made, _ in parts), [t for _, flat in parts for t in flat]
    made = te.placeholder(kind.shape, kind.dtype, name)
    return made, [made]


def flat(value):
    return (
        [part for field in value for part in flat(field)] if isinstance(value, tuple) else [value]
    )


def check_definition(operator, result, values, value):
    """Compare the value with the definition."""
    made = [placeholders(kind, f"x{n}") for n, kind in enumerate(result.inputs)]
    tensors = [t for _, parts in made for t in parts]
    arrays = dict(zip(tensors, [v for part in values for v in flat(part)], strict=True))
    outputs = operator.define(result, *(tensor for tensor, _ in made))
    outputs = list(outputs) if isinstance(outputs, tuple) else [outputs]
    kinds = tensor_types(result.type)
    assert [(t.static_shape, t.dtype) for t in outputs] == [(k.shape, k.dtype) for k in kinds]
    for output, kind, expected in zip(outputs, kinds, flat(value), strict=True):
        used = {t.output(0) for t in te.post_order([output]) if isinstance(t, te.PlaceholderOp)}
        given = {tensor: array for tensor, array in arrays.items() if tensor in used}
        if not dtypes.is_float(kind.dtype):
            found = te.evaluate(output, given)
            np.testing.assert_array_equal(found, expected)
            continue
        (exact,), (bound,) = evaluate_within([output], given)
        wide = expected.astype("float64")
        bound = bound + np.where(bound > 0, UNITS[kind.dtype] * np.abs(exact), 0)
        # Subnormal numbers are rounded by an absolute amount.
        bound = bound + np.where(bound > 0, np.finfo("float32").tiny, 0)
        # Sixteen bits may be too few for a bound near the edge of a function's domain.
        is_known = np.isfinite(bound) | ~np.isfinite(exact)
        assert dtypes.bytes_of(kind.dtype) < 4 or np.all(is_known), bound
        is_near = np.abs(wide - exact) <= bound
        is_same = (wide == exact) | (np.isnan(wide) & np.isnan(exact))
        assert np.all(is_near | is_same | ~np.isfinite(bound)), np.max(np.abs(wide - exact))


@pytest.mark.parametrize("name", CASES)
def test_type_value_and_definition_agree(name):
    operator = REGISTRY[name]
    taken = set()
    cases = cases_of(CASES[name])
    for number, case in enumerate(cases):
        for dtype, result in calls_of(name, case):
            generator = np.random.default_rng(number)
            values = [value_of(entry, dtype, generator) for entry in case.inputs]
            with quiet():
                value = operator.evaluate(result, *values)
            assert type_of_value(value) == result.type, (case, dtype)
            taken.add(dtype)
            if operator.define is not None and (case.is_smooth or not dtypes.is_float(dtype)):
                with quiet():
                    check_definition(operator, result, values, value)
    assert taken, "the operator takes none of its cases"


def opened(kind):
    """Return a type with all extents unknown."""
    if isinstance(kind, TupleType):
        return TupleType(tuple(map(opened, kind.fields)))
    return TensorType((ANY,) * kind.rank, kind.dtype)


def agrees(a, b):
    if isinstance(a, TupleType):
        return len(a.fields) == len(b.fields) and all(map(agrees, a.fields, b.fields))
    return a.rank == b.rank and a.dtype == b.dtype and all(
        x is ANY or x == y for x, y in zip(a.shape, b.shape, strict=True)
    )  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_extents_that_are_not_known_agree_with_any(name):
    operator = REGISTRY[name]
    for case in CASES[name]:
        for _, result in list(calls_of(name, case))[:1]:
            inputs = [opened(kind) for kind in result.inputs]
            try:
                kind = operator.relation(CallTypes(operator, list(inputs), result.attrs))
            except GraphError:  # split and squeeze need an extent
                continue
            assert agrees(kind, result.type), (case, kind)


@pytest.mark.parametrize("name", CASES)
def test_weights_get_the_type_that_follows(name):
    """An argument whose type is inferred gets the type that the case has."""
    operator = REGISTRY[name]
    for case in CASES[name]:
        for _, result in list(calls_of(name, case))[:1]:
            types = [*result.inputs[:1], *[None] * (len(result.inputs) - 1)]
            call = CallTypes(operator, types, result.attrs)
            try:
                operator.relation(call)
            except Exception:  # it needs the other types
                continue
            assert all(map(agrees, call.args, result.inputs))
