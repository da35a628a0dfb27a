"""Hybrid script: the same source as a stage, in all evaluations, and as Python on arrays."""

# ruff: noqa: F821 - the words of the script are no names of Python

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.simulate import interpret

TAPS = 3


def _agree(function, *arrays, rtol=1e-5, kernel=True):
    """Compare the stage with Python: by the oracle, by a kernel, and by `verify`."""
    inputs = [
        te.placeholder(a.shape, str(a.dtype), name=f"A{n}") if isinstance(a, np.ndarray) else a
        for n, a in enumerate(arrays)
    ]
    tensors = [tensor for tensor in inputs if isinstance(tensor, te.Tensor)]
    given = [array for array in arrays if isinstance(array, np.ndarray)]
    made = function(*inputs)
    outputs = made if isinstance(made, tuple) else (made,)
    expected = function(*arrays)
    expected = expected if isinstance(expected, tuple) else (expected,)
    computed = te.evaluate(list(outputs), dict(zip(tensors, given, strict=True)))
    s = te.create_schedule([tensor.op for tensor in outputs])
    results = [np.full_like(array, 77) for array in expected]
    if kernel:
        dlc.build(s, [*tensors, *outputs])(*given, *results)
        assert dlc.verify(s, [*tensors, *outputs]).oracles[0] == "numpy"
    for python, oracle, result in zip(expected, computed, results, strict=True):
        assert oracle.dtype == python.dtype
        np.testing.assert_allclose(oracle, python, rtol=rtol)
        if kernel:
            np.testing.assert_allclose(result, python, rtol=rtol)
    return made


@te.hybrid.script
def outer(a, b):
    """Return the product of each with each."""
    c = output_tensor((a.shape[0], b.shape[0]), "float32")
    for i in parallel(a.shape[0]):
        for j in vectorize(b.shape[0]):
            c[i, j] = a[i] * b[j]
    return c


@pytest.mark.parametrize(("n", "m"), [(1, 1), (7, 5), (16, 8)])
def test_loops(n, m):
    rng = np.random.default_rng(0)
    made = _agree(outer, rng.random(n, "float32"), rng.random(m, "float32"))
    assert made.name == "outer"


@te.hybrid.script
def convolved(a, w):
    b = output_tensor((len(a) - TAPS + 1,), a.dtype)
    for i in range(len(a) - TAPS + 1):
        total = float32(0)
        for k in const_range(TAPS):
            total += a[i + k] * w[k]
        b[i] = total
    return b


def test_variables_copies_and_numbers_of_the_surrounding_code():
    rng = np.random.default_rng(0)
    made = _agree(convolved, rng.random(11, "float32"), rng.random(TAPS, "float32"))
    assert made.op.text.count("total[0] +=") == TAPS


@te.hybrid.script
def decided(a, limit):
    b = output_tensor((a.shape[0], a.shape[1]), "float32")
    for i in range(a.shape[0]):
        for j in serial(0, a.shape[1]):
            x = a[i][j]
            if likely(i + 1 < limit) and j != 2:
                b[i, j] = max(x, 0.25) if 0 < j <= 3 else -x
            elif x > 0.5 or i == 0:
                b[i, j] = sqrt(x) + exp(-x)
            else:
                b[i, j] = abs(x) ** 2
    return b


@pytest.mark.parametrize("limit", [0, 3, 9])
def test_conditions(limit):
    _agree(decided, np.random.default_rng(1).random((5, 6), "float32"), limit)


@te.hybrid.script
def both(a):
    low = output_tensor((a.shape[0],), "int32")
    high = output_tensor((a.shape[0], 2), "float64")
    for i in range(a.shape[0]):
        low[i] = ceil_div(a[i], 4) + min(i, 3) % 2
        for j in unroll(2):
            high[i, j] = float64(a[i]) / 2.0 + j
    return low, high


def test_several_outputs_and_dtypes():
    made = _agree(both, np.arange(-7, 8, dtype="int32"))
    assert [tensor.dtype for tensor in made] == ["int32", "float64"]


@te.hybrid.script
def smoothed(a):
    n = a.shape[0]
    t = allocate((n + 2,), "float32")
    b = output_tensor((n,), "float32")
    for i in range(n + 2):
        t[i] = 0.0
        if i > 0 and i <= n:
            t[i] = a[i - 1]
    for i in range(n):
        b[i] = (t[i] + t[i + 1] + t[i + 2]) / 3.0
    return b


def test_memory_and_a_name_for_an_extent():
    _agree(smoothed, np.random.default_rng(2).random(9, "float32"))


@te.hybrid.script
def prefix(a):
    b = output_tensor((a.shape[0],), "float32")
    total = 0.0
    for i in range(a.shape[0]):
        total = total + a[i]
        b[i] = total
    return b


def test_a_variable_carries_over_iterations():
    _agree(prefix, np.random.default_rng(3).random(13, "float32"))


def test_symbolic_shapes():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = prefix(A)
    s = te.create_schedule(B.op)
    kernel = dlc.build(s, [A, B])
    for size in (0, 1, 17):
        a, b = np.ones(size, "float32"), np.zeros(size, "float32")
        kernel(a, b)
        np.testing.assert_array_equal(b, np.arange(1, size + 1))
    dlc.verify(s, [A, B])


