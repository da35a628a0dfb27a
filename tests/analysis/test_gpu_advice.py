"""Each rule of advice about kernels of GPUs finds something in one schedule, and not in another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dlcompiler import te
from dlcompiler.analysis.advice import GPU_RULES, advise
from dlcompiler.analysis.footprint import ProgramFootprint
from dlcompiler.bench import gpu_ladders
from dlcompiler.pipeline import lower, lower_program
from dlcompiler.pipeline.gpu_kernels import kernels_of
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.trace import decode
from dlcompiler.target import resolve
from tests.simulate.gpu.test_requests import transposed
from tests.thread_programs import softmax, tiled_matmul

A6000 = resolve("rtx-a6000")


def facts(made, target=A6000):
    return kernels_of(lower_program(*made, target), target)


def advice(made, rule, kernels=None):
    """Return the findings of a rule; each step that is advised can be taken."""
    assert rule in {each.name for each in GPU_RULES}
    s, args = made
    footprint = ProgramFootprint(lower(s, args, simple_mode=True))
    found = advise(s, footprint, A6000, kernels=facts(made) if kernels is None else kernels)
    for item in found:
        step = item.finding.step
        if step is not None:
            there = s.fork("tried")
            there.apply(step.primitive, step.stage, decode(there.state, step))
            assert not there.obligations
    return [item.finding for item in found if item.rule == rule]


def only(made, rule, kernels=None):
    (finding,) = advice(made, rule, kernels)
    return finding


def changed(made, **parts):
    (kernel,) = facts(made)
    return [replace(kernel, **parts)]


def copy(n, threads, blocks=True):
    """Return a copy of n elements, in blocks of some threads."""
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    s = create_schedule(B.op)
    block, thread = s[B].split(B.op.axis[0], threads)
    if blocks:
        s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    return s, [A, B]


def test_rules_have_sources_and_other_names_than_those_for_a_cpu():
    names = {rule.name for rule in GPU_RULES}
    assert len(names) == len(GPU_RULES) == 7
    assert all(len(rule.source) > 20 for rule in GPU_RULES)


class TestUncoalesced:
    def test_a_column(self):
        found = only(gpu_ladders.naive(256), "uncoalesced access")
        assert found.text.startswith(
            "load A: each request of a warp moves 32 sectors of 32 bytes, where 4 would do, 97%"
        )
        assert (found.stage, found.severity) == ("C.local", "high")

    def test_a_row(self):
        assert not advice(gpu_ladders.coalesced(256), "uncoalesced access")
        assert not advice(copy(4096, 128), "uncoalesced access")


class TestBankConflict:
    def test_a_column(self):
        found = only(transposed(64), "bank conflict")
        assert "a warp takes 32 times as many passes through shared memory" in found.text
        assert "takes 2 passes in all instead of 33" in found.text
        assert str(found.step) == "storage_align A.shared ax0 32 1"

    def test_the_step_ends_it(self):
        s, args = transposed(64)
        step = only((s, args), "bank conflict").step
        s.apply(step.primitive, step.stage, decode(s.state, step))
        assert not advice((s, args), "bank conflict")

    def test_where_padding_does_not_help_there_is_no_step(self):
        found = only(gpu_ladders.vectorized(256), "bank conflict")
        assert found.text.startswith("load B.shared: a warp takes 2 times as many passes")
        assert found.step is None
        assert "longer" not in found.text

    def test_a_row(self):
        assert not advice(gpu_ladders.shared(256), "bank conflict")


class TestOccupancy:
    def test_registers_limit(self):
        found = only(gpu_ladders.vectorized(256), "low occupancy")
        assert "16 of 48 warps (33 %); limited by registers" in found.text
        assert "with at most 80 registers, 3 or more blocks would run" in found.text
        assert "of its predicted time is waiting" in found.text

    def test_small_blocks_limit(self):
        found = only(copy(1 << 16, 32), "low occupancy")
        assert "16 of 48 warps (33 %); limited by blocks" in found.text

    def test_many_warps(self):
        assert not advice(copy(1 << 16, 256), "low occupancy")

    def test_it_is_not_known(self):
        made = copy(1 << 16, 32)
        assert not advice(made, "low occupancy", changed(made, occupancy=None))


class TestBlocks:
    def test_too_few(self):
        found = only(copy(1024, 256), "too few blocks")
        assert "has 4 blocks for 84 multiprocessors, of which 80 stay idle" in found.text
        assert (found.stage, found.path, found.severity) == ("B", "i.outer", "high")

    def test_one(self):
        assert "has 1 block for" in only(copy(256, 256, blocks=False), "too few blocks").text

    def test_a_target_that_does_not_say_how_many_it_has(self):
        made = copy(1024, 256)
        assert not advice(made, "too few blocks", changed(made, occupancy=None))

    def test_enough(self):
        assert not advice(copy(84 * 256, 256), "too few blocks")


class TestTail:
    def test_a_short_one(self):
        found = only(copy(505 * 256, 256), "tail wave")
        assert "run in 1 waves of 504; the last one has 1," in found.text
        assert "so that 50% of all places stay empty" in found.text

    def test_none(self):
        assert not advice(copy(504 * 256, 256), "tail wave")
        assert not advice(copy(4 * 256, 256), "tail wave"), "that are too few blocks"


class TestSpill:
    def test_too_many_sums(self):
        made = gpu_ladders._tiled(256, gpu_ladders.Tile((256, 256), 8, (16, 16)))
        found = only(made, "register spill")
        assert "has 255 registers and keeps" in found.text
        assert "(estimated)" in found.text

    def test_none(self):
        assert not advice(gpu_ladders.vectorized(256), "register spill")


class TestBarriers:
    def test_of_a_softmax(self):
        found = only(softmax(), "redundant barrier")
        assert found.text.startswith("2 of the 10 barriers of main_kernel0 could be left out")

    def test_those_of_tiles_are_needed(self):
        assert not advice(tiled_matmul(), "redundant barrier")


@pytest.mark.parametrize("rule", [each.name for each in GPU_RULES])
def test_a_program_without_kernels_gets_no_advice_for_gpus(rule):
    s, args = copy(1024, 256)
    footprint = ProgramFootprint(lower(s, args, simple_mode=True))
    assert not [item for item in advise(s, footprint, A6000) if item.rule == rule]
