"""Verify, measure and tune on an OpenCL device, in worker processes."""

import numpy as np

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.pipeline import emit_source
from dlcompiler.runtime import opencl as driver
from dlcompiler.runtime.launches import Launches
from dlcompiler.target import resolve
from tests.thread_programs import tiled_matmul


def doubled(n=1000, factor=2.0):
    A = te.placeholder((n,), name="A")
    C = te.compute((n,), lambda i: A[i] * factor, name="C")
    s = te.create_schedule(C.op)
    block, thread = s[C].split(C.op.axis[0], 64)
    s[C].bind(block, te.thread_axis("blockIdx.x"))
    s[C].bind(thread, te.thread_axis("threadIdx.x"))
    return s, [A, C]


def test_launches_are_sent_to_another_process_as_json():
    source, _ = emit_source(*tiled_matmul(), resolve("opencl"))
    assert Launches.from_json(source.launches.to_json()) == source.launches


def test_a_kernel_is_verified_in_a_worker(opencl):
    verified = dlc.verify(*tiled_matmul(), target="opencl")
    assert verified.oracles[0] == "numpy"


def test_a_measurement_has_the_device_and_rows_of_copies(opencl):
    timing = dlc.measure(dlc.build(*doubled(), target="opencl"), seconds=0.01)
    name = driver.driver().device_name
    assert timing.label == f"measured on {name}"
    first, to_device, to_host = repr(timing).splitlines()
    assert first.startswith("Timing(median=")
    assert to_device.startswith("  copies to the device: Timing(median=")
    assert to_host.startswith("  copies to the host: Timing(median=")
    assert all(copy.label == timing.label for _, copy in timing.copies)


def test_arguments_of_a_measurement_stay_as_they_are(opencl):
    kernel = dlc.build(*doubled(100), target="opencl")
    a, c = np.ones(100, "float32"), np.zeros(100, "float32")
    dlc.measure(kernel, [a, c], seconds=0.01)
    assert not c.any()
