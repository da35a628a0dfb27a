"""Operators of int8 blocks on VTA: right at every config; defaults keep the GEMM core busy."""

import random

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import ops
from dlcompiler.errors import TargetError, TuningError
from dlcompiler.ops.packed.extents import extents_of
from dlcompiler.target import resolve
from dlcompiler.target.accelerators.vta import VtaConfig, vta
from tests.share import share_of

VTA = resolve("vta-pynq")
CONV, DENSE = ops.operator("conv2d_packed"), ops.operator("dense_packed")
DEPTHWISE, TRANSPOSE = (
    ops.operator(f"{name}_packed") for name in ("depthwise_conv2d", "conv2d_transpose")
)
MATMUL, AVG, MAX = (
    ops.operator(f"{name}_packed") for name in ("batch_matmul", "avg_pool2d", "max_pool2d")
)
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
    CONV.workload(c=48, h=3, w=5, o=96, kernel=(2, 1), groups=2),
    CONV.workload(c=80, h=2, w=3, o=80, kernel=1, groups=2),
    DEPTHWISE.workload(c=32, h=7, w=9, kernel=3, padding=1, bias=1),
    DEPTHWISE.workload(c=16, h=9, w=6, kernel=(5, 2), padding=(2, 1), stride=2, multiplier=3),
    TRANSPOSE.workload(c=32, h=4, w=3, o=16, kernel=4, stride=2, padding=1, bias=1),
    TRANSPOSE.workload(
        c=16, h=3, w=5, o=32, kernel=(3, 2), stride=3, padding=(1, 0), output_padding=(1, 2)
    ),
    TRANSPOSE.workload(c=16, h=3, w=4, o=16, kernel=3, padding=2, relu=0),
    DENSE.workload(m=1, n=64, k=128, bias=1),
    DENSE.workload(m=7, n=32, k=48, relu=0, shift=3),
    DENSE.workload(m=12, n=96, k=16, residual=1),
    MATMUL.workload(batch=3, m=5, n=32, k=48, relu=0),
    AVG.workload(c=48, h=7, w=7, kernel=7, scale=84, shift=12),
    AVG.workload(c=16, h=9, w=6, kernel=(2, 4), stride=2, padding=(0, 3), shift=3),
    MAX.workload(c=32, h=9, w=7, kernel=3, stride=2, padding=1),
    MAX.workload(c=16, h=5, w=6, kernel=(1, 2), n=2),
]
MACHINES = {
    "2x8x32": VtaConfig(LOG_BATCH=1, LOG_BLOCK_IN=5, LOG_BLOCK_OUT=3),
    "1x32x8": VtaConfig(
        LOG_BLOCK_IN=3, LOG_BLOCK_OUT=5, LOG_INP_BUFF_SIZE=13, LOG_WGT_BUFF_SIZE=14
    ),
    "4x4x4": VtaConfig(LOG_BATCH=2, LOG_BLOCK_IN=2, LOG_BLOCK_OUT=2, LOG_WGT_BUFF_SIZE=14),
}
"""Blocks of other sizes -> a machine that has them."""
OTHER = [
    CONV.workload(c=64, h=5, w=4, o=24, kernel=3, padding=1, n=2, bias=1, block="2x8x32"),
    CONV.workload(c=64, h=3, w=4, o=32, kernel=2, n=4, groups=4, residual=1, block="2x8x32"),
    CONV.workload(c=24, h=6, w=3, o=96, kernel=3, padding=1, groups=3, stride=2, block="1x32x8"),
    DEPTHWISE.workload(c=32, h=4, w=5, kernel=3, n=2, padding=1, bias=1, block="2x8x32"),
    DEPTHWISE.workload(c=16, h=4, w=5, kernel=3, multiplier=2, block="1x32x8"),
    TRANSPOSE.workload(c=8, h=3, w=4, o=64, kernel=4, stride=2, padding=1, block="1x32x8"),
    DENSE.workload(m=6, n=40, k=64, bias=1, block="2x8x32"),
    MATMUL.workload(batch=3, m=8, n=12, k=8, block="4x4x4"),
    AVG.workload(c=12, h=4, w=5, n=4, kernel=2, padding=1, shift=2, block="4x4x4"),
    MAX.workload(c=12, h=4, w=5, n=8, kernel=3, stride=2, padding=1, block="4x4x4"),
]


def check(workload, config, orders=(None,), target=VTA):
    operator = ops.operator(workload.op)
    schedule, args = operator.template(workload, target, config)
    kernel = dlc.build(schedule, args, target=target)
    reference = operator.reference(workload, 0)
    for order in orders:
        result = np.zeros(args[-1].static_shape, "int8")
        kernel(*reference.inputs.values(), result, seed=order)
        np.testing.assert_array_equal(result, next(iter(reference.expected.values())))
    return kernel


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_the_default_is_right(workload):
    config = ops.operator(workload.op).default_config(workload, VTA)
    check(workload, config, orders=(None, 1, 2, 3))


