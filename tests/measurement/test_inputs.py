"""Several kinds of inputs: what is wrong only at the extremes is found, what is right passes."""

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import dtypes, te
from dlcompiler.errors import VerificationError
from dlcompiler.ir import For, Load, Store, Var, const, index_const
from dlcompiler.ir.expr import binary, cast
from dlcompiler.measurement.inputs import KINDS, drawn
from dlcompiler.measurement.oracle import oracles_of
from dlcompiler.measurement.verification import sizes_to_try

NUMBERS = [*(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
           "float16", "bfloat16", "float32", "float64"]  # fmt: skip


@pytest.mark.parametrize("dtype", ["bool", *NUMBERS])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_drawn_is_reproducible_and_of_the_dtype(kind, dtype):
    for shape in ((), (0, 3), (1,), (20, 30)):
        tensor = te.placeholder(shape, dtype, name="A")
        first, again, other = (drawn(kind, tensor, seed) for seed in (4, 4, 5))
        assert isinstance(first, np.ndarray)
        assert first.shape == shape
        assert first.dtype == dtypes.to_numpy(dtype)
        assert np.array_equal(
            first.view(np.uint8) if shape else first, again.view(np.uint8) if shape else again
        )
        if first.size > 1 and kind not in ("smallest", "greatest") and dtypes.is_float(dtype):
            assert not np.array_equal(first, other)
        assert np.isfinite(first.astype(np.float64)).all()


@pytest.mark.parametrize("dtype", NUMBERS)
def test_the_extremes_of_a_dtype_are_among_them(dtype):
    tensor = te.placeholder((40, 50), dtype, name="A")
    values = drawn("extremes", tensor, 0).astype(np.float64)
    if dtypes.is_float(dtype):
        largest = dtypes.LARGEST[dtype]
        assert (values.min(), values.max()) == (-largest, largest)
        assert (values == 0).any()
        assert 0 < np.abs(values[values != 0]).min() < 2.0 ** -(10 if dtype == "float16" else 100)
    else:
        ends = float(dtypes.min_value(dtype)), float(dtypes.max_value(dtype))
        assert (values.min(), values.max()) == ends
        assert np.mean(np.isin(values, ends)) > 0.3
        assert set(drawn("alternating", tensor, 0)[0].astype(np.float64)) == set(ends)


def product(m, n, k, dtype, out=None, change=lambda x: x):
    A, B = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="r")
    out = out or dtype
    C = te.compute(
        (m, n),
        lambda i, j: te.sum(change(A[i, r].astype(out)) * B[r, j].astype(out), axis=r),
        name="C",
    )
    return A, B, C


@pytest.mark.parametrize("dtype", ["bool", *NUMBERS])
def test_tensors_without_dimensions(dtype):
    A = te.placeholder((), dtype, name="A")
    C = te.compute((), lambda: A[()], name="C")
    verified = dlc.verify(te.create_schedule(C.op), [A, C])
    assert set(verified.inputs) == set(KINDS)


@pytest.mark.campaign
@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (5, 4, 30), (3, 3, 300)])
def test_a_product_is_right_on_all_kinds(dtype, m, n, k):
    A, B, C = product(m, n, k, dtype)
    s = te.create_schedule(C.op)
    s[C].split(C.op.reduce_axis[0], factor=4)
    s[C].vectorize(C.op.axis[1])
    verified = dlc.verify(s, [A, B, C])
    assert verified.inputs[:2] == ("random", "extremes")
    assert verified.worst <= 1


