"""Schedules of operators by kind of device: added from outside, chosen by target, or refused."""

from dataclasses import replace

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import ops, te
from dlcompiler.autotune.templates import declared_schedule, template
from dlcompiler.errors import TargetError, TuningError
from dlcompiler.ops.conv2d.choose import select_conv2d
from dlcompiler.target import resolve

CPU, GPU = resolve("x86-64-avx2"), resolve("v100")
TOY = replace(GPU, name="toy", device="toy accelerator")
"""A kind of device for which no operator has a schedule."""
ADD = ops.operator("elementwise")
WORK = ADD.workload(function="add", shapes=[(6, 40), (40,)])
CONVOLUTION = {"c": 2, "h": 5, "w": 5, "o": 3, "kernel": 3}


def blocks_and_threads(s, outs, cfg, target):
    """One element for each thread, blocks of as many threads as the knob says."""
    (out,) = outs
    element = s[out].fuse(*out.op.axis)
    cfg.define_knob("threads", [32, 64, 128])
    block, thread = s[out].split(element, cfg["threads"].val)
    s[out].bind(block, te.thread_axis("blockIdx.x"))
    s[out].bind(thread, te.thread_axis("threadIdx.x"))


@pytest.fixture
def gpu(monkeypatch):
    """Register a schedule for GPUs, in one line."""
    entry = declared_schedule(ADD.define, blocks_and_threads, {"threads": 64})
    monkeypatch.setitem(ADD.schedules, "gpu", entry)


def test_a_schedule_for_gpus_is_built_run_and_verified(gpu):
    chosen = ops.select("elementwise", {"function": "add", "shapes": [(6, 40), (40,)]}, GPU)
    assert dict(chosen.config.values) == {"threads": 64}
    s, args = chosen.operator.template(chosen.workload, GPU, chosen.config)
    kernel = dlc.build(s, args, GPU)
    reference = ADD.reference(WORK, seed=1)
    result = np.empty((6, 40), "float32")
    kernel(*reference.inputs.values(), result)
    (expected,) = reference.expected.values()
    np.testing.assert_array_equal(result, expected.astype("float32"))
    assert dlc.verify(s, args, target=GPU).oracles == ("numpy", "interpreter")


def test_each_target_has_the_space_of_its_device(gpu):
    assert [knob.name for knob in ADD.space(WORK, GPU).knobs] == ["threads"]
    assert "width" in {knob.name for knob in ADD.space(WORK, CPU).knobs}
    assert tuple(ADD.schedules) == ("cpu", "gpu")


def test_the_best_config_is_that_of_the_device(gpu):
    choice = dlc.autotune.best_choice(WORK, GPU)
    assert choice.source == "default"
    assert dict(choice.config.values) == {"threads": 64}
    with pytest.warns(UserWarning, match="the default config"):
        s, args = dlc.autotune.apply_best(WORK, GPU)
    assert "threadIdx.x" in str(dlc.lower(s, args, target=GPU))


def test_configs_of_a_cpu_are_not_those_of_another_device_with_its_processor():
    host = replace(CPU, name="near memory", device="toy accelerator")
    assert ops.tuned.target_class(host) != ops.tuned.target_class(CPU)


def test_a_template_for_gpus_only():
    def double(n: int):
        A = te.placeholder((n,), name="A")
        return A, te.compute((n,), lambda i: A[i] * 2.0, name="B")

    made = template(double, device="gpu")(blocks_and_threads)
    work = made.workload(n=100)
    s, args = made.template(work, GPU, made.default_config(work, GPU))
    dlc.verify(s, args, target=GPU)
    with pytest.raises(TargetError, match=r"(?s)schedule double for x86.* expected  'gpu'"):
        made.space(work, CPU)


@pytest.mark.parametrize(
    "use",
    [
        lambda: ADD.space(WORK, TOY),
        lambda: ADD.default_config(WORK, TOY),
        lambda: ADD.template(WORK, TOY, ADD.default_config(WORK, CPU)),
        lambda: ops.config_for(ADD, WORK, TOY),
        lambda: dlc.autotune.best_choice(WORK, TOY),
        lambda: dlc.autotune.apply_best(WORK, TOY),
        lambda: dlc.autotune.tune(WORK, TOY),
    ],
)
def test_without_a_schedule_for_the_device(use):
    with pytest.raises(TargetError) as caught:
        use()
    assert str(caught.value) == (
        "schedule elementwise for toy: the operator has no schedule for this kind of device\n"
        "  got       'toy accelerator'\n"
        "  expected  'cpu', 'gpu'\n"
        "  hint      write one, and register it:"
        " operator.schedules['toy accelerator'] = ops.DeviceSchedule(…)"
    )


# -- convolutions, which several operators compute ----------------------------------------------


def test_a_convolution_for_the_name_of_a_target():
    with pytest.raises(TuningError, match=r"^schedule conv2d: the argument target has the wrong"):
        ops.select("conv2d", CONVOLUTION, "cpu")


def test_no_operator_computes_convolutions_there():
    with pytest.raises(
        TargetError, match=r"(?s)^schedule conv2d for toy: .* expected  'cpu', 'gpu'\n"
    ):
        ops.select("conv2d", CONVOLUTION, TOY)


