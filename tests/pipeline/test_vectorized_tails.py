"""Vectors of any extent, from a schedule to machine code: right, and never outside the arrays."""

import random

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.ir import For, Load, walk
from dlcompiler.pipeline import build, lower
from dlcompiler.schedule import create_schedule
from dlcompiler.simulate import interpret
from tests.guard_pages import guarded_array

DTYPES = ("float32", "float64", "int32", "int8", "bool")


def _scheduled(output, factor, rng):
    """Vectorize the last axis, whole or in parts, sometimes parallel or reordered."""
    s = create_schedule(output.op)
    stage = s[output]
    *_, last = stage.op.axis
    if factor:
        outer, last = stage.split(last, factor=factor)
        if rng.random() < 0.3:
            stage.parallel(outer)
    stage.vectorize(last)
    return s


def _padded(x, n):
    shifts = te.placeholder((n + 4,), "int32", name="D")

    def element(i):
        at = i - 2 + shifts[i]
        inside = te.all(at >= 0, at < n)
        return te.if_then_else(inside, x[at], te.const(1, x.dtype))

    return te.compute((n + 4,), element, name="C"), [shifts]


SHAPES = {
    "copy": lambda x, n: (te.compute((n,), lambda i: x[i], name="C"), []),
    "reverse": lambda x, n: (te.compute((n,), lambda i: x[n - 1 - i], name="C"), []),
    "padding": lambda x, n: (
        te.compute(
            (n + 3,),
            lambda i: te.if_then_else(te.all(i >= 1, i < n + 1), x[i - 1], te.const(0, x.dtype)),
            name="C",
        ),
        [],
    ),
    "gather": _padded,
}


@pytest.mark.campaign
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("seed", range(8))
def test_awkward_extents(kind, seed):
    rng = random.Random(f"{kind} {seed}")
    n = rng.choice([1, 2, 3, 5, 7, 13, 17, 24, 31, 33, 63, 67, 100, 131])
    dtype, factor = rng.choice(DTYPES), rng.choice([None, 3, 4, 6, 8, 16, 24, 64, 100])
    x = te.placeholder((n,), dtype, name="X")
    output, more = SHAPES[kind](x, n)
    s = _scheduled(output, factor, rng)
    args = [x, *more, output]
    arrays = [guarded_array(arg.shape, arg.dtype, at_end=seed % 2 == 0) for arg in args]
    draw = np.random.default_rng(seed)
    for array in arrays[:-1]:
        array[:] = draw.integers(0, 2, array.shape) if dtype == "bool" else draw.integers(-9, 9)
    if more:
        arrays[1][:] = draw.integers(-9, 9, arrays[1].shape)
    expected = te.evaluate(output, dict(zip(args[:-1], arrays[:-1], strict=True)))
    build(s, args)(*arrays)
    np.testing.assert_array_equal(arrays[-1], expected, f"{kind} {n} {dtype} {factor}")
    again = np.zeros_like(expected)
    interpret(lower(s, args), [*(a.copy() for a in arrays[:-1]), again])
    np.testing.assert_array_equal(again, expected)


@pytest.mark.parametrize("factor", [None, 8])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_an_extent_known_at_run_time(factor, dtype):
    n = te.var("n")
    x = te.placeholder((n,), dtype, name="X")
    c = te.compute((n,), lambda i: x[i] + x[n - 1 - i], name="C")
    kernel = build(_scheduled(c, factor, random.Random(1)), [x, c])
    for size in (0, 1, 7, 8, 15, 16, 17, 40, 67):
        a, out = guarded_array((size,), dtype), guarded_array((size,), dtype)
        a[:] = np.arange(size)
        kernel(a, out)
        np.testing.assert_array_equal(out, a + a[::-1])


def test_a_padded_convolution_keeps_no_loop_over_lanes():
    x, w = te.placeholder((3, 13, 13), name="X"), te.placeholder((4, 3, 3, 3), name="W")
    p = te.compute(
        (3, 15, 15),
        lambda c, i, j: te.if_then_else(
            te.all(i >= 1, i < 14, j >= 1, j < 14), x[c, i - 1, j - 1], 0.0
        ),
        name="P",
    )
    c, r, q = (te.reduce_axis((0, 3), name) for name in "crq")
    y = te.compute(
        (4, 13, 13),
        lambda o, i, j: te.sum(p[c, i + r, j + q] * w[o, c, r, q], axis=[c, r, q]),
        name="Y",
    )
    s = create_schedule(y.op)
    _, j = s[y].split(y.op.axis[2], factor=8)
    s[y].reorder(c, r, q, j)
    s[y].vectorize(j)
    s[p].vectorize(s[p].split(p.op.axis[2], factor=8)[1])
    func = lower(s, [x, w, y])
    loops = {node.var.name for node in walk(func.body) if isinstance(node, For)}
    assert loops == {"P.c", "P.i", "o", "i", "c", "r", "q"}
    assert any(isinstance(n, Load) and n.predicate is not None for n in walk(func.body))
    rng = np.random.default_rng(1)
    arrays = [rng.integers(-4, 5, t.shape).astype("float32") for t in (x, w, y)]
    build(s, [x, w, y])(*arrays)
    np.testing.assert_array_equal(arrays[2], te.evaluate(y, arrays[:2]))
