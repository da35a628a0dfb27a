"""Calls of code from outside in the interpreter: what they may touch is checked and noted."""

import numpy as np
import pytest

from dlcompiler.errors import ProgramError, UserError
from dlcompiler.ir import Builder, PrimFunc, Seq, call_extern, call_packed, const, decl_buffer
from dlcompiler.runtime.registry import register_func
from dlcompiler.simulate import interpret

A = decl_buffer((4, 6), name="A")
B = decl_buffer((4, 6), name="B")


@register_func("test.simulate.copy", override=True)
def _copy(a, b):
    b[...] = a


def _run(body):
    a, b = np.arange(24, dtype="float32").reshape(4, 6), np.zeros((4, 6), "float32")
    return interpret(PrimFunc("f", (A, B), (B,), body), [a, b]), a, b


def _in_loop(make, kind="serial", count=4):
    ib = Builder()
    with ib.for_range(0, count, name="i", kind=kind) as i:
        ib.emit(make(i))
    return ib.get()


def test_a_box():
    report, a, b = _run(
        call_packed(
            "test.simulate.copy", A.region((1, 2), (2, 3), "r"), B.region((0, 0), (2, 3), "w")
        )
    )
    assert np.array_equal(b[:2, :3], a[1:3, 2:5])
    assert not b[2:].any()
    assert report.unwritten == 24 - 6


def test_numbers_are_pythons():
    seen = []

    def see(b, *rest):
        b.fill(1)
        seen.extend(rest)

    register_func("test.simulate.see", see, override=True)
    _run(
        _in_loop(
            lambda i: call_packed(
                "test.simulate.see", B.region((i, 0), (1, 6), "w"), i, i < 1,
                const(0.5, "float16"), const(7, "uint8"),
            ),
            count=1,
        )
    )  # fmt: skip
    assert seen == [0, True, 0.5, 7]
    assert [type(value) for value in seen] == [int, bool, float, int]


def test_an_empty_box_touches_nothing():
    report, _, b = _run(
        call_packed(
            "test.simulate.copy", A.region((4, 6), (0, 0), "r"), B.region((9, 9), (0, 0), "w")
        )
    )
    assert report.unwritten == 24
    assert not b.any()


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            call_packed("test.simulate.copy", A.region((3, 0), (2, 6), "r"), B.access_ptr("w")),
            r"A\[4, 5\] is out of bounds",
        ),
        (
            call_packed("test.simulate.copy", A.access_ptr("r"), B.region((-1, 0), (1, 6), "w")),
            r"B\[-1, 0\] is out of bounds",
        ),
        (
            call_packed("test.simulate.copy", A.access_ptr("r"), B.access_ptr("rw")),
            r"B\[0, 0\] is read before it is written",
        ),
        (
            _in_loop(
                lambda i: call_packed(
                    "test.simulate.copy",
                    A.region((0, 0), (1, 6), "r"),
                    B.region((0, i), (1, 6 - i), "w"),
                ),
                kind="parallel",
            ),
            r"race on B\[0, \d\] between iterations",
        ),
        (
            call_extern("int32", "f", B.access_ptr("w")),
            "the interpreter cannot run f, a C function",
        ),
    ],
)
def test_what_stops_it(body, text):
    if "race" in text:
        register_func("test.simulate.copy", lambda a, b: b.fill(1), override=True)
    try:
        with pytest.raises(ProgramError, match=text):
            _run(body)
    finally:
        register_func("test.simulate.copy", _copy, override=True)


def test_a_name_that_is_not_registered():
    with pytest.raises(UserError, match=r"call test.simulate.none: no function of that name"):
        _run(call_packed("test.simulate.none", B.access_ptr("w")))


def _writes(*elements):
    """Return the report of a call that writes some elements of its box, and the array."""

    def some(b):
        for index, value in elements:
            b[index] = value

    register_func("test.simulate.some", some, override=True)
    report, _, b = _run(call_packed("test.simulate.some", B.region((0, 0), (2, 3), "w")))
    return report, b


@pytest.mark.parametrize("value", [0.0, 1.0, np.nan])
def test_what_a_call_leaves_out_is_not_written(value):
    everything = [((i, j), value) for i in range(2) for j in range(3)]
    report, b = _writes(*everything)
    assert report.unwritten == 24 - 6
    np.testing.assert_array_equal(b[:2, :3], np.full((2, 3), value))
    for left_out in range(6):
        report, b = _writes(*everything[:left_out], *everything[left_out + 1 :])
        assert report.unwritten == 24 - 5
        assert report.first_unwritten == ("B", min((left_out // 3, left_out % 3), (0, 3)))


def test_a_call_may_add_to_what_calls_before_it_have_written():
    def half(b, first):
        b[first::2] = first

    register_func("test.simulate.half", half, override=True)
    box = B.region((0, 0), (4, 6), "w")
    calls = [call_packed("test.simulate.half", box, first) for first in (0, 1)]
    report, _, b = _run(Seq(tuple(calls)))
    assert report.unwritten == 0
    assert b[:, 0].tolist() == [0, 1, 0, 1]


def test_each_result_is_that_of_the_first_call():
    count = []

    def counted(b):
        count.append(1)
        b[0] = len(count)

    register_func("test.simulate.counted", counted, override=True)
    report, _, b = _run(call_packed("test.simulate.counted", B.region((0, 0), (2, 6), "w")))
    assert b[0].tolist() == [1] * 6
    assert report.first_unwritten == ("B", (1, 0))
