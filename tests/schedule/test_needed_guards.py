"""Of the guards of a nest, those that follow from the others are left out."""

import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.arith import Analyzer, Interval
from dlcompiler.ir import Var
from dlcompiler.schedule.inference.needed_guards import needed_guards

o, e, t, v = (Var(name) for name in "oetv")
RANGES = {o: Interval(0, 62), e: Interval(0, 1), t: Interval(0, 127), v: Interval(0, 3)}
STEP = o * 2 + e


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ((STEP < 125, STEP * 128 + t < 16000, (STEP * 128 + t) * 4 + v < 64000), (0,)),
        (((STEP * 128 + t) * 4 + v < 64000, STEP < 125), (1,)),
        (((STEP * 128 + t) // 250 < 64, STEP * 128 + t < 16000), (1,)),
        ((STEP < 125, (STEP * 128 + t) * 4 + v < 63999), (1,)),
        ((STEP < 125, t < 100), (0, 1)),
        ((STEP < 125, STEP < 124, STEP < 126), (1,)),
        ((t < 100,), (0,)),
        ((), ()),
    ],
)
def test_guards_that_others_imply_are_left_out(given, left):
    assert needed_guards(given, Analyzer(RANGES)) == tuple(given[n] for n in left)


@pytest.mark.parametrize("n", [63_999, 64_000, 64_001, 1, 511])
def test_a_loop_that_is_split_three_times(n):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    outer, _ = s[B].split(B.op.axis[0], 4)
    outer, _ = s[B].split(outer, 128)
    s[B].split(outer, 2)
    text = str(dlc.lower(s, [A, B], simple_mode=True))
    assert text.count("if ") <= 1
    assert " and " not in text
    dlc.verify(s, [A, B])
