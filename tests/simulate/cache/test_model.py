"""The compiled caches equal a few lines of Python: misses and write-backs of each level."""

import random

import numpy as np
import pytest

from dlcompiler.errors import CallError, ProgramError, TargetError
from dlcompiler.ir import Ramp, walk
from dlcompiler.pipeline import lower
from dlcompiler.pipeline.cache_simulation import simulate_program
from dlcompiler.pipeline.checks import default_args
from dlcompiler.simulate.cache.inputs import deciding_inputs
from dlcompiler.simulate.cache.model import sets_of
from dlcompiler.simulate.cache.tracing import check_traceable
from dlcompiler.simulate.steps import count_steps
from tests.analysis.test_footprint import random_program, random_schedule
from tests.share import share_of
from tests.simulate.cache.programs import (
    arrays_of,
    level,
    machine,
    random_accesses,
    random_levels,
)
from tests.simulate.cache.reference import replayed, trace_of


def check(func, levels, seed):
    """Compare a simulation with the reference, which replays what the interpreter accesses."""
    arrays = dict(zip(func.buffers, arrays_of(func), strict=True))
    rng = np.random.default_rng(seed)
    inputs = {}
    for buffer in deciding_inputs(func):
        arrays[buffer][...] = rng.integers(0, 3, arrays[buffer].shape)
        inputs[buffer.name] = arrays[buffer].copy()
    trace = trace_of(func, list(arrays.values()))
    found = simulate_program(func, machine(*levels), inputs=inputs)
    caches, missed = replayed(trace, found.placements, levels)
    assert found.accesses == len(trace), seed
    assert [each.misses for each in found.counts()] == caches.misses, (seed, levels)
    for tensor in found.tensors:
        for is_write in (False, True):
            own = [
                n for (buffer, _, stores), n in zip(trace, missed, strict=True)
                if buffer is tensor and stores == is_write
            ]  # fmt: skip
            want = [sum(n > number for n in own) for number in range(len(levels))]
            counts = found.counts(tensor=tensor, is_write=is_write)
            assert [each.misses for each in counts] == want, (seed, levels)
    for number in range(len(levels)):
        parts = sum(int(found.over_tensor(number, tensor).sum()) for tensor in found.tensors)
        assert parts == caches.misses[number], (seed, levels)
    return found, caches


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_accesses_on_random_caches(first):
    """1 to 16 ways, lines of 16 to 128 bytes, numbers of sets that are powers of two or not."""
    for seed in range(first, first + share_of(10)):
        rng = random.Random(seed)
        levels, func = random_levels(rng), random_accesses(rng)
        found, caches = check(func, levels, seed)
        assert found.written.sum(axis=1).tolist() == caches.written_in_all(), (seed, levels)


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(0, 30, 10))
def test_random_schedules_access_what_the_interpreter_accesses(first):
    tried = 0
    for seed in range(first, first + 10):
        func = random_program(seed)
        try:
            check_traceable(func)
            if count_steps(func) > 20_000:
                continue
            check(func, random_levels(random.Random(seed)), seed)
        except (CallError, ProgramError):  # its accesses depend on data
            continue
        tried += 1
    assert tried > 2


@pytest.mark.campaign
@pytest.mark.parametrize("first", [0, 20])
def test_programs_with_vectors_and_data_in_indices(first):
    """All passes have run; random programs gather, scatter and mask by their inputs."""
    tried, vectors, data = 0, 0, 0
    for seed in range(first, first + 20):
        schedule = random_schedule(seed)
        func = lower(schedule, default_args(schedule), target="x86-64-avx2")
        try:
            check_traceable(func)
            if count_steps(func) > 20_000:
                continue
            check(func, random_levels(random.Random(seed)), seed)
        except (CallError, ProgramError):  # what the program computes decides
            continue
        tried += 1
        vectors += any(isinstance(node, Ramp) for node in walk(func.body))
        data += bool(deciding_inputs(func))
    assert tried > 8
    assert vectors > 1
    assert data > 0


@pytest.mark.parametrize(
    ("size", "ways", "line"),
    [(4096, 8, 48), (4000, 8, 64), (256, 8, 64), (0, 1, 64), (64, 0, 64), (64, 1, 4)],
)
def test_a_cache_that_is_no_whole_number_of_sets_is_refused(size, ways, line):
    with pytest.raises(TargetError) as caught:
        sets_of(level(size, ways, line))
    assert str(caught.value) == (
        "simulate the cache L1d: its size is not a whole number of sets\n"
        f"  got       {size} bytes, lines of {line} bytes, {ways} ways\n"
        "  expected  bytes = sets × ways × line, where the line is a power of two, 8 or more"
    )
