"""What warps execute: counted, known in advance, and enumerated thread by thread."""

from __future__ import annotations

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import UserError
from dlcompiler.passes.merge_thread_loops import merge_thread_loops
from dlcompiler.pipeline import lower_program
from dlcompiler.schedule import create_schedule
from dlcompiler.simulate.gpu import Given, KernelCounters, count_launch, transactions
from tests.simulate.gpu.random_programs import differences, try_seed
from tests.thread_programs import softmax, staged_copy, tiled_matmul

PROGRAMS = {
    "matmul": lambda: tiled_matmul(n=16, tile=8, step=4),
    "virtual threads": lambda: tiled_matmul(n=16, tile=4, step=4, vthreads=2),
    "copy": staged_copy,
    "softmax": softmax,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_counters_equal_an_enumeration(name):
    for launch in lower_program(*PROGRAMS[name](), "gpu").launches:
        assert differences(launch, Given()) == []


@pytest.mark.parametrize("seed", range(120))
@pytest.mark.campaign
def test_random_programs(seed):
    outcome, text = try_seed(seed)
    assert outcome != "wrong", text


def counted(body, shape, dtype="float32", bound="threadIdx.x", lanes=1, **given) -> KernelCounters:
    """Return the counters of an elementwise program; its last dimension is bound to threads."""
    inputs, out = body
    s = create_schedule(out.op)
    *outer, last = s[out].op.axis
    if lanes > 1:
        last, inner = s[out].split(last, lanes)
        s[out].vectorize(inner)
    s[out].bind(last, te.thread_axis(bound))
    for axis, tag in zip(outer, ("blockIdx.x", "blockIdx.y"), strict=False):
        s[out].bind(axis, te.thread_axis(tag))
    (launch,) = lower_program(s, [*inputs, out], "gpu").launches
    known = {b: given[b.name] for b in launch.kernel.buffers if b.name in given}
    return count_launch(merge_thread_loops(launch), given=Given({}, known))


def access(counters: KernelCounters, name: str):
    return next(each for each in counters.accesses if each.name == name)


@pytest.mark.parametrize(
    ("step", "dtype", "sectors", "lines"),
    [
        (1, "float32", 4, 1), (2, "float32", 8, 2), (8, "float32", 32, 8),
        (1, "int8", 1, 1), (1, "float16", 2, 1), (1, "float64", 8, 2), (0, "float32", 1, 1),
    ],
)  # fmt: skip
def test_a_stride_between_threads_costs_sectors(step, dtype, sectors, lines):
    A = te.placeholder((32 * step + 1,), dtype, name="A")
    out = te.compute((32,), lambda i: A[i * step] + te.const(1, dtype), name="B")
    load = access(counted(([A], out), (32,)), "load A")
    assert (load.most.requests, load.most.lanes) == (1, 32)
    assert (load.most.sectors, load.most.lines) == (sectors, lines)
    assert load.sectors_per_request == sectors


def test_vectors_are_accessed_in_quarters_of_a_warp():
    A = te.placeholder((128,), name="A")
    load = access(
        counted(([A], te.compute((128,), lambda i: A[i], name="B")), 0, lanes=4), "load A"
    )
    assert (load.bytes, load.most.requests, load.most.sectors, load.most.lines) == (16, 1, 16, 4)


@pytest.mark.parametrize(("padding", "degree"), [(0, 32), (1, 1)])
def test_columns_of_shared_memory_conflict_unless_rows_are_padded(padding, degree):
    A = te.placeholder((32, 32), name="A")
    B = te.compute((32, 32), lambda i, j: A[j, i], name="B")
    s = create_schedule(B.op)
    shared = s.cache_read(A, "shared", [B])
    s[shared].storage_align(s[shared].op.axis[0], 32, padding)
    block, i = s[B].split(B.op.axis[0], 32)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].reorder(block, B.op.axis[1], i)
    s[B].bind(B.op.axis[1], te.thread_axis("threadIdx.x"))
    s[shared].compute_at(s[B], block)
    s[shared].bind(s[shared].op.axis[1], te.thread_axis("threadIdx.x"))
    (launch,) = lower_program(s, [A, B], "gpu").launches
    counters = count_launch(merge_thread_loops(launch))
    assert access(counters, "load A.shared").conflict_degree == degree
    assert access(counters, "store A.shared").conflict_degree == 1


