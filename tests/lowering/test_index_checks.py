"""Indices that cannot be proved to be inside are checked, where they must be and nowhere else."""

import ctypes

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import CallError, ExpressionError, ProgramError
from dlcompiler.pipeline import build, lower
from dlcompiler.schedule import create_schedule
from tests.lowering.gathers import WAYS, I, T, rows, runs, table


@pytest.mark.parametrize("wrong", [-1, 10, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("way", WAYS)
def test_a_gather_with_an_index_outside(way, wrong):
    C = rows()
    lookup = runs(create_schedule(C.op), [T, I, C], way)
    index, out = np.arange(40, dtype="int32") % 10, np.empty((40, 4), "float32")
    lookup(table, index, out)
    assert np.array_equal(out, table[index])
    index[37] = wrong
    with pytest.raises(ProgramError, match=r"T\[index\(I\[i\]\), j\] is outside T"):
        lookup(table, index, out)


@pytest.mark.parametrize("target", ["cpu", "c"])
def test_the_text_of_the_error(target):
    C = rows()
    lookup = build(create_schedule(C.op), [T, I, C], name="lookup", target=target)
    index = np.zeros(40, "int32")
    index[[37, 39]] = 77, -5
    with pytest.raises(ProgramError) as caught:
        lookup(table, index, np.empty((40, 4), "float32"))
    assert str(caught.value) == (
        "call lookup: T[index(I[i]), j] is outside T: index 77 in dimension 0 of extent 10, at i=37"
    )


@pytest.mark.parametrize("target", ["cpu", "c"])
def test_the_numbers_of_an_error_from_a_parallel_loop(target):
    n = te.var("n")
    P, Q = te.placeholder((n, 7), name="P"), te.placeholder((6,), "uint8", name="Q")
    D = te.compute((6, 7), lambda i, j: P[Q[i] * 2, (j + Q[j % 6]) % 7], name="D")
    s = create_schedule(D.op)
    s[D].parallel(D.op.axis[0])
    kernel = build(s, [P, Q, D], target=target, name="twice")
    p, d = np.ones((9, 7), "float32"), np.empty((6, 7), "float32")
    index = np.array([0, 1, 2, 5, 4, 3], "uint8")
    with pytest.raises(ProgramError) as caught:
        kernel(p, index, d)
    assert "is outside P: index 10 in dimension 0 of extent 9, at i=3" in str(caught.value)


def test_a_caller_of_c_need_not_ask_for_the_numbers():
    C = rows()
    kernel = build(create_schedule(C.op), [T, I, C], target="c")
    function = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)(
        kernel.module.address(kernel.symbol)
    )
    index, out = np.full(40, 77, "int32"), np.empty((40, 4), "float32")
    arrays = [array.ctypes.data for array in (table, index, out)]
    assert function(*arrays, None) == 1
    report = np.zeros(8, "int64")
    assert function(*arrays, report.ctypes.data) == 1
    assert report.tolist() == [77, 0, 0, 0, 0, 0, 0, 0]
    assert "report  int64[8], gets {0}, {1}, ... of a code; or NULL" in kernel.header
    plain = te.compute((10, 4), lambda i, j: T[i, j], name="plain")
    assert "report" not in build(create_schedule(plain.op), [T, plain], target="c").source()


def test_the_checks_stand_before_the_loops(golden):
    C = rows()
    s = create_schedule(C.op)
    i, j = C.op.axis
    s[C].vectorize(j)
    s[C].parallel(i)
    golden("gather_rows", str(lower(s, [T, I, C], simple_mode=True)))


PROVED = {
    "a guard": lambda i: te.if_then_else(te.all(I[i] >= 0, I[i] < 10), T[I[i], 0], 0.0),
    "a clamp": lambda i: T[te.maximum(te.minimum(I[i], 9), 0), 0],
    "a remainder": lambda i: T[I[i] % 10, 0],
    "an assumption": lambda i: T[te.assume_bounds(I[i]), 0],
    "a padded window": lambda i: te.if_then_else(te.all(i >= 3, i < 13), T[i - 3, 1], 0.0),
    "a strided window": lambda i: te.if_then_else(
        te.all(i % 3 == 1, (i - 1) // 3 < 10), T[(i - 1) // 3, 1], 0.0
    ),
    "not the first": lambda i: te.if_then_else(i == 0, 0.0, T[(i - 1) // 4, 1]),
    "too many points to count": lambda i: te.if_then_else(
        i * 7919 % 1000003 < 10, T[i * 7919 % 1000003, 1], 0.0
    ),
}


@pytest.mark.parametrize("name", PROVED)
def test_what_is_proved_has_no_check(name):
    C = te.compute((40,), PROVED[name], name="C")
    args = [*C.op.input_tensors, C]
    assert "assert" not in str(lower(create_schedule(C.op), args, simple_mode=True))


def test_an_assumption_is_visible():
    C = te.compute((40,), PROVED["an assumption"], name="C")
    text = str(lower(create_schedule(C.op), [I, T, C], simple_mode=True))
    assert "T[assume_bounds(index(I[i])), 0]" in text


@pytest.mark.parametrize(
    "element",
    [
        lambda A: lambda i: te.if_then_else(i < 12, A[i], 0.0),
        lambda A: lambda i: te.if_then_else(i < 12, A[i + 2**30], 0.0),
        lambda A: lambda i: te.if_then_else(te.any(i < 3, i > 8), A[i], 0.0),
        lambda A: lambda i: te.if_then_else(i > 5, 0.0, A[i + 5]),
    ],
)
def test_a_guard_that_does_not_imply_the_bounds_is_refused(element):
    A = te.placeholder((10,), name="A")
    with pytest.raises(ExpressionError, match="lies outside A"):
        te.compute((12,), element(A), name="C")


def test_the_text_of_such_a_refusal():
    A = te.placeholder((10,), name="A")
    with pytest.raises(ExpressionError) as caught:
        te.compute((12,), lambda i: te.if_then_else(i < 12, A[i], 0.0), name="C")
    assert str(caught.value) == "\n".join(
        [
            "te.compute C: A[i] lies outside A at i=11",
            "  got       index 11 in dimension 0",
            "  expected  0 to 9, as A has the shape (10,)",
            "  because   i < 12 holds there",
            "  hint      guard it more narrowly: te.if_then_else(condition, element, other)",
        ]
    )


def test_a_condition_on_data_is_not_trusted():
    M, A = te.placeholder((12,), "int32", name="M"), te.placeholder((10,), name="A")
    C = te.compute((12,), lambda i: te.if_then_else(M[i] > 0, A[i], 0.0), name="C")
    kernel = build(create_schedule(C.op), [M, A, C])
    mask, out = np.ones(12, "int32"), np.zeros(12, "float32")
    mask[10:] = 0
    kernel(mask, np.ones(10, "float32"), out)
    assert out.sum() == 10
    mask[11] = 1
    with pytest.raises(ProgramError, match="index 11 in dimension 0 of extent 10, at i=11"):
        kernel(mask, np.ones(10, "float32"), out)


def test_a_gather_of_a_gather():
    J = te.placeholder((50,), "int64", name="J")
    C = te.compute((50,), lambda i: T[I[J[i]], 0], name="C")
    kernel = build(create_schedule(C.op), [T, I, J, C])
    inner, outer, out = np.zeros(40, "int32"), np.zeros(50, "int64"), np.zeros(50, "float32")
    for wrong in (40, -1, 2**62, -(2**62)):
        outer[49] = wrong
        with pytest.raises(ProgramError, match=r"I\[index\(J\[i\]\)\] is outside I"):
            kernel(table, inner, outer, out)
    outer[49], inner[3] = 3, 10
    with pytest.raises(ProgramError, match=r"is outside T: index 10 .* at i=49"):
        kernel(table, inner, outer, out)


@pytest.mark.parametrize("place", ["root", "inlined", "attached"])
@pytest.mark.parametrize("way", WAYS)
def test_an_index_that_is_computed(place, way):
    D = te.compute((40,), lambda i: I[i] * 2, name="D")
    C = rows(lambda i: D[i])
    s = create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], 8)
    s[C].parallel(outer)
    if place == "inlined":
        s[D].compute_inline()
    elif place == "attached":
        s[D].compute_at(s[C], inner)
    kernel = runs(s, [T, I, C], way)
    index, out = np.arange(40, dtype="int32") % 5, np.empty((40, 4), "float32")
    kernel(table, index, out)
    assert np.array_equal(out, table[index * 2])
    index[20] = 5
    said = "is outside T" if way == "c" else "index 10 in dimension 0 of extent 10, at i=20"
    with pytest.raises(ProgramError, match=said):
        kernel(table, index, out)


def test_a_reduction_over_gathered_elements_with_a_gathered_start():
    k = te.reduce_axis((0, 4), name="k")
    total = te.comm_reducer(lambda x, y: x + y, lambda t: te.const(0, t), name="total")
    C = te.compute((40,), lambda i: total(T[I[i], k], axis=k, init=T[I[39 - i], 0]), name="C")
    kernel = build(create_schedule(C.op), [T, I, C])
    index, out = np.zeros(40, "int32"), np.empty(40, "float32")
    kernel(table, index, out)
    index[0] = 10
    with pytest.raises(ProgramError, match="index 10 in dimension 0 of extent 10"):
        kernel(table, index, out)


def test_a_part_of_a_stage_is_checked_where_it_is_computed():
    G = rows(name="G")
    C = te.compute((20, 4), lambda i, j: G[i, j] + 1.0, name="C")
    s = create_schedule(C.op)
    s[G].compute_at(s[C], C.op.axis[0])
    kernel = build(s, [T, I, C])
    index = np.zeros(40, "int32")
    index[20:] = 99  # rows that nothing reads
    kernel(table, index, np.empty((20, 4), "float32"))
    index[19] = 99
    with pytest.raises(ProgramError, match="index 99 in dimension 0 of extent 10, at i=19"):
        kernel(table, index, np.empty((20, 4), "float32"))


def test_a_recurrence_that_gathers():
    state, start = te.placeholder((6, 3), name="state"), te.compute((1, 3), lambda _, j: 1.0)
    P = te.placeholder((3,), "int32", name="P")
    step = te.compute((6, 3), lambda t, j: state[t - 1, P[j]] * 2.0, name="step")
    S = te.scan(start, step, state, name="S")
    kernel = build(create_schedule(S.op), [P, S])
    out = np.empty((6, 3), "float32")
    kernel(np.array([2, 0, 1], "int32"), out)
    assert out[5].tolist() == [32, 32, 32]
    with pytest.raises(ProgramError, match="index 3 in dimension 1 of extent 3"):
        kernel(np.array([2, 0, 3], "int32"), out)


def test_many_calls_at_once_report_their_own_errors():
    from concurrent.futures import ThreadPoolExecutor

    C = rows()
    s = create_schedule(C.op)
    s[C].parallel(C.op.axis[0])
    kernel = build(s, [T, I, C])

    def call(wrong):
        index = np.zeros(40, "int32")
        index[5] = wrong
        with pytest.raises(ProgramError) as caught:
            kernel(table, index, np.empty((40, 4), "float32"))
        return f"index {wrong} in" in str(caught.value)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(10, 210)))


