"""How often unrolled loops may repeat a body: judged in every state, where the stage is."""

import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError
from dlcompiler.schedule import create_schedule


def matmul(n):
    A = te.placeholder((n, n), name="A")
    B = te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    return te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C"), k


def tiled(n):
    C, k = matmul(n)
    s = create_schedule(C.op)
    local = s.cache_write(C, "local")
    _, jo, _, _ = s[C].tile(*C.op.axis, 4, 16)
    s[local].compute_at(s[C], jo)
    _, inner = s[local].split(k, 8)
    s[local].unroll(inner)
    return s, C, local


def test_an_attached_stage_counts_the_part_that_it_computes():
    s, _, local = tiled(2048)
    s[local].unroll(s[local].op.axis[0])  # 4 rows of the tile, not 2048
    assert s.can("unroll", s[local], s[local].op.axis[1])


def test_a_long_loop_is_refused():
    C, _ = matmul(2048)
    s = create_schedule(C.op)
    with pytest.raises(ScheduleError) as error:
        s[C].unroll(C.op.axis[0])
    assert str(error.value) == (
        "unroll C.i: the body of C would be repeated 2048 times\n"
        "  got       unrolled loops: i (extent 2048)\n"
        "  hint      split the loop and unroll the inner one; at most 1024 copies"
    )


def test_moving_the_stage_outside_is_refused_then():
    s, _, local = tiled(2048)
    s[local].unroll(s[local].op.axis[0])
    verdict = s.can("compute_root", s[local])
    assert not verdict
    assert verdict.reason == "the body of C.local would be repeated 16384 times"


def test_a_stage_whose_loop_was_unrolled_can_be_inlined():
    A = te.placeholder((2000,), name="A")
    P = te.compute((2000,), lambda i: A[i] + 1.0, name="P")
    C = te.compute((2000,), lambda i: P[i] * 2.0, name="C")
    s = create_schedule(C.op)
    s[P].compute_at(s[C], C.op.axis[0])
    s[P].unroll(P.op.axis[0])
    s[P].compute_inline()
    assert s.can("vectorize", C.op.axis[0])
