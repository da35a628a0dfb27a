"""Recurrences: what `te.scan` computes, and what it refuses."""

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import ExpressionError
from dlcompiler.schedule import create_schedule
from dlcompiler.te.roundings import rounding_decides
from tests.recurrences import (
    fibonacci,
    lstm,
    lstm_in_numpy,
    rnn,
    rnn_in_numpy,
    running,
    two_stages,
    two_states,
)


def refused(call, *lines):
    with pytest.raises(ExpressionError) as caught:
        call()
    assert str(caught.value) == "\n".join(lines)


def whole(*shape, dtype="float32"):
    return np.random.default_rng(7).integers(-4, 5, shape).astype(dtype)


# -- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (7, 1), (13, 31), (4, 0)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_running_sums(shape, dtype):
    r, x = running(*shape, dtype), whole(*shape, dtype=dtype)
    np.testing.assert_array_equal(te.evaluate(r.S, [x]), np.cumsum(x, axis=0, dtype=dtype))


def test_running_products_and_maxima():
    x = whole(5, 7, dtype="int32")
    r = running(5, 7, "int32", lambda old, new: old * new)
    np.testing.assert_array_equal(te.evaluate(r.S, [x]), np.cumprod(x, axis=0, dtype="int32"))
    r = running(5, 7, "int32", te.maximum)
    np.testing.assert_array_equal(te.evaluate(r.S, [x]), np.maximum.accumulate(x, axis=0))


def test_several_steps_back():
    assert te.evaluate(fibonacci(11).S, []).tolist() == [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]
    assert te.evaluate(fibonacci(2).S, []).tolist() == [1, 1]


def test_products_of_matrices():
    """Prefixes: P[t] = P[t - 1] A[t]."""
    A = te.placeholder((5, 3, 3), "int32", name="A")
    state, k = te.placeholder((5, 3, 3), "int32", name="state"), te.reduce_axis((0, 3), "k")
    first = te.compute((1, 3, 3), lambda t, i, j: A[0, i, j], name="first")
    step = te.compute(
        (5, 3, 3), lambda t, i, j: te.sum(state[t - 1, i, k] * A[t, k, j], axis=k), name="step"
    )
    x = whole(5, 3, 3, dtype="int32")
    wanted = [x[0]]
    for matrix in x[1:]:
        wanted.append(wanted[-1] @ matrix)
    P = te.scan(first, step, state)
    np.testing.assert_array_equal(te.evaluate(P, [x]), wanted)


def test_states_of_different_shapes():
    r, x = two_states(6, 5, 3), whole(6, 5)
    S, T = te.evaluate([r.S, r.T], [x])
    np.testing.assert_array_equal(S, np.cumsum(x, axis=0))
    np.testing.assert_array_equal(T[1:, 0], np.cumsum(S[:-1, 0]))


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (5, 2, 3, 7), (9, 1, 5, 4)])
def test_an_rnn_cell(sizes):
    r, rng = rnn(*sizes), np.random.default_rng(1)
    arrays = [rng.standard_normal(t.static_shape).astype("float32") for t in r.inputs]
    np.testing.assert_allclose(te.evaluate(r.H, arrays), rnn_in_numpy(*arrays), atol=1e-5)


