"""Verify, measure and tune on an OpenCL device, in worker processes."""

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.autotune import tune
from dlcompiler.autotune.records.record import target_key
from dlcompiler.autotune.templates import template
from dlcompiler.errors import DeviceUnavailable, MeasurementError
from dlcompiler.measurement.bench import CandidateBench
from dlcompiler.measurement.remote import RemoteKernel
from dlcompiler.pipeline import emit_source
from dlcompiler.runtime import discovery
from dlcompiler.runtime import opencl as driver
from dlcompiler.runtime.launches import Launches
from dlcompiler.target import resolve
from dlcompiler.target.detect import cpu_model
from tests.thread_programs import tiled_matmul

pytestmark = pytest.mark.campaign(whole_file=True)


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


def threads_of(s, outs, cfg, target):
    (out,) = outs
    cfg.define_knob("threads", [16, 32, 64])
    block, thread = s[out].split(out.op.axis[0], cfg["threads"].val)
    s[out].bind(block, te.thread_axis("blockIdx.x"))
    s[out].bind(thread, te.thread_axis("threadIdx.x"))


def test_a_template_is_tuned_on_the_device(opencl):
    def double(n: int):
        A = te.placeholder((n,), name="A")
        return A, te.compute((n,), lambda i: A[i] * 2.0, name="B")

    made = template(double, device="gpu")(threads_of)
    work = made.workload(n=1000)
    found = tune(work, "opencl", template=made, trials=3, tuner="random").wait()
    assert [trial.outcome for trial in found.trials] == ["ok"] * 3
    name = driver.driver().device_name
    assert {trial.provenance.on for trial in found.trials} == {name}
    assert target_key(resolve("opencl"), 1).startswith(f"gpu opencl:{name}:")


def test_caches_of_a_device_are_not_emptied():
    with pytest.raises(MeasurementError) as caught:
        CandidateBench(lambda: None, resolve("opencl"), flush_caches=True)
    assert str(caught.value) == (
        "measure candidates for opencl: the caches of a device cannot be emptied\n"
        "  hint      flush_caches=False"
    )


@pytest.mark.parametrize(
    "way",
    [
        lambda s, args: dlc.verify(s, args, target="cuda"),
        lambda s, args: dlc.compare(s, s, args, target="cuda"),
        lambda s, args: dlc.StepTable(target="cuda").add("plain", s, args),
    ],
    ids=["verify", "compare", "steps"],
)
def test_what_needs_a_device_that_is_not_here_says_why(way, monkeypatch):
    missing = discovery.Devices(reason="no NVIDIA driver is installed here")
    monkeypatch.setattr(discovery, "devices", lambda language: missing)
    with pytest.raises(DeviceUnavailable) as caught:
        way(*doubled())
    assert str(caught.value).partition(": ")[2] == (
        "the device of cuda is not here\n"
        "  because   no NVIDIA driver is installed here\n"
        "  hint      target='gpu' simulates one"
    )


def test_a_baseline_of_the_host_says_that_it_ran_there(opencl):
    source, _ = emit_source(*tiled_matmul(64), resolve("opencl"))
    kernel = RemoteKernel(source, resolve("opencl"), args=tiled_matmul(64)[1])
    pair = kernel.pair("numpy.matmul", limits={"rounds": 3}, timeout_s=60.0)
    assert pair.a.provenance.on == cpu_model()
    assert pair.b.provenance.on == driver.driver().device_name
