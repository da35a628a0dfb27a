"""`unroll_loops`: copies of the body, within limits."""

from functools import partial

import pytest

from dlcompiler.errors import ScheduleError
from dlcompiler.ir import For, Load, StepRef, Var, index_const
from dlcompiler.passes import unroll_loops
from dlcompiler.passes.unroll_loops import AutoUnroll
from tests.passes.conftest import buffer, store
from tests.passes.examples import after, keeps_results, shows

REF = StepRef("", "C", "i")


def unrolled(extent):
    a, c = buffer("A", max(extent, 1)), buffer("C", max(extent, 1))
    i = Var("i")
    body = For(i, index_const(extent), "unrolled", store(c, (i,), Load(a, (i,))), (REF,))
    return body, (a, c)


def test_the_example_of_its_docstring():
    shows(unroll_loops)


def test_no_iteration_leaves_nothing(text):
    assert text(unroll_loops, *unrolled(0)) == "    pass\n"


def test_copies_of_a_long_expression_are_refused(text):
    a, c = buffer("A", 4096), buffer("C", 4096)
    i = Var("i")
    value = Load(a, (i,))
    for n in range(60):
        value = value + Load(a, (i + n,))
    body = For(i, index_const(4096), "unrolled", store(c, (i,), value), (REF,))
    with pytest.raises(ScheduleError) as caught:
        text(unroll_loops, body, (a, c), frozenset({REF}))
    assert str(caught.value) == (
        "unroll loop i: its body would be copied too many times\n"
        "  got       995328 operations\n"
        "  expected  at most 250000\n"
        "  hint      unroll a shorter inner loop, or attach the stage at an inner loop"
    )


def test_too_many_copies_are_refused(text):
    with pytest.raises(ScheduleError) as caught:
        text(lambda func: unroll_loops(func, max_statements=3), *unrolled(4))
    assert str(caught.value) == (
        "unroll loop i: its body would be copied too many times\n"
        "  got       4 statements\n"
        "  expected  at most 3\n"
        "  hint      unroll a shorter inner loop, or attach the stage at an inner loop"
    )


NEST = """\
def main(A: float32[4, 2, 3], C: float32[4, 2, 3]):
    for i in range(4):  # auto_unroll_max_step = {step}
        for j in range(2):
            for k in {kind}(3):
                C[i, j, k] = A[i, j, k]
"""


@pytest.mark.parametrize(("step", "loops"), [(2, 3), (3, 2), (5, 2), (6, 1), (23, 1), (24, 0)])
def test_the_pragma_unrolls_from_the_innermost_loop_outwards(step, loops):
    text = after(unroll_loops, NEST.format(step=step, kind="range"))
    assert text.count("for ") == loops


def test_a_loop_around_a_loop_is_not_unrolled():
    text = NEST.format(step=100, kind="parallel")
    assert after(unroll_loops, text) == text


def test_loops_can_be_marked_only():
    text = after(unroll_loops, NEST.format(step="6  # unroll_explicit = 0", kind="range"))
    assert "for k in unrolled(3):" in text
    assert "for j in unrolled(2):" in text
    assert "for i in range(4):" in text


def test_the_pass_can_be_told_without_pragmas():
    text = NEST.format(step=0, kind="range").replace("  # auto_unroll_max_step = 0", "")
    few = partial(unroll_loops, auto=AutoUnroll(max_extent=2))
    assert after(few, text) == text, "the short loop has a loop inside"
    few = partial(unroll_loops, auto=AutoUnroll(max_extent=3))
    assert after(few, text).count("for ") == 1
    flat = partial(unroll_loops, auto=AutoUnroll(max_step=100, max_depth=1))
    assert after(flat, text).count("for ") == 1


def test_results_stay_on_random_schedules():
    run = partial(unroll_loops, auto=AutoUnroll(max_step=16))
    assert keeps_results(run, range(400, 420))
