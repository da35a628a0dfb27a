"""What a time on a target is: no time of a simulated or null target is called measured."""

import dataclasses

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import CallError, MeasurementError
from dlcompiler.measurement.provenance import check_measured, provenance_of_times
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.target import resolve
from dlcompiler.target.detect import cpu_model

NULL = dataclasses.replace(resolve("cpu"), name="nothing", runs_on="null")


@pytest.fixture
def doubled():
    A = te.placeholder((64,), name="A")
    C = te.compute((64,), lambda i: A[i] * 2.0, name="C")
    return te.create_schedule(C.op), [A, C]


def test_times_of_this_machine_are_measured():
    assert provenance_of_times(resolve("cpu"), "x") == Provenance("measured", cpu_model())
    assert provenance_of_times(resolve("c"), "x").kind == "measured"


def test_times_of_a_simulated_gpu_are_predicted():
    predicted = Provenance("predicted", "the time model of v100")
    assert provenance_of_times(resolve("v100"), "x") == predicted
    with pytest.raises(MeasurementError) as caught:
        check_measured(resolve("v100"), "measure main")
    assert str(caught.value) == (
        "measure main: only machine code has measured times\n"
        "  got       times that are predicted by the time model of v100\n"
        "  hint      target='cpu' is measured"
    )


def test_a_null_device_has_no_times():
    with pytest.raises(MeasurementError) as caught:
        provenance_of_times(NULL, "measure main")
    assert str(caught.value) == (
        "measure main: programs for nothing have no times\n"
        "  because   the device 'null' neither measures nor predicts them\n"
        "  hint      target='cpu' is measured"
    )


@pytest.mark.parametrize("target", [NULL, "v100"])
def test_no_way_of_measuring_measures_what_does_not_run(doubled, target):
    s, args = doubled
    ways = [
        lambda: dlc.compare(s, s, args, target=target),
        lambda: dlc.StepTable(target=target).add("plain", s, args),
    ]
    if target == "v100":
        (i,) = s[args[1]].op.axis
        s[args[1]].bind(i, te.thread_axis("threadIdx.x"))
    else:
        ways.append(lambda: dlc.measure(dlc.build(s, args, target)))
    for way in ways:
        with pytest.raises(MeasurementError, match=r"no times|machine code"):
            way()


def test_a_kernel_for_a_simulated_gpu_has_a_predicted_time(doubled):
    s, args = doubled
    (i,) = s[args[1]].op.axis
    s[args[1]].bind(i, te.thread_axis("threadIdx.x"))
    kernel = dlc.build(s, args, "v100")
    timing = dlc.measure(kernel)
    assert repr(timing).endswith("predicted by the time model of v100)")
    assert timing.median_s == kernel.report().seconds > 1e-6
    with pytest.raises(
        MeasurementError, match="predicted from rates of the GPU, and this target has"
    ):
        dlc.measure(dlc.build(s, args, dataclasses.replace(resolve("v100"), rates={})))


def test_a_kernel_for_an_accelerator_has_a_simulated_time():
    operator, vta = dlc.ops.operator("dense_packed"), resolve("vta-pynq")
    workload = operator.workload(m=4, n=16, k=32)
    s, args = operator.template(workload, vta, operator.default_config(workload, vta))
    kernel = dlc.build(s, args, vta)
    timing = dlc.measure(kernel)
    assert repr(timing).endswith("simulated on vta-pynq, profile B)")
    assert timing.median_s == pytest.approx(kernel.report().cycles / vta.accelerator.clock_hz)
    with pytest.raises(CallError, match="data"):
        dlc.measure(kernel, [np.zeros(3, "int8")] * 3)


def test_a_program_of_which_the_host_computes_a_part_has_no_simulated_time():
    A = te.placeholder((64,), "int32", name="A")
    P = te.compute((64,), lambda i: A[63 - i], name="P")
    T = te.compute((64,), lambda i: P[i] + 1, name="T")
    C = te.compute((64,), lambda i: T[i].astype("int8"), name="C")
    s = te.create_schedule(C.op)
    s.cache_read(P, "vta-pynq.acc", [T])
    s[T].set_scope("vta-pynq.acc")
    kernel = dlc.build(s, [A, C], "vta-pynq")
    with pytest.raises(MeasurementError, match="the host of vta-pynq computes a part of it"):
        dlc.measure(kernel)


def test_a_measurement_says_where_it_was_made(doubled):
    s, args = doubled
    timing = dlc.measure(dlc.build(s, args), seconds=0.01)
    assert repr(timing).endswith(f", measured on {cpu_model()})")
    table = dlc.StepTable()
    step = table.add("plain", s, args, rounds=3)
    assert f", measured on {cpu_model()}, verified" in repr(step)
    assert repr(table).splitlines()[0].endswith(f"(measured on {cpu_model()})")
    assert f"measured on {cpu_model()}" in repr(dlc.compare(s, s, args, rounds=3).timing)
