"""Calls of intrinsics in the loop IR: text, traversal, comparison, and what is well formed."""

import gc
from dataclasses import replace

import pytest

from dlcompiler import te
from dlcompiler.errors import InternalError
from dlcompiler.ir import (
    Intrinsic,
    IntrinsicCall,
    StepRef,
    Var,
    index_const,
    rewrite,
    specialize,
    structural_equal,
    substitute,
    verify_func,
    walk,
)
from dlcompiler.ir.printer import format_intrinsic
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from tests.intrinsics import row_sum_schedule, row_sums, tiled


@pytest.fixture
def func():
    s, args, k = tiled(12, 32, 16, (6, 16, 8))
    s[args[-1]].tensorize(k, "gemm_f32_6x16x8")
    return lower(s, args, simple_mode=True)


def calls(func):
    return {n.mode: n for n in walk(func.body) if isinstance(n, IntrinsicCall)}


def changed(func, mode, **fields):
    """Return the function with one call changed."""
    call = calls(func)[mode]
    return func.with_body(
        rewrite(func.body, lambda node: replace(node, **fields) if node is call else node)
    )


def test_the_text_is_an_assignment(func):
    found = calls(func)
    assert format_intrinsic(found["reset"]) == (
        "C[i.outer*6 : +6, j.outer*16 : +16] = gemm_f32_6x16x8.reset()"
    )
    assert format_intrinsic(found["update"]).startswith("C[i.outer*6 : +6, j.outer*16 : +16] += ")


def test_what_it_reads_and_writes(func):
    found = calls(func)
    assert [r.mode for r in found["update"].regions] == ["rw", "r", "r"]
    assert [r.mode for r in found["reset"].regions] == ["w"]
    assert [r.buffer.name for r in found["update"].regions] == ["C", "A", "B"]


def test_variables_are_replaced_in_regions_and_in_what_is_declared(func):
    call = calls(func)["reset"]
    outer = next(n for n in walk(call.regions[0]) if isinstance(n, Var) and n.name == "i.outer")
    moved = substitute(call, {outer: index_const(1)})
    assert outer not in set(walk(moved))
    assert substitute(call, {Var("i.outer"): index_const(1)}) is call


def test_equal_by_value():
    def made():
        s, args, leaves = row_sum_schedule(8, 12)
        s[args[-1]].tensorize(leaves[2], row_sums())
        return lower(s, args, simple_mode=True).body

    one = made()
    gc.collect()  # what was declared is declared anew
    assert structural_equal(one, made())
    s, args, k = tiled(12, 32, 16, (6, 16, 8))
    s[args[-1]].tensorize(k, "gemm_f32_6x16x8")
    body = lower(s, args, simple_mode=True).body
    call = next(n for n in walk(body) if isinstance(n, IntrinsicCall))
    other = replace(call, intrinsic=Intrinsic("other", call.intrinsic.parts))
    assert not structural_equal(body, rewrite(body, lambda n: other if n is call else n))


def test_symbols_become_numbers():
    n = te.size_var("n")
    A, B = te.placeholder((n, 8), name="A"), te.placeholder((8, 16), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((n, 16), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    s[C].tensorize(C.op.axis[1], "gemv_f32_16x8")
    func = specialize(lower(s, [A, B, C]), {n: 3})
    verify_func(func)
    (call,) = calls(func).values()
    assert all(region.buffer in func.params for region in call.regions)


def refused(func):
    with pytest.raises(InternalError) as error:
        verify_func(func, "a test")
    return error.value.problem


def test_regions_that_are_not_there_or_of_another_mode(func):
    call = calls(func)["update"]
    write, a, b = call.regions
    other = replace(a, buffer=replace(a.buffer, name="other"))
    assert refused(changed(func, "update", regions=(write, other, b))).endswith(
        "other is not allocated here"
    )
    assert refused(changed(func, "update", regions=(replace(write, mode="w"), a, b))).endswith(
        "C is a region of mode 'w'"
    )
    assert refused(changed(func, "update", regions=(write, replace(a, mode="w"), b))).endswith(
        "A is a region of mode 'w'"
    )


def test_dimensions_that_do_not_fit(func):
    call = calls(func)["reset"]
    assert refused(changed(func, "reset", dims=((0, 0),))).endswith("a region does not fit C")
    assert refused(changed(func, "reset", dims=((1,),))).endswith("a region does not fit C")
    assert call.dims == ((0, 1),)


def test_a_declaration_of_something_else(func):
    found = calls(func)
    assert refused(changed(func, "reset", body=found["update"].body)).endswith(
        "its declaration touches other buffers"
    )


def test_a_mode_that_nothing_carries_out(func):
    call = calls(func)["reset"]
    other = Intrinsic("other", {"body": "fma_tile"})
    assert refused(changed(func, "reset", intrinsic=other)).endswith("nothing carries out reset")
    assert call.part == "fma_tile"


def test_an_origin_that_is_lost(func):
    call = calls(func)["update"]
    body = rewrite(
        call.body,
        lambda node: (
            replace(node, origin=(StepRef("", "C"),)) if getattr(node, "origin", None) else node
        ),
    )
    problem = refused(changed(func, "update", origin=(), body=body))
    assert "lost its axes" in problem
