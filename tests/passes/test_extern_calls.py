"""Calls of code from outside on their way through the passes: what they get stays as it is."""

import pytest

from dlcompiler.errors import ScheduleError
from dlcompiler.ir import (
    Builder,
    ExternCall,
    For,
    PrimFunc,
    StepRef,
    call_packed,
    decl_buffer,
    verify_func,
    walk,
)
from dlcompiler.passes import (
    flatten_storage,
    inject_virtual_threads,
    instrument_bounds,
    simplify,
    storage_rewrite,
    unroll_loops,
    vectorize_loops,
)
from dlcompiler.passes.base import push_origin

A = decl_buffer((4, 8), name="A")
B = decl_buffer((4, 8), name="B")


def _rows(kind, extra=0):
    ib = Builder()
    with ib.for_range(0, 4, name="i", kind=kind) as i:
        ib.buffer_ptr(B)[i, 0] = 0.0
        a, b = A.region((i, 0), (1, 8), "r"), B.region((i + extra, 0), (1, 8), "w")
        ib.emit(call_packed("f", a, b, i * 2 // 2))
    return PrimFunc("f", (A, B), (B,), ib.get())


def _body(func):
    verify_func(func)
    return [line.strip() for line in str(func).splitlines()[1:]]


def test_simplify_looks_into_arguments():
    assert _body(simplify(_rows("serial")))[-1] == "call f(A[i, 0 : +8] (r), B[i, 0 : +8] (w), i)"


def test_a_vectorized_loop_with_a_call_is_serial():
    assert _body(vectorize_loops(_rows("vectorize")))[0] == "for i in range(4):"


def test_an_unrolled_loop_is_copied():
    lines = _body(simplify(unroll_loops(_rows("unroll"))))
    assert lines[-1] == "call f(A[3, 0 : +8] (r), B[3, 0 : +8] (w), 3)"
    assert len(lines) == 8


def test_memory_that_a_call_gets_keeps_its_shape_and_is_shared_with_none():
    ib = Builder()
    for name in ("t", "u"):
        with ib.for_range(0, 1):
            t = ib.allocate("float32", (64, 64), name)
            ib.emit(call_packed("f", t.access_ptr("w")))
            ib.buffer_ptr(B)[0, 0] = t[0, 0]
    func = PrimFunc("f", (A, B), (B,), ib.get())
    assert storage_rewrite(func) is func
    assert flatten_storage(func) is func


def test_virtual_threads_do_not_call():
    with pytest.raises(ScheduleError, match="they would call f"):
        inject_virtual_threads(_rows("vthread"))


def test_bounds_of_the_first_and_the_last_element_are_checked():
    lines = _body(instrument_bounds(_rows("serial", extra=1)))
    assert sum(line.startswith("assert") for line in lines) >= 4
    assert any("B[i + 1 + 1 - 1" in line for line in lines)


def test_a_call_takes_the_origin_of_a_loop_that_is_gone():
    call = call_packed("f", B.access_ptr("w"))
    ref = StepRef("state", "stage", "i")
    assert push_origin(call, (ref,)).origin == (ref,)
    (kept,) = [node for node in walk(_rows("serial").body) if isinstance(node, ExternCall)]
    assert kept.origin == ()
    assert isinstance(_rows("serial").body, For)
