"""The primitives that make stages, on shapes that are known at the call only."""

from types import SimpleNamespace

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.pipeline import build
from dlcompiler.schedule import create_schedule


def cache_read(s, e):
    outer, _ = s[e.C].split(e.C.op.axis[0], 4)
    s[s.cache_read(e.A, "local", [e.C])].compute_at(s[e.C], outer)


def cache_write(s, e):
    s[e.C].split(e.C.op.axis[0], 4)
    cached = s[s.cache_write(e.C, "local")]
    cached.vectorize(cached.op.axis[1])


def fused_layout(s, e):
    s[e.P].split(s[e.P].fuse(*e.P.op.axis), 4)
    s.cache_write(e.P, "local")
    s[e.P].compute_inline()


def layout_of_parts(s, e):
    outer, _ = s[e.P].split(e.P.op.axis[0], nparts=3)
    s[e.P].reorder(e.P.op.axis[1], outer)
    s.cache_write(e.P, "local")


def rfactor_inner(s, e):
    _, inner = s[e.T].split(e.r, 4)
    partial = s[s.rfactor(e.T, inner)]
    partial.parallel(partial.op.axis[0])


def rfactor_outer(s, e):
    outer, _ = s[e.T].split(e.r, 4)
    s.rfactor(e.T, outer, 1)


def rfactor_whole(s, e):
    s.rfactor(e.T, e.r)


def blocked_layout(s, e):
    s[e.P].transform_layout(lambda i, j: [i // 4, j, i % 4])


def flat_layout(s, e):
    s[e.P].transform_layout(lambda i, j: [i * 8 + j])


def storage(s, e):
    s[e.P].storage_align(e.P.op.axis[0], 8, 1)
    s[e.C].prefetch(e.A, e.C.op.axis[0], 2)
    cached = s[s.cache_read(e.A, "local", [e.C])]
    cached.compute_at(s[e.C], e.C.op.axis[0])
    cached.double_buffer()


STEPS = (
    cache_read, cache_write, fused_layout, layout_of_parts, rfactor_inner, rfactor_outer,
    rfactor_whole, blocked_layout, flat_layout, storage,
)  # fmt: skip


@pytest.mark.parametrize("steps", STEPS)
def test_values_at_every_size(steps):
    n = te.var("n")
    k, r = te.reduce_axis((0, 6), name="k"), te.reduce_axis((0, n), name="r")
    A = te.placeholder((n, 6), "int32", name="A")
    P = te.compute((n, 6), lambda i, j: A[i, j] * 2, name="P")
    C = te.compute((n,), lambda i: te.sum(P[i, k] + A[i, k], axis=k), name="C")
    T = te.compute((6,), lambda j: te.sum(P[r, j], axis=r), name="T")
    s = create_schedule([C.op, T.op])
    steps(s, SimpleNamespace(A=A, P=P, C=C, T=T, r=r))
    kernel = build(s, [A, C, T])
    for size in (0, 1, 7, 16):
        a = np.arange(size * 6, dtype="int32").reshape(size, 6) - 9
        c, t = np.full(size, 77, "int32"), np.full(6, 77, "int32")
        kernel(a, c, t)
        assert np.array_equal(c, (a * 3).sum(1))
        assert np.array_equal(t, (a * 2).sum(0))