X = te.placeholder((4, 6), name="X")
Y = te.placeholder((4, 6), name="Y")
K = te.reduce_axis((0, 6), name="k")
ALL = te.compute((4,), lambda i: te.sum(X[i, K], axis=K), name="all")
MEAN = te.compute((4,), lambda i: ALL[i] / 6.0, name="mean")
ALL_SQUARES = te.compute((4,), lambda i: te.sum(X[i, K] * X[i, K], axis=K), name="all_squares")
SQUARES = te.compute((4,), lambda i: ALL_SQUARES[i] / 6.0, name="squares")
LARGEST_OF = te.compute((4,), lambda i: te.max(X[i, K], axis=K), name="largest")
SUM = te.compute((4,), lambda i: te.sum(te.exp(X[i, K] - LARGEST_OF[i]), axis=K), name="total")
EXPRESSIONS = {
    "copy": lambda i, j: X[i, j],
    "relu": lambda i, j: te.maximum(X[i, j], 0.0),
    "difference of squares": lambda i, j: X[i, j] * X[i, j] - Y[i, j] * Y[i, j],
    "quotient": lambda i, j: X[i, j] / (Y[i, j] - X[i, j] + 1e-6),
    "product that underflows": lambda i, j: (X[i, j] * Y[i, j]) * (X[i, j] * 1e30),
    "deviation": lambda i, j: X[i, j] / te.sqrt(SQUARES[i] - MEAN[i] * MEAN[i]),
    "normalised": lambda i, j: (X[i, j] - MEAN[i]) / te.sqrt(SQUARES[i] + 1e-5),
    "softmax": lambda i, j: te.exp(X[i, j] - LARGEST_OF[i]) / SUM[i],
    "log of a sum": lambda i, j: te.log(X[i, j] + Y[i, j]),
    "power": lambda i, j: te.power(te.abs(X[i, j]) + 1e-3, Y[i, j]),
    "tanh": lambda i, j: te.tanh(X[i, j] * Y[i, j]),
    "sigmoid": lambda i, j: te.sigmoid(X[i, j] - Y[i, j]),
    "sin": lambda i, j: te.sin(X[i, j] + Y[i, j]),
    "rsqrt": lambda i, j: te.rsqrt(X[i, j] * X[i, j]),
    "acos": lambda i, j: te.acos(X[i, j] * Y[i, j]),
    "floor": lambda i, j: te.floor(X[i, j] * 3.0 + Y[i, j]),
    "chosen by a sum": lambda i, j: te.if_then_else(X[i, j] + Y[i, j] > 0.0, X[i, j], Y[i, j]),
    "mean": lambda i, j: MEAN[i] * Y[i, j],
}


@pytest.mark.campaign
@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_right_programs_are_never_refused(name, seed):
    Z = te.compute((4, 6), EXPRESSIONS[name], name="Z")
    s = te.create_schedule(Z.op)
    s[Z].vectorize(Z.op.axis[1])
    known = [stage.state.tensor for stage in s.stages]
    verified = dlc.verify(s, [*(t for t in (X, Y) if t in known), Z], seed=seed)
    assert verified.worst <= 1
    if name in ("floor", "chosen by a sum"):  # rounding may decide
        assert verified.inputs == ("random",)
    else:
        assert {"random", "smallest", "greatest", "alternating"} <= set(verified.inputs)


def scaled_rows(change, dtype="float32"):
    """Declare an intrinsic whose statements change what they read."""
    a = te.placeholder((8,), dtype, name="a")
    c = te.compute((8,), lambda i: a[i] * te.const(3, dtype), name="c")

    def carry_out(ins, outs):
        i = Var("i")
        value = change(Load(ins[0], (i,))) * const(3, dtype)
        return For(i, index_const(8), "serial", Store(outs[0], (i,), value))

    return te.decl_tensor_intrin(c.op, carry_out, "scaled")


def with_intrinsic(intrin, dtype="float32", rows=16):
    A = te.placeholder((rows, 8), dtype, name="A")
    C = te.compute((rows, 8), lambda i, j: A[i, j] * te.const(3, dtype), name="C")
    s = te.create_schedule(C.op)
    s[C].tensorize(C.op.axis[1], intrin)
    return s, [A, C]


