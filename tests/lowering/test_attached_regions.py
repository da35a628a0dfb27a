"""An attached stage computes what one iteration reads: no more than needed, never too little."""

import itertools

import pytest

from dlcompiler import te
from dlcompiler.schedule import create_schedule

pytestmark = pytest.mark.campaign
SIZES = [1, 2, 3, 7, 12, 13]
FACTORS = [1, 2, 4, 5]


def attach(s, producer, consumer, factor, dimension=0):
    """Attach a stage at the outer half of a loop of its consumer."""
    outer, _ = s[consumer].split(s[consumer].op.axis[dimension], factor)
    s[producer].compute_at(s[consumer], outer)
    return outer


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("factor", FACTORS)
def test_stencil(computes, n, factor):
    A = te.placeholder((n + 2,), name="A")
    P = te.compute((n + 2,), lambda i: A[i] * 2.0, name="P")
    C = te.compute((n,), lambda i: P[i] + P[i + 1] + P[i + 2], name="C")
    s = create_schedule(C.op)
    attach(s, P, C, factor)
    computes(s)


def test_stencil_text(nest, golden):
    A = te.placeholder((15,), name="A")
    P = te.compute((15,), lambda i: A[i] * 2.0, name="P")
    C = te.compute((13,), lambda i: P[i] + P[i + 2], name="C")
    s = create_schedule(C.op)
    attach(s, P, C, 4)
    golden("stencil", nest(s))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("factor", FACTORS)
def test_padding_reads_outside_the_producer(computes, n, factor):
    A = te.placeholder((n,), name="A")
    P = te.compute((n,), lambda i: A[i] * 2.0, name="P")
    C = te.compute(
        (n,),
        lambda i: (
            te.if_then_else(i >= 1, P[i - 1], 0.0) + te.if_then_else(i < n - 1, P[i + 1], 1.0)
        ),
        name="C",
    )
    s = create_schedule(C.op)
    attach(s, P, C, factor)
    computes(s)


def test_padding_text(nest, golden):
    A = te.placeholder((8,), name="A")
    P = te.compute((8,), lambda i: A[i] * 2.0, name="P")
    C = te.compute((8,), lambda i: te.if_then_else(i >= 1, P[i - 1], 0.0) + P[i], name="C")
    s = create_schedule(C.op)
    attach(s, P, C, 4)
    golden("padding", nest(s))


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (3, 2)])
@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_convolution_with_padding(computes, stride, dilation, level):
    h, w, kernel, pad = 7, 5, 3, 1
    reach = (kernel - 1) * dilation
    X = te.placeholder((2, h, w), name="X")
    W = te.placeholder((3, 2, kernel, kernel), name="W")
    inside = te.all
    padded = te.compute(
        (2, h + reach, w + reach),
        lambda c, y, x: te.if_then_else(
            inside(y >= pad, y < h + pad, x >= pad, x < w + pad), X[c, y - pad, x - pad], 0.0
        ),
        name="padded",
    )
    c = te.reduce_axis((0, 2), name="c")
    dy, dx = te.reduce_axis((0, kernel), name="dy"), te.reduce_axis((0, kernel), name="dx")
    oh, ow = (h - 1) // stride + 1, (w - 1) // stride + 1
    Y = te.compute(
        (3, oh, ow),
        lambda o, y, x: te.sum(
            padded[c, y * stride + dy * dilation, x * stride + dx * dilation] * W[o, c, dy, dx],
            axis=[c, dy, dx],
        ),
        name="Y",
    )
    s = create_schedule(Y.op)
    o, y, x = Y.op.axis
    yo, xo, yi, xi = s[Y].tile(y, x, 2, 3)
    s[Y].reorder(yo, xo, o, c, dy, dx, yi, xi)
    s[padded].compute_at(s[Y], [yo, xo, c, dx][level])
    computes(s)


