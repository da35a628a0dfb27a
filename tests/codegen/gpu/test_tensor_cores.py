"""Products on tensor cores: values, code, and what is refused."""

import re

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import dtypes, te
from dlcompiler.codegen.gpu import emit_ptx
from dlcompiler.errors import TargetError
from dlcompiler.passes.cut_at_barriers import as_cpu_function
from dlcompiler.pipeline import build_program
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve
from dlcompiler.target.fragments import Fragment
from dlcompiler.te.intrinsics.tensor_cores import KINDS, SUMS
from tests.codegen.gpu import cuda_on_cpu, emulated

DEPTHS = {"f16": 16, "bf16": 16, "tf32": 8, "s8": 32}
BX, BY, TX, TY = map(te.thread_axis, ("blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y"))


class Product:
    """The schedule of a product on tensor cores, in steps that tests leave out or change."""

    def __init__(self, m=32, n=16, k=64, kind="f16", transposed=False):
        self.kind, self.depth, self.transposed = kind, DEPTHS[kind], transposed
        dtype = SUMS[kind]
        self.A = te.placeholder((m, k), KINDS[kind], "A")
        self.B = te.placeholder((n, k) if transposed else (k, n), KINDS[kind], "B")
        r = te.reduce_axis((0, k), name="k")

        def element(i, j):
            b = self.B[j, r] if transposed else self.B[r, j]
            factors = self.A[i, r], b
            converted = [te.tf32(x) if kind == "tf32" else x.astype(dtype) for x in factors]
            return te.sum(converted[0] * converted[1], axis=r)

        self.C = te.compute((m, n), element, name="C")
        self.s = create_schedule(self.C.op)
        self.args = [self.A, self.B, self.C]

    def tiles_of_warps(self, rows=1, columns=1, warps=1, axis=TY):
        """Give each warp some tiles of C, and each block some warps; return the loop of a warp."""
        s, C = self.s, self.C
        self.sums = s.cache_write(C, "local")
        (i, ii), (j, jj) = (s[C].split(x, size) for x, size in zip(C.op.axis, (16, 8), strict=True))
        (i, it), (j, jt) = s[C].split(i, rows), s[C].split(j, columns)
        i, warp = s[C].split(i, warps)
        s[C].reorder(i, j, warp, it, jt, ii, jj)
        for loop, thread in ((i, BY), (j, BX), (warp, axis)):
            s[C].bind(loop, thread)
        for loop in (it, jt):
            s[C].unroll(loop)
        s[C].tensorize(ii, f"mma_store_{'s32' if self.kind == 's8' else 'f32'}_16x8")
        return warp

    def multiply(self, at, step=1):
        """Compute the tiles of a warp; return the loop over the steps of the reduction."""
        s, sums, depth = self.s, self.sums, self.depth
        s[sums].compute_at(s[self.C], at)
        (i, ii), (j, jj) = (
            s[sums].split(x, size) for x, size in zip(s[sums].op.axis, (16, 8), strict=True)
        )
        k, kk = s[sums].split(s[sums].op.reduce_axis[0], depth)
        outer, k = s[sums].split(k, step)
        s[sums].reorder(outer, k, i, j, ii, jj, kk)
        for loop in (i, j):
            s[sums].unroll(loop)
        s[sums].tensorize(ii, f"mma{'_bt' if self.transposed else ''}_{self.kind}_16x8x{depth}")
        return outer, k

    def load(self, source, at):
        """Load the tiles of an input into registers."""
        s, depth = self.s, self.depth
        is_a = source.name.startswith("A")
        tile = s.cache_read(source, "local", [self.sums])
        s[tile].compute_at(s[self.sums], at)
        name, shape = "a", (16, depth)
        if not is_a:
            name, shape = ("bt", (8, depth)) if self.transposed else ("b", (depth, 8))
        (i, ii), (j, jj) = (
            s[tile].split(x, size) for x, size in zip(s[tile].op.axis, shape, strict=True)
        )
        s[tile].reorder(i, j, ii, jj)
        for loop in (i, j):
            s[tile].unroll(loop)
        s[tile].tensorize(ii, f"mma_load_{name}_{self.kind}_{shape[0]}x{shape[1]}")
        return tile

    def share(self, source, at, warps=1, threads=32):
        """Let the threads of a block copy a part of an input to shared memory."""
        s = self.s
        shared = s.cache_read(source, "shared", [self.sums])
        s[shared].compute_at(s[self.sums], at)
        loop, x = s[shared].split(s[shared].fuse(*s[shared].op.axis), threads)
        _, y = s[shared].split(loop, warps)
        s[shared].bind(x, TX)
        s[shared].bind(y, TY)
        return shared


