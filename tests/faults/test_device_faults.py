"""Faults of kernels on an OpenCL device: outcomes of a worker process, while this one lives."""

import os
import subprocess
import sys

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import (
    DeviceFault,
    MeasurementError,
    OutOfMemory,
    ProgramError,
    TargetError,
)
from dlcompiler.measurement.bench import CandidateBench
from dlcompiler.measurement.candidates import Candidate, Ceiling
from dlcompiler.measurement.correctness import Case, CorrectnessTest
from dlcompiler.measurement.remote import RemoteKernel
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.device_code import DeviceCode, DeviceFunction
from dlcompiler.runtime.function import described_by
from dlcompiler.runtime.launches import KernelCall, Launches, Temporary
from dlcompiler.runtime.opencl import driver
from dlcompiler.runtime.source import Interface, Source, Text
from dlcompiler.runtime.workers import Worker
from dlcompiler.target import resolve

OPENCL = resolve("opencl")
PARAMS = (Param("A", (8,), "float32", False), Param("C", (8,), "float32", True))
HEAD = "__kernel void k(__global const float *A, __global float *C, __global float *T)\n"
DOUBLE = "{ int i = get_global_id(0); C[i] = A[i] + A[i]; }"
HANG = "{ while (1) ((__global volatile float *)C)[0] = 1.0f; }"
ILLEGAL = "{ ((__global volatile float *)64)[get_global_id(0)] = 1.0f; }"
DIVERGES = "{ int i = get_local_id(0); if (i < 4) barrier(CLK_LOCAL_MEM_FENCE); C[i] = A[i]; }"
WRONG = "{ int i = get_global_id(0); C[i] = A[i]; }"
UNWRITTEN = "{ int i = get_global_id(0); if (i < 7) C[i] = A[i] + A[i]; }"
BEYOND = "{ int i = get_global_id(0); C[i] = A[i] + A[i]; C[8 + i] = A[i]; }"
READS_TEMPORARY = "{ int i = get_global_id(0); C[i] = A[i] + A[i] + T[i]; }"
REFUSED = "{\n  C[0] = A[0] +* 1;\n}"


def source(body, temporary=8, threads=8):
    call = KernelCall("k", (0, 1, 2), (), (1, 1, 1), (threads, 1, 1), reports=False)
    launches = Launches((Temporary("float32", temporary),), (call,))
    text = {"opencl": Text(HEAD + body)}
    return Source("opencl", text, Interface("k", PARAMS), None, launches)


def here(body, **changes):
    made = source(body, **changes)
    return DeviceFunction(DeviceCode(made, driver), **described_by(made.interface))


def arrays():
    return np.arange(8, dtype="float32"), np.zeros(8, "float32")


def case(a):
    a = np.asarray(a, np.float32)
    wide = a.astype(np.float64)
    return Case.of({"A": a}, {"C": 2 * wide}, {"C": np.full(8, 1e-6)}, {"C": "float32"})


TEST = CorrectnessTest([case(np.arange(8)), case(-1.0 - np.arange(8))])


@pytest.mark.campaign
def test_what_a_candidate_does_is_its_outcome(opencl):
    bodies = {
        DOUBLE: "ok", ILLEGAL: "crashed", WRONG: "wrong answer", UNWRITTEN: "wrong answer",
        READS_TEMPORARY: "wrong answer", BEYOND: "wrong answer", REFUSED: "build error",
    }  # fmt: skip
    jobs = [source(body) for body in bodies]
    jobs += [source(DOUBLE, temporary=1 << 60), source(DOUBLE)]
    found = {}
    ceiling = Ceiling(build_s=60.0)  # the first compilation of PoCL takes long on a busy machine
    with CandidateBench(TEST, OPENCL, ceiling=ceiling) as bench:
        bench.measure([lambda made=made: Candidate(made) for made in jobs], None, found.__setitem__)
        outcomes = [found[n].outcome for n in range(len(jobs))]
        assert outcomes == [*bodies.values(), "out of memory", "ok"], found
        assert found[0].samples_s
        assert "3: C[0] = A[0] +* 1;" in found[6].message
        assert found[5].message == "call k: memory behind the end of C was written"
        pairs = bench.compare([lambda: Candidate(source(DOUBLE))] * 2, budget_s=0.05)
    assert [each.outcome for each in pairs] == ["ok", "ok"]
    assert len(pairs[0].samples_s) == len(pairs[1].samples_s)


@pytest.mark.campaign
def test_a_hang_is_killed_and_the_next_kernel_runs(opencl):
    a, c = arrays()
    with Worker() as worker:
        kernel = RemoteKernel(source(HANG), OPENCL, worker=worker)
        assert kernel.run({"A": a, "C": c}, timeout_s=2.0).kind == "timeout"
        good = RemoteKernel(source(DOUBLE), OPENCL, worker=worker)
        outcome = good.run({"A": a, "C": c}, timeout_s=30.0)
    np.testing.assert_array_equal(outcome.arrays["C"], 2 * a)


def test_a_divergent_barrier_does_not_end_this_process(opencl):
    """What OpenCL does then is not defined: any outcome is right, and the next kernel runs."""
    a, c = arrays()
    with Worker() as worker:
        kernel = RemoteKernel(source(DIVERGES), OPENCL, worker=worker)
        outcome = kernel.run({"A": a, "C": c}, timeout_s=2.0)
        assert outcome.kind in ("ok", "error", "timeout", "crashed")
        good = RemoteKernel(source(DOUBLE), OPENCL, worker=worker)
        outcome = good.run({"A": a, "C": c}, timeout_s=30.0)
    np.testing.assert_array_equal(outcome.arrays["C"], 2 * a)