def test_threads_that_a_condition_keeps_away_are_divergent():
    A = te.placeholder((64,), name="A")
    out = te.compute((64,), lambda i: te.if_then_else(i % 4 == 0, A[i], 0.0), name="B")
    counters = counted(([A], out), 0)
    load = access(counters, "load A")
    assert (load.most.requests, load.most.lanes) == (2, 16)
    assert counters.active_fraction < 1


@pytest.mark.parametrize("n", [1 << 24, (1 << 36) + 12_345])
def test_a_large_launch_is_counted_without_running_through_it(n):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    s = create_schedule(B.op)
    block, thread = s[B].split(B.op.axis[0], 250)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    (launch,) = lower_program(s, [A, B], "gpu").launches
    counters = count_launch(merge_thread_loops(launch))
    assert counters.is_exact
    load = access(counters, "load A")
    assert load.most.lanes == n
    # 250 threads have 8 warps. Of 4 blocks, the first begins at a multiple of 32 bytes.
    assert n / 8 <= load.most.sectors <= n / 8 + 8 * (n / 250 + 1)
    assert counters.instructions["float32 mul"][1].lanes == n


# -- what data decides ----------------------------------------------------------------------------


def gather():
    A, at = te.placeholder((64,), name="A"), te.placeholder((32,), "int32", name="at")
    return [A, at], te.compute((32,), lambda i: A[at[i]], name="B")


def test_an_index_from_data_has_bounds():
    load = access(counted(gather(), 0), "load A")
    assert not load.is_exact
    assert (load.least.sectors, load.most.sectors) == (1, 32)
    assert load.least.requests == load.most.requests == 1


@pytest.mark.parametrize(("step", "sectors"), [(0, 1), (1, 4), (2, 8)])
def test_an_index_from_given_data_is_counted(step, sectors):
    at = (np.arange(32) * step).astype("int32")
    load = access(counted(gather(), 0, at=at), "load A")
    assert load.is_exact
    assert load.most.sectors == sectors


def test_a_condition_on_data_has_bounds():
    A, mask = te.placeholder((32,), name="A"), te.placeholder((32,), "float32", name="mask")
    out = te.compute((32,), lambda i: te.if_then_else(mask[i] > 0.0, A[i], 0.0), name="B")
    load = access(counted(([A, mask], out), 0), "load A")
    assert (load.least.lanes, load.most.lanes) == (0, 32)


def test_unknown_extents_are_refused_by_name():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    block, thread = s[B].split(B.op.axis[0], 32)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    (launch,) = lower_program(s, [A, B], "gpu").launches
    thread_program = merge_thread_loops(launch)
    with pytest.raises(UserError) as error:
        count_launch(thread_program)
    assert str(error.value) == (
        "count what a GPU does: the number of iterations of i.outer is not known\n"
        "  got       (n + 31) // 32\n"
        "  hint      give the values of symbols, and the arrays that data comes from"
    )
    (symbol,) = launch.kernel.symbols
    counters = count_launch(thread_program, given=Given({symbol: 100}))
    assert access(counters, "load A").most.lanes == 100


@pytest.mark.parametrize(
    ("lane_words", "bytes_", "passes", "ideal"),
    [
        ([4 * n for n in range(32)], 16, 4, 4),  # 512 different bytes
        ([4 * (n // 2) for n in range(32)], 16, 2, 2),  # n and n ^ 1 read the same
        ([4 * (n // 4 * 2 + n % 2) for n in range(32)], 16, 2, 2),  # n and n ^ 2 do
        ([4 * (n % 16) for n in range(32)], 16, 4, 4),  # n and n ^ 16 do: no help
        ([0] * 32, 16, 2, 2),
        ([0] * 32, 8, 1, 1),
        ([8 * (n // 2) for n in range(32)], 16, 4, 2),  # pairs 8 words apart: two in each bank
        ([32 * n for n in range(32)], 4, 32, 1),
    ],
)
def test_wide_accesses_of_pairs_take_half_as_many_passes(lane_words, bytes_, passes, ideal):
    addresses, mask = 4 * np.array([lane_words]), np.ones((1, 32), np.bool_)
    assert [int(n[0]) for n in transactions.wavefronts(addresses, mask, bytes_)] == [passes, ideal]
