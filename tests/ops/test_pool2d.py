"""ops.pool2d: kinds, layouts, dtypes and awkward windows against NumPy and PyTorch's rules."""

import random
from dataclasses import replace

import numpy as np
import pytest

from dlcompiler import ops, te
from dlcompiler.errors import TuningError
from dlcompiler.ops.conv2d.shapes import Window
from dlcompiler.ops.pool2d import global_pool, windows
from dlcompiler.ops.pools import window_of
from dlcompiler.pipeline import build
from dlcompiler.target import resolve
from tests.ops.products import check, choices

POOL = ops.operator("pool2d")
CPU = resolve("cpu")
TWO_CORES = replace(CPU, cores=2)
PARAMETERS = {
    "kind": ("max", "avg"),
    "layout": ("NCHW", "NHWC", "NCHW8c"),
    "image": ((1, 8, 7, 7), (2, 16, 5, 29), (1, 24, 33, 14), (0, 8, 4, 4), (1, 0, 4, 4)),
    "kernel": (1, 3, (5, 2), 7),
    "stride": (1, 2, (3, 1)),
    "padding": (0, 1, -1, (0, 4, 2, 1)),
    "dilation": (1, 2),
    "ceil_mode": (0, 1),
    "count_include_pad": (0, 1),
    "dtype": ("float32", "float64", "int8", "uint8", "int32"),
}


def workload_of(choice):
    n, c, h, w = choice["image"]
    rest = {name: value for name, value in choice.items() if name != "image"}
    return POOL.workload(n=n, c=c, h=h, w=w, **rest)


def _is_allowed(choice):
    return choice["kind"] == "max" or choice["dtype"].startswith("float")


@pytest.mark.campaign
@pytest.mark.parametrize("choice", choices(PARAMETERS, _is_allowed), ids=str)
def test_values(choice):
    check(POOL, workload_of(choice))


@pytest.mark.campaign
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_random_configs(kind, layout):
    generator = random.Random(kind + layout)
    workload = POOL.workload(
        kind=kind, c=9, h=11, w=21, kernel=3, stride=2, padding=1, layout=layout,
        count_include_pad=0,
    )  # fmt: skip
    space = POOL.space(workload, TWO_CORES)
    for index in space.sample(2, generator):
        check(POOL, workload, space.at(index), target=TWO_CORES)


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "max", "h": 13, "w": 13, "kernel": 9, "padding": 4},
        {"kind": "max", "h": 17, "w": 5, "kernel": (7, 4), "stride": (3, 1), "dtype": "int8",
         "padding": (0, 3, 2, 1), "dilation": (2, 1), "ceil_mode": 1},
        {"kind": "max", "h": 5, "w": 40, "kernel": (4, 8), "padding": (-1, 6, 3, -2)},
        {"kind": "avg", "h": 11, "w": 23, "kernel": 7, "stride": 2, "padding": 3, "ceil_mode": 1,
         "count_include_pad": 0},
        {"kind": "avg", "h": 20, "w": 38, "kernel": (5, 6), "dilation": (1, 3), "dtype": "float64"},
        {"kind": "max", "h": 3, "w": 400, "kernel": (3, 170)},
    ],
    ids=str,
)  # fmt: skip
def test_large_windows_are_computed_in_two_passes(given):
    workload = POOL.workload(n=2, c=3, **given)
    s, _ = POOL.template(workload, CPU, POOL.default_config(workload, CPU))
    assert any(stage.name == "pool.down" for stage in s.stages)
    check(POOL, workload)
    space = POOL.space(workload, TWO_CORES)
    (index,) = space.sample(1, random.Random(str(given)))
    check(POOL, workload, space.at(index), target=TWO_CORES)


def test_two_passes_propagate_nan():
    workload = POOL.workload(kind="max", c=1, h=9, w=9, kernel=5, padding=2)
    data = POOL.reference(workload, 1).inputs["data"].copy()
    data[0, 0, 4, 6], data[0, 0, 1, 1] = np.nan, -np.inf
    (got,) = check(POOL, workload, inputs={"data": data}).values()
    assert np.isnan(got[0, 0, 2:7, 4:9]).all()
    assert np.isnan(got).sum() == 25


