"""`unroll_loops`: copies of the body, within limits."""

import pytest

from dlcompiler.errors import ScheduleError
from dlcompiler.ir import For, Load, StepRef, Var, index_const
from dlcompiler.passes import unroll_loops
from tests.passes.conftest import buffer, store

REF = StepRef("", "C", "i")


def unrolled(extent):
    a, c = buffer("A", max(extent, 1)), buffer("C", max(extent, 1))
    i = Var("i")
    body = For(i, index_const(extent), "unrolled", store(c, (i,), Load(a, (i,))), (REF,))
    return body, (a, c)


def test_the_example_of_its_docstring(text):
    after = text(unroll_loops, *unrolled(2), frozenset({REF}))
    assert after == "    C[0] = A[0]\n    C[1] = A[1]\n"


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
        "unroll loop i: the copies of its body are too many\n"
        "  got       995328 operations\n"
        "  expected  at most 250000\n"
        "  hint      unroll a shorter inner loop, or attach the stage at an inner loop"
    )


def test_too_many_copies_are_refused(text):
    with pytest.raises(ScheduleError) as caught:
        text(lambda func: unroll_loops(func, max_statements=3), *unrolled(4))
    assert str(caught.value) == (
        "unroll loop i: the copies of its body are too many\n"
        "  got       4 statements\n"
        "  expected  at most 3\n"
        "  hint      unroll a shorter inner loop, or attach the stage at an inner loop"
    )
