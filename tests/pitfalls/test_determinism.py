"""Same schedule, same inputs: bitwise the same output, with threads too."""

import numpy as np

from dlcompiler import te
from dlcompiler.pipeline import build
from dlcompiler.schedule import create_schedule

CALLS = 20


def _bits(kernel, arrays, shape):
    out = np.full(shape, np.nan, "float32")
    kernel(*arrays, out)
    return out.tobytes()


def test_rounding_does_not_depend_on_the_threads():
    """Sums that round: the order of additions is the schedule's, whichever thread makes them."""
    n, m, length = 31, 37, 129
    A = te.placeholder((n, length), name="A")
    B = te.placeholder((length, m), name="B")
    k = te.reduce_axis((0, length), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")

    def scheduled():
        s = create_schedule(C.op)
        i, j, _, inner = s[C].tile(*C.op.axis, 4, 8)
        outer, _ = s[C].split(C.op.reduce_axis[0], factor=8)
        s[C].reorder(outer, inner)
        s[C].vectorize(inner)
        s[C].parallel(s[C].fuse(i, j))
        return build(s, [A, B, C])

    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(t.shape).astype("float32") for t in (A, B)]
    kernels = [scheduled(), scheduled()]
    assert kernels[0].uses_threads
    results = {_bits(kernel, arrays, (n, m)) for kernel in kernels for _ in range(CALLS)}
    assert len(results) == 1


def test_several_parallel_loops_one_after_the_other():
    A = te.placeholder((1000,), name="A")
    k = te.reduce_axis((0, 1000), name="k")
    P = te.compute((1000,), lambda i: te.exp(A[i]), name="P")
    total = te.compute((), lambda: te.sum(P[k], axis=k), name="total")
    C = te.compute((1000,), lambda i: P[i] / total[()], name="C")
    s = create_schedule(C.op)
    s[P].parallel(P.op.axis[0])
    s[C].parallel(C.op.axis[0])
    kernel = build(s, [A, C])
    array = np.random.default_rng(2).standard_normal(1000).astype("float32")
    assert len({_bits(kernel, [array], (1000,)) for _ in range(CALLS)}) == 1
