"""Every operator of the table: its type, its meaning and its definition agree.

For each case and each dtype that the operator takes, the type relation gives the type of the value;
the definition as tensor expressions has this type; and it computes the value: exactly for integers
and where elements are only moved, otherwise within the bound that `te.tolerance` derives from the
definition, and one rounding of the value.
"""

import numpy as np
import pytest

from dlcompiler import graph
from dlcompiler.errors import GraphError
from dlcompiler.graph.interpreter import type_of_value
from dlcompiler.graph.ir import ANY, TensorType, TupleType, tensor_types
from dlcompiler.graph.op import OperatorFunction
from dlcompiler.graph.operators import REGISTRY, CallTypes, NotKnown
from dlcompiler.ir.numeric import quiet
from tests.graph.operators.cases import CASES
from tests.graph.operators.definitions import calls_of, check, defined, flat
from tests.graph.operators.operator_cases import value_of
from tests.share import cases_of

WITHOUT_DEFINITION: set[str] = set()
"""Operators that tensor expressions cannot say."""


def test_each_operator_has_cases():
    assert REGISTRY.keys() == CASES.keys()


def test_operators_without_a_definition_are_few():
    assert {name for name in REGISTRY if REGISTRY[name].define is None} == WITHOUT_DEFINITION


def check_definition(name, result, values, value, *, is_smooth):
    """Compare the value of a call with the definition."""
    arrays, outputs = defined(name, result, values)
    kinds = tensor_types(result.type)
    assert [(t.static_shape, t.dtype) for t in outputs] == [(k.shape, k.dtype) for k in kinds]
    for output, expected in zip(outputs, flat(value), strict=True):
        check(output, expected, arrays, is_smooth=is_smooth)


@pytest.mark.campaign
@pytest.mark.parametrize("name", CASES)
def test_type_value_and_definition_agree(name):
    operator = REGISTRY[name]
    for number, case in enumerate(cases_of(CASES[name])):
        taken = set()
        for dtype, result in calls_of(name, case):
            generator = np.random.default_rng(number)
            values = [value_of(entry, dtype, generator) for entry in case.inputs]
            with quiet():
                value = operator.evaluate(result, *values)
            assert type_of_value(value) == result.type, (case, dtype)
            taken.add(dtype)
            if operator.define is not None:
                with quiet():
                    check_definition(name, result, values, value, is_smooth=case.is_smooth)
        assert taken, f"the operator takes no dtype in {case}"


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
            except NotKnown:  # it needs the other types
                continue
            assert all(map(agrees, call.args, result.inputs))


def argument(kind, name):
    """Return a variable of a type; a tuple of them for a tuple."""
    if isinstance(kind, TupleType):
        return [argument(field, f"{name}_{n}") for n, field in enumerate(kind.fields)]
    return graph.var(name, kind.shape, kind.dtype)


@pytest.mark.campaign
@pytest.mark.parametrize("name", CASES)
def test_a_call_is_text_that_parses_back(name):
    for case in CASES[name]:
        _, result = next(iter(calls_of(name, case)))
        args = [argument(kind, f"x{n}") for n, kind in enumerate(result.inputs)]
        call = OperatorFunction(name)(*args, **case.attrs)
        module = graph.Module.from_expr(call)
        assert graph.modules_equal(graph.parse(graph.module_text(module)), module)
        assert graph.type_of(call) == result.type
