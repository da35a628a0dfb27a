"""The work of an expression: what its outputs need, however it is scheduled."""

from dlcompiler import te
from dlcompiler.analysis import work_of
from dlcompiler.ops.gemm import MATMUL


def doubled(shape, name="P"):
    A = te.placeholder(shape, name="A")
    return te.compute(shape, lambda *i: A[i] * 2.0, name=name)


def test_a_matmul_needs_two_operations_for_each_product():
    A = te.placeholder((4, 8), name="A")
    B = te.placeholder((8, 6), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((4, 6), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    work = work_of([C])
    assert work.flops == 2 * 4 * 6 * 8
    assert work.bytes == 4 * (4 * 8 + 8 * 6 + 4 * 6)


def test_what_no_output_needs_does_not_count():
    P = doubled((10, 10))
    C = te.compute((4, 3), lambda i, j: P[i + 2, 2 * j] + 1.0, name="C")
    assert work_of([C]).flops == 12 + 4 * 5


def test_the_padding_of_an_operator_is_not_work():
    *_, C = MATMUL.define(MATMUL.workload(m=5, n=7, k=3))
    assert work_of([C]).flops == 2 * 5 * 7 * 3


def test_regions_of_several_readers_are_joined():
    P = doubled((10,))
    C = te.compute((2,), lambda i: P[i] + P[i + 6], name="C")
    assert work_of([C]).flops == 2 + 8


def test_an_index_that_is_not_known_needs_everything():
    P = doubled((10,))
    Q = te.placeholder((3,), "int32", name="Q")
    C = te.compute((3,), lambda i: P[te.minimum(te.maximum(Q[i], 0), 9)] + 1.0, name="C")
    assert work_of([C]).flops == 3 + 10


def test_empty_tensors_need_nothing():
    P = doubled((0, 5))
    C = te.compute((0, 5), lambda i, j: P[i, j] + 1.0, name="C")
    assert work_of([C]).flops == 0
    *_, D = MATMUL.define(MATMUL.workload(m=3, n=4, k=0))
    assert work_of([D]).flops == 0
