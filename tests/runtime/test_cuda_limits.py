"""Limits and numbers of CUDA devices, by the driver that records calls (`tests/fake_cuda.py`)."""

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler.errors import CallError, DeviceUnavailable, TargetError
from tests.codegen.gpu.test_shared_memory import data, reversed_rows
from tests.runtime.test_cuda import doubled, scaled


def test_a_launch_adds_shared_memory_that_was_asked_for(fake):
    kernel = reversed_rows("cuda")
    for m in (50, 100, 12_000, 50):
        kernel(*data(m))
    assert fake.shared == [16 * (-(-4 * m // 16) + -(-m // 16)) for m in (50, 100, 12_000, 50)]
    asked = [call for call in fake.calls if call[0] == "cuFuncSetAttribute"]
    assert asked == [("cuFuncSetAttribute", "turn_kernel0", 8, 60_000)]
    with pytest.raises(TargetError, match="needs more shared memory than") as caught:
        kernel(*data(60_000))
    assert caught.value.expected == "at most 232,448 bytes"
    assert len(fake.launches) == 4


def test_threads_without_enough_registers_are_refused_before_a_launch(fake):
    fake.most_threads = 64
    with pytest.raises(TargetError) as caught:
        doubled()(np.zeros(100, "float32"), np.zeros(100, "float32"))
    assert str(caught.value) == (
        "call main: the registers of main_kernel0 do not suffice for the threads of a block\n"
        "  got       100 threads\n"
        "  expected  at most 64\n"
        "  because   that is the driver's limit for this kernel on Fake GPU (sm_90, CUDA 12.9)\n"
        "  hint      bind fewer threads, or compute less in each thread"
    )
    assert not fake.launches


def test_one_of_several_devices_is_chosen(fake):
    fake.devices = 2
    schedule, args = scaled()
    dlc.build(schedule, args, target=dlc.cuda(1))
    x = dlc.to_device(np.zeros(3, "float32"), dlc.cuda(1))
    assert x.__dlpack_device__() == (2, 1)
    y = dlc.to_device(np.zeros(3, "float32"), "cuda")
    with pytest.raises(CallError, match="the array is in the memory of another device"):
        y.assign(x)
    with pytest.raises(DeviceUnavailable) as caught:
        dlc.build(schedule, args, target=dlc.cuda(2))
    name = "Fake GPU (sm_90, CUDA 12.9)"
    assert caught.value.because == f"there is no device 2, but 2 are: 0 is {name}, 1 is {name}"
