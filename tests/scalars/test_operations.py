"""Operations of every dtype on edge values, against Python's integers and NumPy's floats."""

import itertools
import operator
from fractions import Fraction

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import dtypes, te
from dlcompiler.arith import Analyzer, Interval
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Binary, Var
from tests.scalars.agreement import (
    DATA,
    FLOATS,
    INTEGERS,
    agree,
    assert_same,
    edge_values,
    nearest,
    pairs,
)


def _truncdiv(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


INTEGER_OPERATIONS = {
    "add": (operator.add, operator.add),
    "sub": (operator.sub, operator.sub),
    "mul": (operator.mul, operator.mul),
    "floordiv": (operator.floordiv, lambda a, b: a // b if b else 0),
    "floormod": (operator.mod, lambda a, b: a % b if b else 0),
    "truncdiv": (te.truncdiv, lambda a, b: _truncdiv(a, b) if b else 0),
    "truncmod": (te.truncmod, lambda a, b: a - _truncdiv(a, b) * b if b else 0),
    "min": (te.minimum, min),
    "max": (te.maximum, max),
    "bitand": (operator.and_, operator.and_),
    "bitor": (operator.or_, operator.or_),
    "bitxor": (operator.xor, operator.xor),
    "eq": (operator.eq, operator.eq),
    "ne": (operator.ne, operator.ne),
    "lt": (operator.lt, operator.lt),
    "le": (operator.le, operator.le),
}
UNARY = {
    "neg": (operator.neg, operator.neg),
    "pos": (operator.pos, operator.pos),
    "invert": (operator.invert, operator.invert),
    "abs": (abs, abs),
    "square": (lambda x: x**2, lambda x: x**2),
    "fifth": (lambda x: x**5, lambda x: x**5),
    "zeroth": (lambda x: x**0, lambda x: 1),
}


def _wrapped(value, dtype):
    if isinstance(value, bool):
        return value
    low, high = int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype))
    return (value - low) % (high - low + 1) + low


def _expected(results, dtype):
    values = [_wrapped(value, dtype) for value in results]
    return np.array(values, bool if isinstance(values[0], bool) else dtype)


