"""Symbolic shapes, from te.var to a kernel that binds them when it is called."""

from fractions import Fraction

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import dtypes, te
from dlcompiler.errors import CallError, ExpressionError, ScheduleError
from dlcompiler.simulate import interpret

SIZES = [(0, 0), (0, 3), (3, 0), (1, 1), (5, 7), (8, 12), (13, 4)]


def _matmul():
    n, m, r = te.var("n"), te.var("m"), te.var("r")
    X = te.placeholder((n, m), name="X")
    Y = te.placeholder((m, r), name="Y")
    k = te.reduce_axis((0, m), name="k")
    return X, Y, te.compute((n, r), lambda i, j: te.sum(X[i, k] * Y[k, j], axis=k), name="Z")


def _schedules(X, Y, Z):
    """Yield schedules of a matrix product that have tails, attached stages and fused loops."""
    (k,) = Z.op.reduce_axis
    yield "plain", te.create_schedule(Z.op)

    s = te.create_schedule(Z.op)
    io, jo, ii, ji = s[Z].tile(*Z.op.axis, 4, 8)
    ko, ki = s[Z].split(k, 3)
    s[Z].reorder(io, jo, ko, ii, ki, ji)
    s[Z].vectorize(ji)
    s[Z].unroll(ii)
    s[Z].parallel(io)
    yield "tiled", s

    s = te.create_schedule(Z.op)
    ZC = s.cache_write(Z, "local")
    fused = s[Z].fuse(*s[Z].op.axis)
    outer, inner = s[Z].split(fused, nparts=3)
    s[ZC].compute_at(s[Z], outer)
    s[Z].vectorize(inner)
    yield "fused", s

    s = te.create_schedule(Z.op)
    ZC = s.cache_write(Z, "local")
    io, jo, ii, ji = s[Z].tile(*s[Z].op.axis, 4, 4)
    s[ZC].compute_at(s[Z], jo)
    s[Z].vectorize(ji)
    yield "cached", s


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["plain", "tiled", "fused", "cached"])
def test_any_size_runs_under_any_schedule(name):
    X, Y, Z = _matmul()
    s = dict(_schedules(X, Y, Z))[name]
    kernel, func = dlc.build(s, [X, Y, Z]), dlc.lower(s, [X, Y, Z])
    rng = np.random.default_rng(0)
    for n, m in SIZES:
        x = rng.integers(-4, 5, (n, m)).astype("float32")
        y = rng.integers(-4, 5, (m, n + 1)).astype("float32")
        results = [np.full((n, n + 1), np.nan, "float32") for _ in range(2)]
        kernel(x, y, results[0])
        interpret(func, [x, y, results[1]])
        for z in results:
            np.testing.assert_array_equal(z, x @ y)


def test_the_nest_of_a_symbolic_split(golden):
    X, Y, Z = _matmul()
    s = dict(_schedules(X, Y, Z))["tiled"]
    golden("tiled", str(dlc.lower(s, [X, Y, Z], simple_mode=True)))


def test_an_attached_window_has_a_known_size(golden):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    P = te.compute(
        (n + 2,), lambda i: te.if_then_else(te.all(i >= 1, i < n + 1), A[i - 1], 0.0), name="P"
    )
    Q = te.compute((n,), lambda i: P[i] + P[i + 1] + P[i + 2], name="Q")
    s = te.create_schedule(Q.op)
    outer, _ = s[Q].split(Q.op.axis[0], 4)
    s[P].compute_at(s[Q], outer)
    golden("window", str(dlc.lower(s, [A, Q])))
    kernel = dlc.build(s, [A, Q])
    for size in (0, 1, 4, 9):
        a, q = np.arange(size, dtype="float32"), np.empty(size, "float32")
        kernel(a, q)
        p = np.pad(a, 1)
        np.testing.assert_array_equal(q, p[:-2] + p[1:-1] + p[2:])


