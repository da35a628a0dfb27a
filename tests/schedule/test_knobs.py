"""A symbol as factor: one kernel for all factors."""

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import CallError, ScheduleError
from dlcompiler.schedule import Trace
from dlcompiler.simulate import interpret


@pytest.fixture
def program():
    """Return a matrix product that two knobs split, and its arguments."""
    n = 12
    A, B = te.placeholder((n, 7), name="A"), te.placeholder((7, n), name="B")
    k = te.reduce_axis((0, 7), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    f, g = te.var("f"), te.var("g")
    i, j = C.op.axis
    io, ii = s[C].split(i, factor=f)
    ko, ki = s[C].split(k, nparts=g)
    s[C].reorder(io, ko, ii, ki, j)
    s[C].vectorize(j)
    s[C].parallel(io)
    return s, [A, B, f, g, C]


@pytest.mark.campaign
def test_one_kernel_for_all_factors(program):
    s, args = program
    kernel, func = dlc.build(s, args), dlc.lower(s, args)
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (12, 7)).astype("float32")
    b = rng.integers(-4, 5, (7, 12)).astype("float32")
    for f, g in [(1, 1), (4, 2), (5, 7), (12, 3), (100, 100)]:
        for run in (kernel, lambda *values: interpret(func, values)):
            c = np.full((12, 12), np.nan, "float32")
            run(a, b, f, g, c)
            np.testing.assert_array_equal(c, a @ b, err_msg=f"factors {f} and {g}")


@pytest.mark.campaign
def test_verify_tries_factors(program):
    s, args = program
    assert "interpreter" in dlc.verify(s, args).oracles


@pytest.mark.parametrize("value", [0, -3])
def test_a_factor_below_1_is_refused_at_the_call(program, value):
    s, args = program
    a, c = np.zeros((12, 7), "float32"), np.zeros((12, 12), "float32")
    with pytest.raises(CallError, match="the factor f is too small"):
        dlc.build(s, args)(a, a.T.copy(), value, 1, c)


def test_what_a_knob_owes_and_what_it_cannot_split():
    A = te.placeholder((12,), name="A")
    B = te.compute((12,), lambda i: A[i], name="B")
    s = te.create_schedule(B.op)
    assert "h must be at least 1" in str(s.can("split", B.op.axis[0], te.var("h")))
    outer, _ = s[B].split(B.op.axis[0], factor=te.var("h"))
    assert s.can("split", outer, te.var("g")).reason == (
        "a symbol splits only a loop of known extent"
    )


def test_a_knob_is_an_argument(program):
    s, (A, B, _, g, C) = program
    with pytest.raises(ScheduleError, match="symbol f cannot be inferred from the arguments"):
        dlc.lower(s, [A, B, g, C])


def test_a_trace_read_back_asks_for_a_number(program):
    s, (*_, C) = program
    trace = Trace.from_json(s.trace.to_json())
    with pytest.raises(ScheduleError, match="factor must be an integer"):
        trace.replay(te.create_schedule(C.op))
