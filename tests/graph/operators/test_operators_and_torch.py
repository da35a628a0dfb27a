"""Operators of graphs beside PyTorch, where it is installed; it is no dependency.

Both compute in float64. The bound is that of `te.tolerance` for each of them.
"""

import numpy as np
import pytest

from dlcompiler import dtypes
from dlcompiler.graph.operators import REGISTRY
from dlcompiler.ir.numeric import quiet
from dlcompiler.te.evaluation.evaluate import evaluate_within
from tests.graph.operators.cases import CASES
from tests.graph.operators.definitions import calls_of, defined, flat, read_by
from tests.graph.operators.operator_cases import value_of

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")

from tests.graph.operators.torch_operators import OPERATORS  # noqa: E402 - it imports PyTorch


def as_torch(value):
    if isinstance(value, tuple):
        return tuple(map(as_torch, value))
    return torch.from_numpy(np.array(value))


def bounds(name, result, values):
    """Return the bounds of the outputs, by the definition; 0 for those that are no floats."""
    arrays, outputs = defined(name, result, values)
    for output in outputs:
        is_float = dtypes.is_float(output.dtype)
        yield evaluate_within([output], read_by([output], arrays))[1][0] if is_float else 0.0


@pytest.mark.campaign
@pytest.mark.parametrize("name", OPERATORS)
def test_pytorch_computes_the_same(name):
    compared = 0
    for number, case in enumerate(CASES[name]):
        for dtype, result in calls_of(name, case):
            if dtype != "float64":
                continue
            values = [value_of(e, dtype, np.random.default_rng(number)) for e in case.inputs]
            expected = OPERATORS[name](result.attrs, *map(as_torch, values))
            if expected is None:
                continue
            with quiet():
                found = REGISTRY[name].evaluate(result, *values)
            pairs = zip(flat(found), flat(expected), bounds(name, result, values), strict=True)
            for ours, theirs, bound in pairs:
                theirs = theirs.numpy()
                assert ours.shape == theirs.shape
                if not dtypes.is_float(str(ours.dtype)):
                    np.testing.assert_array_equal(ours, theirs)
                    continue
                is_same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
                assert np.all(is_same | (np.abs(ours - theirs) <= 2 * bound)), (case, ours, theirs)
            compared += 1
    assert compared