def test_an_illegal_address_ends_only_the_worker(opencl):
    kernel = RemoteKernel(source(ILLEGAL), OPENCL)
    with pytest.raises(MeasurementError, match="the worker's outcome is crashed"):
        kernel.time(timeout_s=30.0)
    assert RemoteKernel(source(DOUBLE), OPENCL).time(timeout_s=30.0).n >= 5


def test_two_processes_use_one_device(opencl):
    a, c = arrays()
    with Worker() as first, Worker() as second:
        kernels = [RemoteKernel(source(DOUBLE), OPENCL, worker=each) for each in (first, second)]
        for _ in range(2):
            for kernel in kernels:
                outcome = kernel.run({"A": a, "C": c}, timeout_s=30.0)
                np.testing.assert_array_equal(outcome.arrays["C"], 2 * a)
    function = here(DOUBLE)
    function(a, c)
    np.testing.assert_array_equal(c, 2 * a)


def test_no_memory_on_the_device_is_an_error_and_the_device_goes_on(opencl):
    with pytest.raises(OutOfMemory, match="not enough memory on the device") as caught:
        here(DOUBLE, temporary=1 << 60)(*arrays())
    assert isinstance(caught.value, MemoryError)
    assert driver().device_name in str(caught.value)
    a, c = arrays()
    here(DOUBLE)(a, c)
    np.testing.assert_array_equal(c, 2 * a)


def test_an_error_of_the_drivers_compiler_shows_the_line(opencl):
    with pytest.raises(TargetError) as caught:
        here(REFUSED)(*arrays())
    text = str(caught.value)
    assert text.startswith("call k: the OpenCL compiler of ")
    assert "error" in text
    assert caught.value.excerpt == "3: C[0] = A[0] +* 1;"


def test_blocks_with_more_threads_than_the_device_has_are_refused(opencl):
    most = driver().max_threads
    with pytest.raises(TargetError) as caught:
        here(DOUBLE, threads=2 * most)(*arrays())
    assert str(caught.value) == (
        "call k: its blocks have too many threads for this device\n"
        f"  got       {2 * most}\n"
        f"  expected  at most {most}\n"
        f"  because   that is the limit of {driver().device_name}\n"
        "  hint      split the thread axes by smaller factors"
    )


def test_a_launch_that_the_driver_refuses_is_no_fault_of_the_device(opencl):
    device = driver()
    with device.errors("call k"):
        module = device.load(device.compile(HEAD + DOUBLE, "call k"), "call k")
        memory = [device.allocate(32) for _ in range(3)]
    threads = (2 * device.max_threads, 1, 1)
    refused = pytest.raises(TargetError, match="a block needs more registers or memory than")
    with refused, device.errors("call k"):
        device.launch(module, "k", (1, 1, 1), threads, memory)


def scatter():
    index = te.placeholder((32,), dtype="int32", name="I")
    table = te.placeholder((10,), name="T")
    read = te.compute((32,), lambda i: table[index[i]], name="G")
    s = te.create_schedule(read.op)
    block, thread = s[read].split(read.op.axis[0], 8)
    s[read].bind(block, te.thread_axis("blockIdx.x"))
    s[read].bind(thread, te.thread_axis("threadIdx.x"))
    return dlc.build(s, [table, index, read], target="opencl")


def test_an_index_outside_its_array_is_reported_in_a_worker_too(opencl):
    kernel, index = scatter(), np.arange(32, dtype="int32") % 10
    index[13] = 77
    given = np.arange(10, dtype="float32"), index, np.zeros(32, "float32")
    with pytest.raises(ProgramError, match="index 77 in dimension 0 of extent 10, at i=13"):
        kernel(*given)
    with pytest.raises(MeasurementError, match="index 77 in dimension 0 of extent 10, at i=13"):
        dlc.measure(kernel, given)
    index[13] = 3
    assert dlc.measure(kernel, given, seconds=0.01).n >= 5


def test_a_fault_of_the_driver_ends_the_process_that_had_it():
    script = "from dlcompiler.errors import DeviceFault\n" + FAULTY
    with Worker((sys.executable, "-c", script)) as worker:
        outcome = worker.call("fault", timeout_s=30.0)
        assert (outcome.kind, outcome.error) == ("error", DeviceFault.__name__)
        first = worker.generation
        assert worker.call("echo", timeout_s=30.0).ok
        assert worker.generation == first + 1


FAULTY = """
from dlcompiler.runtime.fork_server import serve_in_children
def fault(request):
    raise DeviceFault("call k", "the device or its driver has failed", got="illegal address")
serve_in_children({"fault": fault, "echo": lambda request: {}})
"""

NO_DRIVER = """
import dlcompiler as dlc
from dlcompiler import te
A = te.placeholder((8,), name="A")
C = te.compute((8,), lambda i: A[i] + 1.0, name="C")
s = te.create_schedule(C.op)
s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
try:
    dlc.build(s, [A, C], target="opencl")
except dlc.errors.DeviceUnavailable as error:
    print(error)
"""


def test_without_a_driver_the_error_names_the_simulated_target(tmp_path, opencl):
    environment = {**os.environ, "OCL_ICD_VENDORS": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", NO_DRIVER], env=environment, capture_output=True, text=True
    )
    assert done.stdout.startswith("build for opencl: the device of opencl is not here\n"), (
        done.stderr
    )
    assert "target='gpu' simulates one" in done.stdout
