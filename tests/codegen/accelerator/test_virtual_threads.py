"""Virtual threads in places where threads of a GPU could not be."""

import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import ScheduleError
from tests.accelerator_programs import check_product, plain_product


def on_chip(**sizes):
    """Put a product into the memories of VTA, with the reduction outside the intrinsic."""
    s, args = plain_product(**sizes)
    A, W, C = args
    (sums,) = C.op.input_tensors
    a, w = s.cache_read(A, "vta-pynq.inp", [sums]), s.cache_read(W, "vta-pynq.wgt", [sums])
    s[sums].set_scope("vta-pynq.acc")
    return s, args, (a, w, sums)


def tensorized(s, sums, x, y):
    ko, ki = sums.op.reduce_axis
    _, _, i, j = sums.op.axis
    s[sums].reorder(ko, x, y, i, j, ki)
    s[sums].tensorize(i, te.tensor_intrin("vta_gemm_1x16x16"))
    return ko


@pytest.mark.parametrize("rows", [4, 5])
def test_a_stage_between_nested_virtual_threads(rows):
    s, args, (a, w, sums) = on_chip(rows=rows, columns=4)
    x, y, i, j = s[args[2]].op.axis
    (xo, xi), (yo, yi) = s[args[2]].split(x, 2), s[args[2]].split(y, 2)
    s[args[2]].reorder(xo, yo, xi, yi, i, j)
    for axis in (xi, yi):
        s[args[2]].bind(axis, te.thread_axis("cthread"))
    s[sums].compute_at(s[args[2]], yi)
    s[a].compute_at(s[args[2]], xi)
    s[w].compute_at(s[sums], tensorized(s, sums, *sums.op.axis[:2]))
    check_product(dlc.build(s, args, target="vta-pynq"), args)


def test_virtual_threads_of_an_attached_stage():
    s, args, (a, w, sums) = on_chip()
    outer, _ = s[args[2]].split(args[2].op.axis[0], 4)
    s[sums].compute_at(s[args[2]], outer)
    x, y = sums.op.axis[:2]
    s[sums].bind(y, te.thread_axis("cthread"))
    ko = tensorized(s, sums, x, y)
    s[sums].reorder(y, ko, x)
    for copied in (a, w):
        s[copied].compute_at(s[sums], ko)
    check_product(dlc.build(s, args, target="vta-pynq"), args)


def test_beside_threads_of_a_gpu_it_stays_refused():
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j] + 1.0, "B")
    C = te.compute((8, 8), lambda i, j: B[i, j] * 2.0, "C")
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    for axis in (i, j):
        s[C].bind(axis, te.thread_axis("vthread"))
    s[B].compute_at(s[C], i)
    with pytest.raises(ScheduleError, match=r"outside the threads of C\.j"):
        s[B].bind(B.op.axis[1], te.thread_axis("threadIdx.x"))