@pytest.mark.parametrize("size", [8, 64])
@pytest.mark.parametrize("way", WAYS)
def test_a_part_that_is_computed_ahead_is_checked_ahead(way, size):
    """The values of the table decide which row is read one iteration before its part is needed."""
    at = te.placeholder((9,), "int32", name="at")
    P = te.compute((9, size), lambda i, j: T[at[i] + j % 2, j % 4], name="P")
    C = te.compute((9, size), lambda i, j: P[i, j] + 1.0, name="C")
    s = create_schedule(C.op)
    s[P].compute_at(s[C], C.op.axis[0])
    s[P].double_buffer()
    shown = str(lower(s, [T, at, C], simple_mode=True))
    first = [line for line in shown.splitlines() if " assert " in line or "P[0, 0, " in line]
    assert "assert" in first[0], shown
    run = runs(s, [T, at, C], way)
    place, out = np.arange(9, dtype="int32"), np.empty((9, size), "float32")
    run(table, place, out)
    j = np.arange(size)
    assert np.array_equal(out, table[place[:, None] + j % 2, j % 4] + 1)
    for n in (0, 1, 8):
        wrong = place.copy()
        wrong[n] = 2**31 - 1
        out[...] = 0
        with pytest.raises(ProgramError, match="is outside T"):
            run(table, wrong, out)