def test_only_operators_with_a_schedule_are_selected(monkeypatch):
    for name in ("conv2d_gemm", "conv2d_winograd"):
        operator = ops.operator(name)
        entry = declared_schedule(operator.define, lambda s, outs, cfg, target: None)
        monkeypatch.setitem(operator.schedules, TOY.device, entry)
    # Neither has an estimate: the first in the list of candidates is taken.
    assert select_conv2d(CONVOLUTION, TOY).operator.name == "conv2d_gemm"
    estimated = replace(
        ops.operator("conv2d_winograd").schedules[TOY.device], estimate=lambda *_: 1.0
    )
    monkeypatch.setitem(ops.operator("conv2d_winograd").schedules, TOY.device, estimated)
    assert select_conv2d(CONVOLUTION, TOY).operator.name == "conv2d_winograd"


def test_a_convolution_that_no_schedule_there_computes(monkeypatch):
    winograd = ops.operator("conv2d_winograd")
    entry = declared_schedule(winograd.define, lambda s, outs, cfg, target: None)
    monkeypatch.setitem(winograd.schedules, TOY.device, entry)
    with pytest.raises(TargetError) as caught:
        select_conv2d(CONVOLUTION, TOY, is_exact=True)
    assert str(caught.value) == (
        "schedule conv2d for toy:"
        " no operator with a schedule for this kind of device computes this convolution\n"
        "  got       c=2, h=5, w=5, o=3, kernel=3\n"
        "  because   operators with a schedule for it: conv2d_winograd;"
        " is_exact allows sums of products only"
    )
    with pytest.raises(TargetError, match="computes this convolution"):
        select_conv2d(CONVOLUTION | {"kernel": 5}, TOY)


# -- arguments that are none --------------------------------------------------------------------


MATMUL = ops.operator("matmul")
PRODUCT = MATMUL.workload(m=8, n=8, k=8)
CONFIG = MATMUL.default_config(PRODUCT, CPU)


@pytest.mark.parametrize(
    ("use", "name", "got", "expected"),
    [
        (
            lambda: MATMUL.template(PRODUCT, CPU, 5),
            "cfg", "5", "a Config: operator.space(workload, target).config(…)",
        ),
        (
            lambda: MATMUL.template(PRODUCT, "cpu", CONFIG),
            "target", "'cpu'", "a Target: resolve('cpu')",
        ),
        (lambda: MATMUL.space(PRODUCT, None), "target", "None", "a Target: resolve('cpu')"),
        (
            lambda: MATMUL.default_config("matmul", CPU),
            "workload", "'matmul'", "a Workload: matmul.workload(…)",
        ),
    ],
    ids=lambda value: "call" if callable(value) else value,
)  # fmt: skip
def test_an_argument_of_the_wrong_type(use, name, got, expected):
    with pytest.raises(TuningError) as caught:
        use()
    assert str(caught.value) == (
        f"schedule matmul: the argument {name} has the wrong type\n"
        f"  got       {got}\n"
        f"  expected  {expected}"
    )


@pytest.mark.parametrize(
    "use",
    [
        lambda: MATMUL.space(WORK, CPU),
        lambda: MATMUL.default_config(WORK, CPU),
        lambda: MATMUL.template(WORK, CPU, CONFIG),
    ],
)
def test_the_workload_of_another_operator(use):
    with pytest.raises(TuningError) as caught:
        use()
    assert str(caught.value) == (
        "schedule matmul: the workload is of another operator\n"
        "  got       elementwise(function=add, shapes=6x40,40, dtype=float32)\n"
        "  expected  matmul(…)"
    )


@pytest.mark.parametrize("name", [*ops.REGISTRY, "conv2d"])
@pytest.mark.parametrize("params", [{}, {"zork": 1}, {1: 2}, {"dtype": []}, 5, None, [("m", 1)]])
def test_parameters_that_are_not_those_of_the_operator(name, params):
    with pytest.raises(TuningError, match=f"^workload of {name}"):
        ops.select(name, params, CPU)


@pytest.mark.parametrize("name", ops.REGISTRY)
def test_a_workload_without_parameters(name):
    with pytest.raises(TuningError, match=f"^workload of {name}: the parameters are not valid"):
        ops.operator(name).workload()


def test_the_parameters_that_are_missing_are_named():
    with pytest.raises(TuningError) as caught:
        MATMUL.workload(m=8, n=8)
    assert str(caught.value) == (
        "workload of matmul: the parameters are not valid\n"
        "  got       m=8, n=8\n"
        "  because   matmul_workload() missing 1 required keyword-only argument: 'k'"
    )


@pytest.mark.parametrize("shape", [5, None, object(), b"3", (10**5000,)])
def test_a_shape_that_is_none(shape):
    with pytest.raises(TuningError):
        ops.operator("softmax").workload(shape=shape)


@pytest.mark.parametrize("keepdims", [2, -1, 1.5, "1", None, float("inf")])
def test_keepdims_that_is_no_truth_value(keepdims):
    with pytest.raises(TuningError, match="keepdims is neither 0 nor 1"):
        ops.operator("reduction").workload(function="sum", shape=(4,), keepdims=keepdims)


@pytest.mark.parametrize("layout", [5, [], "NCWH"])
def test_a_layout_that_is_none(layout):
    with pytest.raises(TuningError, match="conv2d: no such layout"):
        ops.select("conv2d", CONVOLUTION | {"layout": layout}, CPU)
