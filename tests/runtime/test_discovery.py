"""The drivers of devices are asked in a process of its own; one of several devices is chosen."""

import sys

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import DeviceUnavailable, TargetError
from dlcompiler.measurement.loading import described
from dlcompiler.pipeline.devices import device_of
from dlcompiler.runtime import discovery, opencl
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.discovery import Devices
from dlcompiler.runtime.launches import KernelCall, Launches
from dlcompiler.runtime.source import Interface, Source, Text
from dlcompiler.runtime.workers import Worker
from dlcompiler.target import resolve


@pytest.fixture(autouse=True)
def found_before(monkeypatch):
    monkeypatch.setattr(discovery, "_found", dict(discovery._found))


def broken(body):
    """Return the command of a process whose driver does something else than answer."""
    script = (
        "import os, sys, time\nfrom dlcompiler.runtime.serve import serve\n"
        f"def find(request):\n    {body}\nserve({{'find': find}})"
    )
    return sys.executable, "-c", script


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("print('bad driver'); os.abort()",
         "the OpenCL drivers could not be asked: ended by SIGABRT (bad driver)"),
        ("time.sleep(60)", "the OpenCL drivers could not be asked: no answer within 0.05 s"),
    ],
)  # fmt: skip
def test_a_broken_driver_is_a_reason(body, words, monkeypatch):
    discovery.forget()
    monkeypatch.setattr(discovery, "COMMAND", broken(body))
    monkeypatch.setattr(discovery, "LIMIT_S", 0.05 if "sleep" in body else 30.0)
    device = device_of(resolve("opencl"))
    assert device.why_unavailable().startswith(words)
    with pytest.raises(DeviceUnavailable) as caught:
        dlc.to_device(np.zeros(3, "float32"), "opencl")
    assert caught.value.because.startswith(words)
    assert device.times(resolve("opencl")).on == ""
    with pytest.raises(DeviceUnavailable, match="use opencl: no device"):
        device.allocate((3,), "float32")


def test_drivers_are_asked_once(opencl, monkeypatch):
    assert discovery.devices("opencl").names == tuple(opencl_names())
    monkeypatch.setattr(discovery, "COMMAND", broken("os.abort()"))
    assert discovery.devices("opencl").reason == ""


def opencl_names():
    names, reason = opencl.device_names()
    assert reason is None
    return names


def test_without_the_package_no_process_is_started(monkeypatch):
    discovery.forget()
    monkeypatch.setattr(discovery, "find_spec", lambda name: None)
    monkeypatch.setattr(discovery, "COMMAND", ("no such program",))
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    opencl.find_devices.cache_clear()
    reason = discovery.devices("opencl").reason
    monkeypatch.undo()
    opencl.find_devices.cache_clear()
    assert reason.startswith("pyopencl is not installed")


def test_a_process_that_does_not_start_is_no_answer(opencl, monkeypatch):
    discovery.forget()
    monkeypatch.setattr(discovery, "COMMAND", (sys.executable, "-S", "-c", "raise SystemExit(1)"))
    reason = discovery.devices("opencl").reason
    assert "could not be asked: the worker did not start" in reason
    assert "opencl" not in discovery._found  # the next call asks again


def test_the_number_of_a_missing_device_is_refused():
    found = Devices(("Large", "Small"))
    assert found.why_not(0) is found.why_not(1) is None
    assert found.why_not(2) == "there is no device 2, but 2 are: 0 is Large, 1 is Small"
    assert Devices(("One",)).why_not(1) == "there is no device 1, but 1 is: 0 is One"
    assert Devices(reason="no driver").why_not(0) == "no driver"


@pytest.mark.parametrize("text", ["cuda:", "cuda:-1", "opencl:x", "cpu:1", "v100:0", ":1"])
def test_what_is_no_device_of_this_machine_is_refused(text):
    with pytest.raises(TargetError) as caught:
        resolve(text)
    assert str(caught.value) == (
        "resolve a target: not a device of this machine\n"
        f"  got       {text!r}\n"
        "  expected  'cuda:0', 'cuda:1', 'opencl:0', 'opencl:1', …"
    )


def test_a_device_is_chosen_by_its_number(opencl):
    assert dlc.opencl() is resolve("opencl:0") is resolve("opencl")
    second = dlc.opencl(1)
    assert (second.name, second.runs_on) == (resolve("opencl:1").name, "opencl:1")
    assert resolve("cuda:2 -arch=sm_80").runs_on == "cuda:2"
    A = te.placeholder((8,), name="A")
    C = te.compute((8,), lambda i: A[i] + 1.0, name="C")
    s = te.create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    beyond = dlc.opencl(len(discovery.devices("opencl").names))
    for use in (dlc.build, dlc.verify):
        with pytest.raises(DeviceUnavailable, match="there is no device") as caught:
            use(s, [A, C], target=beyond)
        assert "0 is " in caught.value.because


@pytest.mark.campaign
def test_a_worker_uses_the_device_of_the_number(opencl):
    c, count = np.zeros(8, "float32"), len(discovery.devices("opencl").names)
    said = {}
    with Worker() as worker:
        for number in (0, count):
            given = described(SOURCE, dlc.opencl(number))
            handle = worker.call("load", given, data=CODE.encode(), timeout_s=30.0).value
            made = worker.call("run", handle, arrays={"C": c}, outputs=["C"], timeout_s=30.0)
            said[number] = made.message or made.arrays["C"].sum()
    assert said[0] == 8
    assert f"there is no OpenCL device {count}" in said[count]


CODE = "__kernel void k(__global float *C) { C[get_global_id(0)] = 1.0f; }"
SOURCE = Source(
    "opencl", {"opencl": Text(CODE)}, Interface("k", (Param("C", (8,), "float32", True),)), None,
    Launches((), (KernelCall("k", (0,), (), (1, 1, 1), (8, 1, 1), reports=False),)),
)  # fmt: skip