@pytest.mark.parametrize("way", WAYS)
def test_a_guard_from_above_leaves_negative_indices(way):
    C = te.compute((40,), lambda i: te.if_then_else(I[i] < 10, T[I[i], 0], 0.0), name="C")
    run = runs(create_schedule(C.op), [T, I, C], way)
    index, out = np.full(40, 2**31 - 1, "int32"), np.empty(40, "float32")
    run(table, index, out)
    assert not out.any()
    index[17] = -1
    with pytest.raises(ProgramError, match="is outside T"):
        run(table, index, out)


@pytest.mark.parametrize("way", WAYS)
def test_an_index_that_wraps_as_data(way):
    """Of int8, 50 + 100 is -106."""
    rows, at = te.placeholder((200,), name="rows"), te.placeholder((3,), "int8", name="at")
    C = te.compute((3,), lambda i: rows[at[i] % 100 + 100], name="C")
    run = runs(create_schedule(C.op), [rows, at, C], way)
    numbers, out = np.arange(200, dtype="float32"), np.empty(3, "float32")
    run(numbers, np.array([0, 27, 100], "int8"), out)
    assert out.tolist() == [100, 127, 100]
    with pytest.raises(ProgramError, match="is outside rows"):
        run(numbers, np.array([0, 50, 0], "int8"), out)


