"""CUDA C, OpenCL C, HIP and Metal as text."""

import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import TargetError, UserError
from tests.thread_programs import softmax, staged_copy, tiled_matmul

PROGRAMS = {
    "staged_copy": staged_copy,
    "tiled_matmul": lambda: tiled_matmul(vthreads=2),
    "softmax": softmax,
}


@pytest.mark.parametrize("language", ["cuda", "opencl"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_golden(program, language, golden):
    kernel = dlc.build(*PROGRAMS[program](), target="gpu", name=program)
    golden(f"{program}.{language}", kernel.source(language))


@pytest.mark.parametrize("language", ["hip", "metal"])
@pytest.mark.parametrize("program", ["staged_copy", "softmax"])
def test_golden_of_text_that_is_only_read(program, language, golden):
    kernel = dlc.build(*PROGRAMS[program](), target="gpu", name=program)
    golden(f"{program}.{language}", kernel.source(language))


def elementwise(dtype, function):
    A = te.placeholder((8,), dtype=dtype, name="A")
    B = te.compute((8,), lambda i: function(A[i]), name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    return dlc.build(s, [A, B], target="gpu", name="apply")


@pytest.mark.parametrize(
    ("dtype", "function", "got", "because"),
    [
        ("float64", te.exp, "double", "GPUs of Apple have no floats of 64 bits"),
        ("float16", te.erf, "erf", "its library has no such function"),
    ],
)
def test_what_metal_lacks_is_refused(dtype, function, got, because):
    kernel = elementwise(dtype, function)
    with pytest.raises(TargetError) as caught:
        kernel.source("metal")
    assert str(caught.value) == (
        "generate Metal for apply: Metal cannot express it\n"
        f"  got       {got}\n"
        f"  because   {because}\n"
        "  hint      source('cuda') and source('opencl') can"
    )


def test_a_float16_is_converted_by_the_language():
    kernel = elementwise("float16", te.exp)
    assert "(float)__builtin_bit_cast(_Float16, h)" in kernel.source("hip")
    assert "float(as_type<half>(h))" in kernel.source("metal")


def test_metal_reports_a_failed_check_and_takes_numbers_by_reference():
    n = te.var("n")
    table = te.placeholder((n,), name="T")
    index = te.placeholder((8,), dtype="int32", name="I")
    read = te.compute((8,), lambda i: table[index[i]], name="G")
    s = te.create_schedule(read.op)
    s[read].bind(read.op.axis[0], te.thread_axis("threadIdx.x"))
    text = dlc.build(s, [table, index, read], target="gpu").source("metal")
    assert "constant long &n [[buffer(3)]], device long *__restrict status [[buffer(4)]]" in text
    assert "dlc_report((device atomic_int *)status, " in text
    assert "static inline int dlc_report(device atomic_int *status, int code)" in text


def test_a_loop_that_is_not_to_be_unrolled_says_so():
    A = te.placeholder((8, 4), name="A")
    B = te.compute((8, 4), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    i, j = s[B].op.axis
    s[B].bind(i, te.thread_axis("threadIdx.x"))
    s[B].pragma(j, "auto_unroll_max_step", 0)
    kernel = dlc.build(s, [A, B], target="gpu")
    for language in ("cuda", "opencl"):
        lines = [line.strip() for line in kernel.source(language).splitlines()]
        at = lines.index("#pragma unroll 1")
        assert lines[at + 1].startswith("for (int j = 0;")


def test_texts_of_a_simulated_gpu():
    kernel = dlc.build(*staged_copy(), target="a100")
    languages = ("cuda", "ptx", "opencl", "hip", "metal", "amdgcn", "sass")
    assert kernel.texts == ("loops", *languages)
    with pytest.raises(UserError, match="no text has this name"):
        kernel.source("fortran")


def test_lines_are_linked_to_the_loops():
    kernel = dlc.build(*tiled_matmul(), target="gpu", name="product")
    text = kernel.generated.texts["cuda"]
    printed = str(kernel.func).splitlines()
    linked = {
        line.strip(): printed[number - 1].strip()
        for line, number in zip(text.text.splitlines(), text.lines, strict=True)
        if number
    }
    loop = "for (int k_inner = 0; k_inner < 8; ++k_inner) {  /* C.local.k.inner */"
    assert linked[loop] == "for k.inner in range(8):"
    assert linked["__syncthreads();"] == "barrier"


def wide(elements):
    A = te.placeholder((elements,), dtype="int8", name="A")
    B = te.compute((elements,), lambda i: A[i] + A[i], name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], 64)
    s[B].bind(outer, te.thread_axis("blockIdx.x"))
    s[B].bind(inner, te.thread_axis("threadIdx.x"))
    return dlc.build(s, [A, B], target="gpu").source("cuda")


def test_indices_have_32_bits_where_these_hold_them():
    assert "const int i_outer = (int)blockIdx.x;" in wide(2**31 - 64)
    assert "const long long i_outer = (long long)blockIdx.x;" in wide(2**31)


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("threadIdx", "cuda"), ("int", "cuda"), ("kernel", "opencl"), ("CHAR_BIT", "opencl"),
        ("CLK_LOCAL_MEM_FENCE", "opencl"), ("MAXFLOAT", "opencl"), ("cl_khr_fp64", "opencl"),
    ],
)  # fmt: skip
def test_names_of_the_language_are_not_taken(name, language):
    A = te.placeholder((8,), name=name)
    B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    assert f" {name}_[" in dlc.build(s, [A, B], target="gpu").source(language)


def test_a_vector_is_loaded_at_once_where_it_is_aligned():
    def source(offset):
        A = te.placeholder((68,), name="A")
        B = te.compute((64,), lambda i: A[i + offset] + 1.0, name="B")
        s = te.create_schedule(B.op)
        outer, inner = s[B].split(B.op.axis[0], 4)
        s[B].vectorize(inner)
        s[B].bind(outer, te.thread_axis("threadIdx.x"))
        return dlc.build(s, [A, B], target="gpu").source("cuda")

    assert "*(const float4 *)(A + " in source(4)
    assert "*(const float4 *)" not in source(2)
    assert "*(float4 *)(B + " in source(2)


def test_memory_of_an_unknown_size_inside_a_kernel_is_refused():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n,), lambda i: te.sum(B[k] * (k + i), axis=k), name="C")
    s = te.create_schedule(C.op)
    block, thread = s[C].split(C.op.axis[0], 8)
    s[C].bind(block, te.thread_axis("blockIdx.x"))
    s[C].bind(thread, te.thread_axis("threadIdx.x"))
    s[B].set_scope("local")
    s[B].compute_at(s[C], thread)
    kernel = dlc.build(s, [A, C], target="gpu")
    with pytest.raises(TargetError) as caught:
        kernel.source("cuda")
    assert str(caught.value).startswith(
        "generate code for a GPU: the size of B is not known, but a thread has memory of fixed"
    )
