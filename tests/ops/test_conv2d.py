"""ops.conv2d, direct and as a matrix product, against NumPy; configs and the choice of operator."""

import random
from dataclasses import replace

import numpy as np
import pytest

from dlcompiler import ops
from dlcompiler.errors import TuningError
from dlcompiler.ir import For, walk
from dlcompiler.ops.conv2d import shapes
from dlcompiler.ops.conv2d.choose import select_conv2d
from dlcompiler.ops.tuned import anchor
from dlcompiler.ops.widening import DTYPES
from dlcompiler.pipeline import lower
from dlcompiler.target import resolve
from tests.ops.products import check, choices

DIRECT = ops.operator("conv2d_direct")
GEMM = ops.operator("conv2d_gemm")
BOTH = pytest.mark.parametrize("operator", [DIRECT, GEMM], ids=["direct", "gemm"])
CPU = resolve("cpu")
AVX2 = resolve("x86-64-avx2")
TWO_CORES = replace(AVX2, cores=2)

PARAMETERS = {
    "layout": ("NCHW", "NHWC", "NCHW8c"),
    "dtype": ("float32", "float64"),
    "channels": ((16, 8), (8, 48), (8, 0), (0, 8)),
    "h": (1, 7, 16),
    "w": (0, 5, 13),
    "kernel": (1, 3, (2, 5)),
    "stride": (1, 2, (3, 1)),
    "padding": (0, 1, (3, -1), (0, 9, 2, -2)),
    "dilation": (1, (2, 1)),
    "n": (1, 2),
}


NARROW = {
    "layout": ("NCHW", "NHWC", "NCHW8c"),
    "dtype": ("float16", "bfloat16", "int8"),
    "channels": ((16, 8), (8, 48), (0, 8)),
    "h": (1, 16),
    "w": (0, 5, 13),
    "kernel": (1, 3, (2, 5)),
    "stride": (1, (3, 1)),
    "padding": (0, (3, -1), (0, 9, 2, -2)),
    "dilation": (1, (2, 1)),
}


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices(PARAMETERS) + choices(NARROW), ids=str)
def test_products(choice):
    params = dict(choice)
    c, o = params.pop("channels")
    check(DIRECT, DIRECT.workload(c=c, o=o, **params))


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices({**PARAMETERS, "layout": ("NCHW",)}), ids=str)
def test_products_as_a_matrix_product(choice):
    params = dict(choice)
    del params["layout"]
    c, o = params.pop("channels")
    check(GEMM, GEMM.workload(c=c, o=o, **params))


@pytest.mark.parametrize("size", [(16, 16), (14, 14), (7, 7), (5, 48)])
def test_images_that_are_their_own_columns(size):
    h, w = size
    check(GEMM, GEMM.workload(c=24, h=h, w=w, o=20, kernel=1, n=2, epilogue="bias+relu"))


@pytest.mark.parametrize("target", [CPU, replace(CPU, cores=2)], ids=["one core", "two cores"])
@pytest.mark.parametrize(
    "params",
    [
        {"w": 500, "dilation": (1, 64), "padding": (0, 64)},
        {"w": 501, "stride": (1, 2), "padding": (0, 5, 0, 0), "groups": 2, "n": 2},
        {"w": 333, "h": 3, "kernel": (3, 8), "epilogue": "bias+gelu", "block": 6},
        {"w": 100, "h": 4, "kernel": (2, 1), "stride": (3, 1), "dtype": "float64"},
    ],
    ids=str,
)
def test_signals_as_matrix_products_in_parts(params, target):
    work = GEMM.workload(**{"c": 8, "h": 1, "o": 12, "kernel": (1, 3), **params})
    space = GEMM.space(work, target)
    every = [space.at(index) for index in space.allowed()]
    parted = [cfg for cfg in every if cfg["block_tiles"]]
    assert 0 < len(parted) < len(every)
    for cfg in random.Random(work["w"]).sample(parted, 4):
        check(GEMM, work, cfg)


def test_the_space_of_an_image_has_no_rule_for_signals():
    """Its fingerprint would be another one, and records that are stored would not fit it."""
    spaces = [
        GEMM.space(GEMM.workload(c=8, h=height, w=100, o=8, kernel=(1, 3)), AVX2)
        for height in (1, 5)
    ]
    signal, image = ({each.rule for each in space.filters} for space in spaces)
    assert signal - image == {"blocks of a row do not go beyond the stages"}
    assert image < signal


def test_columns_of_a_long_signal_fit_the_caches():
    params = {"c": 128, "h": 1, "w": 7500, "o": 128, "kernel": (1, 3), "padding": (0, 1)}
    for target in (AVX2, TWO_CORES):
        found = ops.select("conv2d", params, target, tuned={})
        assert found.operator is GEMM
        pixels = found.config["block_tiles"] * found.config["tile_pixels"]
        assert 0 < pixels * 128 * 3 * 4 <= target.cache_bytes(1) // 2


