"""Functions where there is no C library: the errors that are stated, and special values."""

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.codegen.llvm.functions import MAX_ULPS_ALONE
from dlcompiler.ir import Call
from dlcompiler.ir.functions import FUNCTIONS
from tests.codegen.gpu.emulated import run
from tests.fuzz.accuracy import REFERENCES, ulps, ulps_of_float64
from tests.scalars.agreement import edge_values, pairs

LONG = np.longdouble
COUNT = 64 * 128
NUMPY = {
    **REFERENCES,
    **{f"a{x}": getattr(np, f"arc{x}") for x in ("cos", "cosh", "sin", "sinh", "tan", "tanh")},
    "atan2": np.arctan2,
    "exp10": lambda x: np.power(LONG(10), x),
}


def computed(name, arrays, folder):
    """Return what the LLVM IR of a kernel gives for arrays of `COUNT` numbers."""
    inputs = [te.placeholder((COUNT,), a.dtype.name, name=f"X{n}") for n, a in enumerate(arrays)]
    Y = te.compute(
        (COUNT,), lambda i: Call(name, tuple(x[i] for x in inputs), inputs[0].dtype), name="Y"
    )
    s = te.create_schedule(Y.op)
    block, thread = s[Y].split(Y.op.axis[0], 64)
    s[Y].bind(block, te.thread_axis("blockIdx.x"))
    s[Y].bind(thread, te.thread_axis("threadIdx.x"))
    result = np.zeros(COUNT, arrays[0].dtype)
    run(dlc.build(s, [*inputs, Y], target="gpu").program, [*arrays, result], folder)
    return result


def numbers(dtype, seed):
    """Return numbers of all sizes, and more of those near 1."""
    random, kind = np.random.default_rng(seed), np.dtype(dtype)
    bits = random.integers(0, np.iinfo(f"u{kind.itemsize}").max, 2000, f"u{kind.itemsize}")
    parts = [bits.view(kind), *(random.uniform(-r, r, 1000) for r in (1, 1.5, 3, 40, 760))]
    parts += [1 + random.normal(size=500) * 1e-5, edge_values(dtype)]
    with np.errstate(all="ignore"):
        every = np.concatenate([np.asarray(part, kind) for part in parts])
    return np.resize(random.permutation(every), COUNT)


def arguments(name, dtype):
    if FUNCTIONS[name].arity == 1:
        return [numbers(dtype, 1)]
    if name == "ldexp":
        n = np.random.default_rng(2).integers(-2300, 2300, COUNT, np.int32)
        return [numbers(dtype, 1), np.where(n % 3 == 0, n // 9, n)]
    both = [numbers(dtype, 1), numbers(dtype, 2)]
    for array, edges in zip(both, pairs(dtype, dtype), strict=True):
        array[: len(edges)] = edges
    return both


@pytest.mark.skipif(np.finfo(LONG).nmant < 63, reason="no format beyond float64 here")
@pytest.mark.campaign
@pytest.mark.parametrize("name", MAX_ULPS_ALONE)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_errors(name, dtype, folder):
    given = arguments(name, dtype)
    with np.errstate(all="ignore"):
        wide = [array.astype(LONG) if array.dtype.kind == "f" else array for array in given]
        right = (NUMPY.get(name) or getattr(np, name))(*wide)
        got = computed(name, given, folder)
        if dtype == "float32":
            errors, most = ulps(got, right.astype(np.float64)), 0.51
        else:
            errors, most = ulps_of_float64(got, right), MAX_ULPS_ALONE[name]
        if dtype == "float32" and name in ("cos", "sin", "exp2", "exp10", "log2", "log10", "log1p"):
            most = 1.75  # vector code in float32
    n = int(np.argmax(errors))
    assert errors[n] <= most, ([float(array[n]) for array in given], got[n], right[n])


#: The float64 nearest to a multiple of pi/2, and its cosine.
#: Source: J.-M. Muller, Elementary Functions, 3rd edition, section 11.3.
HARDEST = 6381956970095103.0 * 2.0**797, -4.68716592425462761112e-19


def test_hard_angles(folder):
    angles = [HARDEST[0], -HARDEST[0], 2.0**20, 2.0**1023, np.nextafter(2.0**20, 0), 355.0, 710.0]
    given = np.resize(np.array(angles), COUNT)
    got = computed("cos", [given], folder)
    assert abs(got[0] / HARDEST[1] - 1) < 2**-52
    assert got[0] == got[1]
    for name in ("sin", "cos", "tan"):
        got = computed(name, [given], folder)[: len(angles)]
        right = getattr(np, name)(given[: len(angles)].astype(LONG))
        assert (ulps_of_float64(got, right) <= MAX_ULPS_ALONE[name]).all(), name


def test_remainders_of_far_apart_numbers_are_exact(folder):
    random = np.random.default_rng(6)
    x, y = (random.integers(0, 0x7FF << 52, COUNT, np.uint64).view(np.float64) for _ in range(2))
    np.testing.assert_array_equal(computed("fmod", [x, y], folder), np.fmod(x, y))
