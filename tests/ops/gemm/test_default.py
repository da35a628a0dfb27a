"""ops.gemm: the config that is chosen without measuring."""

import random
from dataclasses import replace

import pytest

from dlcompiler.ops.gemm import BATCH_MATMUL, DENSE, MATMUL, packed_width
from dlcompiler.pipeline import lower
from dlcompiler.target import CacheLevel, resolve

CPU = resolve("cpu")
AVX2 = resolve("x86-64-avx2")
AVX2_TWO_CORES = replace(AVX2, cores=2)
SSE2 = resolve("x86-64-sse2")
ZEN_CACHES = tuple(
    CacheLevel(name, kib << 10, line=64, shared_by=1)
    for name, kib in (("L1d", 32), ("L2", 512), ("L3", 32768))
)


def chosen(target=AVX2, **params):
    return MATMUL.default_config(MATMUL.workload(**params), target)


@pytest.mark.parametrize(
    ("target", "tile"), [(AVX2, (6, 16)), (SSE2, (6, 8))], ids=["avx2", "sse2"]
)
def test_the_tile_fills_sixteen_registers(target, tile):
    cfg = chosen(target, m=1024, n=1024, k=1024)
    assert (cfg.form, cfg.tile_m, cfg.tile_n) == ("tiles", *tile)
    assert cfg.pack
    assert not cfg.parallel


def test_a_tile_wastes_little():
    assert chosen(m=1024, n=16, k=128).tile_n == 16
    assert chosen(m=32, n=1024, k=1024).tile_m == 4


@pytest.mark.parametrize(
    ("params", "form"),
    [
        ({"m": 1, "n": 1000}, "rows"),
        ({"m": 8, "n": 1000}, "rows"),
        ({"m": 1, "n": 1000, "layout": "NT"}, "dots"),
        ({"m": 1000, "n": 1}, "dots"),
        ({"m": 1000, "n": 10}, "dots"),
        ({"m": 1, "n": 1000, "layout": "TT"}, "dots"),
        ({"m": 1, "n": 1}, "dots"),
        ({"m": 10_000, "n": 16, "k": 16}, "tiles"),
        ({"m": 10_000, "n": 16, "k": 16, "layout": "NT"}, "tiles"),
        ({"m": 1, "n": 1000, "packed": 16}, "tiles"),
    ],
    ids=str,
)
def test_few_rows_or_columns_have_forms_of_their_own(params, form):
    assert chosen(**{"k": 500, **params}).form == form


def test_the_panels_of_packed_weights_give_enough_sums():
    assert [packed_width(m, AVX2) for m in (1, 2, 3, 100)] == [64, 32, 16, 16]
    cfg = chosen(m=1, n=1000, k=500, packed=64)
    assert (cfg.tile_m, cfg.tile_n, cfg.pack) == (1, 64, False)


def test_what_must_be_converted_or_turned_is_copied():
    for params in ({"layout": "TN"}, {"dtype": "float16"}):
        cfg = chosen(m=500, n=500, k=500, **params)
        assert cfg.pack_a
        assert cfg.block > 0


@pytest.mark.parametrize("m", [512, 600, 1024, 1200, 2048])
def test_blocks_leave_no_rest_where_they_can(m):
    cfg = chosen(replace(AVX2, caches=ZEN_CACHES), m=m, n=m, k=m)
    assert cfg.block > 0
    assert m // cfg.tile_m % cfg.block == 0


def test_where_no_block_divides_one_of_a_usual_size_is_chosen():
    cfg = chosen(replace(AVX2, caches=ZEN_CACHES), m=6 * 127, n=1024, k=1024)
    assert (cfg.tile_m, cfg.block) == (6, 16)


@pytest.mark.parametrize("target", [AVX2, AVX2_TWO_CORES], ids=["one core", "two cores"])
@pytest.mark.parametrize("n", [211, 275, 300, 500, 513, 900, 1100])
def test_panels_end_nearly_where_the_matrix_ends(n, target):
    target = replace(target, caches=ZEN_CACHES)
    for m in (40, 200, 768):
        cfg = chosen(target, m=m, n=n, k=768)
        assert cfg.form == "tiles"
        tiles = -(-n // cfg.tile_n)
        assert -(-tiles // max(cfg.panel, 1)) * max(cfg.panel, 1) <= 1.03 * tiles


def test_rows_of_panels_are_long_enough_to_be_copied():
    cfg = chosen(replace(AVX2, caches=ZEN_CACHES), m=32, n=4096, k=1024)
    assert cfg.panel * cfg.tile_n * 4 >= 256


@pytest.mark.parametrize(
    ("m", "n", "shared"),
    [
        (1024, 1024, "panels"),
        (64, 256, "panels"),
        (1024, 32, "blocks"),
        (1, 4096, "panels"),
        (32, 1024, "panels"),
    ],
)
def test_cores_get_equal_shares(m, n, shared):
    cfg = chosen(AVX2_TWO_CORES, m=m, n=n, k=1024)
    assert cfg.parallel == shared
    extent, size = (
        (n, cfg.tile_n * cfg.panel) if shared == "panels" else (m, cfg.tile_m * cfg.block)
    )
    pieces = -(-extent // size)
    assert pieces / (2 * -(-pieces // 2)) >= 0.9


@pytest.mark.parametrize("seed", range(3))
def test_there_is_a_default_for_everything(seed):
    generator = random.Random(seed)
    extents = (0, 1, 2, 3, 5, 8, 13, 16, 17, 31, 64, 97, 1000, 4096)
    for _ in range(40):
        sizes = dict(zip("mnk", generator.choices(extents, k=3), strict=True))
        dtype = generator.choice(("float32", "float64", "float16", "int8"))
        layout = generator.choice(("NN", "NT", "TN", "TT"))
        for operator, more in (
            (MATMUL, {"layout": layout}),
            (DENSE, {"packed": generator.choice((0, 16))}),
            (BATCH_MATMUL, {"layout": layout, "batch": generator.choice((1, 5))}),
        ):
            workload = operator.workload(**sizes, **more, dtype=dtype)
            for target in (CPU, AVX2, SSE2, AVX2_TWO_CORES):
                cfg = operator.default_config(workload, target)
                operator.space(workload, target).index_of(cfg)


def test_a_template_is_deterministic():
    workload = MATMUL.workload(m=30, n=40, k=8)
    texts = set()
    for _ in range(2):
        schedule, args = MATMUL.template(workload, AVX2, MATMUL.default_config(workload, AVX2))
        texts.add(str(lower(schedule, args)))
    assert len(texts) == 1
