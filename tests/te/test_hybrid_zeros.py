"""Memory of a hybrid script, and of loop IR by hand, begins as zeros in all evaluations."""

# ruff: noqa: F821 - the words of the script are no names of Python

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.ir.builder import Builder
from dlcompiler.simulate import interpret

A = np.arange(-3, 5, dtype="float32")
"""Some are below 0."""


@te.hybrid.script
def under_a_condition(a):
    c = output_tensor((8,), a.dtype)
    for i in range(8):
        if a[i] > 0:
            c[i] = a[i]
    return c


@te.hybrid.script
def in_part(a):
    c = output_tensor((8,), "float32")
    for i in range(3):
        c[i] = a[i]
    return c


@te.hybrid.script
def accumulated(a):
    c = output_tensor((8,), "float32")
    for i in range(8):
        c[i] += a[i]
    return c


@te.hybrid.script
def read_ahead(a):
    c = output_tensor((8,), "float32")
    for i in range(8):
        c[i] = a[i]
        if i < 7:
            c[i] = c[i] + c[i + 1]
    return c


@te.hybrid.script
def twice_over_nothing(a):
    c = output_tensor((8,), "float32")
    for _k in range(a.shape[0] - 8):
        for i in range(8):
            c[i] = a[i]
    return c


@te.hybrid.script
def one_of_the_branches(a):
    c = output_tensor((8,), "float32")
    for i in range(8):
        if a[i] > 0:
            c[i] = a[i]
        else:
            c[0] = 1.0
    return c


@te.hybrid.script
def backwards(a):
    c = output_tensor((8,), "float32")
    for i in range(8):
        c[7 - i] = c[7 - i] - a[i]
    return c


@te.hybrid.script
def on_the_diagonal(a):
    c = output_tensor((8, 8), "float32")
    for i in range(8):
        c[i, i] = a[i]
    return c


@te.hybrid.script
def through_a_temporary(a):
    c = output_tensor((8,), "float32")
    for i in range(8):
        t = allocate((2,), "float32", "local")
        if a[i] > 0:
            t[1] = a[i]
        c[i] = t[0] + t[1]
    return c


FILLED = [
    under_a_condition,
    in_part,
    accumulated,
    read_ahead,
    twice_over_nothing,
    one_of_the_branches,
    backwards,
    on_the_diagonal,
    through_a_temporary,
]


def _stage(function):
    X = te.placeholder(A.shape, "float32", name="X")
    C = function(X)
    return X, C, te.create_schedule(C.op)


@pytest.mark.campaign
@pytest.mark.parametrize("function", FILLED, ids=lambda f: f.__name__)
@pytest.mark.parametrize("target", ["cpu", "c"])
def test_compiled(function, target):
    X, C, s = _stage(function)
    expected = function(A)
    got = np.full(C.static_shape, 77, "float32")
    dlc.build(s, [X, C], target)(A, got)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("function", FILLED, ids=lambda f: f.__name__)
def test_interpreted_and_evaluated(function):
    X, C, s = _stage(function)
    expected = function(A)
    np.testing.assert_array_equal(te.evaluate(C, {X: A}), expected)
    got = np.full(C.static_shape, 77, "float32")
    assert not interpret(dlc.lower(s, [X, C]), [A, got]).unwritten
    np.testing.assert_array_equal(got, expected)
    assert dlc.verify(s, [X, C]).oracles[0] == "numpy"


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "float64", "bool"])
def test_of_each_dtype(dtype):
    @te.hybrid.script
    def chosen(a):
        c = output_tensor((8,), a.dtype)
        for i in range(8):
            if i < 3:
                c[i] = a[i]
        return c

    values = np.ones(8, dtype)
    X = te.placeholder((8,), dtype, name="X")
    C = chosen(X)
    got = np.ones(8, dtype)
    dlc.build(te.create_schedule(C.op), [X, C])(values, got)
    np.testing.assert_array_equal(got, chosen(values))


def test_of_symbolic_extents():
    n = te.var("n")
    X = te.placeholder((n,), name="X")

    @te.hybrid.script
    def positive(a):
        c = output_tensor(a.shape, "float32")
        for i in range(a.shape[0]):
            if a[i] > 0:
                c[i] = a[i]
        return c

    C = positive(X)
    kernel = dlc.build(te.create_schedule(C.op), [X, C])
    got = np.full(8, 77, "float32")
    kernel(A, got)
    np.testing.assert_array_equal(got, np.maximum(A, 0))