@pytest.mark.campaign
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype):
    a, b = pairs(dtype, dtype)
    points = [(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    got = agree({name: f for name, (f, _) in INTEGER_OPERATIONS.items()}, [a, b])
    for name, (_, exact) in INTEGER_OPERATIONS.items():
        assert_same(got[name], _expected([exact(*p) for p in points], dtype), [a, b], name)
    got = agree({name: f for name, (f, _) in UNARY.items()}, [a])
    for name, (_, exact) in UNARY.items():
        assert_same(got[name], _expected([exact(x) for x, _ in points], dtype), [a], name)


@pytest.mark.campaign
@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts(dtype):
    bits = dtypes.bits(dtype)
    amounts = {0, 1, 2, bits - 1, bits, bits + 1, int(dtypes.max_value(dtype)), 100}
    amounts |= set() if dtypes.is_unsigned(dtype) else {-1, -bits, int(dtypes.min_value(dtype))}
    values, _ = pairs(dtype, dtype)
    a, b = (x.ravel() for x in np.meshgrid(np.unique(values), np.array(sorted(amounts), dtype)))
    functions = {"shl": operator.lshift, "shr": operator.rshift}
    functions |= {f"shl{n}": lambda x, _, n=n: x << n for n in (0, 1, bits - 1)}
    functions |= {f"shr{n}": lambda x, _, n=n: x >> n for n in (0, 1, bits - 1)}
    got = agree(functions, [a, b])
    for name in functions:
        amount = int(name[3:]) if name[3:] else None
        results = []
        for x, y in zip(a.tolist(), b.tolist(), strict=True):
            n = y if amount is None else amount
            n = n if 0 <= n < bits else bits
            results.append(x << n if name.startswith("shl") else x >> n)
        assert_same(got[name], _expected(results, dtype), [a, b], name)


FLOAT_OPERATIONS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "min": te.minimum, "max": te.maximum, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip
NUMPY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(dtype):
    a, b = pairs(dtype, dtype)
    got = agree(
        {name: f for name, f in FLOAT_OPERATIONS.items() if name not in ("min", "max")}, [a, b]
    )
    with np.errstate(all="ignore"):
        for name, function in NUMPY.items():
            wide = function(a.astype("float64"), b.astype("float64")).astype(got[name].dtype)
            exact = wide if dtype in ("float16", "float32") else function(a, b)
            assert_same(got[name], exact, [a, b], name)
    # Which of 0 and -0 is the larger is not said.
    differ = (a != 0) | (b != 0)
    a, b = a[differ], b[differ]
    got = agree({"min": te.minimum, "max": te.maximum}, [a, b])
    with np.errstate(all="ignore"):
        assert_same(got["max"], np.where((a > b) | np.isnan(a), a, b), [a, b], "max")
        assert_same(got["min"], np.where((a < b) | np.isnan(a), a, b), [a, b], "min")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bits_round_each_operation(dtype):
    bits = np.random.default_rng(5).integers(0, 2**16, (3, 2000)).astype(np.uint16)
    a, b, c = bits.view(dtypes.to_numpy(dtype))
    with np.errstate(all="ignore"):
        finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c) & (b != 0)
    a, b, c = a[finite], b[finite], c[finite]
    got = agree({"Y": lambda x, y, z: x * y + z, "Q": lambda x, y, z: x / y}, [a, b, c])
    exact = [
        nearest(Fraction(float(x)) / Fraction(float(y)), dtype) for x, y in zip(a, b, strict=True)
    ]
    same = got["Q"].astype(float) == np.array(exact)
    assert same.all()
    for n in range(0, len(a), 7):
        product = nearest(Fraction(float(a[n])) * Fraction(float(b[n])), dtype)
        if np.isfinite(product):
            total = nearest(Fraction(product) + Fraction(float(c[n])), dtype)
            assert float(got["Y"][n]) == total


@pytest.mark.campaign
@pytest.mark.parametrize("dtype", DATA)
def test_literals(dtype):
    values = edge_values(dtype)
    x = np.arange(8, dtype="int32")
    makers = {f"v{n}": lambda i, v=v: te.select(i > 3, te.const(v, dtype), te.const(0, dtype))
              for n, v in enumerate(values.tolist())}  # fmt: skip
    got = agree(makers, [x])
    for n, value in enumerate(values):
        right = np.where(x > 3, value, np.zeros(8, values.dtype)).astype(values.dtype)
        assert_same(got[f"v{n}"], right, [x], f"{value}")


def test_conditions():
    a, b = pairs("bool", "bool")
    got = agree(
        {"and": operator.and_, "or": operator.or_, "xor": operator.xor, "not": lambda x, _: ~x},
        [a, b],
    )
    for name, right in {"and": a & b, "or": a | b, "xor": a ^ b, "not": ~a}.items():
        assert_same(got[name], right, [a, b], name)


def test_bits_of_an_index():
    A = te.placeholder((64,), "int32", name="A")
    B = te.compute(
        (8, 8), lambda i, j: A[(i << 3) | j] + A[(i * 8 + j) ^ 5] + A[i & 3] + A[~i & 7], name="B"
    )
    a = np.arange(64, dtype="int32") ** 2
    i, j = np.indices((8, 8))
    right = a[i * 8 + j] + a[(i * 8 + j) ^ 5] + a[i & 3] + a[~i & 7]
    np.testing.assert_array_equal(te.evaluate(B, [a]), right)


REFUSED = {
    "bitand of floats": lambda a, i: a & 1,
    "pow of conditions": lambda a, i: (a > 0) ** (a > 1),
    "abs of a condition": lambda a, i: abs(a > 0),
    "shift of an index": lambda a, i: i << i,
    "add of conditions": lambda a, i: (a > 0) + (a > 1),
}


@pytest.mark.parametrize("text", REFUSED)
def test_refusals(text):
    A = te.placeholder((4,), name="A")
    with pytest.raises(ExpressionError) as caught:
        te.compute((4,), lambda i: REFUSED[text](A[i], i))
    assert str(caught.value).startswith(text)


def test_numbers_of_numpy_on_the_left():
    A = te.placeholder((4,), "float32", name="A")
    B = te.compute((4,), lambda i: np.float32(2) * A[i] + np.int64(1), name="B")
    assert str(B.op.body) == "2.0*A[i] + 1.0"


def test_bounds_of_bit_operations_hold():
    ends = [(low, high) for low in range(-5, 8) for high in range(low, 8)]
    operations = {"bitand": operator.and_, "bitor": operator.or_, "bitxor": operator.xor}
    x_var, y_var = Var("x"), Var("y")
    for op, function in operations.items():
        for a, b in itertools.product(ends, ends[::5]):
            analyzer = Analyzer({x_var: Interval(*a), y_var: Interval(*b)})
            bounds = analyzer.interval(Binary(op, x_var, y_var))
            values = [function(x, y) for x in range(a[0], a[1] + 1) for y in range(b[0], b[1] + 1)]
            assert bounds.low <= min(values)
            assert bounds.high >= max(values)


OUTSIDE = {
    "i=58": (lambda A, i: A[i ^ 5], 63),
    "i=62": (lambda A, i: A[i | 3], 63),
    "i=21": (lambda A, i: A[(i * 3 % 64)], 63),
    "i=0": (lambda A, i: A[te.maximum(i, 63 - i)], 63),
    "i=1": (lambda A, i: A[(i ^ 1) - 1], -1),
}


@pytest.mark.parametrize("at", OUTSIDE)
def test_an_index_that_is_no_sum_is_tried_at_all_points(at):
    make, index = OUTSIDE[at]
    A = te.placeholder((63,), name="A")
    with pytest.raises(ExpressionError) as caught:
        te.compute((63,), lambda i: make(A, i), name="B")
    assert f"lies outside A at {at}\n  got       index {index} in" in str(caught.value)
    if index == 63:
        wide = te.placeholder((64,), name="A")
        te.compute((63,), lambda i: make(wide, i), name="B")


def test_bits_of_symbolic_indices_stay_inside():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i & 7] + A[te.minimum(i | 1, n - 1)], name="B")
    values, result = np.arange(5, dtype="float32"), np.zeros(5, "float32")
    dlc.build(te.create_schedule(B.op), [A, B])(values, result)
    assert result.tolist() == [1, 2, 5, 6, 8]
    C = te.compute((n,), lambda i: A[i ^ 1], name="C")
    with pytest.raises(dlc.errors.CallError):
        dlc.build(te.create_schedule(C.op), [A, C])(values, result)