@pytest.mark.parametrize(
    ("given", "in_passes"),
    [
        ({"kernel": 13, "padding": 6}, True), ({"kernel": 3}, False), ({"kernel": (1, 9)}, False),
        ({"kernel": (9, 1)}, False), ({"kernel": 2, "stride": 2}, False),
        ({"kernel": 9, "layout": "NHWC"}, False), ({"kernel": 15}, False),
    ],
    ids=str,
)  # fmt: skip
def test_passes_are_for_large_windows(given, in_passes):
    workload = POOL.workload(kind="max", c=8, h=13, w=13, **given)
    assert windows(workload).in_passes == in_passes


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_nan_and_infinity_do_as_in_numpy(kind, layout):
    workload = POOL.workload(kind=kind, c=8, h=6, w=6, kernel=2, stride=2, layout=layout)
    data = POOL.reference(workload, 1).inputs["data"].copy()
    image = data if layout == "NCHW" else np.moveaxis(data, 3, 1)
    image[0, 0, 0, 1], image[0, 1, 5, 5], image[0, 2, 2, 2] = np.nan, np.inf, -np.inf
    (got,) = check(POOL, workload, inputs={"data": data}).values()
    got = got if layout == "NCHW" else np.moveaxis(got, 3, 1)
    windows = image.reshape(1, 8, 3, 2, 3, 2)
    expected = {"max": np.max, "avg": np.mean}[kind](windows, axis=(3, 5))
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "out"),
    [(6, 3, 2, 0, 3), (7, 3, 2, 0, 3), (5, 2, 3, 1, 2), (4, 2, 3, 1, 2), (6, 2, 3, 0, 2)],
)
def test_ceil_mode_has_as_many_windows_as_pytorch(size, kernel, stride, padding, out):
    window = Window(size, kernel, stride, padding, padding)
    assert window_of(window, True).out == out


def test_global_pooling():
    data = te.placeholder((2, 3, 4, 5), "float64", "data")
    x = np.random.default_rng(1).normal(size=(2, 3, 4, 5))
    for kind, function in (("avg", np.mean), ("max", np.max)):
        got = te.evaluate(global_pool(data, kind), {data: x})
        np.testing.assert_allclose(got, function(x, axis=(2, 3), keepdims=True))


@pytest.mark.parametrize(("kind", "dtype"), [("avg", "float32"), ("max", "int8")])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "NCHW8c"])
@pytest.mark.parametrize("image", [(2, 8, 7, 5), (1, 8, 1, 1), (3, 0, 4, 4)], ids=str)
def test_a_window_that_is_the_whole_image_is_a_reduction(kind, dtype, layout, image):
    n, c, h, w = image
    given = {"kind": kind, "n": n, "c": c, "h": h, "w": w, "kernel": (h, w), "layout": layout}
    chosen = ops.select("pool2d", {**given, "dtype": dtype, "stride": 3}, CPU)
    assert chosen.operator.name == "reduction"
    own = POOL.reference(POOL.workload(**given, dtype=dtype), 5)
    built = build(*chosen.operator.template(chosen.workload, CPU, chosen.config), target=CPU)
    ((name, expected),) = own.expected.items()
    result = np.full(expected.shape, 7, dtype)
    built(own.inputs["data"], result)
    assert np.all(np.abs(result - expected) <= own.bound[name])


@pytest.mark.parametrize(
    "other", [{"padding": 1}, {"padding": (0, 1, 0, 0)}, {"kernel": (7, 4)}, {"h": 8}], ids=str
)
def test_other_windows_are_not(other):
    given = {"kind": "max", "c": 8, "h": 7, "w": 5, "kernel": (7, 5), "stride": 9, **other}
    assert ops.select("pool2d", given, CPU).operator.name == "pool2d"


@pytest.mark.parametrize(
    "parameters",
    [
        {"kind": "min"},
        {"layout": "CHWN"},
        {"layout": "NCHW8c"},
        {"dtype": "int8"},
        {"ceil_mode": 2},
    ],
)
def test_parameters_are_checked(parameters):
    with pytest.raises(TuningError):
        POOL.workload(**{"kind": "avg", "c": 4, "h": 8, "w": 8, "kernel": 3, **parameters})