@pytest.mark.parametrize("groups", [3, 6])
def test_groups_as_matrix_products(groups):
    for kernel in (1, 3):
        check(GEMM, GEMM.workload(c=12, h=8, w=8, o=18, groups=groups, kernel=kernel))


@pytest.mark.parametrize(
    ("c", "o", "groups", "layout"),
    [(6, 9, 3, "NCHW"), (6, 9, 3, "NHWC"), (5, 5, 5, "NCHW"), (32, 32, 2, "NCHW8c"), (7, 11, 1,
     "NHWC"), (3, 37, 1, "NCHW"), (1, 1, 1, "NCHW")],
)  # fmt: skip
def test_groups_and_odd_channels(c, o, groups, layout):
    params = {"h": 9, "w": 10, "kernel": 3, "stride": 2, "padding": 1}
    check(DIRECT, DIRECT.workload(c=c, o=o, groups=groups, layout=layout, **params))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "NCHW16c"])
@pytest.mark.parametrize("epilogue", ["bias+relu", "batch_norm+residual+relu6"])
def test_epilogues(layout, epilogue):
    check(DIRECT, DIRECT.workload(
        c=16, h=9, w=11, o=32, kernel=3, padding=1, layout=layout, epilogue=epilogue
    ))  # fmt: skip


@pytest.mark.parametrize(
    "params",
    [
        {"c": 5, "o": 33, "kernel": (3, 2), "padding": (0, 1, 2, 1), "dilation": 2},
        {"c": 10, "o": 34, "kernel": 3, "groups": 2, "padding": 2, "block": 16, "stride": 2},
        {"c": 16, "o": 32, "kernel": 1, "layout": "NCHW16c", "n": 2},
        {"c": 7, "o": 48, "kernel": 3, "padding": 1, "layout": "NHWC"},
    ],
    ids=str,
)
def test_int8_by_groups_of_four_channels(params):
    check(DIRECT, DIRECT.workload(h=9, w=11, dtype="int8", epilogue="bias+relu", **params))


@pytest.mark.parametrize("zero", [-128, 127])
@pytest.mark.parametrize("o", [6, 33])
def test_int8_with_a_zero_point(o, zero):
    check(DIRECT, DIRECT.workload(
        c=5, h=7, w=9, o=o, kernel=3, padding=(1, 0, 2, 1), dtype="int8", zero_point=zero
    ))  # fmt: skip


@pytest.mark.campaign
@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "NCHW8c"])
@pytest.mark.parametrize(
    ("dtype", "epilogue"),
    [
        ("float16", "batch_norm+residual+relu6"),
        ("bfloat16", "bias+gelu"),
        ("int8", "bias+residual+relu"),
    ],
)
def test_epilogues_of_narrow_dtypes(layout, dtype, epilogue):
    for kernel in (1, 3):
        check(DIRECT, DIRECT.workload(
            c=16, h=9, w=11, o=32, kernel=kernel, groups=2, layout=layout, dtype=dtype,
            epilogue=epilogue,
        ))  # fmt: skip


@pytest.mark.parametrize("o", [8, 48])
def test_sums_of_int8_are_exact_beyond_16_bits(o):
    work = DIRECT.workload(c=64, h=3, w=3, o=o, kernel=3, dtype="int8", epilogue="relu")
    data = np.full((1, 64, 3, 3), -128, np.int8)
    weight = DIRECT.prepack(work, {"weight": np.full((o, 64, 3, 3), -128, np.int8)})["weight"]
    result = check(DIRECT, work, inputs={"data": data, "weight": weight})["result"]
    assert result.dtype == np.int32
    assert (result == 64 * 9 * 128 * 128).all()


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(8))
@BOTH
def test_random_configs_of_odd_shapes(operator, seed):
    generator = random.Random(seed)
    blocks = (8, 16, 24) if operator is DIRECT else (1, 4, 6)
    work = operator.workload(
        n=generator.choice((1, 2)), c=generator.choice((3, 16, 24)), h=generator.choice((7, 15)),
        w=generator.choice((7, 14)), o=generator.choice((13, 24, 64)),
        kernel=generator.choice((1, 3)), stride=generator.choice((1, 2)), padding=1,
        block=generator.choice(blocks),
    )  # fmt: skip
    two = replace(CPU, cores=2)
    space = operator.space(work, two)
    for index in space.sample(2, generator):
        check(operator, work, space.at(index))


def test_nan_and_infinity_reach_the_windows_that_read_them():
    work = DIRECT.workload(c=2, h=6, w=6, o=3, kernel=3, padding=1)
    data = np.ones((1, 2, 6, 6), np.float32)
    data[0, 1, 0, 0], data[0, 0, 5, 5] = np.nan, np.inf
    weight = DIRECT.prepack(work, {"weight": np.ones((3, 2, 3, 3), np.float32)})["weight"]
    result = check(DIRECT, work, inputs={"data": data, "weight": weight})["result"]
    assert np.isnan(result[0, :, :2, :2]).all()
    assert np.isinf(result[0, :, 4:, 4:]).all()
    assert np.isfinite(result[0, :, 2:4]).all()


