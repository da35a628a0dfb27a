"""The tolerance of every function holds for arguments that carry rounding errors."""

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import dtypes, te
from dlcompiler.ir.functions import FUNCTIONS

DOMAINS = {
    "acos": (-0.95, 0.95), "acosh": (1.1, 50), "asin": (-0.95, 0.95), "atanh": (-0.95, 0.95),
    "log": (0.01, 50), "log10": (0.01, 50), "log1p": (-0.9, 50), "log2": (0.01, 50),
    "rsqrt": (0.01, 50), "sqrt": (0.01, 50), "pow": (0.1, 4), "exp": (-9, 9), "exp10": (-4, 4),
    "exp2": (-13, 13), "sinh": (-9, 9), "cosh": (-9, 9), "tan": (-1.4, 1.4),
}  # fmt: skip
STEPS = ("ceil", "floor", "round", "trunc", "fmod")
NAMES = [
    name for name, x in FUNCTIONS.items() if x.domain in ("float", "number") and x.result == "same"
]


def _expression(name, tensors):
    function = te.power if name == "pow" else getattr(te, name)

    def element(i):
        a, b, c, d = (tensor[i] for tensor in tensors)
        x, y = a + c, b + d  # where the terms cancel, an error remains
        if name == "ldexp":
            return function(x, (i % 7).astype("int32") - 3)
        return function(x) if FUNCTIONS[name].arity == 1 else function(x, y)

    return te.compute(tensors[0].shape, element, name="Y")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_tolerances_of_functions(dtype):
    generator, size = np.random.default_rng(7), 2000
    kind = dtypes.to_numpy(dtype)
    worst = {}
    for name in NAMES:
        target = generator.uniform(*DOMAINS.get(name, (-9, 9)), (2, size))
        shift = generator.uniform(-3, 3, (2, size)).astype(kind)
        tensors = [te.placeholder((size,), dtype, name=x) for x in "ABCD"]
        given = [*(target - shift.astype(float)).astype(kind), *shift]
        Y = _expression(name, tensors)
        pairs = zip(tensors, given, strict=True)
        arrays = {tensor: array for tensor, array in pairs if tensor in Y.op.input_tensors}
        right = te.evaluate(Y, arrays, accumulate="float64")
        got = te.evaluate(Y, arrays).astype("float64")
        bound = te.tolerance(Y, arrays)
        with np.errstate(all="ignore"):
            error = np.abs(got - right)
            is_near = (error <= bound) | (np.isnan(got) & np.isnan(right))
            worst[name] = np.nanmax(error / bound)
        if name in STEPS:  # where rounding decides, the value jumps
            assert is_near.mean() > 0.8, name
        else:
            assert is_near.all(), (name, given[0][~is_near], right[~is_near], bound[~is_near])
    assert max(worst.values()) > 0.05  # the tolerance is not idle


def test_the_root_of_an_exact_zero_is_exact():
    X = te.placeholder((2,), name="X")
    Y = te.compute((2,), lambda i: te.sqrt(X[i]))
    bound = te.tolerance(Y, [np.array([0.0, 1.0], "float32")])
    assert bound[0] < 1e-40


def test_roundings_of_factors_add_up():
    X = te.placeholder((8, 100), name="X")
    k = te.reduce_axis((0, 100), name="k")
    S = te.compute((8,), lambda i: te.sum(X[i, k], axis=k), name="S")
    assert te.rounding_depth(te.compute((8,), lambda i: S[i] * S[i] + S[i])) == 202
    assert te.rounding_depth(te.compute((8,), lambda i: S[i] / S[i])) == 201
    q = te.reduce_axis((0, 3), name="q")
    assert te.rounding_depth(te.compute((), lambda: te.prod(S[q] + 1.0, axis=q))) == 3 * 101 + 3


def test_what_overflows_has_no_bound():
    X = te.placeholder((3,), "float16", name="X")
    Y = te.compute((3,), lambda i: te.exp(X[i]) - te.exp(X[i]) * 0.5, name="Y")
    bound = te.tolerance(Y, [np.array([1.0, 12.0, -3.0], "float16")])
    assert np.isfinite(bound).tolist() == [True, False, True]
    Z = te.compute((3,), lambda i: X[i] * 20000.0 * (X[i] - X[i]), name="Z")
    assert np.isposinf(te.tolerance(Z, [np.array([9.0, 9.0, 9.0], "float16")])).all()
    s = te.create_schedule(te.compute((3,), lambda i: te.exp(X[i] * 100.0), name="W").op)
    assert dlc.verify(s, [X, s.outputs[0]]).worst <= 1
