"""Advice on products that run far below the peak: what is missing, and when it says nothing."""

from dataclasses import replace

import pytest

from dlcompiler import te
from dlcompiler.analysis.advice import Speed, advise
from dlcompiler.analysis.footprint import ProgramFootprint
from dlcompiler.ops import operator
from dlcompiler.ops.gemm.written import product_of, schedule_product
from dlcompiler.pipeline import lower
from dlcompiler.pipeline.checks import default_args
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.trace import decode
from dlcompiler.target.presets import X86_64_AVX2
from tests.analysis.test_advice import matmul, tiled

MACHINE = replace(X86_64_AVX2, cores=1)
QUARTER = Speed(24.0, 96.0, 1, "estimated for 3 GHz")
MOST = Speed(80.0, 96.0, 1, "estimated for 3 GHz")
RULES = ("no register tile", "not packed")


def found(schedule, speed=QUARTER):
    func = lower(schedule, default_args(schedule), simple_mode=True)
    items = advise(schedule, ProgramFootprint(func), MACHINE, speed)
    for item in items:
        step = item.finding.step
        if step is not None:
            there = schedule.fork("tried")
            there.apply(step.primitive, step.stage, decode(there.state, step))
    return {item.rule: item.finding for item in items if item.rule in RULES}


def test_a_plain_product_has_neither_tile_nor_packing():
    items = found(create_schedule(matmul(256).op))
    assert set(items) == set(RULES)
    tile = items["no register tile"]
    said = "24 GFLOP/s are 25% of the peak of 1 thread (96 GFLOP/s, estimated for 3 GHz)"
    assert said in tile.text
    assert "each step of k adds to only 1 register, and 8 sums must be in progress" in tile.text
    assert str(tile.step) == "tile C i j 4 16"
    packing = items["not packed"]
    assert "reads 4 bytes of it, and the next step reads 1,024 bytes further on" in packing.text
    assert str(packing.step) == "cache_read B global (C)"


def test_the_step_after_a_tile_moves_its_parts_inside():
    s = create_schedule(matmul(256).op)
    C = s.outputs[0]
    s[C].tile(*C.op.axis, 4, 16)
    step = found(s)["no register tile"].step
    assert str(step) == "reorder C (k, i.inner, j.inner)"


def test_loops_that_are_not_unrolled_keep_sums_in_memory():
    text = found(tiled(matmul(256), 4, 16))["no register tile"].text
    assert "each step of k loads and stores 64 sums of C" in text


def test_a_register_tile_is_enough_for_that_rule():
    s = tiled(matmul(256), 4, 16)
    C = s.outputs[0]
    stage = s.state.stage("C")
    s[C].unroll(next(leaf for leaf in stage.leaves if stage.paths[leaf] == "i.inner"))
    assert set(found(s)) == {"not packed"}


def test_the_operators_schedule_misses_nothing():
    C = matmul(256)
    s = create_schedule(C.op)
    schedule_product(s, C, operator("matmul").default_config(product_of(C), MACHINE), MACHINE)
    assert found(s) == {}


@pytest.mark.parametrize("speed", [None, MOST])
def test_nothing_is_said_without_a_time_or_near_the_peak(speed):
    assert found(create_schedule(matmul(256).op), speed) == {}


def test_other_programs_are_no_products():
    A = te.placeholder((256, 256), name="A")
    k = te.reduce_axis((0, 256), name="k")
    sums = te.compute((256,), lambda i: te.sum(A[i, k], axis=k), name="S")
    twice = te.compute((256, 256), lambda i, j: A[i, j] * 2.0, name="T")
    for tensor in (sums, twice):
        assert found(create_schedule(tensor.op)) == {}