@pytest.mark.parametrize(
    ("change", "problem"),
    [({"layout": "CHWN"}, "no such layout"), ({"layout": "NCHW16c"}, "does not divide"),
     ({"block": 7}, "block is not one"), ({"dtype": "int8", "epilogue": "gelu"}, "needs floats"),
     ({"zero_point": 1}, "zero_point does not fit"),
     ({"zero_point": 128, "dtype": "int8"}, "zero_point does not fit")],
)  # fmt: skip
def test_refusals(change, problem):
    with pytest.raises(TuningError, match=problem):
        DIRECT.workload(**{"c": 8, "h": 4, "w": 4, "o": 8, "kernel": 1} | change)


@pytest.mark.parametrize("seed", range(3))
@BOTH
def test_there_is_a_default_for_every_shape(operator, seed):
    generator = random.Random(seed)
    for _ in range(30):
        c, h, w, o = generator.choices((0, 1, 2, 7, 16, 100, 512), k=4)
        work = operator.workload(
            c=c, h=h, w=w, o=o, kernel=generator.choice((1, 3, 7)),
            stride=generator.choice((1, 2)), padding=generator.choice((-1, 0, 3, 100)),
            dtype=generator.choice(DTYPES if operator is DIRECT else shapes.FLOATS),
        )  # fmt: skip
        for target in (CPU, AVX2, TWO_CORES, resolve("x86-64-sse2")):
            operator.space(work, target).index_of(operator.default_config(work, target))


@pytest.mark.parametrize("order", ["rows", "channels"])
@BOTH
def test_blocks_run_in_parallel(operator, order):
    work = operator.workload(c=8, h=32, w=32, o=32, kernel=3, padding=1)
    values = dict(operator.default_config(work, TWO_CORES).values)
    values |= {"order": order, "parallel": True, "block_rows": 8}
    cfg = operator.space(work, TWO_CORES).config(**values)
    s, args = operator.template(work, TWO_CORES, cfg)
    kinds = [node.kind for node in walk(lower(s, args).body) if isinstance(node, For)]
    assert kinds.count("parallel") == (1 if order == "rows" else 2)  # the image, too
    check(operator, work, cfg)


# -- the choice between operators ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"c": 64, "h": 56, "w": 56, "o": 64, "kernel": 1}, "conv2d_gemm"),
        ({"c": 64, "h": 56, "w": 56, "o": 128, "kernel": 3, "stride": 2}, "conv2d_direct"),
        ({"c": 64, "h": 56, "w": 56, "o": 64, "kernel": 1, "layout": "NHWC"}, "conv2d_direct"),
    ],
)
def test_the_lowest_estimate_is_selected(params, expected):
    found = ops.select("conv2d", params, AVX2, tuned={})
    assert found.operator.name == expected
    found.operator.space(found.workload, AVX2).index_of(found.config)


def test_one_channel_at_a_time_has_no_other_to_prefetch():
    target = resolve("x86-64-avx512")
    work = DIRECT.workload(c=1024, h=4, w=4, o=64, kernel=3, padding=1, block=32)
    values = dict(DIRECT.default_config(work, target).values) | {"split_c": 1}
    s, args = DIRECT.template(work, target, DIRECT.space(work, target).config(**values))
    lower(s, args, target=target)


def test_minimal_filtering_is_left_out_where_exact_results_are_asked_for():
    params = {"c": 64, "h": 56, "w": 56, "o": 64, "kernel": 3, "padding": 1}
    assert ops.select("conv2d", params, AVX2, tuned={}).operator.name == "conv2d_winograd"
    assert select_conv2d(params, AVX2, {}, is_exact=True).operator is DIRECT


def test_narrow_images_take_three_vectors_of_channels():
    params = {"c": 256, "h": 14, "w": 14, "o": 512, "kernel": 3, "stride": 2, "padding": 1}
    assert ops.select("conv2d", params, AVX2, tuned={}).workload["block"] == 24


def test_what_is_tuned_is_selected():
    params = {"c": 64, "h": 28, "w": 28, "o": 64, "kernel": 3, "stride": 2}
    work = DIRECT.workload(**params, block=8)
    values = dict(DIRECT.default_config(work, AVX2).values) | {"tile_columns": 3}
    found = ops.select("conv2d", params | {"epilogue": "relu"}, AVX2, tuned={anchor(work): values})
    assert (found.workload["block"], found.config["tile_columns"]) == (8, 3)


def test_groups_and_layouts_are_selected():
    for params in (
        {"groups": 4},
        {"layout": "NCHW16c"},
        {"dtype": "float64"},
        {"dtype": "int8"},
        {"o": 0},
    ):
        base = {"c": 32, "h": 5, "w": 5, "o": 32, "kernel": 3}
        found = ops.select("conv2d", base | params, AVX2)
        assert found.workload["c"] == 32


def test_one_of_another_kind_is_selected_by_its_name():
    found = ops.select("matmul", {"m": 8, "n": 8, "k": 8}, AVX2)
    assert found.operator.name == found.workload.op == "matmul"
