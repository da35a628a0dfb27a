"""Counters of whole spaces equal those of each config lowered alone."""

from __future__ import annotations

import random

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.autotune.features import space_counters
from dlcompiler.autotune.features.space_counters import SpaceCounters
from dlcompiler.autotune.templates import template
from dlcompiler.errors import TuningError
from dlcompiler.target import resolve
from tests.autotune.features.gpu_templates import CONV, GEMM, ROWS
from tests.share import share

TARGET = resolve("rtx-a6000")
CASES = {
    "rows, tails": (ROWS, {"n": 37, "m": 100}, 10),
    "rows int8": (ROWS, {"n": 16, "m": 130, "dtype": "int8"}, 20),
    "rows float64": (ROWS, {"n": 16, "m": 130, "dtype": "float64"}, 20),
    "rows bool": (ROWS, {"n": 16, "m": 130, "dtype": "uint8"}, 20),
    "gemm": (GEMM, {"n": 64, "m": 96, "k": 32}, 60),
    "gemm float16": (GEMM, {"n": 96, "m": 60, "k": 20, "dtype": "float16"}, 40),
    "gemm float64": (GEMM, {"n": 49, "m": 30, "k": 12, "dtype": "float64"}, 40),
    "conv": (CONV, {"n": 1, "h": 14, "ci": 8, "co": 16, "k": 3, "stride": 1, "pad": 1}, 40),
    "strided conv": (
        CONV,
        {"n": 1, "h": 12, "ci": 4, "co": 12, "k": 3, "stride": 2, "pad": 0, "dtype": "float16"},
        25,
    ),
    "small conv": (CONV, {"n": 1, "h": 7, "ci": 64, "co": 64, "k": 3, "stride": 1, "pad": 1}, 25),
}
"""Spaces, and how many of their configs are tried: together 300."""


def counters_of(operator, parameters, target=TARGET):
    workload = operator.workload(**parameters)
    return SpaceCounters(operator, workload, target, operator.space(workload, target))


def sample(found, count, seed):
    return np.array(found.space.sample(count, seed), np.int64)


def assert_equal(found, points):
    """Assert that each config has the counters of its program, or is refused like it."""
    counts = found.counts(points)
    for number, point in enumerate(points.tolist()):
        alone = found.alone(point)
        config = str(found.space.at(point))
        assert counts.is_refused[number] == (alone is None), config
        assert counts.of(number) == (alone or {}), config
    return counts


@pytest.fixture
def unchecked(monkeypatch):
    """Formulas are not compared with lowered programs where they are made: the test does it."""
    monkeypatch.setattr(space_counters, "CHECKED", 0)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.campaign) for n in CASES])
def test_random_configs_of_spaces(name, unchecked):
    operator, parameters, count = CASES[name]
    found = counters_of(operator, parameters)
    count = max(count // share() ** 2, 1)  # lowering a config takes half a second
    counts = assert_equal(found, sample(found, count, random.Random(name).randrange(99)))
    assert found.why_alone == ()
    assert not counts.is_alone.any()


def test_a_space_is_counted_with_few_lowered_programs(unchecked):
    found = counters_of(GEMM, {"n": 24, "m": 20, "k": 6})
    counts = assert_equal(found, sample(found, 4, 0))
    assert not counts.is_alone.any()
    assert not counts.is_refused.all()


@pytest.mark.campaign
def test_a_refused_config_has_the_reason_of_lowering():
    found = counters_of(GEMM, {"n": 512, "m": 512, "k": 512})
    tiles = {"tile_x": (-1, 1, 2, 2), "tile_k": (-1, 256), "unroll": 1}
    space = found.space
    config = space.config(tile_y=(-1, 4, 16, 8), **tiles)
    point = space.index_of(config)
    counts = found.counts(np.array([point]))
    assert counts.is_refused.all()
    assert not counts.is_alone.any()
    assert counts.of(0) == {}
    assert "a block would need more shared memory than there is" in found.reason(point)


def test_one_thread_has_no_shared_memory(unchecked):
    found = counters_of(GEMM, {"n": 8, "m": 8, "k": 4})
    one = (-1, 2, 1, 2)
    config = found.space.config(tile_y=one, tile_x=one, tile_k=(-1, 2), unroll=0)
    counts = assert_equal(found, np.array([found.space.index_of(config)]))
    assert "kernel0.load shared.requests" not in counts.of(0)


def double(n):
    A = te.placeholder((n,), name="A")
    return A, te.compute((n,), lambda i: A[i] * 2.0, name="B")


@template(double, device="gpu")
def DOUBLE(s, outs, cfg, target):
    (B,) = outs
    cfg.define_knob("threads", [4, 32])
    block, thread = s[B].split(B.op.axis[0], cfg["threads"].val * 4)
    thread, lane = s[B].split(thread, 4)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    s[B].vectorize(lane)


def test_what_formulas_do_not_express_is_lowered_one_by_one():
    found = counters_of(DOUBLE, {"n": 256})
    counts = assert_equal(found, np.arange(2))
    assert counts.is_alone.all()
    assert found.why_alone == ("vectorized loops in B",)


def test_formulas_that_differ_from_a_program_are_not_used(monkeypatch):
    found = counters_of(ROWS, {"n": 16, "m": 64})
    real = SpaceCounters.alone
    wrong = {"kernel0.blocks": -7}
    monkeypatch.setattr(SpaceCounters, "alone", lambda self, p: {**(real(self, p) or {}), **wrong})
    counts = found.counts(np.arange(3))
    assert counts.is_alone.all()
    assert found.why_alone == ("the formulas differ from the lowered program",)


def test_only_gpus_have_counters():
    workload = GEMM.workload(n=8, m=8, k=8)
    space = GEMM.space(workload, TARGET)
    with pytest.raises(TuningError) as error:
        SpaceCounters(GEMM, workload, resolve("cpu"), space)
    assert str(error.value).startswith("counters of a space: only GPUs have them")