def simple(kind="f16", transposed=False):
    p = Product(kind=kind, transposed=transposed)
    _, k = p.multiply(p.tiles_of_warps())
    for source in (p.A, p.B):
        p.load(source, k)
    return p.s, p.args


def staged(kind="f16", transposed=False):
    """Two warps of 32x16 elements each, with both inputs in shared memory."""
    p = Product(64, 32, 4 * DEPTHS[kind], kind, transposed=transposed)
    outer, k = p.multiply(p.tiles_of_warps(2, 2, 2), 2)
    for source in (p.A, p.B):
        p.load(p.share(source, outer, 2), k)
    return p.s, p.args


def half_loaded():
    """Only half of the threads of a warp load a part of B."""
    p = Product(16, 8, 32)
    outer, k = p.multiply(p.tiles_of_warps())
    p.load(p.A, k)
    p.load(p.share(p.B, outer, threads=16), k)
    return p.s, p.args


PROGRAMS = {
    "float16, one tile": simple,
    "bfloat16, one tile": lambda: simple("bf16"),
    "int8, one tile": lambda: simple("s8"),
    "TF32, one tile": lambda: simple("tf32"),
    "TF32 transposed, shared": lambda: staged("tf32", transposed=True),
    "float16, shared": staged,
    "bfloat16 transposed, shared": lambda: staged("bf16", transposed=True),
    "loads by 16 threads": half_loaded,
    "int8 transposed, shared": lambda: staged("s8", transposed=True),
}


def arrays_of(args):
    rng = np.random.default_rng(2)
    arrays = [
        rng.integers(-8, 9, t.static_shape).astype(dtypes.to_numpy(t.dtype)) for t in args[:2]
    ]
    a, b = (array.astype("float64") for array in arrays)
    expected = a @ (b.T if args[1].static_shape[1] == a.shape[1] else b)
    return arrays, expected.astype(dtypes.to_numpy(args[2].dtype))


@pytest.mark.campaign
@pytest.mark.parametrize("program", PROGRAMS)
def test_values(program, tmp_path, folder, nvrtc, ptxas):
    s, args = PROGRAMS[program]()
    arrays, expected = arrays_of(args)
    kernel = dlc.build(s, args, target="a100")
    text = kernel.source("cuda")
    compiled = build_program(as_cpu_function(kernel.program), "cpu")
    ways = (
        kernel,
        compiled,
        lambda *a: cuda_on_cpu.run(text, a, tmp_path),
        lambda *a: emulated.run(kernel.program, a, folder, target=kernel.target),
    )
    for call in ways:
        result = np.full_like(expected, -1)
        call(*arrays, result)
        np.testing.assert_array_equal(result, expected)
    assert not ptxas(kernel.source("ptx"), "sm_80")
    assert "mma.sync.aligned.m16n8k" in kernel.source("ptx")
    for architecture in ("compute_80", "compute_90"):
        said, ptx = nvrtc(text, architecture)
        assert "mma.sync.aligned.m16n8k" in ptx, said


def test_tf32_is_rounded_in_all_evaluations(tmp_path, folder):
    """Each product has 22 bits and is exact, and so is the sum of eight: the rounding shows."""
    p = Product(16, 8, 8, "tf32")
    _, k = p.multiply(p.tiles_of_warps())
    for source in (p.A, p.B):
        p.load(source, k)
    kernel = dlc.build(p.s, p.args, target="a100")
    a = (1 + np.arange(128).reshape(16, 8) / 2**12).astype("float32")
    b = np.where(np.eye(8, dtype=bool), np.float32(1 + 2**-11), 0).astype("float32")
    rounded = np.floor(a * 2**10 + 0.5) / 2**10
    expected = (rounded * np.float32(1 + 2**-10)).astype("float32")
    compiled = build_program(as_cpu_function(kernel.program), "cpu")
    text = kernel.source("cuda")
    ways = (
        kernel,
        compiled,
        lambda *x: cuda_on_cpu.run(text, x, tmp_path),
        lambda *x: emulated.run(kernel.program, x, folder, target=kernel.target),
    )
    for call in ways:
        result = np.full_like(expected, -1)
        call(a, b, result)
        np.testing.assert_array_equal(result, expected)
    assert "cvt.rna.tf32.f32" in text


def refusal_of(p, target="a100"):
    with pytest.raises(TargetError) as caught:
        dlc.build(p.s, p.args, target=target)
    return str(caught.value)


def test_processors_without_tensor_cores_of_this_kind_are_refused():
    s, args = simple()
    with pytest.raises(TargetError) as caught:
        dlc.build(s, args, target="v100")
    assert str(caught.value) == (
        "build main for v100: the processor has no instruction for mma_f16_16x8x16\n"
        "  got       sm_70\n"
        "  expected  sm_80 or later\n"
        "  hint      leave the step tensorize out, or choose another target"
    )