@pytest.mark.parametrize("place", [(0, 0), (1, 49), (2, 7)])
@pytest.mark.parametrize("way", WAYS)
def test_each_element_of_a_table_is_checked(way, place):
    at = te.placeholder((3, 50), "int16", name="at")
    C = te.compute((3, 50), lambda i, j: T[at[i, j], j % 4], name="C")
    run = runs(create_schedule(C.op), [T, at, C], way)
    index, out = np.full((3, 50), 9, "int16"), np.empty((3, 50), "float32")
    run(table, index, out)
    index[place] = 10
    with pytest.raises(ProgramError, match="is outside T"):
        run(table, index, out)


def test_a_clamp_that_is_rounded_up_is_no_bound():
    """The nearest number of float16 to 2051 is 2052."""
    X = te.placeholder((2052,), name="X")
    rounded = te.maximum(te.minimum(I[0], 2051), 0).astype("float16").astype("int32")
    C = te.compute((1,), lambda i: X[rounded], name="C")
    kernel = build(create_schedule(C.op), [X, I, C])
    with pytest.raises(ProgramError, match="index 2052 in dimension 0 of extent 2052"):
        kernel(np.zeros(2052, "float32"), np.full(40, 2051, "int32"), np.empty(1, "float32"))
    with pytest.raises(ExpressionError, match="at i=2051"):
        te.compute((2052,), lambda i: X[i.astype("float16").astype("int32")])


@pytest.mark.parametrize("index", [
    lambda i: I[te.assume_bounds(i)],  # that i is inside I says nothing about its element
    lambda i: te.assume_bounds(i % 10) + I[i],
])  # fmt: skip
def test_a_promise_holds_only_for_the_index_that_it_is_made_for(index):
    C = rows(index)
    kernel = build(create_schedule(C.op), [T, I, C])
    with pytest.raises(ProgramError, match="is outside T"):
        kernel(table, np.full(40, 10**6, "int32"), np.empty((40, 4), "float32"))


