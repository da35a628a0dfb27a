"""Device code compiles, and computes on an OpenCL device what the simulator computes."""

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import dtypes, te
from dlcompiler.errors import ProgramError
from dlcompiler.target.gpus import BY_NAME
from tests.thread_programs import convolution, softmax, staged_copy, tiled_matmul

PROGRAMS = {
    "staged_copy": staged_copy,
    "tiled_matmul": tiled_matmul,
    "tiled_matmul, virtual": lambda: tiled_matmul(vthreads=2),
    "softmax": softmax,
    "convolution": convolution,
    "convolution, virtual": lambda: convolution(vthreads=2),
}
ARCHITECTURES = sorted({target.cpu for target in BY_NAME.values()})


def arrays_of(args, seed=0):
    rng = np.random.default_rng(seed)
    return [
        rng.integers(-3, 4, tensor.static_shape).astype(dtypes.to_numpy(tensor.dtype))
        for tensor in args
    ]


@pytest.mark.campaign
@pytest.mark.parametrize("program", PROGRAMS)
def test_cuda_compiles(program, nvrtc):
    text = dlc.build(*PROGRAMS[program](), target="gpu").source("cuda")
    for architecture in ARCHITECTURES:
        said, ptx = nvrtc(text, architecture.replace("sm", "compute"))
        assert ".visible .entry main_kernel0" in ptx, said


@pytest.mark.parametrize("program", PROGRAMS)
def test_opencl_computes_what_the_simulator_does(program, opencl):
    schedule, args = PROGRAMS[program]()
    arrays = arrays_of(args)
    expected = [array.copy() for array in arrays]
    dlc.build(schedule, args, target="gpu")(*expected)
    dlc.build(schedule, args, target="opencl")(*arrays)
    np.testing.assert_allclose(arrays[-1], expected[-1], rtol=1e-5)


@pytest.mark.campaign
@pytest.mark.parametrize(
    "dtype", [name for name in dtypes.SCALARS if name not in ("bool", "index")]
)
def test_operations_of_every_dtype(dtype, opencl, nvrtc):
    A, B = (te.placeholder((64,), dtype=dtype, name=name) for name in "AB")

    def element(i):
        quotient = te.floordiv(A[i], B[i]) if dtypes.is_int(dtype) else A[i] / B[i]
        return te.maximum(quotient, A[i] * B[i] - A[i])

    C = te.compute((64,), element, name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], 16)
    s[C].bind(outer, te.thread_axis("blockIdx.x"))
    s[C].bind(inner, te.thread_axis("threadIdx.x"))
    arrays = arrays_of([A, B, C])
    expected = [array.copy() for array in arrays]
    with np.errstate(all="ignore"):
        dlc.build(s, [A, B, C], target="gpu")(*expected)
    kernel = dlc.build(s, [A, B, C], target="opencl")
    kernel(*arrays)
    np.testing.assert_array_equal(arrays[2], expected[2])
    said, ptx = nvrtc(kernel.source("cuda"), "compute_80")
    assert ptx, said


def test_a_loop_with_barriers_before_a_condition(opencl):
    """Optimised code of PoCL 3.1 stores zeros here."""
    A = te.placeholder((3,), name="A")
    k = te.reduce_axis((0, 3), "k")
    value = lambda i: te.sum(te.if_then_else(k <= i, A[k], 0.0), axis=k)  # noqa: E731
    C = te.compute((3,), value, name="C")
    s = te.create_schedule(C.op)
    once = s.cache_read(A, "shared", [C])
    s[once].compute_at(s[C], C.op.axis[0])
    _, inner = s[once].split(s[once].op.axis[0], 4)
    s[once].bind(inner, te.thread_axis("threadIdx.x"))
    s[C].bind(C.op.axis[0], te.thread_axis("blockIdx.y"))
    outer, inner = s[C].split(k, 2)
    s[C].bind(outer, te.thread_axis("threadIdx.x"))
    twice = s.cache_read(once, "shared", [C])
    s[twice].compute_at(s[C], inner)
    a, c = np.array([-1, 6, 8], "float32"), np.zeros(3, "float32")
    dlc.build(s, [A, C], target="opencl")(a, c)
    np.testing.assert_array_equal(c, np.cumsum(a))