@pytest.mark.campaign
def test_tiles_in_shared_memory_are_loaded_by_ldmatrix():
    """Of B by columns only elements of 16 bits; of unaligned rows none."""
    counts = {}
    for kind, transposed in (("f16", False), ("bf16", True), ("s8", False), ("tf32", True)):
        kernel = dlc.build(*staged(kind, transposed), target="a100")
        texts = kernel.source("cuda"), kernel.source("ptx")
        found = [set(re.findall(r"ldmatrix.sync.aligned.m8n8.(\S+).shared", t)) for t in texts]
        assert found[0] == found[1]
        counts[kind] = found[0]
    assert counts == {
        "f16": {"x4", "x2.trans"},
        "bf16": {"x4", "x2"},
        "s8": {"x4"},
        "tf32": {"x4", "x2"},
    }
    p = Product(16, 8, 32)
    outer, k = p.multiply(p.tiles_of_warps())
    shared = p.share(p.A, outer)
    p.s[shared].storage_align(shared.op.axis[0], 8, 4)
    p.load(shared, k)
    p.load(p.B, k)
    assert "ldmatrix" not in dlc.build(p.s, p.args, target="a100").source("cuda")


def test_ptx_for_an_older_processor_has_the_loops(ptxas):
    program = dlc.build(*simple(), target="gpu").program
    text = emit_ptx(program, resolve("v100")).text
    assert "mma.sync" not in text
    assert not ptxas(text, "sm_70")


def test_opencl_writes_the_loops(opencl):
    s, args = simple()
    (a, b), expected = arrays_of(args)
    result = np.full_like(expected, -1)
    dlc.build(s, args, target="opencl")(a, b, result)
    np.testing.assert_array_equal(result, expected)


def test_tiles_that_are_not_in_registers_are_refused():
    p = Product()
    _, k = p.multiply(p.tiles_of_warps())
    p.load(p.A, k)
    text = refusal_of(p)
    assert text.startswith(
        "build main for a100: mma_f16_16x8x16 needs B in registers\n"
        "  got       global memory\n"
        '  expected  "local"\n'
    )


def test_elements_of_a_fragment_are_refused():
    p = Product()
    _, k = p.multiply(p.tiles_of_warps())
    p.load(p.A, k)
    tile = p.s.cache_read(p.B, "local", [p.sums])
    p.s[tile].compute_at(p.s[p.sums], k)
    text = refusal_of(p)
    assert text.startswith(
        "build main for a100: an element of B.local is accessed, which a warp holds as a fragment\n"
    )
    assert "because   each thread of the warp has a part of its elements" in text


def test_a_tile_of_another_operand_is_refused():
    p = Product(k=16, n=16)
    _, k = p.multiply(p.tiles_of_warps(columns=2))
    p.load(p.A, k)
    tile = p.s.cache_read(p.B, "local", [p.sums])
    p.s[tile].compute_at(p.s[p.sums], k)
    p.s[tile].tensorize(p.s[tile].op.axis[0], "mma_load_a_f16_16x16")
    text = refusal_of(p)
    assert "uses B.local in another way than its other intrinsics\n" in text


def test_calls_inside_the_threads_of_a_warp_are_refused():
    p = Product()
    warp = p.tiles_of_warps(warps=2, axis=TX)
    _, k = p.multiply(warp)
    for source in (p.A, p.B):
        p.load(source, k)
    text = refusal_of(p)
    assert "mma_f16_16x8x16 is inside the threads of i.outer.outer.inner\n" in text
    assert "because   32 threads along x carry it out together" in text


def test_more_threads_along_x_than_a_warp_has_are_refused():
    p = Product()
    outer, k = p.multiply(p.tiles_of_warps())
    shared = p.share(p.A, outer)
    for source in (shared, p.B):
        p.load(source, k)
    s = p.s
    other = s.cache_read(p.A, "shared", [shared])
    s[other].compute_at(s[p.sums], outer)
    s[other].bind(s[other].split(s[other].fuse(*s[other].op.axis), 64)[1], TX)
    text = refusal_of(p)
    assert "is of one warp, and a block has more threads along x\n" in text
    assert "expected  at most 32\n" in text


@pytest.mark.parametrize("matrix", ["a", "b", "c"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8"])
def test_each_element_of_a_tile_has_one_place(matrix, dtype):
    fragment = Fragment(matrix, dtype if matrix != "c" else "float32")
    rows, columns = fragment.shape
    places = {fragment.place(lane, n) for lane in range(32) for n in range(fragment.elements)}
    assert places == {(row, column) for row in range(rows) for column in range(columns)}
    assert 32 * fragment.elements == rows * columns
    assert fragment.place(*fragment.holder(rows - 1, 3)) == (rows - 1, 3)
