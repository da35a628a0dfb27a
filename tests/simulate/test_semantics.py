"""The meaning of every operation, held against Python's integers and NumPy's floats."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlcompiler import dtypes
from dlcompiler.ir import (
    Allocate,
    Buffer,
    Call,
    Cast,
    Const,
    For,
    If,
    IfThenElse,
    Load,
    Logical,
    Not,
    PrimFunc,
    Select,
    Seq,
    Store,
    Var,
    binary,
    compare,
    const,
    index_const,
)
from dlcompiler.simulate import interpret

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]


def _wrap(value, dtype):
    count = 2 ** dtypes.bits(dtype)
    value %= count
    return value - count if not dtypes.is_unsigned(dtype) and value >= count // 2 else value


def _trunc(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


EXACT = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b if b else 0,
    "floormod": lambda a, b: a % b if b else 0,
    "truncdiv": lambda a, b: _trunc(a, b) if b else 0,
    "truncmod": lambda a, b: a - b * _trunc(a, b) if b else 0,
    "min": min,
    "max": max,
}


def _interesting(dtype):
    low, high = int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype))
    return sorted(
        {v for v in (0, 1, -1, 2, 3, -3, 7, low, low + 1, high, high - 1) if low <= v <= high}
    )


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", EXACT)
def test_data_integers_wrap(op, dtype, compute):
    pairs = [(a, b) for a in _interesting(dtype) for b in _interesting(dtype)]
    a, b = (np.array(side, dtype) for side in zip(*pairs, strict=True))
    got = compute(lambda x, y: binary(op, x, y), a, b)
    assert got.dtype == dtype
    assert got.tolist() == [_wrap(EXACT[op](x, y), dtype) for x, y in pairs]


@pytest.mark.parametrize("op", EXACT)
def test_indices_never_overflow(op, loop):
    A, i = Buffer("A", (2,), "int64"), Var("i")
    for x, y in [(-7, 2), (7, -2), (-7, 0), (2**62, 3), (5, 5)]:
        # The loop variable keeps the builder from folding.
        value = binary(op, i + x, i - i + y)
        if op in ("add", "mul", "sub"):
            value = binary("floordiv", value, index_const(8))
            expected = EXACT[op](x, y) // 8
        else:
            expected = EXACT[op](x, y)
        body = loop(i, 1, Store(A, (i,), Cast(value, "int64")))
        out = np.zeros(2, "int64")
        interpret(PrimFunc("f", (A,), (A,), body), [out])
        assert out[0] == expected


SPECIAL = [0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan, 1e30, 5e-324, 65504.0, 0.1]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "min", "max"])
def test_floats_are_ieee_and_round_each_time(op, dtype, compute):
    with np.errstate(all="ignore"):
        pairs = np.array([(a, b) for a in SPECIAL for b in SPECIAL]).astype(dtype)
        a, b = pairs[:, 0].copy(), pairs[:, 1].copy()
        numpy_op = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
        expected = {**numpy_op, "min": np.minimum, "max": np.maximum}[op](a, b)
    got = compute(lambda x, y: binary(op, x, y), a, b)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, expected)


def test_float32_rounds_between_operations(compute):
    a = np.array([1e8], "float32")
    assert compute(lambda x: ((x + 1) - x) - 1, a).tolist() == [-1.0]


def test_min_and_max_propagate_nan(compute):
    a, b = np.array([math.nan, 1, 1], "float32"), np.array([1, math.nan, 2], "float32")
    for op in ("min", "max"):
        got = compute(lambda x, y, op=op: binary(op, x, y), a, b)
        assert np.isnan(got).tolist() == [True, True, False]


def test_negation_keeps_the_sign_of_zero(compute):
    got = compute(lambda x: -x, np.array([0.0, -0.0, 2.0], "float32"))
    assert np.signbit(got).tolist() == [True, False, True]


def test_comparisons_with_nan(compute):
    a, b = np.array([math.nan, 1.0]), np.array([1.0, 1.0])
    results = {
        op: compute(lambda x, y, op=op: compare(op, x, y), a, b).tolist()
        for op in ("eq", "ne", "lt", "le", "gt", "ge")
    }
    assert {op for op, (with_nan, _) in results.items() if with_nan} == {"ne"}
    assert {op for op, (_, equal) in results.items() if equal} == {"eq", "le", "ge"}


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", INTEGERS)
def test_float_to_integer_truncates_and_saturates(source, target, compute):
    low, high = dtypes.min_value(target), dtypes.max_value(target)
    with np.errstate(all="ignore"):
        values = np.array(
            [0.0, -0.9, 1.9, -1.9, 126.5, 200.0, -200.0, 3e9, -3e9, 2.0**63, 2.0**64, 1e30,
             -1e30, math.inf, -math.inf, float(high), float(low)]
        ).astype(source)  # fmt: skip
    got = compute(lambda x: Cast(x, target), values)
    assert got.dtype == target
    finite = [v if math.isfinite(v) else math.copysign(10.0**300, v) for v in values.tolist()]
    assert got.tolist() == [min(max(int(v), low), high) for v in finite]
    assert compute(lambda x: Cast(x, target), np.array([math.nan], source)).tolist() == [0]


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("target", [*INTEGERS, *FLOATS, "bool"])
def test_integer_conversions(source, target, compute):
    values = _interesting(source)
    got = compute(lambda x: Cast(x, target), np.array(values, source))
    if target in INTEGERS:
        assert got.tolist() == [_wrap(v, target) for v in values]
    else:
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(got, np.array(values, source).astype(target))


def test_conversions_to_and_from_bool(compute):
    values = np.array([0.0, -0.0, 0.5, math.nan], "float32")
    assert compute(lambda x: Cast(x, "bool"), values).tolist() == [False, False, True, True]
    flags = np.array([False, True])
    assert compute(lambda x: Cast(x, "float32"), flags).tolist() == [0.0, 1.0]
    assert compute(lambda x: Cast(x, "int8"), flags).tolist() == [0, 1]


def test_an_index_becomes_data_by_wrapping(loop):
    A, i = Buffer("A", (3,), "int8"), Var("i")
    out = np.zeros(3, "int8")
    body = loop(i, 3, Store(A, (i,), Cast(i * 100, "int8")))
    interpret(PrimFunc("f", (A,), (A,), body), [out])
    assert out.tolist() == [0, 100, -56]


def test_large_integers_round_once_to_float32(compute):
    values = np.array([2**60 + 2**36 + 1, 2**24 + 1, -(2**63)], "int64")
    expected = values.astype("float32")
    np.testing.assert_array_equal(compute(lambda x: Cast(x, "float32"), values), expected)


def _bfloat16(value):
    """Round to bfloat16 by trying the neighbours: slow and obvious."""
    bits = int(np.float32(value).view(np.uint32))
    below = np.array([bits & 0xFFFF0000], np.uint32).view(np.float32)[0]
    above = np.array([(bits & 0xFFFF0000) + 0x10000], np.uint32).view(np.float32)[0]
    distances = (abs(float(value) - float(below)), abs(float(above) - float(value)))
    if distances[0] == distances[1]:
        return float(below if not (bits >> 16) & 1 else above)
    return float(below if distances[0] < distances[1] else above)


def test_bfloat16_rounds_each_operation(compute):
    values = np.array([1.0, 3.14159, -0.1, 257.0, 258.99, 1e-3], "float32")

    def square_and_add(x):
        narrow = Cast(x, "bfloat16")
        return Cast(binary("add", binary("mul", narrow, narrow), const(1, "bfloat16")), "float32")

    narrow = [_bfloat16(v) for v in values]
    expected = [_bfloat16(np.float32(_bfloat16(np.float32(v) * np.float32(v))) + 1) for v in narrow]
    assert compute(square_and_add, values).tolist() == expected


FUNCTIONS = {
    "exp": math.exp, "log": math.log, "sqrt": math.sqrt, "sin": math.sin, "cos": math.cos,
    "tan": math.tan, "tanh": math.tanh, "erf": math.erf, "floor": math.floor, "ceil": math.ceil,
    "trunc": math.trunc, "round": round, "abs": abs,
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, dtype, compute):
    values = np.array([0.5, 1.0, 1.5, 2.5, 3.75], dtype)
    got = compute(lambda x: Call(name, (x,), dtype), values)
    expected = [FUNCTIONS[name](v) for v in values.tolist()]
    assert got.dtype == dtype
    np.testing.assert_allclose(got, expected, rtol=4 * float(np.finfo(dtype).eps))


def test_power_and_domain_errors(compute):
    a, b = np.array([2.0, -8.0, 0.0]), np.array([10.0, 0.5, -1.0])
    got = compute(lambda x, y: Call("pow", (x, y), "float64"), a, b)
    assert got[0] == 1024.0
    assert np.isnan(got[1])
    assert got[2] == math.inf


def test_conditions(compute):
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    assert compute(lambda x, y: Logical("and", x, y), a, b).tolist() == [True, False, False, False]
    assert compute(lambda x, y: Logical("or", x, y), a, b).tolist() == [True, True, True, False]
    assert compute(Not, a).tolist() == [False, False, True, True]


A, B, i = Buffer("A", (4,), "float32"), Buffer("B", (4,), "float32"), Var("i")


def _run(body, count_a=4):
    a, b = np.arange(1, count_a + 1, dtype="float32"), np.full(4, np.nan, "float32")
    report = interpret(PrimFunc("f", (A, B), (B,), body), [a, b])
    return b.tolist(), report


def test_a_lazy_choice_guards_a_load(loop):
    shifted = IfThenElse(i >= 1, Load(A, (i - 1,)), const(0, "float32"))
    values, report = _run(loop(i, 4, Store(B, (i,), shifted)))
    assert values == [0, 1, 2, 3]
    assert report.loads == 3


def test_the_second_condition_is_evaluated_only_when_it_decides(loop):
    guarded = Logical("and", i >= 1, Load(A, (i - 1,)) > 1)
    values, _ = _run(loop(i, 4, Store(B, (i,), Cast(guarded, "float32"))))
    assert values == [0, 0, 1, 1]


def test_an_eager_choice_evaluates_both_sides(loop):
    first = Select(i < 2, Load(A, (i,)), Load(A, (3 - i,)))
    values, report = _run(loop(i, 4, Store(B, (i,), first)))
    assert values == [1, 2, 2, 1]
    assert report.loads == 8


def test_branches_and_nothing(loop):
    body = loop(i, 4, If(i < 1, Store(B, (i,), const(5, "float32")), Store(B, (i,), Load(A, (i,)))))
    assert _run(body)[0] == [5, 2, 3, 4]
    values, report = _run(Seq(()))
    assert np.isnan(values).all()
    assert report.unwritten == 4


def test_extents_that_depend_on_outer_loops(loop):
    j = Var("j")
    triangle = loop(i, 4, For(j, i + 1, "serial", Store(B, (j,), Cast(i, "float32"))))
    values, report = _run(triangle)
    assert values == [3, 3, 3, 3]
    assert report.steps == 4 + 10 + 10


def test_a_shared_node_is_evaluated_once_a_statement(loop):
    x = Load(A, (i,))
    tower = x
    for _ in range(60):
        tower = binary("add", tower, tower)
    values, report = _run(loop(i, 4, Store(B, (i,), tower)))
    assert values == [v * 2.0**60 for v in (1, 2, 3, 4)]
    assert report.loads == 4


def test_a_shared_index_is_no_slower():
    wide = i
    for _ in range(60):
        wide = binary("sub", wide + wide, wide)
    body = For(i, index_const(4), "serial", Store(B, (i,), Load(A, (wide,))))
    assert _run(body)[0] == [1, 2, 3, 4]


def test_allocated_memory_is_forgotten_each_time(loop):
    T = Buffer("T", (1,), "float32", scope="local")
    zero = index_const(0)
    body = Allocate(T, Seq((Store(T, (zero,), Load(A, (i,))), Store(B, (i,), Load(T, (zero,))))))
    assert _run(loop(i, 4, body))[0] == [1, 2, 3, 4]


def test_arrays_of_any_layout(loop):
    M, N = Buffer("M", (3, 2), "int32"), Buffer("N", (3, 2), "int32", strides=(1, 4))
    j = Var("j")
    body = loop(i, 3, loop(j, 2, Store(N, (i, j), Load(M, (i, j)) + 1)))
    source = np.arange(12, dtype="int32").reshape(2, 6)[::-1, ::2].T
    result = np.zeros((6, 2), "int32")[::-2]
    interpret(PrimFunc("f", (M, N), (N,), body), [source, result])
    np.testing.assert_array_equal(result, source + 1)


def test_scalars_and_empty_arrays(loop):
    s, t, E = Buffer("s", (), "float64"), Buffer("t", (), "float64"), Buffer("E", (0, 3), "int8")
    body = Seq((Store(t, (), Load(s, ()) * 2), loop(i, 0, Store(E, (i, i), Const(1, "int8")))))
    out = np.zeros(())
    func = PrimFunc("f", (s, t, E), (t, E), body)
    report = interpret(func, [np.array(21.0), out, np.zeros((0, 3), "int8")])
    assert out == 42
    assert (report.steps, report.unwritten) == (1, 0)


@given(st.data())
@settings(max_examples=60)
def test_random_arithmetic_of_int32(data):
    """Random trees of wrapping operations, against Python's integers."""
    ops = st.sampled_from(sorted(EXACT))
    values = st.integers(-(2**31), 2**31 - 1)
    x, y = data.draw(values), data.draw(values)

    def tree(height):
        if height == 0 or data.draw(st.booleans()):
            kind = data.draw(st.sampled_from("xyc"))
            literal = data.draw(values)
            return {
                "x": (Load(X, (i,)), x),
                "y": (Load(Y, (i,)), y),
                "c": (const(literal, "int32"), literal),
            }[kind]
        op = data.draw(ops)
        (a, u), (b, v) = tree(height - 1), tree(height - 1)
        return binary(op, a, b), _wrap(EXACT[op](u, v), "int32")

    X, Y, Z = (Buffer(name, (1,), "int32") for name in "XYZ")
    expr, expected = tree(4)
    body = For(i, index_const(1), "serial", Store(Z, (i,), expr))
    out = np.zeros(1, "int32")
    arrays = [np.array([x], "int32"), np.array([y], "int32"), out]
    interpret(PrimFunc("f", (X, Y, Z), (Z,), body), arrays)
    assert out[0] == expected
