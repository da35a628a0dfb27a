"""PTX and AMDGCN: the text, what NVIDIA's assembler says of it, and what its LLVM IR computes."""

import re
from dataclasses import replace

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import dtypes, te
from dlcompiler.codegen.gpu import emit_ptx
from dlcompiler.codegen.gpu.assembly import llvm_module
from dlcompiler.codegen.gpu.dialects import CUDA, OPENCL
from dlcompiler.codegen.gpu.machines import NVPTX
from dlcompiler.errors import ScheduleError, TargetError, filled
from dlcompiler.ir import Buffer, Call, Const, ExternCall, Prefetch, PrimFunc, Store, seq
from dlcompiler.ir.functions import FUNCTIONS
from dlcompiler.ir.program import Program
from dlcompiler.target import resolve
from dlcompiler.target.gpus import BY_NAME
from tests.codegen.gpu.emulated import run
from tests.codegen.gpu.test_compiled import PROGRAMS, arrays_of, gather
from tests.codegen.gpu.test_shared_memory import data, reversed_rows
from tests.fuzz.checks import Oracle, case_of, stored, uses_threads
from tests.fuzz.threads import ThreadWalk
from tests.intrinsics import dots
from tests.share import share_of
from tests.thread_programs import staged_copy, tiled_matmul

GPUS = sorted({target.cpu: name for name, target in BY_NAME.items()}.values())
"""A preset of each compute capability."""


def bound(result, threads=16):
    s = te.create_schedule(result.op)
    block, thread = s[result].split(result.op.axis[0], threads)
    s[result].bind(block, te.thread_axis("blockIdx.x"))
    s[result].bind(thread, te.thread_axis("threadIdx.x"))
    return s


def of_one(dtype, element, n=64):
    """Return a kernel of an elementwise function, and its arrays."""
    A = te.placeholder((n,), dtype=dtype, name="A")
    C = te.compute((n,), lambda i: element(A[i]), name="C")
    return dlc.build(bound(C), [A, C], target="gpu"), arrays_of([A, C])


def accepted(kernel, ptxas):
    said = ptxas(kernel.source("ptx"), kernel.target.cpu)
    assert not said, said


@pytest.mark.parametrize("language", ["ptx", "amdgcn"])
def test_golden(language, golden):
    kernel = dlc.build(*staged_copy(), target="gpu", name="staged_copy")
    golden(f"staged_copy.{language}", kernel.source(language))


@pytest.mark.campaign
@pytest.mark.parametrize("program", PROGRAMS)
def test_ptx_is_accepted_for_every_architecture(program, ptxas):
    kernel = dlc.build(*PROGRAMS[program](), target="gpu")
    for gpu in GPUS:
        text = emit_ptx(kernel.program, resolve(gpu)).text
        assert f".target {resolve(gpu).cpu}" in text
        said = ptxas(text, resolve(gpu).cpu)
        assert not said, said


@pytest.mark.campaign
@pytest.mark.parametrize("program", PROGRAMS)
def test_its_llvm_ir_computes_what_the_simulator_does(program, folder):
    schedule, args = PROGRAMS[program]()
    kernel, expected = dlc.build(schedule, args, target="gpu"), arrays_of(args)
    kernel(*expected)
    for is_reversed in (False, True):
        arrays = arrays_of(args)
        run(kernel.program, arrays, folder, is_reversed=is_reversed)
        np.testing.assert_allclose(arrays[-1], expected[-1], rtol=1e-6)


@pytest.mark.campaign
@pytest.mark.parametrize(
    "dtype", [name for name in dtypes.SCALARS if name not in ("bool", "index")]
)
def test_operations_of_every_dtype(dtype, folder, ptxas):
    def element(x):
        quotient = te.floordiv(x, x - 2) if dtypes.is_int(dtype) else x / (x - 2)
        return te.maximum(quotient, x * x - x)

    kernel, arrays = of_one(dtype, element)
    expected = [array.copy() for array in arrays]
    with np.errstate(all="ignore"):
        kernel(*expected)
    run(kernel.program, arrays, folder)
    np.testing.assert_array_equal(arrays[1], expected[1])
    accepted(kernel, ptxas)


