"""Dot products of 8-bit numbers: dp4a in CUDA C and PTX, loops elsewhere."""

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.codegen.gpu import emit_ptx
from dlcompiler.errors import TargetError
from dlcompiler.passes.cut_at_barriers import as_cpu_function
from dlcompiler.pipeline import build_program
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve
from tests.codegen.gpu import cuda_on_cpu, emulated
from tests.intrinsics import dots


def products(dtype="uint8", m=6, n=8, groups=3, tile=4, shared=False):
    """Return a product of 8-bit numbers in tiles of ``tile`` columns for each thread."""
    X, W, D = dots(m, n, groups, dtype)
    s = create_schedule(D.op)
    (i, j), (g, q) = D.op.axis, D.op.reduce_axis
    outer, inner = s[D].split(j, tile)
    s[D].reorder(i, outer, g, inner, q)
    s[D].bind(i, te.thread_axis("blockIdx.x"))
    s[D].bind(outer, te.thread_axis("threadIdx.x"))
    if shared:
        WS = s.cache_read(W, "shared", [D])
        s[WS].compute_at(s[D], outer)
        _, x = s[WS].split(s[WS].fuse(*s[WS].op.axis), n // tile)
        s[WS].bind(x, te.thread_axis("threadIdx.x"))
    s[D].tensorize(inner, f"dot4_{'u8s8' if dtype == 'uint8' else 's8s8'}_{tile}x1")
    return s, [X, W, D]


def numbers_for(args, seed=0):
    rng = np.random.default_rng(seed)
    made = [
        rng.choice([np.iinfo(t.dtype).min, np.iinfo(t.dtype).max, 0, 1, 3], t.static_shape)
        for t in args[:2]
    ]
    x, w = (a.astype(t.dtype) for a, t in zip(made, args, strict=False))
    expected = np.einsum("igq,gjq->ij", x.astype("i4"), w.astype("i4"))
    return x, w, expected


@pytest.mark.campaign
@pytest.mark.parametrize(("dtype", "shared"), [("uint8", True), ("int8", False)])
def test_values(dtype, shared, tmp_path, folder):
    s, args = products(dtype, shared=shared)
    x, w, expected = numbers_for(args)
    kernel = dlc.build(s, args, target="gpu")
    compiled = build_program(as_cpu_function(kernel.program), "cpu")
    ways = (
        kernel,
        compiled,
        lambda *a: cuda_on_cpu.run(kernel.source("cuda"), a, tmp_path),
        lambda *a: emulated.run(kernel.program, a, folder, target=kernel.target),
    )
    for call in ways:
        d = np.full(args[2].static_shape, -1, "int32")
        call(x, w, d)
        np.testing.assert_array_equal(d, expected)


def test_opencl_writes_the_loops(opencl):
    s, args = products()
    x, w, expected = numbers_for(args)
    kernel = dlc.build(s, args, target="opencl")
    d = np.full(args[2].static_shape, -1, "int32")
    kernel(x, w, d)
    np.testing.assert_array_equal(d, expected)
    assert "dp4a" not in kernel.source() + kernel.source("cuda")


def test_ptx_has_the_instruction_where_the_processor_has_it(ptxas):
    program = dlc.build(*products(shared=True), target="gpu").program
    for gpu, has_it in (("gtx-titan-x", False), ("gtx-1080", True), ("h100", True)):
        target = resolve(gpu)
        text = emit_ptx(program, target).text
        assert ("dp4a.u32.s32" in text) == has_it
        assert not ptxas(text, target.cpu)


def test_nvrtc_writes_the_instruction(nvrtc):
    text = dlc.build(*products(shared=True), target="gpu").source("cuda")
    for architecture in ("compute_61", "compute_90"):
        said, ptx = nvrtc(text, architecture)
        assert "dp4a.u32.s32" in ptx, said
    assert "__shared__ __align__(16) signed char" in text


def test_numbers_whose_address_is_not_known_are_loaded_one_by_one(tmp_path, folder):
    X = te.placeholder((3, 7), "int8", "X")
    W = te.placeholder((1, 4, 4), "int8", "W")
    g, q = te.reduce_axis((0, 1), name="g"), te.reduce_axis((0, 4), name="q")
    D = te.compute(
        (3, 4),
        lambda i, j: te.sum(
            X[i, g * 4 + q + 3].astype("int32") * W[g, j, q].astype("int32"), axis=[g, q]
        ),
        name="D",
    )
    s = create_schedule(D.op)
    s[D].bind(D.op.axis[0], te.thread_axis("blockIdx.x"))
    s[D].tensorize(D.op.axis[1], "dot4_s8s8_4x1")
    rng = np.random.default_rng(3)
    x, w = (rng.integers(-128, 128, t.static_shape).astype("int8") for t in (X, W))
    text = dlc.build(s, [X, W, D], target="gpu").source("cuda")
    assert "X[i*7 + 6] &" in text
    d = np.zeros((3, 4), "int32")
    cuda_on_cpu.run(text, [x, w, d], tmp_path)
    kernel, e = dlc.build(s, [X, W, D], target="gpu"), np.zeros((3, 4), "int32")
    emulated.run(kernel.program, [x, w, e], folder, target=kernel.target)
    np.testing.assert_array_equal(d, e)
    np.testing.assert_array_equal(d, x[:, 3:].astype("i4") @ w[0].T.astype("i4"))


def test_a_processor_without_the_instruction_is_refused():
    s, args = products()
    with pytest.raises(TargetError) as caught:
        dlc.build(s, args, target="gtx-titan-x")
    assert str(caught.value) == (
        "build main for gtx-titan-x: the processor has no instruction for dot4_u8s8_4x1\n"
        "  got       sm_52\n"
        "  expected  sm_61 or later\n"
        "  hint      leave the step tensorize out, or choose another target"
    )


def test_the_step_is_offered_where_it_is_an_instruction():
    s, args = products()
    s.undo()
    names = {
        target: any("dot4" in str(move) for move in s.moves(args[2], target))
        for target in ("gtx-titan-x", "gtx-1080", "opencl")
    }
    assert names == {"gtx-titan-x": False, "gtx-1080": True, "opencl": False}


def test_a_declaration_that_the_instruction_may_not_compute_is_refused():
    """The simulator would compute the difference, and a GPU the sum."""
    x = te.placeholder((1, 4), "int8", "X")
    w = te.placeholder((1, 4, 4), "int8", "W")
    g, q = te.reduce_axis((0, 1), name="g"), te.reduce_axis((0, 4), name="q")

    def element(X, W, g, q):
        return lambda *i: te.sum(
            X[(*i[:-1], g, q)].astype("int32") - W[g, i[-1], q].astype("int32"), axis=[g, q]
        )

    c = te.compute((4,), element(x, w, g, q), name="C")
    wrong = te.decl_tensor_intrin(c.op, lambda ins, outs: ("dot4",) * 3, "differences")
    X, W = te.placeholder((3, 2, 4), "int8", "X"), te.placeholder((2, 4, 4), "int8", "W")
    g, q = te.reduce_axis((0, 2), name="g"), te.reduce_axis((0, 4), name="q")
    D = te.compute((3, 4), element(X, W, g, q), name="D")
    s = create_schedule(D.op)
    i, j = D.op.axis
    s[D].reorder(i, *D.op.reduce_axis[:1], j, D.op.reduce_axis[1])
    s[D].bind(i, te.thread_axis("blockIdx.x"))
    s[D].tensorize(j, wrong)
    with pytest.raises(TargetError) as caught:
        dlc.build(s, [X, W, D], target="gtx-1080")
    assert str(caught.value) == (
        "build main for gtx-1080: differences is declared with the emitter dot4\n"
        "  expected  statements, or an intrinsic of this package: te.tensor_intrin(name)\n"
        "  because   the simulator computes the declaration, and would not find that the "
        "instruction computes something else"
    )