def test_threads_of_a_device():
    @te.hybrid.script
    def positive(a):
        c = output_tensor((2, 4), "float32")
        for i in bind("blockIdx.x", 2):
            for j in bind("threadIdx.x", 4):
                if a[4 * i + j] > 0:
                    c[i, j] = a[4 * i + j]
        return c

    X, C, s = _stage(positive)
    got = np.full((2, 4), 77, "float32")
    dlc.build(s, [X, C], "gpu")(A, got)
    np.testing.assert_array_equal(got, positive(A))


# -- loop IR by hand, and schedules of threads --------------------------------------------------


def _positive(kind, temporary=""):
    """Return what writes each positive element of its input, of 8, into an output."""

    def statements(ins, outs):
        ib = Builder()
        x, c = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        t = ib.allocate("float32", (8,), "t") if temporary == "around" else None
        with ib.for_range(0, 8, "i", kind=kind) as i:
            if temporary == "inside":
                t = ib.allocate("float32", (8,), "t", "local")
            with ib.if_scope(x[i] > 0):
                (t or c)[i] = x[i]
            if t:
                c[i] = t[i]
        return ib.get()

    return statements


BY_HAND = [
    *(("serial", ""), ("parallel", ""), ("serial", "around"), ("serial", "inside")),
    *(("blockIdx.x", ""), ("threadIdx.x", ""), ("blockIdx.x", "around"), ("threadIdx.x", "around")),
    *(("blockIdx.x", "inside"), ("threadIdx.x", "inside")),
]


@pytest.mark.campaign
@pytest.mark.parametrize(("kind", "temporary"), BY_HAND)
@pytest.mark.parametrize("has_reader", [False, True])
def test_loop_ir_by_hand_begins_as_zeros(kind, temporary, has_reader):
    X = te.placeholder((8,), name="X")
    E = C = te.extern((8,), [X], _positive(kind, temporary), name="E")
    if has_reader:
        C = te.compute((8,), lambda i: E[i] + 0.0, name="C")
    s = te.create_schedule(C.op)
    is_device = kind.endswith(".x")
    if is_device and has_reader:
        s[C].bind(C.op.axis[0], te.thread_axis("blockIdx.x"))
    expected, got = np.maximum(A, 0), np.full(8, 77, "float32")
    np.testing.assert_array_equal(te.evaluate(C, {X: A}), expected)
    for target in ("gpu",) if is_device else ("cpu", "c"):
        got[:] = 77
        dlc.build(s, [X, C], target)(A, got)
        np.testing.assert_array_equal(got, expected)
    got[:] = 77
    assert not interpret(dlc.lower(s, [X, C]), [A, got]).unwritten
    np.testing.assert_array_equal(got, expected)
    assert dlc.verify(s, [X, C], target="gpu" if is_device else "cpu")


def test_a_temporary_around_the_threads_of_a_script():
    @te.hybrid.script
    def positive(a):
        c = output_tensor((8,), "float32")
        t = allocate((8,), "float32")
        for i in bind("blockIdx.x", 8):
            if a[i] > 0:
                t[i] = a[i]
            c[i] = t[i]
        return c

    X, C, s = _stage(positive)
    got = np.full(8, 77, "float32")
    dlc.build(s, [X, C], "gpu")(A, got)
    np.testing.assert_array_equal(got, np.maximum(A, 0))


# -- scripts that write all: nothing is filled --------------------------------------------------


@te.hybrid.script
def product(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), "float32")
    for i in range(a.shape[0]):
        for j in parallel(b.shape[1]):
            c[i, j] = 0.0
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = c[0, 0] + c[i, j]
    return c


@te.hybrid.script
def both_branches(a, b):
    c = output_tensor(a.shape, "float32")
    d = output_tensor((1,), "float32")
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > 0:
                c[i, j] = b[0, 0]
            else:
                c[i, j] = a[i, j]
    d[0] = c[0, 0]
    return c, d


@pytest.mark.parametrize("function", [product, both_branches])
def test_what_is_written_in_full_is_not_filled(function):
    X, Y = te.placeholder((3, 4), name="X"), te.placeholder((4, 5), name="Y")
    made = function(X, Y)
    outs = made if isinstance(made, tuple) else (made,)
    func = dlc.lower(te.create_schedule(outs[0].op), [X, Y, *outs], simple_mode=True)
    assert "d0" not in str(func)


def test_the_fill_is_in_the_program(golden):
    X, C, s = _stage(under_a_condition)
    golden("under_a_condition", str(dlc.lower(s, [X, C], simple_mode=True)) + "\n")