@pytest.mark.campaign
@pytest.mark.parametrize("workload", OTHER, ids=str)
def test_other_blocks(workload):
    target = vta("other", MACHINES[workload["block"]]).target
    config = ops.operator(workload.op).default_config(workload, target)
    check(workload, config, orders=(None, 1, 2, 3), target=target)
    with pytest.raises(TargetError, match="of such blocks"):
        ops.operator(workload.op).space(workload, VTA)


@pytest.mark.campaign
@pytest.mark.parametrize("padding", [(17, 1), (1, 17)], ids=str)
def test_tiles_of_padding_only_are_zeros(padding):
    workload = CONV.workload(c=16, h=1, w=2, o=16, kernel=1, padding=padding, relu=0, bias=1)
    values = {"filters": 1, "rows": 1, "columns": 1, "threads": "none", "double": "both"}
    default = CONV.default_config(workload, VTA).values
    check(workload, CONV.space(workload, VTA).config(**{**dict(default), **values}))


@pytest.mark.campaign
@pytest.mark.parametrize("number", range(20))
def test_random_configs_are_right_in_any_order_of_the_engines(number):
    generator = random.Random(number)
    for workload in generator.sample(WORKLOADS, share_of(4)):
        space = ops.operator(workload.op).space(workload, VTA)
        point = space.sample(1, generator)[0]
        check(workload, space.at(point), orders=(generator.randrange(1000),))


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["vta-ultra96", "vta-de10", "vdla-paper"])
@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_other_presets(name, workload):
    target = resolve(name)
    check(workload, ops.operator(workload.op).default_config(workload, target), target=target)


LARGE = [
    CONV.workload(c=16, h=46, w=46, o=16, kernel=45, padding=1),
    TRANSPOSE.workload(c=16, h=2, w=2, o=16, kernel=(40, 33), stride=2),
    AVG.workload(c=32, h=46, w=46, kernel=46, shift=11),
    MAX.workload(c=32, h=46, w=46, kernel=46),
]


@pytest.mark.campaign
@pytest.mark.parametrize("workload", LARGE, ids=str)
def test_windows_that_the_memories_do_not_hold(workload):
    operator = ops.operator(workload.op)
    config = operator.default_config(workload, VTA)
    assert config["taps"] < workload["kernel_h"]
    check(workload, config, orders=(None, 1))


@pytest.mark.parametrize("operator", [AVG, MAX], ids=str)
def test_rows_that_the_memories_do_not_hold(operator):
    with pytest.raises(TargetError, match="no tile fits into the memories"):
        operator.default_config(operator.workload(c=16, h=1, w=2100, kernel=(1, 2100)), VTA)


@pytest.mark.campaign
def test_the_gemm_core_is_busy_where_nothing_else_binds():
    workload = CONV.workload(c=128, h=28, w=28, o=128, kernel=3, padding=1)
    kernel = check(workload, CONV.default_config(workload, VTA))
    assert extents_of(workload).updates > 0.85 * kernel.report().cycles


REFUSED = [
    ("c is no multiple of a block", CONV, {"c": 3}),
    ("no equal numbers of channels", CONV, {"c": 32, "o": 32, "groups": 5}),
    ("kernel is larger than the padded image", CONV, {"h": 2, "kernel": 5}),
    ("shift is no number of bits", CONV, {"shift": 40}),
    ("relu is no flag", CONV, {"relu": 2}),
    ("the parameters are not valid", CONV, {"rely": 1}),
    ("block is no size of blocks", CONV, {"block": "16x16"}),
    ("n is no multiple of a block", CONV, {"block": "4x4x4"}),
    ("outputs is no multiple of a block", DEPTHWISE, {"block": "1x32x8", "c": 40}),
    ("the padding is too large", TRANSPOSE, {"padding": 3}),
    ("the padding is too large", TRANSPOSE, {"stride": 2, "output_padding": 2}),
    ("scale is no weight of int8", AVG, {"scale": 128}),
    ("other numbers of outputs than of inputs", AVG, {"block": "1x32x16"}),
    ("a window has no elements", MAX, {"padding": 3}),
]


@pytest.mark.parametrize(("why", "operator", "changes"), REFUSED, ids=lambda each: str(each))
def test_what_is_no_workload_is_refused(why, operator, changes):
    good = {"c": 16, "h": 8, "w": 8, "kernel": 3}
    good |= {"o": 16} if operator in (CONV, TRANSPOSE) else {}
    operator.workload(**good)
    with pytest.raises(TuningError, match=why):
        operator.workload(**{**good, **changes})


def test_other_devices_have_no_schedule():
    with pytest.raises(TargetError, match="no schedule for this kind of device"):
        CONV.default_config(WORKLOADS[0], resolve("cpu"))
