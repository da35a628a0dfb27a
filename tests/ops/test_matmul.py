"""ops.matmul: odd shapes under random configs against NumPy, refusals, the default config."""

import random
from dataclasses import replace

import numpy as np
import pytest

from dlcompiler import ops, te
from dlcompiler.errors import TuningError
from dlcompiler.ir import Allocate, For, structural_equal, walk
from dlcompiler.pipeline import build, lower
from dlcompiler.target import resolve
from tests.ops.products import check, choices

MATMUL = ops.operator("matmul")
CPU = resolve("cpu")
AVX2 = resolve("x86-64-avx2")
AVX2_TWO_CORES = replace(AVX2, cores=2)
SSE2 = resolve("x86-64-sse2")
EXTENTS = (1, 2, 3, 5, 7, 8, 13, 16, 17, 24, 31, 33, 64, 97)


SHAPES = {"dtype": ("float32", "float64"), **dict.fromkeys("mnk", (0, 1, 7, 32, 97))}


@pytest.mark.parametrize("choice", choices(SHAPES), ids=str)
def test_products(choice):
    check(MATMUL, MATMUL.workload(**choice))


@pytest.mark.parametrize("seed", range(12))
def test_random_configs_of_odd_shapes_agree_with_numpy(seed):
    generator = random.Random(seed)
    for _ in range(4):
        m, n, k = generator.choices(EXTENTS, k=3)
        workload = MATMUL.workload(m=m, n=n, k=k, dtype=generator.choice(["float32", "float64"]))
        space = MATMUL.space(workload, CPU)
        for index in space.sample(2, generator):
            check(MATMUL, workload, space.at(index))


@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (1, 1, 1), (6, 24, 0)])
def test_empty_and_tiny_matrices(shape):
    m, n, k = shape
    workload = MATMUL.workload(m=m, n=n, k=k)
    check(MATMUL, workload, MATMUL.default_config(workload, CPU))


@pytest.mark.parametrize("block", [0, 4])
def test_both_orders_of_panels_and_blocks_run_in_parallel(block):
    workload = MATMUL.workload(m=50, n=70, k=16)
    space = MATMUL.space(workload, AVX2_TWO_CORES)
    cfg = space.config(
        tile_m=6, tile_n=16, unroll_k=2, pack=True, panel=2, block=block, parallel=True
    )
    s, args = MATMUL.template(workload, AVX2_TWO_CORES, cfg)
    func = lower(s, args)
    kinds = [node.kind for node in walk(func.body) if isinstance(node, For)]
    assert kinds.count("parallel") == 1
    check(MATMUL, workload, cfg)


def test_nan_and_infinity_reach_the_result():
    workload = MATMUL.workload(m=9, n=17, k=5)
    s, args = MATMUL.template(workload, CPU, MATMUL.default_config(workload, CPU))
    a, b = np.ones((9, 5), np.float32), np.ones((5, 17), np.float32)
    a[8, 4], b[0, 16] = np.nan, np.inf
    result = np.zeros((9, 17), np.float32)
    build(s, args, CPU)(a, b, result)
    assert np.isnan(result[8]).all()
    assert np.isinf(result[:8, 16]).all()
    assert (result[:8, :16] == 5).all()


# -- the schedule -------------------------------------------------------------------------------


def test_the_tile_is_a_local_buffer_and_panels_are_packed(golden):
    workload = MATMUL.workload(m=8, n=32, k=4)
    cfg = MATMUL.space(workload, AVX2).config(
        tile_m=2, tile_n=16, unroll_k=2, pack=True, panel=1, block=0, parallel=False
    )
    s, args = MATMUL.template(workload, AVX2, cfg)
    golden("packed", str(lower(s, args, name="matmul", simple_mode=True)))


def test_without_packing_b_is_read_where_it_is():
    workload = MATMUL.workload(m=8, n=32, k=4)
    cfg = MATMUL.space(workload, AVX2).config(
        tile_m=2, tile_n=16, unroll_k=1, pack=False, panel=1, block=0, parallel=False
    )
    s, args = MATMUL.template(workload, AVX2, cfg)
    func = lower(s, args)
    buffers = [node.buffer.name for node in walk(func.body) if isinstance(node, Allocate)]
    assert buffers == ["matmul.tile.local"]


