"""``tvm.contrib.nvcc``, and functions that a build for CUDA calls back."""

import re

import pytest

from dlcompiler.compat import tvm
from dlcompiler.compat.notes import CompatNote
from dlcompiler.compat.tvm import te
from dlcompiler.compat.tvm.contrib import nvcc
from dlcompiler.errors import DeviceUnavailable, UserError
from dlcompiler.runtime import ptxas, registry

CODE = 'extern "C" __global__ void next(float *a) { a[threadIdx.x] += 1; }'
POSTPROC, COMPILE = "tvm_callback_cuda_postproc", "tvm_callback_cuda_compile"
needs_nvrtc = pytest.mark.skipif(
    ptxas.why_unavailable() is not None, reason=str(ptxas.why_unavailable())
)


@pytest.mark.parametrize(
    ("target", "expected"),
    [(None, "8.0"), ("cuda", "8.0"), ("cuda -arch=sm_70", "7.0"), ("cuda -model=titanx", "5.2"),
     ("llvm", "8.0")],
)  # fmt: skip
def test_the_compute_capability_of_a_target(target, expected):
    assert nvcc.get_target_compute_version(target) == expected
    if target is not None:
        with tvm.target.Target(target):
            assert nvcc.get_target_compute_version() == expected


def test_what_gpus_have():
    versions = ("5.2", "5.3", "6.0", "6.1", "7.0", "8.0", "9.0")
    has = lambda predicate: [v for v in versions if predicate(v)]  # noqa: E731
    assert has(nvcc.have_fp16) == ["5.3", "6.0", "6.1", "7.0", "8.0", "9.0"]
    assert has(nvcc.have_int8) == ["6.1", "7.0", "8.0", "9.0"]
    assert has(nvcc.have_tensorcore) == ["7.0", "8.0", "9.0"]
    assert has(nvcc.have_bf16) == ["8.0", "9.0"]
    assert nvcc.have_tensorcore(tvm.cuda(0).compute_version)
    assert nvcc.have_tensorcore()
    assert not nvcc.have_tensorcore(target="cuda -model=titanx")
    assert not nvcc.have_cudagraph()
    assert nvcc.parse_compute_version("10.0") == (10, 0)
    with pytest.raises(UserError, match="no compute capability\n  got       'new'"):
        nvcc.parse_compute_version("new")


@needs_nvrtc
def test_code_is_compiled(tmp_path):
    path = tmp_path / "next.ptx"
    text = nvcc.compile_cuda(CODE, path_target=path)
    assert type(text) is bytearray
    assert b".target sm_80" in text
    assert path.read_bytes() == text
    assert nvcc.compile_cuda(CODE, target="cubin", arch="sm_75").startswith(b"\x7fELF")


@needs_nvrtc
def test_code_that_is_refused():
    with pytest.raises(UserError, match="the code is refused\n  got       sm_80\n  because"):
        nvcc.compile_cuda("nonsense")


def test_arguments_that_are_refused(monkeypatch):
    with pytest.raises(UserError, match="no such format\n  got       'fatbin'"):
        nvcc.compile_cuda(CODE, "fatbin")
    with pytest.raises(UserError, match="the code is no text"):
        nvcc.compile_cuda(None)
    monkeypatch.setattr(ptxas, "why_unavailable", lambda: "no NVRTC")
    with (
        pytest.warns(CompatNote, match="the options are ignored"),
        pytest.raises(DeviceUnavailable, match="the compiler is not here\n  because   no NVRTC"),
    ):
        nvcc.compile_cuda(CODE, options=["-O3"])


@pytest.fixture
def registered(monkeypatch):
    """Return a function that registers a callback for this test."""
    monkeypatch.setattr(registry, "_functions", dict(registry._functions), raising=True)
    return lambda name, f: tvm.register_func(name, f, override=True)


def built(target="cuda"):
    a = te.placeholder((32,), name="A")
    b = te.compute((32,), lambda i: a[i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    return tvm.build(s, [a, b], target, name="add")


def test_callbacks_get_the_code(registered):
    seen = []
    registered(POSTPROC, lambda code: seen.append(code) or code)
    registered(COMPILE, lambda code, target: seen.append(code) or target.kind.name == "cuda")
    module = built()
    assert seen == [module.imported_modules[0].get_source()] * 2
    assert re.search("__global__.*add_kernel0", seen[0])
    built("opencl")
    assert len(seen) == 2


def test_code_that_a_callback_changes_is_refused(registered):
    registered(POSTPROC, lambda code: code.replace("1.0f", "2.0f"))
    with pytest.raises(UserError) as error:
        built()
    assert str(error.value) == (
        "build add: tvm_callback_cuda_postproc returns other code\n"
        "  because   the simulator runs the program that was built, not its text\n"
        "  hint      return the code as it is"
    )


def test_a_callback_without_a_compiler_is_a_note(registered, monkeypatch):
    monkeypatch.setattr(ptxas, "why_unavailable", lambda: "no NVRTC")
    registered(COMPILE, nvcc.compile_cuda)
    with pytest.warns(CompatNote, match="tvm_callback_cuda_compile does not compile: no NVRTC"):
        built()


def test_attributes_of_a_cpu_that_only_gpus_have_are_none():
    cpu = tvm.cpu()
    names = ("max_threads_per_block", "max_thread_dimensions", "warp_size", "compute_version",
             "max_shared_memory_per_block", "l2_cache_size_bytes")  # fmt: skip
    assert [getattr(cpu, name) for name in names] == [None] * len(names)
    assert cpu.multi_processor_count > 0
    assert tvm.gpu().l2_cache_size_bytes == 40 << 20
