"""Reads of tensors of symbolic extents: what is below 0 is outside whatever the extent is."""

import pytest

from dlcompiler import te
from dlcompiler.errors import ExpressionError
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule

n = te.var("n")
A = te.placeholder((n, 5), name="A")


@pytest.mark.parametrize("index", [
    lambda i: i * 2 - 3,
    lambda i: te.floordiv(1 - i, 4) * 3,
    lambda i: te.if_then_else(i < 3, i - 1, i),
])  # fmt: skip
def test_an_index_that_is_negative_somewhere_is_refused(index):
    with pytest.raises(ExpressionError, match=r"lies outside A at .*i=") as caught:
        te.compute((9, 4), lambda i, j: A[index(i), j], name="C")
    assert "0 to n - 1, as A has the shape (n, 5)" in str(caught.value)


def test_a_guard_may_keep_it_from_being_negative():
    C = te.compute((9,), lambda i: te.if_then_else(i >= 2, A[i - 2, 0], 0.0), name="C")
    lower(create_schedule(C.op), [A, C])


def test_what_only_a_call_can_tell_is_not_refused():
    C = te.compute((9,), lambda i: A[i, 0] + A[n - 1 - i, 0], name="C")
    func = lower(create_schedule(C.op), [A, C])
    assert len(func.checks) == 2
