"""`set_store_predicate`: which thread stores what several have reduced."""

import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.trace import Trace
from tests.schedule.test_device_programs import agrees

TX = te.thread_axis("threadIdx.x")


@pytest.fixture
def program():
    A = te.placeholder((6, 10), name="A")
    k = te.reduce_axis((0, 10), name="k")
    B = te.compute((6,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("blockIdx.x"))
    _, ki = s[B].split(k, 4)
    s[B].bind(ki, TX)
    return s, A, B


@pytest.mark.parametrize("number", [0, 3])
def test_one_thread_stores(program, number):
    s, A, B = program
    s[B].set_store_predicate(TX.var == number)
    assert f"if k.inner == {number}:" in str(lower(s, [A, B]))
    assert agrees(s, [A, B])


def test_it_replays(program):
    s, A, B = program
    s[B].set_store_predicate("threadIdx.x == 2")
    again = create_schedule(B.op)
    Trace.from_json(s.trace.to_json()).replay(again)
    assert str(lower(again, [A, B])) == str(lower(s, [A, B]))
    assert 's[B].set_store_predicate("threadIdx.x == 2")' in s.trace.to_python()


@pytest.mark.parametrize("wrong", ["x", TX.var > 0, "threadIdx.x == 1 and threadIdx.x == 2", 3, ""])
def test_what_chooses_no_thread_is_refused(program, wrong):
    s, _, B = program
    with pytest.raises(ScheduleError) as caught:
        s[B].set_store_predicate(wrong)
    assert "set_store_predicate B: it chooses no thread" in str(caught.value)
    assert 'say which thread stores: "threadIdx.x == 0", several joined by " and "' in str(
        caught.value
    )


def test_a_thread_that_is_not_there_is_refused(program):
    s, _, B = program
    with pytest.raises(ScheduleError) as caught:
        s[B].set_store_predicate(TX.var == 4)
    assert str(caught.value) == (
        "set_store_predicate B: B would not be stored: there is no such thread\n"
        "  got       threadIdx.x == 4\n"
        "  hint      threadIdx.x counts from 0 to 4 - 1"
    )


def test_an_axis_that_shares_no_reduction_is_refused(program):
    s, _, B = program
    with pytest.raises(ScheduleError) as caught:
        s[B].set_store_predicate("threadIdx.y == 0")
    assert str(caught.value) == (
        "set_store_predicate B: elements of B would not be stored\n"
        "  got       threadIdx.y == 0\n"
        "  because   the threads of threadIdx.y do not share the reduction\n"
        "  hint      choose among those of threadIdx.x"
    )


def test_without_a_shared_reduction_it_is_refused():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    s[B].bind(B.op.axis[0], TX)
    with pytest.raises(ScheduleError) as caught:
        s[B].set_store_predicate(TX.var == 0)
    assert str(caught.value) == (
        "set_store_predicate B: elements of B would not be stored\n"
        "  got       threadIdx.x == 0\n"
        "  because   each thread computes elements of its own: the threads share no reduction "
        "of B\n"
        "  hint      bind a reduction loop to threadIdx.x first"
    )


def test_rfactor_forgets_what_was_said_of_other_threads(program):
    s, A, B = program
    s[B].set_store_predicate("threadIdx.x == 3")
    outer = s[B].leaf_iter_vars[1]
    s.rfactor(B, outer)
    (last,) = s[B].op.reduce_axis
    s[B].bind(last, TX)
    assert agrees(s, [A, B])
