"""Padding, margins of the occupancy, and waves of a kernel."""

from __future__ import annotations

import pytest

from dlcompiler.bench import gpu_ladders
from dlcompiler.pipeline import lower_program
from dlcompiler.pipeline.gpu_kernels import kernels_of
from dlcompiler.simulate.gpu.margins import margins_of
from dlcompiler.simulate.gpu.occupancy import occupancy
from dlcompiler.simulate.gpu.padding import best_padding, paddings
from dlcompiler.simulate.gpu.waves import Waves, waves_of
from dlcompiler.target import resolve
from tests.simulate.gpu.test_requests import transposed

A6000 = resolve("rtx-a6000")
N = 256
PROGRAMS = {
    "naive": lambda: gpu_ladders.naive(N),
    "vectorized": lambda: gpu_ladders.vectorized(N),
    "transposed": lambda: transposed(N),
}


def kernels(name):
    return kernels_of(lower_program(*PROGRAMS[name](), A6000), A6000)


def test_the_best_padding_is_the_least_that_helps():
    (kernel,) = kernels("transposed")
    buffer = next(r.site.buffer for r in kernel.requests if r.space == "shared")
    found = paddings(kernel.requests, buffer)
    assert found == {0: (33, 2), 1: (2, 2), 2: (3, 2), 4: (5, 2), 8: (9, 2)}
    assert best_padding(found) == 1


def test_what_padding_would_do_is_what_it_does():
    s, args = transposed(N)
    shared = next(stage.tensor for stage in s.state.stages if stage.name == "A.shared")
    (before,) = kernels("transposed")
    buffer = next(r.site.buffer for r in before.requests if r.space == "shared")
    s[shared].storage_align(s[shared].op.axis[0], 32, 1)
    (after,) = kernels_of(lower_program(s, args, A6000), A6000)
    own = [request for request in after.requests if request.space == "shared"]
    assert sum(r.wavefronts for r in own) == paddings(before.requests, buffer)[1][0]


@pytest.mark.parametrize("name", ["naive", "vectorized", "transposed"])
def test_margins_are_cliffs_of_the_occupancy(name):
    (kernel,) = kernels(name)
    needs, threads = kernel.needs, kernel.counters.threads
    registers, memory = margins_of(kernel, A6000)

    def blocks(regs=needs.registers, size=needs.shared_bytes):
        return occupancy(A6000, threads=threads, registers=regs, shared_bytes=size).blocks

    now = kernel.occupancy.blocks
    assert registers.with_more == blocks(needs.registers + 1)
    assert memory.with_more == blocks(size=needs.shared_bytes + 1024)
    assert blocks(registers.most_same) >= now > blocks(registers.most_same + 1)
    if registers.most_for_more is not None:
        assert blocks(registers.most_for_more) > now
        assert blocks(registers.most_for_more + 1) <= now
    for margin in (registers, memory):
        assert all(a[1] != b[1] for a, b in zip(margin.curve, margin.curve[1:], strict=False))


def test_a_compiler_gives_threads_no_more_registers_than_there_are():
    (kernel,) = kernels_of(lower_program(*gpu_ladders.naive(64), A6000), A6000)
    assert (kernel.counters.threads, kernel.needs.registers) == (1024, 64)
    assert kernel.occupancy.blocks == 1
    assert kernel.time is not None


@pytest.mark.parametrize("name", ["naive", "transposed"])
def test_waves_are_those_of_the_time_model(name):
    (kernel,) = kernels(name)
    found = waves_of(kernel, A6000)
    assert found.blocks / found.places == kernel.time.waves
    assert found.full * found.places + found.tail == kernel.blocks


def test_waves_of_some_sizes():
    assert [Waves(n, 10, 2).count for n in (1, 20, 21, 45)] == [1, 1, 2, 3]
    assert (Waves(45, 10, 2).full, Waves(45, 10, 2).tail, Waves(45, 10, 2).busy) == (2, 5, 5)
    assert Waves(45, 10, 2).used == 0.75