@pytest.mark.parametrize("count", [0, 3])
def test_what_a_reduction_over_nothing_starts_from(count):
    k = te.reduce_axis((0, count), name="k")
    X, Y = te.placeholder((count,), name="X"), te.placeholder((3,), name="Y")
    with pytest.raises(ExpressionError, match="lies outside Y"):
        te.compute((4,), lambda i: te.sum(X[k], axis=k, init=Y[i]))
    C = te.compute((4,), lambda i: te.sum(X[k], axis=k, init=T[I[i], 0]), name="C")
    kernel = build(create_schedule(C.op), [X, T, I, C])
    with pytest.raises(ProgramError, match="is outside T"):
        kernel(np.ones(count, "float32"), table, np.full(40, 99, "int32"), np.empty(4, "float32"))


def test_a_symbol_in_an_index_where_all_extents_are_numbers():
    n = te.var("n")
    X, Y = te.placeholder((10,), name="X"), te.placeholder((n,), name="Y")
    D = te.compute((4,), lambda i: X[i + n], name="D")
    E = te.compute((n,), lambda i: Y[i] * 2.0, name="E")
    kernel = build(create_schedule([D.op, E.op]), [X, Y, E, D])
    x, d = np.arange(10, dtype="float32"), np.empty(4, "float32")
    kernel(x, np.ones(6, "float32"), np.empty(6, "float32"), d)
    assert d.tolist() == [6, 7, 8, 9]
    with pytest.raises(CallError, match=r"D would read X\[i \+ n\] outside dimension 0"):
        kernel(x, np.ones(7, "float32"), np.empty(7, "float32"), d)


@pytest.mark.parametrize("index", [
    lambda i: (i * 2**63) % 10,
    lambda i: te.truncmod(i * 2**70, 10),
    lambda i: te.floordiv((i * 2**40) * (i * 2**40), 2**80),
])  # fmt: skip
def test_an_index_that_does_not_fit_64_bits_is_refused(index):
    X = te.placeholder((10,), name="X")
    with pytest.raises(ExpressionError, match="does not fit 64 bits"):
        te.compute((3,), lambda i: X[index(i)])


def test_the_text_of_an_index_that_does_not_fit():
    X = te.placeholder((10,), name="X")
    with pytest.raises(ExpressionError) as caught:
        te.compute((10,), lambda i: X[i * 2**62 % 10], name="C")
    assert str(caught.value) == (
        "te.compute C: the index i*4611686018427387904 does not fit 64 bits\n"
        "  got       values from 0 to 41505174165846491136\n"
        "  expected  -9223372036854775808 to 9223372036854775807\n"
        "  hint      keep the intermediate results small: take the remainder before the product"
    )


def test_arithmetic_of_read_indices_that_overflows_proves_nothing():
    J = te.placeholder((3,), "int64", name="J")
    X = te.placeholder((10,), name="X")
    wide = lambda i: J[i].astype("index")  # noqa: E731
    in_guard = te.compute((3,), lambda i: te.if_then_else(
        te.all(wide(i) * 4 >= 0, wide(i) * 4 < 40), X[J[i]], 0.0), name="C")  # fmt: skip
    assert "assert" in str(lower(create_schedule(in_guard.op), [X, J, in_guard]))
    C = te.compute((3,), lambda i: X[wide(i) * 3 % 10], name="C")
    kernel = build(create_schedule(C.op), [X, J, C])
    with pytest.raises(ProgramError, match="is outside X"):
        kernel(np.ones(10, "float32"), np.full(3, 2**62), np.empty(3, "float32"))
    small = te.compute((3,), lambda i: X[wide(i) * 2**60 % 10], name="C")
    kernel = build(create_schedule(small.op), [X, J, small])
    with pytest.raises(ProgramError, match="is outside X"):
        kernel(np.ones(10, "float32"), np.full(3, 16), np.empty(3, "float32"))
