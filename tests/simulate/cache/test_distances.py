"""Reuse distances equal those counted naively, and those of the simulated caches."""

import random
from dataclasses import replace

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import CallError, TargetError
from dlcompiler.pipeline import lower, simulate_cache
from dlcompiler.pipeline.checks import default_args
from dlcompiler.pipeline.reuse_distances import reuse_distances
from dlcompiler.schedule import create_schedule
from dlcompiler.simulate.cache.distances import FIRST, stack_distances
from dlcompiler.target import CacheLevel, resolve
from tests.fuzz.checks import case_of

TARGET = resolve("x86-64-avx2")
LINES = 16
ONE_SET = replace(TARGET, caches=(CacheLevel("L1d", 64 * LINES, 64, 1, LINES),))
"""A fully associative cache."""


def brute_force(lines):
    found, stack = [], []
    for line in lines:
        found.append(stack.index(line) if line in stack else FIRST)
        if line in stack:
            stack.remove(line)
        stack.insert(0, line)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_random_traces(seed):
    rng = random.Random(seed)
    lines = [
        rng.randrange(rng.choice((2, 8, 40))) for _ in range(rng.choice((0, 1, 2, 63, 64, 300)))
    ]
    assert stack_distances(np.array(lines, np.int64)).tolist() == brute_force(lines), seed


def lowered(s):
    return lower(s, default_args(s), simple_mode=True)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(6))
def test_random_programs_miss_in_a_fully_associative_cache_where_the_distance_is_too_large(seed):
    s = case_of(f"distances {seed}").schedule()
    try:
        simulated = simulate_cache(s, default_args(s), ONE_SET)
    except CallError:
        pytest.skip("what it accesses depends on data")
    found = reuse_distances(lowered(s), ONE_SET)
    assert found.accesses == simulated.accesses == found.whole_accesses
    for tensor, counts in ((t, simulated.counts(tensor=t.name)[0]) for t in simulated.tensors):
        (own,) = [d for each, d in found.by_tensor.items() if each.name == tensor.name]
        assert counts.accesses == len(own)
        assert counts.misses == ((own == FIRST) | (own >= LINES)).sum(), (seed, tensor.name)


def test_the_histogram_of_a_product():
    n = 32
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    func = lowered(create_schedule(C.op))
    found = reuse_distances(func, TARGET)
    by_name = {buffer.name: found.histogram(buffer) for buffer in found.by_tensor}
    assert {name: first for name, (_, first) in by_name.items()} == {"A": 64, "B": 64, "C": 64}
    bins, _ = by_name["B"]
    # Each line of a column of B comes back with the next column: after 31 others, A's 2 and C's 1.
    # The first column in a line comes back with the next row of A: after all 64 lines of B.
    assert bins == [0, 0, 0, 0, 0, 0, n * n * 30, 2 * n * (n - 1)]


def test_a_sample_says_so():
    n = 64
    A = te.placeholder((n, n), name="A")
    B = te.compute((n, n), lambda i, j: A[i, j] + 1.0, name="B")
    found = reuse_distances(lowered(create_schedule(B.op)), TARGET, 1000)
    assert (found.accesses, found.whole_accesses) == (896, 2 * n * n)
    assert [str(each) for each in found.sampled] == ["first 7 of 64 iterations of i"]


def test_a_target_without_caches():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    with pytest.raises(TargetError, match="reuse distances of main: the target has no"):
        reuse_distances(lowered(create_schedule(B.op)), replace(TARGET, caches=()))
