"""Operators of int8 blocks on VTA: right at every config; defaults keep the GEMM core busy."""

import random

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import ops
from dlcompiler.errors import TargetError, TuningError
from dlcompiler.ops.packed.extents import extents_of
from dlcompiler.target import resolve
from tests.share import share_of

VTA = resolve("vta-pynq")
CONV, DENSE = ops.operator("conv2d_packed"), ops.operator("dense_packed")
WORKLOADS = [
    CONV.workload(c=16, h=5, w=7, o=16, kernel=1),
    CONV.workload(c=32, h=9, w=9, o=48, kernel=3, padding=1, bias=1),
    CONV.workload(c=16, h=12, w=8, o=32, kernel=3, padding=1, stride=2, relu=0),
    CONV.workload(c=48, h=6, w=11, o=32, kernel=(1, 5), padding=(0, 2), residual=1),
    CONV.workload(
        c=16, h=13, w=13, o=64, kernel=7, padding=3, stride=2, bias=1, residual=1, shift=0
    ),
    CONV.workload(c=16, h=4, w=4, o=16, kernel=3, n=3, padding=1),
    CONV.workload(c=64, h=2, w=2, o=64, kernel=2, padding=1, stride=3),
    CONV.workload(c=64, h=7, w=9, o=64, kernel=3, padding=1, groups=4),
    CONV.workload(c=96, h=6, w=6, o=192, kernel=3, padding=1, groups=3, bias=1),
    DENSE.workload(m=1, n=64, k=128, bias=1),
    DENSE.workload(m=7, n=32, k=48, relu=0, shift=3),
    DENSE.workload(m=12, n=96, k=16, residual=1),
]


def check(workload, config, order=None, target=VTA):
    operator = ops.operator(workload.op)
    schedule, args = operator.template(workload, target, config)
    kernel = dlc.build(schedule, args, target=target)
    reference = operator.reference(workload, 0)
    result = np.zeros(args[-1].static_shape, "int8")
    kernel(*reference.inputs.values(), result, seed=order)
    np.testing.assert_array_equal(result, next(iter(reference.expected.values())))
    return kernel


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_the_default_is_right(workload):
    check(workload, ops.operator(workload.op).default_config(workload, VTA))


@pytest.mark.campaign
@pytest.mark.parametrize("number", range(20))
def test_random_configs_are_right_in_any_order_of_the_engines(number):
    generator = random.Random(number)
    for workload in generator.sample(WORKLOADS, share_of(4)):
        space = ops.operator(workload.op).space(workload, VTA)
        point = space.sample(1, generator)[0]
        check(workload, space.at(point), order=generator.randrange(1000))


@pytest.mark.parametrize("name", ["vta-ultra96", "vta-de10", "vdla-paper"])
def test_other_presets(name):
    target = resolve(name)
    workload = CONV.workload(c=64, h=14, w=14, o=64, kernel=3, padding=1)
    check(workload, CONV.default_config(workload, target), target=target)


def test_the_gemm_core_is_busy_where_nothing_else_binds():
    workload = CONV.workload(c=128, h=28, w=28, o=128, kernel=3, padding=1)
    kernel = check(workload, CONV.default_config(workload, VTA))
    assert extents_of(workload).updates > 0.85 * kernel.report().cycles


def test_what_is_no_workload_is_refused():
    with pytest.raises(TuningError, match="c is no multiple of a block"):
        CONV.workload(c=3, h=8, w=8, o=16, kernel=3)
    with pytest.raises(TuningError, match="no equal numbers of channels"):
        CONV.workload(c=32, h=8, w=8, o=32, kernel=3, groups=5)
    with pytest.raises(TuningError, match="kernel is larger than the padded image"):
        CONV.workload(c=16, h=2, w=2, o=16, kernel=5)
    with pytest.raises(TuningError, match="shift is no number of bits"):
        DENSE.workload(m=1, n=16, k=16, shift=40)
    with pytest.raises(TuningError, match="relu is no flag"):
        DENSE.workload(m=1, n=16, k=16, relu=2)


def test_other_devices_have_no_schedule():
    with pytest.raises(TargetError, match="no schedule for this kind of device"):
        CONV.default_config(WORKLOADS[0], resolve("cpu"))
