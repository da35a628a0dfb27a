"""Convolution by minimal filtering: exact transforms, shapes, its choices, its error and NaN."""

import itertools
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dlcompiler import ops
from dlcompiler.errors import TuningError
from dlcompiler.ir import For, walk
from dlcompiler.ops.conv2d import shapes
from dlcompiler.ops.conv2d.winograd import error_bound
from dlcompiler.ops.conv2d.winograd_transforms import input_row, output_row, transforms
from dlcompiler.ops.conv2d.winograd_weights import pack
from dlcompiler.pipeline import build, lower
from dlcompiler.target import resolve
from tests.ops.products import check, choices

WINOGRAD = ops.operator("conv2d_winograd")
CPU = resolve("cpu")
TWO_CORES = replace(CPU, cores=2)
PARAMETERS = {
    "tile": (2, 4),
    "image": ((1, 8, 12, 12), (2, 3, 5, 9), (1, 20, 7, 14), (1, 1, 1, 1), (0, 2, 4, 4)),
    "o": (16, 5, 40, 0),
    "padding": (0, 1, (1, 0, 3, 2), -1),
    "epilogue": ("", "bias+relu", "batch_norm+residual+relu"),
    "dtype": ("float32", "float64"),
}


def workload_of(choice):
    n, c, h, w = choice["image"]
    rest = {name: value for name, value in choice.items() if name != "image"}
    return WINOGRAD.workload(n=n, c=c, h=h, w=w, **rest)


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices(PARAMETERS), ids=str)
def test_values(choice):
    check(WINOGRAD, workload_of(choice))


@pytest.mark.campaign
@pytest.mark.parametrize(("block", "group", "rows"), [(0, 0, 6), (1, 1, 4), (2, 0, 5)])
def test_configs(block, group, rows):
    workload = WINOGRAD.workload(c=12, h=7, w=5, o=24, padding=1, tile=2)
    cfg = WINOGRAD.space(workload, TWO_CORES).config(
        rows=rows, unroll=2, block=block, group=group, parallel=block == 2
    )
    check(WINOGRAD, workload, cfg, target=TWO_CORES)
    s, args = WINOGRAD.template(workload, TWO_CORES, cfg)
    kinds = [node.kind for node in walk(lower(s, args).body) if isinstance(node, For)]
    assert ("parallel" in kinds) == (block == 2)


@pytest.mark.parametrize(("m", "r"), [(2, 3), (4, 3), (3, 2), (2, 5), (1, 3)])
def test_the_transforms_are_exact(m, r):
    t, generator = transforms(m, r), random.Random(3)
    d, g = ([Fraction(generator.randint(-99, 99)) for _ in range(n)] for n in (t.size, r))
    of_d, of_g = (
        [sum(map(Fraction.__mul__, row, v)) for row in matrix]
        for matrix, v in ((t.input, d), (t.weight, g))
    )
    products = list(map(Fraction.__mul__, of_d, of_g))
    assert [input_row(t, i, d, Fraction) for i in range(t.size)] == of_d
    assert [output_row(t, i, products, Fraction) for i in range(m)] == [
        sum(d[i + k] * g[k] for k in range(r)) for i in range(m)
    ]


def test_weights_are_transformed_and_packed():
    weight = np.random.default_rng(1).uniform(-1, 1, (20, 3, 3, 3))
    packed, g = pack(weight, 4), transforms(4, 3).matrix("weight")
    assert packed.shape == (2, 6, 6, 3, 16)
    for o, c in itertools.product((0, 15, 19), range(3)):
        np.testing.assert_allclose(packed[o // 16, :, :, c, o % 16], g @ weight[o, c] @ g.T)
    assert (packed[1, :, :, :, 4:] == 0).all()


@pytest.mark.parametrize("tile", [2, 4])
def test_a_kernel_packs_weights_as_numpy_does(tile):
    workload = WINOGRAD.workload(c=3, h=6, w=6, o=20, tile=tile)
    s, args = WINOGRAD.schedule_for(CPU).packing(workload, CPU)
    weight = np.random.default_rng(1).uniform(-1, 1, (20, 3, 9)).astype(np.float32)
    packed = np.full(args[1].shape, np.nan, np.float32)
    build(s, args, CPU)(weight, packed)
    np.testing.assert_allclose(packed, pack(weight.reshape(20, 3, 3, 3), tile), atol=1e-6)


def test_who_asks_for_exactness_gets_another_operator():
    params = {"c": 64, "h": 56, "w": 56, "o": 64, "kernel": 3, "padding": 1}
    assert ops.select("conv2d", params, CPU, {}).operator is WINOGRAD
    assert ops.select("conv2d", params, CPU, {}, is_exact=True).operator is not WINOGRAD


@pytest.mark.parametrize("tile", [2, 4])
def test_the_error_bound_is_larger_than_that_of_the_definition_but_not_loose(tile):
    workload = WINOGRAD.workload(c=16, h=12, w=12, o=8, padding=1, tile=tile)
    shape = shapes.shape_of(workload)
    plain = shapes.reference(workload, 1)
    bound = error_bound(shape, tile, plain.inputs["data"], plain.inputs["weight"])
    ratio = bound / plain.bound["result"]
    assert ratio.min() > 0.5
    assert np.median(ratio) < (10 if tile == 2 else 200)


def test_a_nan_stays_in_the_tiles_that_read_it():
    workload = WINOGRAD.workload(c=4, h=12, w=12, o=16, padding=1, tile=4)
    data = WINOGRAD.reference(workload, 1).inputs["data"].copy()
    data[0, 2, 5, 5] = np.nan
    (got,) = check(WINOGRAD, workload, inputs={"data": data}).values()
    assert np.isnan(got[:, :, 4:7, 4:7]).all()
    assert not np.isnan(got[:, :, :, 8:]).any()
    assert not np.isnan(got[:, :, 8:]).any()


@pytest.mark.parametrize(
    "parameters", [{"tile": 3}, {"kernel": 5}, {"stride": 2}, {"dilation": 2}, {"groups": 2}]
)
def test_what_it_cannot_compute_is_refused(parameters):
    with pytest.raises(TuningError):
        WINOGRAD.workload(**{"c": 4, "h": 8, "w": 8, "o": 16, **parameters})