INDICES = {
    "negative stride": lambda i, n: n - 1 - i,
    "double stride": lambda i, n: i * 2,
    "half": lambda i, n: i // 2,
    "third": lambda i, n: i // 3 + 1,
    "remainder": lambda i, n: i % 3,
    "remainder of a sum": lambda i, n: (i + 2) % 4,
    "scaled remainder": lambda i, n: i % 3 * 2 + i // 3,
    "negated half": lambda i, n: n - (i + 1) // 2,
    "minimum": lambda i, n: te.minimum(i, 3),
    "clip": lambda i, n: te.maximum(te.minimum(i - 2, n), 0),
    "square": lambda i, n: i * i % n,
    "truncating": lambda i, n: te.truncdiv(i + 3, 2),
    "constant": lambda i, n: 2,
}


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
@pytest.mark.parametrize("n", [5, 13])
@pytest.mark.parametrize("factor", [1, 2, 3, 4])
def test_awkward_indices(computes, index, n, factor):
    A = te.placeholder((2 * n + 2,), name="A")
    P = te.compute((2 * n + 2,), lambda i: A[i] + 1.0, name="P")
    C = te.compute((n,), lambda i: P[index(i, n)] * 2.0, name="C")
    s = create_schedule(C.op)
    attach(s, P, C, factor)
    computes(s)


@pytest.mark.parametrize("name", ["half", "remainder", "negative stride", "double stride"])
def test_awkward_index_text(nest, golden, name):
    A = te.placeholder((26,), name="A")
    P = te.compute((26,), lambda i: A[i] + 1.0, name="P")
    C = te.compute((12,), lambda i: P[INDICES[name](i, 12)] * 2.0, name="C")
    s = create_schedule(C.op)
    attach(s, P, C, 4)
    golden(name.replace(" ", "_"), nest(s))


# -- indices read from tensors ---------------------------------------------------------------------


def gathering(is_computed):
    table = te.placeholder((5, 3), name="table")
    raw = te.placeholder((7,), "int32", name="raw")
    index = te.compute((7,), lambda i: raw[i] % 5, name="index")
    chosen = te.placeholder((7,), "uint8", name="chosen")
    P = te.compute((5, 3), lambda r, j: table[r, j] * 2.0, name="P")
    if is_computed:
        C = te.compute((7, 3), lambda i, j: P[index[i], j], name="C")
    else:
        C = te.compute((7, 3), lambda i, j: P[chosen[i].astype("int32") % 5, j], name="C")
    return create_schedule(C.op), P, index, C


@pytest.mark.parametrize("is_computed", [True, False])
@pytest.mark.parametrize("at", [0, 1])
def test_gather(computes, is_computed, at):
    s, P, _, C = gathering(is_computed)
    s[P].compute_at(s[C], C.op.axis[at])
    computes(s)


def test_gather_text(nest, golden):
    s, P, _, C = gathering(is_computed=True)
    s[P].compute_at(s[C], C.op.axis[0])
    golden("gather", nest(s))


def test_gather_by_an_attached_index(computes):
    s, P, index, C = gathering(is_computed=True)
    s[P].compute_at(s[C], C.op.axis[0])
    s[index].compute_at(s[C], C.op.axis[1])
    computes(s)


def test_gather_by_an_inlined_index(computes):
    s, P, index, C = gathering(is_computed=True)
    s[index].compute_inline()
    s[P].compute_at(s[C], C.op.axis[0])
    computes(s)


def test_inlined_gather(computes):
    s, P, index, _ = gathering(is_computed=True)
    s[P].compute_inline()
    s[index].compute_inline()
    computes(s)


# -- several consumers, chains ---------------------------------------------------------------------


def diamond(n):
    A = te.placeholder((n + 3,), name="A")
    P = te.compute((n + 3,), lambda i: A[i] * 2.0, name="P")
    Q = te.compute((n + 1,), lambda i: P[i] - P[i + 2], name="Q")
    R = te.compute((n + 1,), lambda i: P[i + 1] * 3.0, name="R")
    C = te.compute((n,), lambda i: Q[i] + Q[i + 1] + R[n - 1 - i] + P[i + 3], name="C")
    return create_schedule(C.op), P, Q, R, C


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("factor", FACTORS)
def test_several_consumers(computes, n, factor):
    s, P, Q, R, C = diamond(n)
    outer = attach(s, Q, C, factor)
    s[R].compute_at(s[C], outer)
    s[P].compute_at(s[C], outer)
    computes(s)


def test_several_consumers_text(nest, golden):
    s, P, Q, R, C = diamond(12)
    outer = attach(s, Q, C, 4)
    s[R].compute_inline()
    s[P].compute_at(s[C], outer)
    golden("several_consumers", nest(s))


