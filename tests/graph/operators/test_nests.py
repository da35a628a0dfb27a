"""Operators that are loops in order on CPUs compute the same as their meaning."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from dlcompiler import dtypes, graph, te
from dlcompiler.graph import op
from dlcompiler.graph.ir import tensor_types
from dlcompiler.graph.operators import REGISTRY
from dlcompiler.target import resolve
from tests.graph.operators.cases import CASES
from tests.graph.operators.definitions import calls_of, check, defined, flat, read_by
from tests.graph.operators.operator_cases import FLOATS, INTEGERS, value_of
from tests.share import cases_of

CPU = resolve("cpu")
NESTS = [name for name, operator in REGISTRY.items() if operator.nest is not None]
SPECIAL = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0, -1.0, 1e-45]


def campaign(case):
    """Mark a case as one of many of its kind."""
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.campaign)


def parts(pair):
    """Return the fields of a tuple of two, or a single value, as a list."""
    return [pair[0], pair[1]] if pair.op.name == "topk" else [pair]


def rows_of(dtype, shape, seed=0):
    """Return rows with many equal elements, and all special floats."""
    generator = np.random.default_rng(seed)
    kind = dtypes.to_numpy(dtype)
    if not dtypes.is_float(dtype):
        info = np.iinfo(kind)
        ends = np.array([info.min, info.max, 0, 1, info.max // 2], kind)
        return np.where(
            generator.random(shape) < 0.5, generator.choice(ends, shape),
            generator.integers(info.min, info.max, shape, kind, endpoint=True),
        )  # fmt: skip
    with np.errstate(all="ignore"):
        numbers = generator.standard_normal(shape) * generator.choice([1, 1e-30, 1e20], shape)
        special = generator.choice(SPECIAL, shape)
        return np.where(generator.random(shape) < 0.3, special, numbers).astype(kind)


def agrees(parameters, outputs, *arrays):
    """Check that a compiled model returns what `graph.evaluate` does, bit for bit."""
    module = graph.Module.from_expr(graph.Function(parameters, graph.Tuple(outputs)))
    with np.errstate(all="ignore"):
        expected = flat(graph.evaluate(module, *arrays))
    for n, (found, right) in enumerate(
        zip(flat(graph.build(module, "cpu")(*arrays)), expected, strict=True)
    ):
        is_same = found == right
        if dtypes.is_float(dtypes.from_numpy(right.dtype)):
            is_same |= np.isnan(found) & np.isnan(right)
        assert is_same.all(), (n, outputs[n], arrays[0].dtype)


@pytest.mark.campaign
@pytest.mark.parametrize("name", NESTS)
def test_a_nest_computes_the_definition(name):
    operator = REGISTRY[name]
    for number, case in enumerate(cases_of(CASES[name])):
        for dtype, result in calls_of(name, case):
            values = [value_of(e, dtype, np.random.default_rng(number)) for e in case.inputs]
            if name == "image.grid_sample" and dtype != "float32":
                continue  # the interpreter is slow
            if name == "searchsorted":
                values[0] = np.sort(values[0])
            if any(0 in kind.shape for kind in tensor_types(result.type)):
                continue
            arrays, outputs = defined(name, result, values)
            made = operator.nest(result, CPU, *arrays)
            for output, own in zip(outputs, flat(made), strict=True):
                found = te.evaluate(own, read_by([own], arrays))
                check(output, found, arrays, is_smooth=case.is_smooth)


@pytest.mark.parametrize("dtype", ["float32", *(campaign(d) for d in (*FLOATS[1:], *INTEGERS))])
def test_sorted_rows(dtype):
    for extent in (1, 33, 131):
        x = graph.var("x", (3, extent), dtype)
        outputs = [op.argsort(x, dtype="int64"), op.sort(x, is_ascend=False)]
        for count in sorted({1, extent // 3, extent // 2 + 1} - {0}):
            outputs.append(op.topk(x, k=count, is_ascend=count % 2 == 0))
        agrees([x], [part for out in outputs for part in parts(out)], rows_of(dtype, (3, extent)))


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(60))
def test_random_rows(seed):
    generator = np.random.default_rng(seed)
    dtype = str(generator.choice(["float32", "float64", "int32", "uint64", "int8", "bfloat16"]))
    shape = tuple(int(n) for n in generator.choice([1, 2, 3, 7, 64, 100, 301], 3))
    axis = int(generator.integers(3))
    x = graph.var("x", shape, dtype)
    attrs = {"axis": axis, "is_ascend": bool(generator.integers(2))}
    k = int(generator.integers(1, shape[axis] + 1))
    outputs = [op.sort(x, **attrs), op.argsort(x, **attrs), *parts(op.topk(x, k=k, **attrs))]
    agrees([x], outputs, rows_of(dtype, shape, seed))


def test_all_elements_equal():
    x = graph.var("x", (2, 200))
    for value in (0.0, np.nan, np.inf, -np.inf):
        agrees([x], parts(op.topk(x, k=7)), np.full((2, 200), value, "float32"))


@pytest.mark.parametrize("mode", ["update", *(campaign(m) for m in ("add", "mul", "min", "max"))])
def test_updates_of_one_element_are_in_order(mode):
    generator = np.random.default_rng(5)
    x, u = graph.var("x", (7, 3, 5)), graph.var("u", (6, 3, 9))
    i, pairs = graph.var("i", (6, 3, 9), "int64"), graph.var("pairs", (2, 30), "int32")
    slices = graph.var("slices", (30, 5))
    outputs = [
        op.scatter_elements(x, i, u, axis=2, reduction=mode),
        op.scatter_nd(x, pairs, slices, mode=mode),
    ]
    few = [-2.0, -1.0, 0.5, 2.0]
    arrays = [generator.choice(few, v).astype("float32") for v in ((7, 3, 5), (6, 3, 9), (30, 5))]
    indices = generator.integers(-5, 5, (6, 3, 9)), generator.integers(-3, 3, (2, 30), "int32")
    agrees([x, u, slices, i, pairs], outputs, *arrays, *indices)


@pytest.mark.parametrize("dtype", ["float32", *(campaign(d) for d in ("int8", "float16"))])
def test_searches(dtype):
    for extent in (1, 2, 7, 64, 100):
        s, v = graph.var("s", (3, extent), dtype), graph.var("v", (3, 40), dtype)
        sequence, values = np.sort(rows_of(dtype, (3, extent))), rows_of(dtype, (3, 40), 1)
        outputs = [op.searchsorted(s, v, right=right) for right in (True, False)]
        agrees([s, v], outputs, sequence, values)


@pytest.mark.parametrize(
    ("method", "padding", "align_corners"),
    [("bilinear", "zeros", True), *map(campaign, itertools.product(
        ("nearest", "bilinear", "bicubic"), ("zeros", "border", "reflection"), (True, False)))],
)  # fmt: skip
def test_sampled_images(method, padding, align_corners):
    generator = np.random.default_rng(3)
    for shape, out in (((2, 3, 5, 7), (4, 5)), ((1, 11, 1, 6), (30, 20))):
        x, q = graph.var("x", shape), graph.var("q", (shape[0], 2, *out))
        sampled = op.image.grid_sample(
            x, q, method=method, padding_mode=padding, align_corners=align_corners
        )
        module = graph.Module.from_expr(graph.Function([x, q], sampled))
        image = generator.standard_normal(shape).astype("float32")
        grid = generator.uniform(-1.4, 1.4, (shape[0], 2, *out)).astype("float32")
        found, right = graph.build(module, "cpu")(image, grid), graph.evaluate(module, image, grid)
        np.testing.assert_allclose(found, right, rtol=1e-3, atol=2e-5)


def test_what_is_outside_an_image_is_not_read():
    x, q = graph.var("x", (1, 1, 2, 2)), graph.var("q", (1, 2, 1, 3))
    image = np.full((1, 1, 2, 2), np.inf, "float32")
    grid = np.array([[-9, 9, 3], [0, 0, 3]], "float32").reshape(1, 2, 1, 3)
    module = graph.Module.from_expr(graph.Function([x, q], op.image.grid_sample(x, q)))
    assert graph.build(module, "cpu")(image, grid).tolist() == [[[[0, 0, 0]]]]


def test_large_rows_are_shared_among_cores():
    target = replace(CPU, cores=2)
    x = graph.var("x", (64, 500))
    module = graph.Module.from_expr(graph.Function([x], op.sort(x)))
    model = graph.build(module, target)
    assert any("parallel" in str(kernel.built.func) for kernel in model.kernels)
    values = rows_of("float32", (64, 500))
    np.testing.assert_array_equal(model(values), graph.evaluate(module, values))