@pytest.mark.parametrize(
    ("dtype", "change"),
    [
        ("float32", lambda x: binary("min", x, const(1e6, "float32"))),
        ("float32", lambda x: binary("max", x, const(-1e30, "float32"))),
        ("float64", lambda x: cast(cast(x, "float32"), "float64")),
        ("float16", lambda x: binary("min", x, const(2000.0, "float16"))),
        ("int32", lambda x: cast(cast(x, "int16"), "int32")),
        ("int64", lambda x: cast(cast(x, "int32"), "int64")),
        ("int64", lambda x: cast(cast(x, "float64"), "int64")),
        ("uint8", lambda x: binary("min", x, const(254, "uint8"))),
        ("uint64", lambda x: cast(cast(x, "int32"), "uint64")),
    ],
)
def test_statements_that_are_wrong_for_large_values_are_found(dtype, change):
    dlc.verify(*with_intrinsic(scaled_rows(lambda x: x, dtype), dtype))
    with pytest.raises(VerificationError):
        dlc.verify(*with_intrinsic(scaled_rows(change, dtype), dtype))


def saturating_dot(limit=32767):
    """Declare a dot product of four pairs of int8 that sums two products in 16 bits."""
    a, b = te.placeholder((4,), "int8", name="a"), te.placeholder((4,), "int8", name="b")
    k = te.reduce_axis((0, 4), name="k")
    c = te.compute(
        (1,), lambda _: te.sum(a[k].astype("int32") * b[k].astype("int32"), axis=k), name="c"
    )

    def carry_out(ins, outs):
        def term(n):
            at = (index_const(n),)
            return cast(Load(ins[0], at), "int32") * cast(Load(ins[1], at), "int32")

        zero = (index_const(0),)
        pairs = [binary("min", term(n) + term(n + 1), const(limit, "int32")) for n in (0, 2)]
        total = pairs[0] + pairs[1]
        return (
            Store(outs[0], zero, total),
            Store(outs[0], zero, const(0, "int32")),
            Store(outs[0], zero, Load(outs[0], zero) + total),
        )

    return te.decl_tensor_intrin(c.op, carry_out, f"dot_{limit}")


@pytest.mark.parametrize(("m", "k"), [(1, 4), (3, 8), (3, 64)])
def test_pairs_that_saturate_are_found(m, k):
    A, B = te.placeholder((m, k), "int8", name="A"), te.placeholder((k,), "int8", name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute(
        (m, 1),
        lambda i, _: te.sum(A[i, r].astype("int32") * B[r].astype("int32"), axis=r),
        name="C",
    )
    for limit, is_right in ((40_000, True), (32_767, False)):
        s = te.create_schedule(C.op)
        outer, inner = s[C].split(C.op.reduce_axis[0], factor=4)
        s[C].reorder(C.op.axis[0], outer, C.op.axis[1], inner)
        s[C].tensorize(C.op.axis[1], saturating_dot(limit))
        if is_right:
            dlc.verify(s, [A, B, C])
        else:
            with pytest.raises(VerificationError):
                dlc.verify(s, [A, B, C])


def test_a_result_without_any_bound_is_not_verified():
    A = te.placeholder((4,), "float16", name="A")
    C = te.compute((4,), lambda i: te.exp(te.exp(A[i] * A[i] + 3.0)) - te.exp(30.0), name="C")
    with pytest.raises(dlc.UserError, match="no inputs were found for which wrong results"):
        dlc.verify(te.create_schedule(C.op), [A, C])


def test_an_expensive_expression_is_tried_on_two_kinds():
    A, B, C = product(128, 128, 128, "float32")
    s = te.create_schedule(C.op)
    assert [oracle.kind for oracle in oracles_of(s, 0)] == ["random", "extremes"]
    assert dlc.verify(s, [A, B, C]).inputs == ("random", "extremes")


def test_each_size_of_a_symbolic_shape_gets_two_kinds():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    C = te.compute((n,), lambda i: A[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    assert len(list(sizes_to_try(s, dlc.lower(s, [A, C])))) == 4
    assert set(dlc.verify(s, [A, C]).inputs) == set(KINDS)
