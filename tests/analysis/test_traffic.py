"""Predicted traffic: cases with a known answer, and lower bounds."""

from dataclasses import replace

import pytest

from dlcompiler import te
from dlcompiler.analysis.footprint import ProgramFootprint
from dlcompiler.analysis.traffic import compulsory_bytes, moved_to_memory, traffic
from dlcompiler.pipeline import lower
from dlcompiler.pipeline.checks import default_args
from dlcompiler.schedule import create_schedule
from dlcompiler.target import CacheLevel
from dlcompiler.target.presets import X86_64_AVX2
from tests.analysis.caching import Cache
from tests.analysis.test_footprint import matmul, random_program


def machine(size):
    return replace(X86_64_AVX2, caches=(CacheLevel("L1d", size, line=64, shared_by=1),))


def footprint_of(schedule):
    return ProgramFootprint(lower(schedule, default_args(schedule), simple_mode=True))


@pytest.mark.parametrize("size", [256, 1 << 12, 1 << 30])
def test_a_copy_moves_twice_its_size(size):
    A = te.placeholder((1 << 14,), name="A")
    B = te.compute((1 << 14,), lambda i: A[i], name="B")
    assert moved_to_memory(footprint_of(create_schedule(B.op)), machine(size)) == 2 * (4 << 14)


def test_a_plain_product_reads_b_anew_for_each_row():
    n = 64
    moved = {f.buffer.name: f for f in product(create_schedule(matmul(n).op), 6 << 10)}
    # One row of A and C, a column of lines of B: an iteration of i needs all of B.
    assert moved["B"].fetched_bytes >= n * n * n * 4


def test_a_tiled_product_reads_b_once_for_each_row_of_tiles():
    n, tile = 128, 32
    C = matmul(n)
    s = create_schedule(C.op)
    io, jo, ii, ji = s[C].tile(*C.op.axis, tile, tile)
    s[C].reorder(io, jo, *C.op.reduce_axis, ii, ji)
    moved = {}
    for fill in product(s, 40 << 10):  # a tile of C, a row of tiles of A, a column of B
        moved[fill.buffer.name] = moved.get(fill.buffer.name, 0) + fill.fetched_bytes
    assert moved["B"] == n * n * (n // tile) * 4
    assert moved["A"] == n * n * 4


def product(schedule, size):
    return traffic(footprint_of(schedule), machine(size))["L1d"]


def transpose():
    A = te.placeholder((32, 32), name="A")
    B = te.compute((32, 32), lambda i, j: A[j, i], name="B")
    return create_schedule(B.op)


def convolution():
    X, W = te.placeholder((2, 12, 16), name="X"), te.placeholder((2, 2, 3, 3), name="W")
    c, y, x = (te.reduce_axis((0, n), name=name) for n, name in ((2, "c"), (3, "y"), (3, "x")))
    Y = te.compute(
        (2, 10, 14),
        lambda o, i, j: te.sum(X[c, i + y, j + x] * W[o, c, y, x], axis=[c, y, x]),
        name="Y",
    )
    return create_schedule(Y.op)


def plain():
    return create_schedule(matmul(16, dtype="float64").op)


def tiles():
    C = matmul(16, dtype="float64")
    s = create_schedule(C.op)
    io, jo, ii, ji = s[C].tile(*C.op.axis, 8, 8)
    s[C].reorder(io, jo, *C.op.reduce_axis, ii, ji)
    return s


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("make", "size"),
    [
        *((plain, size) for size in (1536, 2048, 8192)),
        *((tiles, size) for size in (512, 768, 3072, 8192)),
        *((transpose, size) for size in (1024, 4096)),
        *((convolution, size) for size in (2048, 8192)),
    ],
)
def test_a_simulated_cache_moves_about_as_much(make, size):
    schedule = make()
    simulated = Cache(lower(schedule, default_args(schedule), simple_mode=True), size)
    predicted = moved_to_memory(footprint_of(schedule), machine(size))
    assert predicted == pytest.approx(simulated.moved_bytes, rel=0.1)


def test_what_fits_moves_once():
    n = 64
    footprint = footprint_of(create_schedule(matmul(n).op))
    assert moved_to_memory(footprint, machine(1 << 20)) == 3 * n * n * 4
    assert compulsory_bytes(footprint) == 3 * n * n * 4


def test_a_buffer_of_its_own_stays_where_it_fits():
    A = te.placeholder((1 << 12,), name="A")
    B = te.compute(A.shape, lambda i: A[i] + 1.0, name="B")
    C = te.compute(A.shape, lambda i: B[i] * 2.0, name="C")
    apart, together = create_schedule(C.op), create_schedule(C.op)
    outer, _ = together[C].split(C.op.axis[0], 64)
    together[B].compute_at(together[C], outer)
    size = 4 << 12
    assert moved_to_memory(footprint_of(apart), machine(4096)) == 4 * size
    assert moved_to_memory(footprint_of(together), machine(4096)) == 2 * size


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_no_prediction_is_below_what_must_move(first):
    for seed in range(first, first + 20):
        footprint = ProgramFootprint(random_program(seed))
        assert moved_to_memory(footprint, X86_64_AVX2) >= compulsory_bytes(footprint), seed