@pytest.mark.parametrize("n", SIZES)
def test_attached_inside_and_beside(computes, n):
    s, P, Q, R, C = diamond(n)
    outer, inner = s[C].split(C.op.axis[0], 3)
    s[Q].compute_at(s[C], inner)
    s[R].compute_at(s[C], outer)
    s[P].compute_at(s[C], outer)
    qo, _ = s[Q].split(s[Q].op.axis[0], 2)
    s[Q].unroll(qo)
    computes(s)


@pytest.mark.parametrize("n", SIZES)
def test_chain_of_attached_stages(computes, n):
    A = te.placeholder((n + 6,), name="A")
    stages = [A]
    for m in range(1, 4):
        stages.append(summed(stages[-1], n + 6 - 2 * m, f"T{m}"))
    s = create_schedule(stages[-1].op)
    for producer, consumer in itertools.pairwise(stages[1:]):
        attach(s, producer, consumer, 2)
    computes(s)


def summed(T, n, name):
    return te.compute((n,), lambda i: T[i] + T[i + 1] + T[i + 2], name=name)


def test_chain_at_one_loop_text(nest, golden):
    A = te.placeholder((12,), name="A")
    first = summed(A, 10, "T1")
    second = summed(first, 8, "T2")
    s = create_schedule(second.op)
    attach(s, first, second, 4)
    golden("chain", nest(s))


# -- reductions ------------------------------------------------------------------------------------


def row_products(n, length):
    A = te.placeholder((n, length), name="A")
    B = te.placeholder((length, n), name="B")
    P = te.compute((n, length), lambda i, k: A[i, k] * 2.0, name="P")
    k = te.reduce_axis((0, length), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(P[i, k] * B[k, j], axis=k), name="C")
    return create_schedule(C.op), P, C, k


@pytest.mark.parametrize("length", [1, 5, 8])
@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_attached_at_a_reduction_loop(computes, length, level):
    s, P, C, k = row_products(5, length)
    i, j = C.op.axis
    outer, inner = s[C].split(k, 3)
    s[C].reorder(i, outer, j, inner)
    s[P].compute_at(s[C], [i, outer, j, inner][level])
    computes(s)


def test_attached_at_a_reduction_loop_text(nest, golden):
    s, P, C, k = row_products(4, 8)
    outer, inner = s[C].split(k, 3)
    s[C].reorder(C.op.axis[0], outer, C.op.axis[1], inner)
    s[P].compute_at(s[C], outer)
    golden("reduction_loop", nest(s))


def test_an_attached_reduction_initialises_its_part_each_time(nest, computes, golden):
    A = te.placeholder((6, 4), name="A")
    k = te.reduce_axis((0, 4), name="k")
    rows = te.compute((6,), lambda i: te.sum(A[i, k], axis=k), name="rows")
    C = te.compute((5,), lambda i: rows[i] + rows[i + 1], name="C")
    s = create_schedule(C.op)
    attach(s, rows, C, 2)
    golden("attached_reduction", nest(s))
    computes(s)


@pytest.mark.parametrize("reduce", [te.min, te.max, te.sum])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "uint8"])
def test_reducers_and_types(computes, reduce, dtype):
    A = te.placeholder((7, 5), dtype, name="A")
    P = te.compute((7, 5), lambda i, j: A[i, j] - 1, name="P")
    k = te.reduce_axis((0, 5), name="k")
    C = te.compute((7,), lambda i: reduce(P[i, k], axis=k), name="C")
    D = te.compute((7,), lambda i: C[i] + C[6 - i], name="D")
    s = create_schedule(D.op)
    i, inner = s[C].split(k, 2)
    s[C].reorder(inner, i, C.op.axis[0])
    s[C].vectorize(C.op.axis[0])
    s[P].compute_at(s[C], i)
    computes(s)


def test_a_host_that_is_attached_itself(computes):
    s, P, Q, R, C = diamond(9)
    s[R].compute_inline()
    outer = attach(s, Q, C, 4)
    s[P].compute_at(s[C], outer)
    q = s[Q].op.axis[0]
    s[Q].split(q, 2)
    s[C].parallel(outer)
    computes(s)
