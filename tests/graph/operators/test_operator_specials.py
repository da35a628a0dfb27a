"""NaN, infinities and -0 in the inputs of operators: meaning and definition agree."""

import numpy as np
import pytest

from dlcompiler import dtypes, te
from dlcompiler.graph.operators import REGISTRY
from dlcompiler.ir.numeric import quiet
from tests.graph.operators.cases import CASES
from tests.graph.operators.definitions import calls_of, defined, flat, read_by
from tests.graph.operators.operator_cases import case, value_of
from tests.share import cases_of

SPECIALS = np.array([np.nan, np.inf, -np.inf, -0.0], "float32")
MOMENTS = {"nn.batch_norm"}
"""Given infinite moments, the definition multiplies and adds where the meaning subtracts."""


def spoiled(value, generator):
    """Replace an eighth of the floats, at least one."""
    if isinstance(value, tuple):
        return tuple(spoiled(part, generator) for part in value)
    if value.dtype != np.float32 or not value.size:
        return value
    made = value.copy()
    places = generator.integers(0, value.size, max(1, value.size // 8))
    made.reshape(-1)[places] = generator.choice(SPECIALS, len(places))
    return made


def check_specials(found, expected):
    """Compare where numbers are NaN or infinite; other numbers are compared elsewhere."""
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    beyond = np.isinf(found)
    np.testing.assert_array_equal(beyond, np.isinf(expected))
    np.testing.assert_array_equal(found[beyond], expected[beyond])


@pytest.mark.campaign
@pytest.mark.parametrize("name", sorted(CASES.keys() - MOMENTS))
def test_special_numbers(name):
    for number, each in enumerate(cases_of(CASES[name])):
        for dtype, result in calls_of(name, each):
            if dtype != "float32":
                continue
            generator = np.random.default_rng(number)
            drawn = [value_of(entry, dtype, generator) for entry in each.inputs]
            values = [spoiled(value, generator) for value in drawn]
            with quiet():
                value = REGISTRY[name].evaluate(result, *values)
                arrays, outputs = defined(name, result, values)
            for output, expected in zip(outputs, flat(value), strict=True):
                found = te.evaluate(output, read_by([output], arrays))
                if dtypes.is_float(output.dtype):
                    check_specials(found, expected)
                else:
                    np.testing.assert_array_equal(found, expected)


def test_the_mean_of_large_unsigned_integers():
    x = np.array([2**64 - 4, 1, 0], "uint64")
    (_, result), *_ = [r for r in calls_of("mean", case((3,))) if r[0] == "uint64"]
    assert REGISTRY["mean"].evaluate(result, x) == (2**64 - 3) // 3
    arrays, (output,) = defined("mean", result, [x])
    assert te.evaluate(output, arrays) == (2**64 - 3) // 3