@pytest.mark.parametrize("sizes", [(2, 1, 1, 1), (6, 3, 5, 7)])
def test_an_lstm_cell(sizes):
    r, rng = lstm(*sizes), np.random.default_rng(1)
    arrays = [rng.standard_normal(t.static_shape).astype("float32") for t in r.inputs]
    for found, wanted in zip(te.evaluate([r.C, r.H], arrays), lstm_in_numpy(*arrays), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_symbolic_shapes():
    r, x = running(te.var("m"), te.var("n")), whole(6, 5)
    np.testing.assert_array_equal(te.evaluate(r.S, [x]), np.cumsum(x, axis=0))
    assert str(r.S.op.scan_axis.extent) == "m - 1"


def test_a_scan_of_a_scan_and_what_reads_them():
    r = running(6, 4)
    state = te.placeholder((6, 4), name="state2")
    first = te.compute((1, 4), lambda t, i: r.S[t, i], name="first2")
    step = te.compute((6, 4), lambda t, i: state[t - 1, i] + r.S[t, i], name="step2")
    T = te.scan(first, step, state, name="T")
    C = te.compute((6, 4), lambda t, i: T[t, i] - r.S[t, i], name="C")
    x = whole(6, 4)
    S = np.cumsum(x, axis=0)
    np.testing.assert_array_equal(te.evaluate(C, [x]), np.cumsum(S, axis=0) - S)


def test_a_step_reads_a_tensor_without_dimensions():
    gain = te.placeholder((), name="gain")
    state = te.placeholder((5,), name="state")
    step = te.compute((5,), lambda t: state[t - 1] * gain[()], name="step")
    S = te.scan(te.compute((1,), lambda t: 1.0, name="first"), step, state)
    np.testing.assert_array_equal(te.evaluate(S, [np.array(2, "float32")]), [1, 2, 4, 8, 16])


def test_an_input_is_read_a_step_earlier():
    X = te.placeholder((5,), name="X")
    state = te.placeholder((5,), name="state")
    step = te.compute((5,), lambda t: state[t - 1] + X[t - 1], name="step")
    S = te.scan(te.compute((1,), lambda t: 0.0, name="first"), step, state)
    np.testing.assert_array_equal(te.evaluate(S, [np.arange(5.0, dtype="f")]), [0, 0, 1, 3, 6])


def test_the_operation():
    op = two_states(6, 5, 3).S.op
    assert repr(op) == "scan(S)"
    assert op.text() == "S.v0, S.v1 = scan([first1, first2], [step1, step2], [state1, state2])"
    assert [tensor.name for tensor in op.input_tensors] == ["first1", "first2", "step1", "step2"]
    assert (op.first, op.scan_axis.extent, op.scan_axis.kind) == (1, 5, "scan")
    assert "state1" not in [each.name for each in te.post_order(op.outputs)]


# -- rounding -------------------------------------------------------------------------------------


def test_the_error_grows_with_the_steps():
    assert te.rounding_depth(running(1, 3).S) == 0
    assert te.rounding_depth(running(9, 3).S) == 8
    products = running(9, 3, combine=lambda old, new: old * new)
    assert te.rounding_depth(products.S) == 8
    squares = running(9, 3, combine=lambda old, new: old * old + new)
    assert te.rounding_depth(squares.S) == 2 * (2**8 - 1)
    assert te.rounding_depth(running(200, 1, combine=lambda old, new: old * old).S) == 2**53


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_choice_in_a_step_that_may_never_run(rows):
    r = running(rows, 2, combine=lambda old, new: te.select(old > 2.0, new, old + new))
    assert te.rounding_depth(r.S) == rows - 1
    assert rounding_decides([r.S]) == (rows > 2)


def test_the_magnitude_of_what_cancels():
    r, x = running(4, 2), np.array([[1, 2], [-1, -2], [1, 2], [-1, -2]], "float32")
    np.testing.assert_array_equal(te.absolute_bound(r.S, [x])[-1], [4, 8])
    assert (te.tolerance(r.S, [x])[1:] > 0).all()


# -- text -----------------------------------------------------------------------------------------


def test_notation_is_written_and_not_read():
    r = two_stages(6, 5)
    assert te.notation_text(r.S).splitlines() == [
        "first[t, i] = X[0, i]",
        "s1[t_1, i] = state[t_1 - 1, i]*2.0",
        "s2[t_1, i] = s1[t_1, i] + X[t_1, i]",
        "S = scan(first, s2, state)",
    ]
    for write in (te.notation_python, te.notation_arguments):
        refused(
            lambda write=write: write(r.S),
            "write S as notation: a recurrence cannot be read back from text",
            "  hint      share the code that defines it",
        )


def test_gradients_by_a_result_and_not_through_it():
    r = two_stages(6, 5)
    C = te.compute((6, 5), lambda t, i: r.S[t, i] * r.S[t, i], name="C")
    (slope,) = te.gradient(C, [r.S])
    x = whole(6, 5)
    np.testing.assert_array_equal(
        te.evaluate(slope, [x])[2, 3, 2, 3], 2 * te.evaluate(r.S, [x])[2, 3]
    )
    refused(
        lambda: te.gradient(C, [r.X]),
        "te.gradient of C: the derivative of S is not known",
        "  got       scan(S)",
        "  expected  only te.compute between the inputs and the output",
    )


# -- refusals -------------------------------------------------------------------------------------


def parts(m=5, rows=1, dtype="float32"):
    X = te.placeholder((m,), dtype, name="X")
    state = te.placeholder((m,), dtype, name="state")
    first = te.compute((rows,), lambda t: X[t], name="first")
    step = te.compute((m,), lambda t: state[t - 1] + X[t], name="step")
    return X, state, first, step


def test_what_are_no_tensors():
    _, state, first, step = parts()
    refused(
        lambda: te.scan(first, 3, state, name="S"),
        "te.scan S: the update is not a tensor",
        "  got       3",
    )
    refused(
        lambda: te.scan([first], [step, step], [state]),
        "te.scan scan: the numbers of inits, updates and states differ",
        "  got       1, 2 and 1",
    )
    refused(
        lambda: te.scan(first, step, step),
        "te.scan scan: the state step is not a placeholder",
        "  got       compute(step)",
        "  hint      declare it: te.placeholder(shape), and let the update read it",
    )


def test_inits_and_updates_are_computed():
    X, state, _, step = parts()
    refused(
        lambda: te.scan(X, step, state),
        "te.scan scan: the init X is not computed",
        "  got       placeholder(X)",
        "  hint      copy it: te.compute(X.shape, lambda *i: X(*i))",
    )


def test_shapes_that_do_not_fit():
    _, state, first, _ = parts()
    step = te.compute((6,), lambda t: 0.0, name="step")
    refused(
        lambda: te.scan(first, step, state),
        "te.scan scan: the shapes do not fit together",
        "  got       first (1,), step (6,), state (5,)",
        "  expected  (k, …), (m, …) and (m, …): those of first and state",
    )
    first = te.compute((), lambda: 0.0, name="first")
    with pytest.raises(ExpressionError, match="the numbers of dimensions differ, or are 0"):
        te.scan(first, step, state)
    m = te.var("m")
    state = te.placeholder((m,), name="state")
    step = te.compute((m,), lambda t: state[t - 1], name="step")
    first = te.compute((m,), lambda t: 0.0, name="first")
    with pytest.raises(
        ExpressionError, match="the number of first rows in first is not valid for state"
    ):
        te.scan(first, step, state)
    _, state, _, step = parts(2)
    first = te.compute((3,), lambda t: 0.0, name="first")
    with pytest.raises(
        ExpressionError, match="the number of first rows in first is not valid for state"
    ):
        te.scan(first, step, state)


def test_dtypes_that_differ():
    _, state, _, step = parts()
    first = te.compute((1,), lambda t: te.const(0, "int32"), name="first")
    refused(
        lambda: te.scan(first, step, state),
        "te.scan scan: the dtypes differ",
        "  got       first int32, step float32, state float32",
    )


def test_a_tensor_given_twice():
    _, state, first, step = parts()
    refused(
        lambda: te.scan([first, first], [step, step], [state, state]),
        "te.scan scan: first is given twice",
        "  hint      give each state its own init, update and placeholder",
    )


@pytest.mark.parametrize("index", ["t", "t + 1", "t - 2", "t - t", "t // 2", "2 * t - 1"])
def test_steps_that_are_not_known(index):
    _, state, first, _ = parts()
    if index == "t":
        step = te.compute((5,), lambda t: state[t], name="step")
    elif index == "t + 1":
        step = te.compute((5,), lambda t: te.if_then_else(t < 4, state[t + 1], 0.0), name="step")
    elif index == "t - 2":
        step = te.compute((5,), lambda t: state[t - 2], name="step")
    else:
        step = te.compute((5,), lambda t: te.if_then_else(
            te.all(t >= 1, t < 3), state[eval(index, {"t": t})], 0.0), name="step")  # fmt: skip
    with pytest.raises(ExpressionError, match="which is not always an earlier row"):
        te.scan(first, step, state)


def test_the_text_of_a_step_too_far_back():
    _, state, first, _ = parts()
    step = te.compute((5,), lambda t: state[t - 2], name="step")
    refused(
        lambda: te.scan(first, step, state, name="S"),
        "te.scan S: step reads state[t - 2], which is not always an earlier row",
        "  expected  state[t - c, …] with c from 1 to 1",
        "  because   first gives 1 first row",
    )


def test_values_of_another_step_inside_the_cell():
    _, state, first, _ = parts()
    half = te.compute((5,), lambda t: state[t - 1] / 2, name="half")
    step = te.compute((5,), lambda t: te.if_then_else(t > 0, half[t - 1], 0.0), name="step")
    refused(
        lambda: te.scan(first, step, state),
        "te.scan scan: step reads half[t - 1], which belongs to another step",
        "  expected  half[t, …]",
        "  hint      make it a state: only states keep values for later steps",
    )


def test_a_stage_of_the_cell_without_time():
    _, state, first, _ = parts()
    k = te.reduce_axis((0, 5), "k")
    total = te.compute((), lambda: te.sum(state[k], axis=k), name="total")
    step = te.compute((5,), lambda t: total[()], name="step")
    refused(
        lambda: te.scan(first, step, state),
        "te.scan scan: the first dimension of total is not the time",
        "  got       shape ()",
        "  expected  (5, …)",
        "  because   it depends on a state, so its values differ from step to step",
    )


def test_a_recurrence_inside_a_step():
    X, state, first, _ = parts()
    inner_state = te.placeholder((5,), name="inner_state")
    inner = te.compute((5,), lambda t: inner_state[t - 1] + state[t - 1], name="inner")
    start = te.compute((1,), lambda t: X[t], name="start")
    T = te.scan(start, inner, inner_state, name="T")
    step = te.compute((5,), lambda t: T[t], name="step")
    refused(
        lambda: te.scan(first, step, state),
        "te.scan scan: T depends on a state, and is not defined by te.compute",
        "  got       scan(T)\n  because   a step is computed element by element",
    )


def test_inits_that_depend_on_steps():
    _, state, _, step = parts()
    first = te.compute((1,), lambda t: step[t], name="first")
    refused(
        lambda: te.scan(first, step, state),
        "te.scan scan: the first rows (first) depend on state, which is computed after them",
    )


def test_reads_outside_of_inputs_from_the_first_step_on():
    X, state, first, _ = parts()
    step = te.compute((5,), lambda t: state[t - 1] + X[t - 2], name="step")
    refused(
        lambda: te.scan(first, step, state, name="S"),
        "te.scan S: step: X[t + 1 - 2] lies outside X at t=0",
        "  got       index -1 in dimension 0",
        "  expected  0 to 4, as X has the shape (5,)",
        "  hint      guard it: te.if_then_else(condition, element, other)",
    )


@pytest.mark.parametrize("use", [create_schedule, lambda C: te.evaluate(C, [whole(5)])])
def test_an_element_before_the_first_is_refused_where_no_scan_comes(use):
    A = te.placeholder((5,), name="A")
    C = te.compute((5,), lambda t: A[t - 1], name="C")
    refused(
        lambda: use(C),
        "te.compute C: A[t - 1] lies outside A at t=0",
        "  got       index -1 in dimension 0",
        "  expected  0 to 4, as A has the shape (5,)",
        "  hint      guard it: te.if_then_else(condition, element, other)",
    )


@pytest.mark.parametrize("body", [lambda A, t: A[t - 1] + A[t], lambda A, t: A[t - 1] + A[0]])
def test_other_elements_outside_are_refused_at_once(body):
    A = te.placeholder((5,), name="A")
    with pytest.raises(ExpressionError, match=r"A\[t - 1\] lies outside A at t=0"):
        te.compute((5,), lambda t: body(A, t), name="C")


def test_what_exists_only_inside_the_steps():
    r = two_stages(6, 5)
    C = te.compute((6, 5), lambda t, i: r.s1[t, i] + r.S[t, i], name="C")
    for use in (create_schedule, lambda C: te.evaluate(C, [whole(6, 5)])):
        refused(
            lambda use=use: use(C),
            "te.scan S: C uses s1, which exists only within a step",
            "  hint      use the results of the scan: S",
        )
    refused(
        lambda: create_schedule([r.S.op, r.s2.op]),
        "te.scan S: the caller uses s2, which exists only within a step",
        "  hint      use the results of the scan: S",
    )


def test_parts_of_two_scans():
    r = running(5, 4)
    T = te.scan(r.first, r.step, r.state, name="T")
    C = te.compute((5, 4), lambda t, i: T[t, i] + r.S[t, i], name="C")
    refused(
        lambda: create_schedule(C.op),
        "te.scan S: step is already part of the scan T",
        "  hint      give each scan its own states, inits and updates",
    )
