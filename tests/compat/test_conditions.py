"""`te.SpecializedCondition`: a context, as in classic code."""

import numpy as np
import pytest

from dlcompiler.compat import tvm
from dlcompiler.errors import ScheduleError

te = tvm.te


@pytest.fixture
def doubled():
    m = te.var("m")
    A = te.placeholder((m,), name="A")
    B = te.compute((m,), lambda i: A[i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(B.op.axis[0], 4)
    s[B].vectorize(inner)
    return s, [A, B], m


def test_what_is_lowered_inside_has_a_body_of_its_own(doubled):
    s, args, m = doubled
    with te.SpecializedCondition([m >= 8, m % 4 == 0]) as context:
        assert te.SpecializedCondition.current() is context
        text = str(tvm.lower(s, args))
    assert "if m >= 8 and m % 4 == 0:\n" in text
    assert te.SpecializedCondition.current() is None
    assert "m >= 8" not in str(tvm.lower(s, args))


@pytest.mark.parametrize("is_lowered_first", [False, True])
def test_what_is_built_inside_is_right_for_all_sizes(doubled, is_lowered_first):
    s, args, m = doubled
    with te.SpecializedCondition(m % 4 == 0):
        module = tvm.lower(s, args) if is_lowered_first else tvm.build(s, args, "llvm")
    if is_lowered_first:
        module = tvm.build(module, target="llvm")
    for size in (0, 1, 4, 8, 9):
        a, b = np.arange(size, dtype="float32"), np.full(size, np.nan, "float32")
        out = tvm.nd.array(b)
        module(tvm.nd.array(a), out)
        np.testing.assert_array_equal(out.numpy(), a * 2)


def test_the_innermost_counts(doubled):
    s, args, m = doubled
    with te.SpecializedCondition(m >= 8), te.SpecializedCondition(m >= 16):
        text = str(tvm.lower(s, args))
    assert "m >= 16" in text
    assert "m >= 8" not in text


def test_other_conditions_are_refused(doubled):
    s, args, m = doubled
    with (
        te.SpecializedCondition(m != 4),
        pytest.raises(ScheduleError, match="a condition of this form is not supported"),
    ):
        tvm.lower(s, args)
    assert te.SpecializedCondition.current() is None