def test_a_split_that_divides_needs_no_guard():
    n = te.var("n")
    A = te.placeholder((n * 8,), name="A")
    B = te.compute((n * 8,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[B].split(B.op.axis[0], 8)
    assert "if" not in str(dlc.lower(s, [n, A, B]))


def test_numbers_are_arguments_too():
    n, shift, scale = te.var("n"), te.var("shift"), te.var("scale", "float32")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * scale + shift, name="B")
    kernel = dlc.build(te.create_schedule(B.op), [A, shift, scale, B])
    a, b = np.arange(4, dtype="float32"), np.empty(4, "float32")
    kernel(a, -3, 0.5, b)
    np.testing.assert_array_equal(b, a * 0.5 - 3)
    np.testing.assert_array_equal(te.evaluate(B, {A: a, shift: -3, scale: 0.5}), b)


def test_verify_tries_several_sizes():
    X, Y, Z = _matmul()
    verified = dlc.verify(dict(_schedules(X, Y, Z))["tiled"], [X, Y, Z])
    assert verified.oracles == ("numpy", "interpreter")


def test_two_symbols_of_one_name_are_two():
    n, other = te.var("n"), te.var("n")
    A, B = te.placeholder((n,), name="A"), te.placeholder((other,), name="B")
    C = te.compute((n,), lambda i: A[i] + B[0], name="C")
    kernel = dlc.build(te.create_schedule(C.op), [A, B, C])
    c = np.empty(3, "float32")
    kernel(np.ones(3, "float32"), np.ones(1, "float32"), c)
    np.testing.assert_array_equal(c, 2)


def _call(kernel, *shapes):
    with pytest.raises(CallError) as error:
        kernel(
            *(np.zeros(shape, "float32") if isinstance(shape, tuple) else shape for shape in shapes)
        )
    return str(error.value)


def test_calls_that_do_not_fit():
    X, Y, Z = _matmul()
    kernel = dlc.build(te.create_schedule(Z.op), [X, Y, Z])
    assert _call(kernel, (3, 4), (5, 2), (3, 2)) == (
        "call main: argument 2 (Y): m is both 4 and 5\n"
        "  got       5 in dimension 0\n"
        "  expected  4, as dimension 1 of X says"
    )
    assert _call(kernel, (3, 4), (4,), (3, 2)) == (
        "call main: argument 2 (Y): wrong number of dimensions\n"
        "  got       (4,)\n"
        "  expected  2: float32[m, r]"
    )


def test_derived_extents_are_checked():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.placeholder((n * 2 + 1,), name="B")
    C = te.compute((n,), lambda i: A[i] + B[i * 2 + 1], name="C")
    kernel = dlc.build(te.create_schedule(C.op), [A, B, C])
    assert _call(kernel, (3,), (6,), (3,)).startswith(
        "call main: argument 2 (B): wrong shape\n  got       (6,)\n  expected  (7,)"
    )


def test_a_read_outside_is_refused_at_the_call():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    B = te.compute((n,), lambda i: A[i, i + 2], name="B")
    kernel = dlc.build(te.create_schedule(B.op), [A, B])
    kernel(np.zeros((3, 5), "float32"), np.empty(3, "float32"))
    kernel(np.zeros((0, 1), "float32"), np.empty(0, "float32"))
    assert _call(kernel, (3, 4), (3,)) == (
        "call main: B would read A[i, i + 2] outside dimension 1\n"
        "  got       n = 3, m = 4\n"
        "  expected  (n <= 0) or ((n + 1) < m)"
    )


def test_a_read_through_a_division_by_a_symbol_is_checked():
    n, m, p, q = (te.var(name) for name in "nmpq")
    A = te.placeholder((n, m), name="A")
    B = te.compute((p, q), lambda i, j: A[(i * q + j) // m, (i * q + j) % m], name="B")
    reshape = dlc.build(te.create_schedule(B.op), [A, B])
    a = np.arange(12, dtype="float32").reshape(3, 4)
    for shape in ((2, 6), (12, 1), (0, 7), (1, 5)):
        b = np.empty(shape, "float32")
        reshape(a, b)
        np.testing.assert_array_equal(b, a.reshape(-1)[: b.size].reshape(shape))
    with pytest.raises(CallError, match="outside dimension 0"):
        reshape(a, np.empty((5, 4), "float32"))


def test_an_index_that_is_inside_for_all_sizes_is_not_checked():
    n = te.var("n")
    A = te.placeholder((n + 3,), name="A")
    k = te.reduce_axis((0, 3), name="k")
    B = te.compute((n + 1,), lambda i: te.sum(A[i + k], axis=k), name="B")
    assert dlc.lower(te.create_schedule(B.op), [n, A, B]).checks == ()


@pytest.mark.parametrize("value", [1.5, "3", None])
def test_a_number_of_the_wrong_kind(value):
    n, shift = te.var("n"), te.var("shift")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + shift, name="B")
    kernel = dlc.build(te.create_schedule(B.op), [A, shift, B])
    assert _call(kernel, (3,), value, (3,)) == (
        "call main: argument 2 (shift): not a number of its kind\n"
        f"  got       {value!r} ({type(value).__name__})\n"
        "  expected  an integer"
    )


def test_a_symbol_that_nothing_tells():
    n = te.var("n")
    A = te.placeholder((n + 1,), name="A")
    B = te.compute((n,), lambda i: A[i], name="B")
    dlc.lower(te.create_schedule(B.op), [A, B])
    C = te.compute((n + 2,), lambda i: A[0], name="C")
    with pytest.raises(ScheduleError, match="symbol n cannot be inferred from the arguments"):
        dlc.lower(te.create_schedule(C.op), [A, C])


def test_an_unrolled_loop_has_a_known_length():
    _, _, Z = _matmul()
    s = te.create_schedule(Z.op)
    assert str(s.can("unroll", s[Z].op.axis[0]).reason) == (
        "the body of Z would be repeated n times, an unknown number"
    )


def test_an_unrolled_stage_can_be_inlined():
    n = te.var("n")
    A = te.placeholder((n, 4), name="A")
    B = te.compute((n, 4), lambda i, j: A[i, j] * 2.0, name="B")
    C = te.compute((n, 4), lambda i, j: B[i, j] + 1.0, name="C")
    s = te.create_schedule(C.op)
    s[B].unroll(s[B].op.axis[1])
    s[B].compute_inline()
    s[C].unroll(s[C].op.axis[1])
    assert "unrolled" in str(dlc.lower(s, [A, C], simple_mode=True))


REFUSALS = {
    "te.var n: a number of this dtype cannot be passed to a kernel\n"
    "  got       float16\n"
    "  expected  an integer type, bool, float32 or float64": lambda: te.var("n", "float16"),
    "te.placeholder A: an extent must be an integer\n"
    "  got       n (float32)\n"
    "  expected  a number, or a formula of te.var symbols: n + 1, n // 2": lambda: te.placeholder(
        (te.var("n", "float32"),), name="A"
    ),
    "te.reduce_axis k: the domain starts at a symbol\n"
    "  got       (Var(n), 4)\n"
    "  expected  (0, n)\n"
    "  hint      start at a number, and add the symbol where the axis is used": lambda: (
        te.reduce_axis((te.var("n"), 4), name="k")
    ),
}


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals(text):
    with pytest.raises(ExpressionError) as error:
        REFUSALS[text]()
    assert str(error.value) == text


INTEGERS = ("int8", "int16", "uint8", "uint16", "uint32", "uint64")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_that_are_data_wrap(dtype):
    factor = te.var("factor", dtype)
    assert factor.dtype == dtype
    A = te.placeholder((4,), dtype, name="A")
    B = te.compute((4,), lambda i: A[i] * factor - factor // 3, name="B")
    s = te.create_schedule(B.op)
    a, wanted = np.array([1, 2, 3, 100], dtype), np.empty(4, dtype)
    number = np.array(101, dtype)
    np.subtract(a * number, number // np.array(3, dtype), out=wanted)
    np.testing.assert_array_equal(te.evaluate(B, {A: a, factor: 101}), wanted)
    for target in ("cpu", "c"):
        kernel, b = dlc.build(s, [A, B, factor], target), np.empty(4, dtype)
        kernel(a, b, 101)
        np.testing.assert_array_equal(b, wanted)
        kernel(a, b, np.int64(1))
        np.testing.assert_array_equal(b, a)
    low, high = dtypes.min_value(dtype), dtypes.max_value(dtype)
    for number in (low - 1, high + 1):
        with pytest.raises(CallError, match=f"does not fit {dtype}") as caught:
            kernel(a, b, number)
        assert str(caught.value).endswith(f"  got       {number}\n  expected  {low} to {high}")
        with pytest.raises(CallError, match=f"factor: the number does not fit {dtype}"):
            te.evaluate(B, {A: a, factor: number})
    with pytest.raises(CallError, match=r"(?s)not a number of its kind.*expected  an integer"):
        kernel(a, b, 1.0)


def _runs_of_a_number(dtype):
    """Return what adds a number to [0, 0]: by NumPy, interpreted, in LLVM and in C."""
    A, x = te.placeholder((2,), "float64", name="A"), te.var("x", dtype)
    B = te.compute((2,), lambda i: A[i] + x.astype("float64"), name="B")
    s = te.create_schedule(B.op)
    func, a = dlc.lower(s, [x, A, B]), np.zeros(2)

    def filled(run):
        def call(number):
            b = np.empty(2)
            run(number, a, b)
            return b[0]

        return call

    return {
        "evaluate B: x": lambda number: te.evaluate(B, {A: a, x: number})[0],
        "interpret main: x": filled(lambda *args: interpret(func, args)),
        "call main: argument 1 (x)": filled(dlc.build(s, [x, A, B])),
        "call main: argument 1 (x): ": filled(dlc.build(s, [x, A, B], target="c")),
    }


@pytest.mark.parametrize(
    ("dtype", "number", "shown", "infinity"),
    [
        ("float32", 1e300, "1e+300", "inf"),
        ("float32", -1e39, "-1e+39", "-inf"),
        ("float32", np.float64(3.4028236e38), "3.4028236e+38", "inf"),
        ("float32", np.array(1e39), "1e+39", "inf"),
        ("float32", 10**39, str(10**39), "inf"),
        ("float32", -(10**400), "an integer of 1329 bits", "-inf"),
        ("float64", 10**400, "an integer of 1329 bits", "inf"),
        ("float64", Fraction(-(10**310)), str(-(10**310)), "-inf"),
    ],
)
def test_a_finite_number_never_becomes_infinite(dtype, number, shown, infinity):
    largest = dtypes.LARGEST[dtype]
    for where, run in _runs_of_a_number(dtype).items():
        with pytest.raises(CallError) as caught:
            run(number)
        assert str(caught.value) == (
            f"{where.removesuffix(': ')}: the number does not fit {dtype}\n"
            f"  got       {shown}\n"
            f"  expected  {-largest} to {largest}, or an infinity\n"
            f"  because   it would become {infinity}"
        )


def test_infinities_and_what_rounds_to_the_largest_number_stay():
    largest = dtypes.LARGEST["float32"]
    for run in _runs_of_a_number("float32").values():
        assert [run(x) for x in (np.inf, -np.inf, largest, 3.4028235e38, -3.4028235e38)] == [
            *(np.inf, -np.inf, largest, largest, -largest)
        ]
        assert np.isnan(run(np.nan))


@pytest.mark.parametrize("number", [1e300, 2, "x", None])
def test_a_condition_is_true_or_false(number):
    for run in _runs_of_a_number("bool").values():
        with pytest.raises(CallError, match=r"(?s)not a number of its.*expected  True or False"):
            run(number)


@pytest.mark.parametrize("number", [2.0, 1e300, np.inf, 2**50, 2**70])
def test_an_index_is_an_integer_of_48_bits(number):
    for run in _runs_of_a_number("int32").values():
        with pytest.raises(CallError, match=r"not a number of its kind|the number is too large"):
            run(number)


def test_what_is_data_is_no_extent():
    with pytest.raises(ExpressionError, match="an extent must be an integer"):
        te.placeholder((te.var("n", "uint8"),))
    assert te.size_var("n", "uint8").dtype == te.var("n", "int64").dtype == "index"


def test_a_symbol_that_cannot_be_inferred():
    n = te.var("n")
    B = te.compute((4,), lambda i: i + n, name="B")
    with pytest.raises(CallError) as error:
        te.evaluate(B, [])
    assert str(error.value) == (
        "specialize: symbol n cannot be inferred from the arguments\n"
        "  because   no input has it as an extent by itself\n"
        "  hint      give it a number: {n: …}"
    )
