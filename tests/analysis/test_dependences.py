"""Dependences that loops carry: kind, accesses, distance."""

import random

import pytest

from dlcompiler.analysis import dependences
from dlcompiler.ir import Buffer, For, Load, PrimFunc, Seq, Store, Var, const, index_const
from tests.analysis.exact import conflicts, points
from tests.analysis.programs import Programs

i, j = Var("i"), Var("j")
A = Buffer("A", (20, 20), "float32")
CASES = 50


def of(body):
    return sorted(str(item) for item in dependences(PrimFunc("main", (A,), (A,), body)))


def nest(body, *loops):
    for var, extent in reversed(loops):
        body = For(var, index_const(extent), "serial", body)
    return body


def test_a_recurrence_carries_a_flow_dependence():
    store = Store(A, (i + 2, j), Load(A, (i, j)) * 2)
    assert of(nest(store, (i, 8), (j, 8))) == ["flow A, loop i, distance 2"]


def test_a_shift_the_other_way_carries_an_anti_dependence():
    store = Store(A, (i, j), Load(A, (i + 1, j + 1)))
    assert of(nest(store, (i, 8), (j, 8))) == ["anti A, loop i, distance 1"]


def test_a_reduction_carries_all_three():
    store = Store(A, (i, i), Load(A, (i, i)) + 1)
    assert of(nest(store, (i, 4), (j, 8))) == [
        "anti A, loop j, distance <",
        "flow A, loop j, distance <",
        "output A, loop j, distance <",
    ]


def test_independent_iterations_carry_none():
    store = Store(A, (i, j), Load(A, (i, j)) + 1)
    assert of(nest(store, (i, 4), (j, 8))) == []


def test_two_statements():
    one = const(1.0, "float32")
    body = Seq((Store(A, (i, j), one), Store(A, (i, j + 3), one)))
    assert of(nest(body, (i, 4), (j, 8))) == ["output A, loop j, distance 3"]


@pytest.mark.campaign
def test_random_programs_have_the_dependences_that_isl_finds():
    for number in range(CASES):
        func = Programs(random.Random(f"dependences:{number}")).func()
        program = points(func)
        found = dependences(func)
        assert not any(item.doubt for item in found)
        got = {(item.loop.statement, item.kind, item.buffer) for item in found}
        expected = {
            (loops[-1], kind_of(a, b), a.buffer)
            for loops in program.loops
            for a, b, _ in conflicts(program, loops[-1], ordered=True)
        }
        assert got == expected, f"case dependences:{number}\n{func}"


def kind_of(source, sink):
    if not source.is_write:
        return "anti"
    return "output" if sink.is_write else "flow"
