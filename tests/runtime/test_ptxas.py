"""Registers of kernels by NVIDIA's assembler, where its packages are."""

import pytest

from dlcompiler.runtime import ptxas

KERNEL = 'extern "C" __global__ void f(float *a) { __shared__ float s[64]; %s }'


@pytest.fixture
def tools():
    if reason := ptxas.why_unavailable():
        pytest.skip(reason)


def test_resources_of_a_kernel(tools):
    body = "s[threadIdx.x] = a[threadIdx.x]; __syncthreads(); a[threadIdx.x] = s[63 - threadIdx.x];"
    (found,) = ptxas.assembled(KERNEL % body, "sm_86").values()
    assert found.shared_bytes == 256
    assert 4 <= found.registers <= 16
    assert found.spill_bytes == 0


def test_code_that_is_refused_gives_a_reason(tools):
    found = ptxas.assembled(KERNEL % "nothing;", "sm_86")
    assert isinstance(found, str)
    assert found.startswith("NVRTC refuses the code:")
    assert '"nothing" is undefined' in found


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setattr(ptxas, "_file", lambda name: None)
    assert ptxas.assembled("", "sm_86") == (
        "no NVRTC and no ptxas (pip install nvidia-cuda-nvrtc-cu12 nvidia-cuda-nvcc-cu12)"
    )