def gather(n=32):
    table = te.placeholder((10,), name="T")
    index = te.placeholder((n,), dtype="int32", name="I")
    read = te.compute((n,), lambda i: table[index[i]], name="G")
    result = te.compute((n,), lambda i: read[i] + read[i // 8 * 8 + 7 - i % 8], name="O")
    s = te.create_schedule(result.op)
    block, thread = s[result].split(result.op.axis[0], 8)
    s[result].bind(block, te.thread_axis("blockIdx.x"))
    s[result].bind(thread, te.thread_axis("threadIdx.x"))
    s[read].compute_at(s[result], block)
    s[read].set_scope("shared")
    s[read].bind(read.op.axis[0], te.thread_axis("threadIdx.x"))
    return s, [table, index, result]


@pytest.mark.parametrize("target", ["gpu", "opencl"])
def test_an_index_out_of_bounds_is_reported_and_all_threads_end(target, opencl):
    kernel = dlc.build(*gather(), target=target)
    index = np.arange(32, dtype="int32") % 10
    table, result = np.arange(10, dtype="float32"), np.zeros(32, "float32")
    kernel(table, index, result)
    read = table[index].reshape(4, 8)
    np.testing.assert_array_equal(result.reshape(4, 8), read + read[:, ::-1])
    index[13] = 77
    with pytest.raises(ProgramError, match=r"index 77 in dimension 0 of extent 10, at i=13"):
        kernel(table, index, result)


def test_several_kernels_with_memory_between_them(opencl):
    A = te.placeholder((100,), name="A")
    B = te.compute((100,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((100,), lambda i: B[99 - i] + 1.0, name="C")
    s = te.create_schedule(C.op)
    for stage in (B, C):
        block, thread = s[stage].split(stage.op.axis[0], 32)
        s[stage].bind(block, te.thread_axis("blockIdx.x"))
        s[stage].bind(thread, te.thread_axis("threadIdx.x"))
    arrays = arrays_of([A, C])
    kernel = dlc.build(s, [A, C], target="opencl")
    assert len(kernel.program.launches) == 2
    kernel(*arrays)
    np.testing.assert_array_equal(arrays[1], arrays[0][::-1] * 2 + 1)


def test_kernels_in_a_loop_of_the_host_alternate(opencl):
    n, steps = 40, 7
    first = te.placeholder((1, n), name="first")
    state = te.placeholder((steps, n), name="state")
    init = te.compute((1, n), lambda _, i: first[0, i], name="init")
    half = te.compute((steps, n), lambda t, i: state[t - 1, n - 1 - i] + 1.0, name="half")
    update = te.compute((steps, n), lambda t, i: half[t, n - 1 - i] * 2.0, name="update")
    scan = te.scan(init, update, state, inputs=[first], name="scan")
    s = te.create_schedule(scan.op)
    for stage in (init, half, update):
        block, thread = s[stage].split(stage.op.axis[1], 16)
        s[stage].bind(block, te.thread_axis("blockIdx.x"))
        s[stage].bind(thread, te.thread_axis("threadIdx.x"))
    arrays = arrays_of([first, scan])
    dlc.build(s, [first, scan], target="opencl")(*arrays)
    expected = [arrays[0][0]]
    for _ in range(steps - 1):
        expected.append((expected[-1] + 1) * 2)
    np.testing.assert_array_equal(arrays[1], expected)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "uint64", "float32"])
def test_a_number_is_passed(dtype, opencl, nvrtc):
    chosen = te.var("chosen", dtype=dtype)
    A = te.placeholder((16,), dtype=dtype, name="A")
    B = te.compute((16,), lambda i: te.if_then_else(A[i] == chosen, A[15 - i], chosen), name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    a = (np.arange(16) % 3).astype(dtypes.to_numpy(dtype))
    b = np.zeros_like(a)
    kernel = dlc.build(s, [A, chosen, B], target="opencl")
    kernel(a, a.dtype.type(1), b)
    np.testing.assert_array_equal(b, np.where(a == a.dtype.type(1), a[::-1], a.dtype.type(1)))
    said, ptx = nvrtc(kernel.source("cuda"), "compute_80")
    assert ptx, said


@pytest.mark.parametrize("size", [0, 1, 15, 100])
def test_symbolic_extents(size, opencl):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    block, thread = s[B].split(B.op.axis[0], 16)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    kernel = dlc.build(s, [A, B], target="opencl")
    a, b = np.arange(size, dtype="float32"), np.zeros(size, "float32")
    kernel(a, b)
    np.testing.assert_array_equal(b, a + 1)
