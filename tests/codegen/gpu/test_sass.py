"""SASS by NVIDIA's tools, where they are installed."""

import pytest

import dlcompiler as dlc
from dlcompiler.codegen.gpu import emit_sass
from dlcompiler.errors import DeviceUnavailable, TargetError
from dlcompiler.runtime import nvidia_tools
from dlcompiler.target import resolve
from tests.thread_programs import staged_copy, tiled_matmul


@pytest.fixture
def nvdisasm(ptxas, missing):
    reason = nvidia_tools.why_unavailable("nvdisasm")
    if reason:
        missing(reason)


def test_lines_are_linked_to_the_loops(nvdisasm):
    kernel = dlc.build(*tiled_matmul(), target="a100", name="product")
    text = kernel.generated.texts["sass"]
    printed = str(kernel.func).splitlines()
    linked = {
        line.split()[1].partition(".")[0]: printed[number - 1].strip()
        for line, number in zip(text.text.splitlines(), text.lines, strict=True)
        if number and line.strip().startswith("/*")
    }
    assert linked["BAR"] == "barrier"
    assert linked["STG"].startswith("C[")
    assert linked["FFMA"].startswith("C.local[")


def test_an_old_gpu_is_refused(nvdisasm):
    kernel = dlc.build(*staged_copy(), target="gtx-1080")
    refused = "disassemble main for sm_61: (ptxas|nvdisasm) refuses it\n"  # since CUDA 13, ptxas
    with pytest.raises(TargetError, match=refused) as e:
        kernel.source("sass")
    assert "deprecated" in str(e.value) or "not defined" in str(e.value)


def test_a_missing_tool_is_named(monkeypatch):
    kernel = dlc.build(*staged_copy(), target="a100")
    monkeypatch.setattr(nvidia_tools, "find_tool", lambda name: None)
    with pytest.raises(DeviceUnavailable) as caught:
        kernel.source("sass")
    assert str(caught.value) == (
        "disassemble main for sm_80: a tool of NVIDIA is missing\n"
        "  because   ptxas is not installed: pip install nvidia-cuda-nvcc-cu12"
    )


def test_a_target_without_a_compute_capability_is_refused():
    program = dlc.build(*staged_copy(), target="gpu").program
    with pytest.raises(TargetError) as caught:
        emit_sass(program, resolve("opencl"))
    assert str(caught.value) == (
        "disassemble main: SASS is for one generation of NVIDIA's GPUs\n"
        "  got       the target opencl\n"
        "  expected  a target with a compute capability"
    )
