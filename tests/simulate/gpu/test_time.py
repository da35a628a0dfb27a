"""Predicted times: phases, footprints of caches, terms, and known facts about real GPUs."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.bench.gpu_model import predict_row
from dlcompiler.bench.gpu_model_works import KERNELS
from dlcompiler.bench.programs import tiled_gpu_gemm
from dlcompiler.ir import Var
from dlcompiler.passes.merge_thread_loops import merge_thread_loops
from dlcompiler.pipeline.gpu_report import generated_thread, time_of
from dlcompiler.simulate.gpu import Given
from dlcompiler.simulate.gpu.forms import Form
from dlcompiler.simulate.gpu.resources import Resources
from dlcompiler.simulate.gpu.time_footprints import touched
from dlcompiler.simulate.gpu.time_phases import phases_of, read_phase
from dlcompiler.simulate.gpu.time_values import distinct_loads
from dlcompiler.target import GPUS, resolve
from dlcompiler.target.gpu_rates import MODELS
from tests.thread_programs import convolution, softmax, staged_copy

A6000 = resolve("rtx-a6000")
NEEDS = Resources(32, 0, 0, 0, "given")


def launch_of(schedule, args, target=A6000):
    (launch,) = dlc.pipeline.lower_program(schedule, args, target).launches
    return launch


def predicted(schedule, args, target=A6000, needs=NEEDS):
    return time_of(launch_of(schedule, args, target), needs, target, Given())


def bound(tensor, split, s):
    """Bind the blocks and threads of a 1-D tensor."""
    block, thread = s[tensor].split(tensor.op.axis[0], split)
    s[tensor].bind(block, te.thread_axis("blockIdx.x"))
    s[tensor].bind(thread, te.thread_axis("threadIdx.x"))
    return thread


def copy(n, step=1):
    A = te.placeholder((n * step,), name="A")
    B = te.compute((n,), lambda i: A[i * step] + 1.0, name="B")
    s = te.create_schedule(B.op)
    bound(B, 256, s)
    return s, [A, B]


def test_a_long_copy_takes_as_long_as_its_bytes_in_memory():
    time = predicted(*copy(1 << 24))
    bytes_ = 2 * 4 * (1 << 24)
    assert time.bound_by == "DRAM"
    assert time.dram_bytes[0] == pytest.approx(bytes_, rel=0.01)
    assert bytes_ / 768e9 < time.seconds < 1.35 * bytes_ / 768e9
    assert time.least_s <= time.seconds <= time.most_s


def test_a_strided_copy_moves_whole_sectors():
    whole, strided = predicted(*copy(1 << 22)), predicted(*copy(1 << 22, 8))
    assert 3 < strided.seconds / whole.seconds < 6  # (8 + 1) / (1 + 1) sectors


def test_one_block_waits_for_memory():
    time = predicted(*copy(256))
    assert time.bound_by == "launch"
    assert time.latency_s + time.tail_s > 0.5 * (time.seconds - time.launch_s)


def test_a_few_blocks_have_all_of_the_memory():
    time = predicted(*copy(1024))
    dram = next(term for term in time.terms if term.name == "DRAM")
    assert dram.seconds >= time.dram_bytes[0] / 768e9


def test_the_time_is_the_sum_of_its_parts():
    time = predicted(*tiled_gpu_gemm(256))
    parts = time.terms[0].seconds + time.latency_s + time.tail_s + time.launch_s
    assert time.seconds == pytest.approx(parts, rel=1e-6)
    assert time.terms == tuple(sorted(time.terms, key=lambda term: -term.seconds))
    assert all(term.source and term.formula for term in time.terms)


def test_a_product_has_two_phases_that_repeat():
    launch = launch_of(*tiled_gpu_gemm(64))
    phases = phases_of(generated_thread(launch, ()))
    read = [read_phase(phase, {}) for phase in phases]
    # All threads copy A and B; then each computes from shared memory.
    spaces = [{r.space for r in each.reaches if not r.is_write} for each in read]
    assert {"global"} in spaces
    assert any("shared" in each for each in spaces)
    outside = {loop.extent for each in read for r in each.reaches for loop in r.loops
               if loop.is_outside}  # fmt: skip
    assert outside == {16}


def test_loads_of_unrolled_loops_are_made_once():
    A = te.placeholder((64 + 8,), name="A")
    k = te.reduce_axis((0, 5), name="k")
    B = te.compute((32, 2), lambda i, j: te.sum(A[i * 2 + j + k], axis=k), name="B")
    s = te.create_schedule(B.op)
    local = s.cache_write(B, "local")
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    s[local].compute_at(s[B], B.op.axis[0])
    (phase,) = phases_of(merge_thread_loops(launch_of(s, [A, B])))
    loads = [r for r in read_phase(phase, {}).reaches if r.buffer.name == "A"]
    assert distinct_loads(loads) == 6 / 10


def test_footprints_are_those_of_enumeration():
    generator = random.Random(7)
    for _ in range(60):
        variables = [Var(name) for name in "abc"]
        extents = {var: generator.choice((1, 2, 3, 8, 32)) for var in variables}
        width = generator.choice((4, 16))
        factors = sorted(generator.choice((1, 2, 8, 32, 256)) for _ in variables)
        row = 1  # nested as the indices of an array are: rows do not overlap
        steps = {}
        for var, factor in zip(variables, factors, strict=True):
            steps[var] = width * max(factor, row)
            row = max(factor, row) * extents[var]
        grid = np.indices(tuple(extents.values())).reshape(3, -1)
        places = sum(step * grid[n] for n, step in enumerate(steps.values()))
        sectors = len(np.unique(places // 32))
        found = touched(Form(0, steps), extents, width)
        assert sectors <= found <= 1.5 * sectors + 1


def naive(n, threads, is_coalesced):
    A, B = (te.placeholder((n, n), name=name) for name in "AB")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    local = s.cache_write(C, "local")
    i, j = s[C].op.axis
    by, ty = s[C].split(i, threads)
    bx, tx = s[C].split(j, threads)
    s[C].reorder(by, bx, ty, tx)
    names = ("y", "x") if is_coalesced else ("x", "y")
    for (block, thread), name in zip(((by, ty), (bx, tx)), names, strict=True):
        s[C].bind(block, te.thread_axis(f"blockIdx.{name}"))
        s[C].bind(thread, te.thread_axis(f"threadIdx.{name}"))
    s[local].compute_at(s[C], tx)
    return s, [A, B, C]


def test_neighbouring_threads_on_neighbouring_columns_are_several_times_as_fast():
    """Measured on an RTX A6000 by S. Boehm, n = 4092: 309 and 1,986 GFLOP/s, 6.4 times as fast."""
    slow, fast = (predicted(*naive(4096, 32, flag)) for flag in (False, True))
    assert 3.2 < slow.seconds / fast.seconds < 12.8
    assert 0.5 < 0.4448 / slow.seconds < 2


@pytest.mark.parametrize("target", ["gtx-titan-x", "rtx-a6000", "h200"])
@pytest.mark.parametrize("program", [softmax, convolution, staged_copy], ids=lambda p: p.__name__)
def test_bounds_and_parts_of_other_programs(program, target):
    time = predicted(*program(), target=resolve(target))
    assert 0 < time.least_s <= time.seconds <= time.most_s < 1e-3
    assert min(time.latency_s, time.tail_s, *(term.seconds for term in time.terms)) >= 0
    estimate, least, most = time.dram_bytes
    assert least <= estimate <= most


def test_a_shuffle_is_no_access_to_global_memory():
    thread = generated_thread(launch_of(*softmax()), ())
    read = [read_phase(phase, {}) for phase in phases_of(thread)]
    buffers = {(r.buffer.name, r.space) for each in read for r in each.reaches}
    assert {name for name, space in buffers if space == "global"} == {"A", "Y"}
    assert any("lanes" in name for name, space in buffers if space == "shared")


def test_an_index_from_data_may_touch_any_sector():
    A, at = te.placeholder((1 << 20,), name="A"), te.placeholder((1 << 20,), "int32", name="at")
    B = te.compute((1 << 20,), lambda i: A[at[i]], name="B")
    s = te.create_schedule(B.op)
    bound(B, 256, s)
    time = predicted(s, [A, at, B])
    assert time.seconds > 2 * predicted(*copy(1 << 20)).seconds


def test_without_rates_or_room_there_is_no_time():
    schedule = copy(1024)
    assert predicted(*schedule, target=replace(A6000, rates={})) is None
    assert predicted(*schedule, needs=replace(NEEDS, shared_bytes=1 << 20)) is None


def test_each_model_has_a_target_with_sources():
    assert tuple(model.name for model in MODELS) == GPUS
    copied = copy(1 << 20)
    for name in GPUS:
        target = resolve(name)
        assert all(rate.source and rate.value > 0 for rate in target.rates.values())
        assert target.limits["max_threads_per_processor"] in (1024, 1536, 2048)
    times = {name: predicted(*copied, target=resolve(name)).seconds for name in ("t4", "h100")}
    assert times["h100"] < times["t4"]


# -- physics --------------------------------------------------------------------------------------

PROGRAMS = {
    "copy": lambda: copy(1 << 20), "strided": lambda: copy(1 << 20, 8),
    "product": lambda: tiled_gpu_gemm(256), "softmax": softmax, "convolution": convolution,
}  # fmt: skip


def with_rate(target, **factors):
    changed = {
        name.replace("_", " ") if name.replace("_", " ") in target.rates else name: factor
        for name, factor in factors.items()
    }
    rates = {
        name: replace(rate, value=rate.value * changed.get(name, 1))
        for name, rate in target.rates.items()
    }
    return replace(target, rates=rates)


@pytest.mark.campaign
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(
    "rate",
    ["dram", "l2", "l2_port", "l1", "shared", "lookups", "memory_units", "float32"],
)
def test_more_of_a_rate_is_never_slower(name, rate):
    schedule = PROGRAMS[name]()
    times = [
        predicted(*schedule, target=with_rate(A6000, **{rate: factor})).seconds
        for factor in (0.5, 1, 2)
    ]
    assert times == sorted(times, reverse=True)


@pytest.mark.campaign
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("latency", ["l1_latency", "l2_latency", "dram_latency", "float_latency"])
def test_longer_latencies_are_never_faster(name, latency):
    schedule = PROGRAMS[name]()
    times = [
        predicted(*schedule, target=with_rate(A6000, **{latency: factor})).seconds
        for factor in (0.5, 1, 4)
    ]
    assert times == sorted(times)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_higher_clock_is_never_slower(name):
    schedule = PROGRAMS[name]()
    times = [
        predicted(*schedule, target=with_rate(A6000, clock=factor)).seconds
        for factor in (0.5, 1, 2)
    ]
    assert times == sorted(times, reverse=True)


def test_more_multiprocessors_are_never_slower_where_blocks_are_many():
    schedule = tiled_gpu_gemm(1024)
    times = [predicted(*schedule, target=replace(A6000, cores=n)).seconds for n in (21, 42, 84)]
    assert times == sorted(times, reverse=True)
    assert times[0] > 3 * times[2]


def sums_of_rows(padding):
    """Return sums of rows of 32 elements: a thread reads a row from shared memory."""
    A = te.placeholder((1 << 13, 32, 32), name="A")
    k = te.reduce_axis((0, 32), name="k")
    B = te.compute((1 << 13, 32), lambda n, i: te.sum(A[n, i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    shared, local = s.cache_read(A, "shared", [B]), s.cache_write(B, "local")
    block, thread = s[B].op.axis
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    s[local].compute_at(s[B], thread)
    s[shared].compute_at(s[B], block)
    _, row, column = s[shared].op.axis
    s[shared].bind(column, te.thread_axis("threadIdx.x"))
    if padding:
        s[shared].storage_align(row, 32, padding)
    return s, [A, B]


@pytest.mark.parametrize("target", ["gtx-1080", "titan-rtx", "a100", "rtx-a6000"])
def test_a_bank_conflict_is_never_faster(target):
    slow, *padded = (
        predicted(*sums_of_rows(n), target=resolve(target)).seconds for n in (0, 4, 2, 1)
    )
    assert slow > 1.2 * max(padded)


@pytest.mark.campaign
@pytest.mark.parametrize("name", PROGRAMS)
def test_spilled_registers_are_never_faster(name):
    schedule = PROGRAMS[name]()
    times = [
        predicted(*schedule, needs=replace(NEEDS, spill_bytes=bytes_)).seconds
        for bytes_ in (0, 16, 256, 4096)
    ]
    assert times == sorted(times)
    assert times[-1] > times[0]


def test_fewer_blocks_at_once_are_not_faster_where_warps_wait():
    schedule = copy(1 << 22)
    times = [
        predicted(*schedule, needs=replace(NEEDS, registers=registers)).seconds
        for registers in (32, 128, 255)
    ]
    assert times == sorted(times)


def test_the_bounds_come_from_clocks_and_caches():
    time = predicted(*tiled_gpu_gemm(256))
    assert time.least_s < time.seconds < time.most_s
    clocks = [A6000.rates[name].value for name in ("clock_least", "clock", "clock_most")]
    same = with_rate(A6000, clock_most=clocks[1] / clocks[2])
    narrow = predicted(*copy(1 << 24), target=same)
    assert clocks[0] == clocks[1] < clocks[2]
    assert narrow.most_s <= 1.01 * narrow.least_s  # each byte is moved once: no cache helps


def test_the_usual_clock_is_the_boost_clock_of_consumers_and_the_base_clock_of_others():
    usual = {model.name: resolve(model.name).rates["clock"].value / 1e6 for model in MODELS}
    clocks = {model.name: model.clocks_mhz for model in MODELS}
    assert all(base < boost for base, boost in clocks.values())
    assert usual["rtx-3090"], usual["titan-rtx"] == (clocks["rtx-3090"][1], clocks["titan-rtx"][1])
    for name in ("rtx-a6000", "rtx-6000-ada", "a100", "h100", "t4"):
        assert usual[name] == clocks[name][0]


def test_copying_to_shared_memory_does_not_help_on_mali(monkeypatch):
    monkeypatch.setattr("dlcompiler.bench.gpu_model_works.PRODUCT", 256)
    names = ("MWG", "NWG", "KWG", "MDIMC", "NDIMC", "MDIMA", "NDIMB", "KWI", "VWM", "VWN")
    row = dict(zip(names, (32, 32, 16, 8, 8, 8, 8, 2, 4, 4), strict=True))
    direct, staged = (
        predict_row(KERNELS["gemm"], {**row, "SA": flag, "SB": flag}, ["mali-t860"])["mali-t860"]
        for flag in (0, 1)
    )
    assert staged > direct
