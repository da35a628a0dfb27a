"""The text of an error, and the parts it keeps."""

import copy
import pickle

import pytest

from dlcompiler import errors
from dlcompiler.errors import (
    CallError,
    DLCompilerError,
    InternalError,
    ScheduleError,
    UserError,
    VerificationError,
)


def refusal():
    return ScheduleError(
        "vectorize C.k",
        "a reduction axis cannot be vectorized",
        got="axis k of stage C (reduction, extent 1024)",
        because="all lanes would update C[i, j]: k=0 and k=1 write the same element",
        hint="vectorize j, the innermost data axis",
    )


def test_the_text_of_a_refusal():
    assert str(refusal()) == (
        "vectorize C.k: a reduction axis cannot be vectorized\n"
        "  got       axis k of stage C (reduction, extent 1024)\n"
        "  because   all lanes would update C[i, j]: k=0 and k=1 write the same element\n"
        "  hint      vectorize j, the innermost data axis"
    )


def test_the_first_line_alone():
    assert str(ScheduleError("split C.i", "the factor is 0")) == "split C.i: the factor is 0"


def test_an_excerpt_of_several_lines_stays_in_its_column():
    error = ScheduleError("read text", "not a statement", excerpt="C[i] = \n       ^")
    assert str(error).splitlines()[1:] == ["  excerpt   C[i] = ", "                   ^"]


def test_a_part_that_is_zero_or_empty_is_shown():
    assert "  got       0" in str(UserError("split C.i", "the factor must be positive", got=0))
    assert "  got       ()" in str(UserError("call f", "wrong shape", got=()))


def test_the_parts_are_attributes():
    error = refusal()
    assert error.operation == "vectorize C.k"
    assert error.problem == "a reduction axis cannot be vectorized"
    assert error.got.startswith("axis k")
    assert error.expected is None
    assert error.hint.startswith("vectorize j")


def test_a_verification_error_tells_place_values_and_bound():
    error = VerificationError(
        "verify C",
        "wrong value",
        oracle="numpy",
        shape=(8, 8),
        seed=3,
        index=(0, 5),
        got=1.5,
        expected=1.25,
        bound=1e-6,
    )
    assert str(error) == (
        "verify C: wrong value\n"
        "  index     (0, 5)\n"
        "  got       1.5\n"
        "  expected  1.25\n"
        "  bound     1e-06\n"
        "  oracle    numpy\n"
        "  shape     (8, 8)\n"
        "  seed      3"
    )
    assert (error.oracle, error.seed, error.index) == ("numpy", 3, (0, 5))


def test_an_internal_error_asks_for_a_report_and_replays():
    error = InternalError("verify IR", "two definitions of x", replay="s.jump('a1b2')")
    assert "  hint      this is a bug in dlcompiler" in str(error)
    assert str(error).endswith("  replay    s.jump('a1b2')")


def test_the_hierarchy():
    user_errors = {
        "CallError",
        "DeviceUnavailable",
        "ExpressionError",
        "MeasurementError",
        "ScheduleError",
        "TargetError",
        "TuningError",
        "VerificationError",
    }
    for name in user_errors:
        assert issubclass(getattr(errors, name), UserError)
    assert issubclass(UserError, DLCompilerError)
    assert not issubclass(InternalError, UserError)
    assert issubclass(CallError, ValueError)


@pytest.mark.parametrize("duplicate", [copy.copy, lambda e: pickle.loads(pickle.dumps(e))])
@pytest.mark.parametrize(
    "error", [refusal(), VerificationError("verify C", "wrong", seed=1), InternalError("a", "b")]
)
def test_an_error_survives_a_copy(error, duplicate):
    assert str(duplicate(error)) == str(error)


def test_a_text_alone_is_the_whole_message():
    assert str(UserError("give it a name")) == "give it a name"