@pytest.mark.campaign
@pytest.mark.parametrize("source", ["int8", "uint64", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("result", [name for name in dtypes.SCALARS if name != "index"])
def test_conversions(source, result, folder, ptxas):
    kernel, arrays = of_one(source, lambda x: x.astype(result))
    expected = [array.copy() for array in arrays]
    kernel(*expected)
    run(kernel.program, arrays, folder)
    np.testing.assert_array_equal(arrays[1], expected[1])
    accepted(kernel, ptxas)


def test_a_bfloat16_is_rounded_by_one_instruction_where_there_is_one(ptxas):
    kernel, _ = of_one("bfloat16", lambda x: x * x + x)
    for gpu, count in (("v100", 0), ("a100", 2), ("h100", 2)):
        text = emit_ptx(kernel.program, resolve(gpu)).text
        assert text.count("cvt.rn.bf16.f32") == count
        assert not ptxas(text, resolve(gpu).cpu)


def test_ptx_of_a_device_of_opencl_is_for_all_gpus(ptxas):
    target = replace(resolve("opencl"), runs_on="null")
    text = dlc.build(*tiled_matmul(), target=target).source("ptx")
    assert ".target sm_52" in text
    assert not ptxas(text, "sm_52")


PARTS = 6


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_every_function_of_floats_has_code(dtype, part, folder, ptxas):
    names = [n for n, each in FUNCTIONS.items() if each.domain in ("float", "number", "float32")]
    names = [n for n in names if FUNCTIONS[n].domain != "float32" or dtype == "float32"]
    names = names[part::PARTS]
    A = te.placeholder((64,), dtype=dtype, name="A")
    results = [te.compute((64,), lambda i: _of_each(n, A[i]), name=n) for n in names]  # noqa: B023
    s = te.create_schedule([result.op for result in results])
    for result in results:
        block, thread = s[result].split(result.op.axis[0], 16)
        s[result].bind(block, te.thread_axis("blockIdx.x"))
        s[result].bind(thread, te.thread_axis("threadIdx.x"))
    kernel = dlc.build(s, [A, *results], target="gpu")
    arrays = arrays_of([A, *results])
    arrays[0][:] = np.linspace(0.01, 3, 64)
    expected = [array.copy() for array in arrays]
    kernel(*expected)
    run(kernel.program, arrays, folder)
    ulp = np.finfo(dtypes.to_numpy(dtype)).eps
    for got, right in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(got, right, rtol=4 * ulp)
    accepted(kernel, ptxas)


def _of_each(name, x):
    """Return a call of a function whose last argument, if it has two, is 1.5 or 1."""
    signature = FUNCTIONS[name]
    last = Const(1.5, x.dtype) if signature.last is None else Const(1, signature.last)
    arguments = (x, last)[: signature.arity]
    return Call(name, arguments, signature.result_dtype(x.dtype))


def test_amdgcn_has_code_of_functions():
    for dtype in ("float32", "float64"):
        kernel, _ = of_one(dtype, lambda x: te.sin(x) + te.fmod(x, x + 1) + te.power(x, x))
        assert "s_endpgm" in kernel.source("amdgcn")


def test_a_failed_check_is_reported_and_all_threads_end(folder):
    schedule, args = gather()
    program = dlc.build(schedule, args, target="gpu").program
    table, result = np.arange(10, dtype="float32"), np.zeros(32, "float32")
    index = np.arange(32, dtype="int32") % 10
    for is_reversed in (False, True):
        run(program, [table, index, result], folder, is_reversed=is_reversed)
        read = table[index].reshape(4, 8)
        np.testing.assert_array_equal(result.reshape(4, 8), read + read[:, ::-1])
    index[13] = 77
    source, status = run(program, [table, index, result], folder)
    message = filled(source.messages[status[0] - 1], status[1:])
    assert "index 77 in dimension 0 of extent 10, at i=13" in message


@pytest.mark.parametrize("columns", [None, 13_000])
def test_a_launch_adds_shared_memory(columns, folder):
    m = columns or 50
    a, b, c = data(m, n=2)
    program = reversed_rows("a100", columns).program
    run(program, [a, b, c], folder, numbers={"n": 2, "m": m})
    np.testing.assert_array_equal(c, (a + b)[:, ::-1])


def test_several_kernels_in_a_loop_of_the_host(folder):
    n, steps = 40, 5
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
    run(dlc.build(s, [first, scan], target="gpu").program, arrays, folder)
    expected = [arrays[0][0]]
    for _ in range(steps - 1):
        expected.append((expected[-1] + 1) * 2)
    np.testing.assert_array_equal(arrays[1], expected)


@pytest.mark.parametrize("size", [0, 1, 15, 100])
def test_symbolic_extents(size, folder, ptxas):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    kernel = dlc.build(bound(B), [A, B], target="gpu")
    a, b = np.arange(size, dtype="float32"), np.zeros(size, "float32")
    run(kernel.program, [a, b], folder, numbers={"n": size})
    np.testing.assert_array_equal(b, a + 1)
    accepted(kernel, ptxas)


def test_an_intrinsic_is_the_loops_of_its_declaration(folder, ptxas):
    X, W, D = dots(6, 8, 3, "uint8")
    s = te.create_schedule(D.op)
    (i, j), (g, q) = D.op.axis, D.op.reduce_axis
    outer, inner = s[D].split(j, 4)
    s[D].reorder(i, outer, g, inner, q)
    s[D].bind(i, te.thread_axis("blockIdx.x"))
    s[D].bind(outer, te.thread_axis("threadIdx.x"))
    s[D].tensorize(inner, "dot4_u8s8_4x1")
    kernel = dlc.build(s, [X, W, D], target="gpu")
    arrays = arrays_of([X, W, D])
    run(kernel.program, arrays, folder)
    x, w = (array.astype(int) for array in arrays[:2])
    np.testing.assert_array_equal(arrays[2], np.einsum("mgq,gnq->mn", x, w))
    accepted(kernel, ptxas)
    text = kernel.generated.texts["ptx"]
    printed = str(kernel.func).splitlines()
    assert any("dot4" in printed[number - 1] for number in text.lines if number)


def vectors(n, offset, dtype="float32"):
    A = te.placeholder((n + 4,), dtype=dtype, name="A")
    B = te.compute((n,), lambda i: A[i + offset] + A[i + offset], name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], 4)
    s[B].vectorize(inner)
    s[B].bind(outer, te.thread_axis("threadIdx.x"))
    return dlc.build(s, [A, B], target="gpu"), arrays_of([A, B])


def test_a_call_of_code_from_outside_is_refused():
    a = Buffer("A", (8,), "float32")
    program = Program.of(PrimFunc("main", (a,), (a,), ExternCall("sgemm", "c", ())))
    with pytest.raises(TargetError) as caught:
        emit_ptx(program, resolve("gpu"))
    assert str(caught.value) == (
        "generate PTX: a call of a registered function, which is in this process\n"
        "  got       sgemm\n"
        "  hint      target='cpu'"
    )


def test_a_prefetch_is_left_out(folder):
    a = Buffer("A", (8,), "float32")
    place = (Const(0, "index"),)
    body = seq((Prefetch(a, place), Store(a, place, Const(2.0, "float32"))))
    array = np.zeros(8, "float32")
    run(Program.of(PrimFunc("main", (a,), (a,), body)), [array], folder)
    assert array[0] == 2


def test_memory_of_an_unknown_size_inside_a_thread_is_refused():
    n = te.var("n")
    A = te.placeholder((4, n), name="A")
    B = te.compute((4, n), lambda i, j: A[i, j] * 2.0, name="B")
    C = te.compute((4, n), lambda i, j: B[i, n - 1 - j], name="C")
    s = te.create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    s[B].set_scope("local")
    s[B].compute_at(s[C], C.op.axis[0])
    kernel = dlc.build(s, [A, C], target="gpu")
    with pytest.raises(TargetError) as caught:
        kernel.source("ptx")
    assert str(caught.value).startswith(
        "generate code for a GPU: the size of B is not known, but a thread has memory of fixed "
    )


@pytest.mark.parametrize("offset", [4, 2])
@pytest.mark.parametrize("n", [64, 62])
def test_vectors(n, offset, folder, ptxas):
    kernel, arrays = vectors(n, offset)
    run(kernel.program, arrays, folder)
    np.testing.assert_array_equal(arrays[1], 2 * arrays[0][offset:][:n])
    accepted(kernel, ptxas)
    if n == 64:
        text = kernel.source("ptx")
        assert "st.global.v4.b32" in text
        assert ("ld.global.nc.v4.b32" in text) == (offset == 4)


def wide(elements):
    A = te.placeholder((elements,), dtype="int8", name="A")
    B = te.compute((elements,), lambda i: A[i] + A[elements - 1 - i], name="B")
    kernel = dlc.build(bound(B, 64), [A, B], target="gpu")
    return llvm_module(kernel.program, NVPTX)[0].finished()[0]


def test_indices_have_32_bits_where_these_hold_them():
    narrow = wide(2**31 - 64)
    assert "mul nsw i32 %0, 64" in narrow
    assert "mul nsw i64" not in narrow
    assert "mul nsw i64" in wide(2**31)


def test_lines_are_linked_to_the_loops():
    kernel = dlc.build(*tiled_matmul(), target="gpu", name="product")
    printed = str(kernel.func).splitlines()
    for language, barrier, store in (
        ("ptx", "bar.sync", "st.global.b32"),
        ("amdgcn", "s_barrier", "global_store_dword "),
    ):
        text = kernel.generated.texts[language]
        linked = {
            line.split()[0]: printed[number - 1].strip()
            for line, number in zip(text.text.splitlines(), text.lines, strict=True)
            if number and line.split()
        }
        assert linked[barrier] == "barrier"
        assert linked[store.strip()].startswith("C[")


@pytest.mark.parametrize("language", ["cuda", "opencl", "ptx", "amdgcn"])
def test_lines_after_a_check_are_linked_to_their_statements(language):
    kernel = dlc.build(*gather(), target="gpu")
    printed = str(kernel.func).splitlines()
    text = kernel.generated.texts[language]
    linked = [
        (line.strip(), printed[number - 1].strip() if number else "")
        for line, number in zip(text.text.splitlines(), text.lines, strict=True)
    ]
    store = re.compile(r"O\[|st\.global\.b32|global_store_dword ")
    assert {of[:2] for line, of in linked if store.match(line)} == {"O["}
    if language in ("cuda", "opencl"):
        begin = next(n for n, (line, _) in enumerate(linked) if line.startswith("if (!("))
        unlinked = {line for line, of in linked[begin:] if not of}
        assert unlinked <= {"}", "", barrier_of(language)}


def barrier_of(language):
    return {"cuda": CUDA, "opencl": OPENCL}[language].barrier


@pytest.mark.parametrize("seed", range(3000, 3000 + share_of(160, at_least=20), 20))
def test_random_schedules(seed, folder, ptxas):
    """The first schedule of each group that a GPU can run computes what its expression means."""
    for each in range(seed, seed + 20):
        case = case_of(each, walk=ThreadWalk)
        results = stored(case, case.schedule())
        if not uses_threads(case.schedule().state):
            continue
        try:
            args = [*case.expression.inputs, *results]
            kernel = dlc.build(case.schedule(), args, target="gpu")
            accepted(kernel, ptxas)
        except (ScheduleError, TargetError):
            continue
        oracle = Oracle(case, results, next(iter(case.expression.sizes(case.seed))))
        arrays = oracle.poisoned()
        given = [np.ascontiguousarray(array) for array in (*oracle.arrays.values(), *arrays)]
        params = kernel.generated.interface.params
        extents = zip(params, given, strict=True)
        numbers = dict(
            pair for param, array in extents for pair in zip(param.shape, array.shape, strict=True)
        )
        _, status = run(kernel.program, given, folder, numbers=numbers)
        assert status[0] == 0
        for array, result in zip(arrays, given[len(oracle.arrays) :], strict=True):
            array[...] = result
        oracle.compare("its LLVM IR", arrays, kernel.func)
        return
