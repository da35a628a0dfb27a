"""The definition of each operator becomes a kernel that computes the meaning."""

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import dtypes, te
from dlcompiler.graph.operators import REGISTRY
from tests.graph.operators.cases import CASES
from tests.graph.operators.definitions import calls_of, check, defined, read_by
from tests.graph.operators.operator_cases import value_of


@pytest.mark.campaign
@pytest.mark.parametrize("name", [name for name in CASES if REGISTRY[name].define is not None])
def test_a_kernel_computes_the_definition(name):
    case = CASES[name][0]
    dtype, result = next(calls_of(name, case))
    values = [value_of(entry, dtype, np.random.default_rng(1)) for entry in case.inputs]
    arrays, outputs = defined(name, result, values)
    given = read_by(outputs, arrays)
    schedule = te.create_schedule([output.op for output in outputs])
    kernel = dlc.build(schedule, [*given, *outputs])
    found = [np.empty(o.static_shape, dtypes.to_numpy(o.dtype)) for o in outputs]
    kernel(*given.values(), *found)
    for output, value in zip(outputs, found, strict=True):
        check(output, value, arrays)
