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


def halves():
    """P is read 31 rows and columns apart, and computed at the inner of two loops."""
    A = te.placeholder((70, 70), name="A")
    P = te.compute((70, 70), lambda i, j: A[i, j] * 2.0, name="P")
    C = te.compute((35, 35), lambda i, j: P[i, j] + P[i + 31, j + 31], name="C")
    s = create_schedule(C.op)
    s[P].compute_at(s[C], C.op.axis[1])
    return s, P


@pytest.mark.parametrize(("unrolled_first", "copies"), [(True, 2048), (False, 4096)])
def test_rounded_extents_count(unrolled_first, copies):
    s, P = halves()
    i, j = P.op.axis
    steps = [("unroll", (axis,)) for axis in (i, j)]
    rounds = [("align_extent", (axis, 64)) for axis in (i, j)]
    answers = []
    for name, args in (*steps, *rounds) if unrolled_first else (*rounds, *steps):
        verdict = s.can(name, s[P], *args)
        answers.append(verdict.reason if not verdict else "")
        if verdict:
            getattr(s[P], name)(*args)
    assert f"the body of P would be repeated {copies} times" in answers


def test_a_small_tensor_whose_part_is_rounded_up_counts_as_that():
    A = te.placeholder((32, 31), name="A")
    P = te.compute((32, 31), lambda i, j: A[i, j] * 2.0, name="P")
    C = te.compute((2, 2), lambda i, j: P[i, j] + P[i + 29, j + 29], name="C")
    s = create_schedule(C.op)
    s[P].compute_at(s[C], C.op.axis[1])
    s[P].unroll(P.op.axis[0])
    s[P].unroll(P.op.axis[1])  # 30 * 30
    s[P].align_extent(P.op.axis[0], 16)  # 32 * 30
    verdict = s.can("align_extent", s[P], P.op.axis[1], factor=64)
    assert verdict.reason == "the body of P would be repeated 2048 times"


def test_a_loop_that_grows_with_the_threads_beside_it_counts():
    A = te.placeholder((16,), name="A")
    P = te.compute((16,), lambda i: A[i] * 2.0, name="P")
    s = create_schedule(P.op)
    _, inner = s[P].split(P.op.axis[0], factor=8192)
    threads, each = s[P].split(inner, nparts=4)
    s[P].unroll(each)
    verdict = s.can("bind", s[P], threads, te.thread_axis("threadIdx.x"))
    assert verdict.reason == "the body of P would be repeated 2048 times"
