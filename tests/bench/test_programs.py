"""The programs whose lowering is timed are right, and the timing runs."""

import math
from functools import partial

import pytest

from dlcompiler.bench.compiling import time_build
from dlcompiler.bench.lowering import lowering_slope, step_cost, time_lowering
from dlcompiler.bench.programs import chain, packed_conv2d, six_step_gemm
from dlcompiler.measurement import verify
from dlcompiler.runtime import object_cache


@pytest.mark.campaign
@pytest.mark.parametrize(
    "make",
    [
        partial(six_step_gemm, 64),
        partial(packed_conv2d, channels=8, size=8, block=4),
        partial(chain, 3),
    ],
)
def test_the_programs_are_right(make):
    schedule, args = make()
    assert verify(schedule, args).worst <= 1


def test_a_convolution_of_eight_stages():
    schedule, args = packed_conv2d()
    assert sum(not stage.state.is_placeholder for stage in schedule.stages) == 8
    assert len(args) == 4


def test_the_timing_runs():
    found = time_lowering(six_step_gemm, rounds=1)
    assert 0 < found.early_s <= found.whole_s
    assert math.isfinite(lowering_slope((2, 4), rounds=1))
    assert step_cost(rounds=1) > 0


def test_building_is_timed_with_the_cache_and_without(tmp_path):
    before, chosen = object_cache.current(), object_cache.ObjectCache(tmp_path)
    object_cache.use(chosen)
    try:
        assert min(time_build(partial(six_step_gemm, 64), rounds=2)) > 0
        assert object_cache.current() is chosen
        assert chosen.size()[0] == 1
    finally:
        object_cache.use(before)
