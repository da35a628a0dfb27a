"""Calls of code from outside in the interpreter: what they may touch is checked and noted."""

import numpy as np
import pytest

from dlcompiler.errors import ProgramError, UserError
from dlcompiler.ir import Builder, PrimFunc, call_extern, call_packed, const, decl_buffer
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
    register_func("test.simulate.see", lambda b, *rest: seen.extend(rest), override=True)
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
            r"B\[0, 0\] is read, but nothing has written it",
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
            "the interpreter cannot run f, code of C",
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