def test_a_stage_among_others():
    A = te.placeholder((6, 4), name="A")
    P = te.compute((6,), lambda i: A[i, 0] * 2.0, name="P")
    H = outer(P, P)
    D = te.compute((6, 6), lambda i, j: H[i, j] + 1.0, name="D")
    s = te.create_schedule(D.op)
    s[D].vectorize(s[D].split(D.op.axis[1], 4)[1])
    assert dlc.verify(s, [A, D]).worst <= 1


def test_a_number_that_the_caller_gives():
    @te.hybrid.script
    def scaled(a, factor):
        b = output_tensor(a.shape, "float32")
        for i in range(a.shape[0]):
            b[i] = a[i] * factor
        return b

    factor = te.var("factor", "float32")
    A = te.placeholder((5,), name="A")
    B = scaled(A, factor)
    a, b = np.arange(5, dtype="float32"), np.zeros(5, "float32")
    dlc.build(te.create_schedule(B.op), [A, B, factor])(a, b, 3.0)
    assert np.array_equal(b, a * 3)
    assert np.array_equal(scaled(a, 3.0), a * 3)


def test_threads_of_a_device():
    @te.hybrid.script
    def moved(a):
        b = output_tensor((8, 4), "float32")
        for i in bind("blockIdx.x", 8):
            for j in bind("threadIdx.x", 4):
                b[i, j] = a[i, j] + 1.0
        return b

    A = te.placeholder((8, 4), name="A")
    B = moved(A)
    func = dlc.lower(te.create_schedule(B.op), [A, B])
    assert "for i in blockIdx.x(8):" in str(func)
    a, b = np.ones((8, 4), "float32"), np.zeros((8, 4), "float32")
    interpret(func, [a, b])
    assert np.array_equal(b, a + 1)
    assert np.array_equal(moved(a), a + 1)
    s = te.create_schedule(B.op)
    assert dlc.verify(s, [A, B], target="gpu").oracles == ("numpy", "interpreter")
    for refused in (dlc.build, dlc.verify):
        with pytest.raises(dlc.UserError, match="a CPU has no device threads"):
            refused(s, [A, B])


@te.hybrid.script
def checked(a):
    b = output_tensor((4,), "float32")
    for i in range(4):
        assert a[i] > 0, "all must be positive"
        b[i] = log(a[i])
    return b


def test_an_assertion():
    _agree(checked, np.arange(1, 5, dtype="float32"), kernel=False)
    A = te.placeholder((4,), name="A")
    B = checked(A)
    kernel = dlc.build(te.create_schedule(B.op), [A, B])
    with pytest.raises(dlc.UserError, match="all must be positive"):
        kernel(np.zeros(4, "float32"), np.zeros(4, "float32"))
    with pytest.raises(AssertionError, match="all must be positive"):
        checked(np.zeros(4, "float32"))


@te.hybrid.script
def total(parts, weights):
    c = output_tensor(parts[0].shape, parts[-1].dtype)
    for i in range(parts[0].shape[0]):
        for j in range(parts[0].shape[1]):
            s = 0.0
            for k in const_range(len(parts)):
                s = s + parts[k][i, j] * weights[k]
            c[i, j] = s
    return c


@pytest.mark.parametrize("kind", [tuple, list])
def test_an_argument_that_is_a_tuple(kind):
    arrays = [np.full((2, 3), n, "float32") for n in (1, 2, 3)]
    tensors = [te.placeholder((2, 3), name=f"P{n}") for n in range(3)]
    made = total(kind(tensors), [0.5, 2.0, te.const(3, "int32")])
    s = te.create_schedule(made.op)
    result = np.empty((2, 3), "float32")
    dlc.build(s, [*tensors, made])(*arrays, result)
    np.testing.assert_array_equal(result, total(kind(arrays), [0.5, 2.0, 3]))
    assert dlc.verify(s, [*tensors, made]).oracles[0] == "numpy"


def test_one_tensor_twice_in_a_tuple():
    P = te.placeholder((2, 3), name="P")
    made = total((P, P), (1.0, 1.0))
    assert made.op.inputs == (P,)
    array = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(te.evaluate(made, {P: array}), 2 * array)


SHAPE, TABLE = (2, 3), [[1, 2, 3], [4, 5, 6]]


@te.hybrid.script
def by_tables(a, table):
    c = output_tensor(shape=(SHAPE[0], SHAPE[1]), dtype="int32")
    t = allocate(SHAPE, dtype="int32", scope="local")
    for i in const_range(len(table)):
        for j in const_range(len(table[i])):
            t[i, j] = a[i, j] * table[i][j]
    for i in range(SHAPE[0]):
        for j in range(SHAPE[-1]):
            c[i, j] = t[i, j] + TABLE[1][2]
    return c


def test_tables_of_numbers():
    a = np.arange(6, dtype="int32").reshape(2, 3)
    A = te.placeholder((2, 3), "int32", name="A")
    C = by_tables(A, TABLE)
    result = np.empty((2, 3), "int32")
    dlc.build(te.create_schedule(C.op), [A, C])(a, result)
    np.testing.assert_array_equal(result, by_tables(a, TABLE))
    np.testing.assert_array_equal(result, a * np.array(TABLE) + 6)


def test_both_indices_of_a_table_at_once():
    @te.hybrid.script
    def picked(a, table):
        c = output_tensor((2,), "int32")
        for i in const_range(2):
            c[i] = a[i] + table[i, 1]
        return c

    A = te.placeholder((2,), "int32", name="A")
    got = te.evaluate(picked(A, TABLE), {A: np.zeros(2, "int32")})
    np.testing.assert_array_equal(got, [2, 5])