def test_a_template_is_deterministic():
    workload = MATMUL.workload(m=30, n=40, k=8)
    cfg = MATMUL.default_config(workload, AVX2)
    texts = set()
    for _ in range(2):
        s, args = MATMUL.template(workload, AVX2, cfg)
        texts.add(str(lower(s, args)))
    assert len(texts) == 1


# -- the default config -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "tile"), [(AVX2, (4, 24)), (SSE2, (4, 12))], ids=["avx2", "sse2"]
)
def test_the_default_tile_fills_sixteen_registers(target, tile):
    workload = MATMUL.workload(m=1024, n=1024, k=1024)
    cfg = MATMUL.default_config(workload, target)
    assert (cfg.tile_m, cfg.tile_n) == tile
    assert cfg.pack
    assert not cfg.parallel


def test_the_default_does_not_waste_a_third_of_a_tile():
    cfg = MATMUL.default_config(MATMUL.workload(m=128, n=128, k=128), AVX2)
    assert cfg.tile_n == 16


def test_few_panels_are_shared_out_by_rows():
    workload = MATMUL.workload(m=4096, n=24, k=256)
    cfg = MATMUL.default_config(workload, AVX2_TWO_CORES)
    assert cfg.parallel
    assert cfg.block > 0


@pytest.mark.parametrize("seed", range(3))
def test_there_is_a_default_for_every_shape(seed):
    generator = random.Random(seed)
    for _ in range(40):
        m, n, k = generator.choices((0, *EXTENTS, 1000, 4096), k=3)
        dtype = generator.choice(["float32", "float64"])
        workload = MATMUL.workload(m=m, n=n, k=k, dtype=dtype)
        for target in (CPU, AVX2, SSE2, AVX2_TWO_CORES):
            MATMUL.space(workload, target).index_of(MATMUL.default_config(workload, target))


# -- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("extent", [-1, 1.5, True, "8", None, 1 << 21])
def test_what_is_not_an_extent_is_refused(extent):
    with pytest.raises(TuningError) as error:
        MATMUL.workload(m=8, n=extent, k=8)
    assert str(error.value) == (
        f"matmul: n is not an extent\n  got       {extent!r}\n  expected  an int from 0 to 1048576"
    )


def test_an_unknown_dtype_is_refused():
    with pytest.raises(TuningError) as error:
        MATMUL.workload(m=8, n=8, k=8, dtype="int32")
    assert str(error.value) == (
        "matmul: not a dtype of this operator\n  got       'int32'\n  expected  float32, float64"
    )


def test_an_unknown_operator_is_refused():
    with pytest.raises(TuningError) as error:
        ops.operator("matmal")
    assert str(error.value) == (
        "find an operator: no operator has this name\n  got       'matmal'\n"
        f"  expected  {', '.join(map(repr, ops.names()))}\n  hint      did you mean 'matmul'?"
    )


def test_useless_combinations_are_left_out():
    space = MATMUL.space(MATMUL.workload(m=64, n=60, k=12), AVX2)
    base = {"tile_m": 4, "tile_n": 16, "unroll_k": 4, "pack": True, "panel": 1, "block": 0,
            "parallel": False}  # fmt: skip
    space.config(**base)
    for change, rule in [
        ({"pack": False}, "B is packed when tiles reach over its edge"),
        ({"tile_m": 8, "tile_n": 32, "unroll_k": 4}, None),
        ({"panel": 8}, "a panel is not wider than twice the matrix"),
    ]:
        values = {**base, **change}
        if rule is None:
            space.config(**values)
            continue
        with pytest.raises(TuningError) as error:
            space.config(**values)
        assert rule in str(error.value)


def test_the_python_of_a_schedule_runs_as_it_is_printed():
    work = MATMUL.workload(m=64, n=48, k=32)
    target = CPU
    schedule, args = MATMUL.template(work, target, MATMUL.default_config(work, target))
    names = {"te": te, "C": args[-1]}
    exec(schedule.trace.to_python(), names)
    again = lower(names["s"], args)
    assert structural_equal(again.body, lower(schedule, args).body)
