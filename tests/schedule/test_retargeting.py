"""The steps of a schedule, taken over to another target."""

from dataclasses import replace

import pytest

from dlcompiler import target, te
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.moves.retargeting import retargeted
from dlcompiler.target import resolve


def matmul(n=64):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return create_schedule(C.op), A, B, C


def texts(items):
    return [str(item) for item in items]


def test_a_gpu_keeps_all_but_parallel():
    s, _, _, C = matmul()
    outer, inner = s[C].split(C.op.axis[0], factor=8)
    s[C].parallel(outer)
    s[C].unroll(inner)
    here = s.node
    found = retargeted(s, resolve("v100"))
    assert texts(found.kept) == ["split C i 8", "unroll C i.inner"]
    assert texts(found.left_out) == ["parallel C i.outer: v100 has no parallel loops"]
    assert s.node is here
    assert found.node in s.history.history.nodes.values()
    assert retargeted(s, resolve("gpu")).node is found.node


def test_a_cpu_keeps_all_but_threads():
    s, _, _, C = matmul()
    outer, inner = s[C].split(C.op.axis[0], factor=8)
    s[C].bind(outer, te.thread_axis("blockIdx.x"))
    s[C].bind(inner, te.thread_axis("vthread"))
    s[C].unroll(C.op.axis[1])
    found = retargeted(s, resolve("x86-64-avx2"))
    assert texts(found.kept) == ["split C i 8", "unroll C j"]
    assert texts(found.left_out) == [
        "bind C i.outer blockIdx.x: x86-64-avx2 has no blockIdx.x",
        "bind C i.inner vthread: x86-64-avx2 has no vthread",
    ]


def product_in_blocks():
    """A product with a copy of A in shared memory, as for a GPU."""
    s, A, B, C = matmul()
    copy = s.cache_read(A, "shared", [C])
    block, thread = s[C].split(C.op.axis[0], factor=8)
    s[C].bind(block, te.thread_axis("blockIdx.x"))
    s[C].bind(thread, te.thread_axis("threadIdx.x"))
    s[copy].compute_at(s[C], block)
    s[copy].bind(copy.op.axis[0], te.thread_axis("threadIdx.x"))
    return s, [A, B, C]


def test_a_copy_that_threads_share_is_left_out_on_a_cpu():
    """Without the threads, it would be computed outside any block: nothing could be lowered."""
    s, args = product_in_blocks()
    lower(s, args, target="gpu")
    found = retargeted(s, resolve("x86-64-avx2"))
    assert texts(found.kept) == ["split C i 8"]
    assert texts(found.left_out)[0] == (
        "cache_read A shared (C): x86-64-avx2 has no threads that could share shared memory"
    )
    s.jump(found.node.id)
    lower(s, args, target="x86-64-avx2")


def test_shared_memory_stays_from_one_cpu_to_another():
    s, A, _, C = matmul()
    s.cache_read(A, "shared", [C])
    cpu = resolve("cpu")
    assert retargeted(s, resolve("x86-64-avx2"), cpu).node is s.node


def test_a_memory_that_the_target_lacks_and_what_needs_it(monkeypatch):
    one = replace(resolve("c"), name="one memory", scopes=resolve("c").scopes[:1])
    monkeypatch.setitem(target.REGISTRY, "one memory", one)
    s, _, _, C = matmul()
    cached = s.cache_write(C, "local")
    s[cached].unroll(cached.op.axis[0])
    s[C].parallel(C.op.axis[0])
    found = retargeted(s, one)
    assert texts(found.left_out) == [
        "cache_write C local: one memory has no memory 'local'",
        "unroll C.local i.c: no stage 'C.local', since the step that made it is left out",
    ]
    assert texts(found.kept) == ["parallel C i"]


def test_limits_of_a_gpu_hold():
    s, _, _, C = matmul(4096)
    s[C].bind(C.op.axis[0], te.thread_axis("blockIdx.x"))
    s[C].vectorize(C.op.axis[1])
    found = retargeted(s, resolve("gpu"))
    assert texts(found.left_out) == [
        "vectorize C j: gpu stores at most 16 bytes at once",
    ]


@pytest.mark.parametrize("name", target.names())
def test_a_schedule_without_steps_is_for_every_target(name):
    s, *_ = matmul()
    found = retargeted(s, resolve(name))
    assert (found.node, found.kept, found.left_out) == (s.node, (), ())


def test_what_was_refused_before_stays():
    s, _, _, C = matmul()
    s[C].parallel(C.op.axis[0])
    assert retargeted(s, resolve("v100"), resolve("gpu")).node is s.node
    found = retargeted(s, resolve("v100"), resolve("x86-64-avx2"))
    assert texts(found.left_out) == ["parallel C i: v100 has no parallel loops"]
