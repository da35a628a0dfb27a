"""ops.conv2d.shapes: windows, the workload of a convolution, and its reference."""

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import TuningError
from dlcompiler.ops import conv2d_nchw
from dlcompiler.ops.conv2d.shapes import Window, framed, reference, shape_of, workload

BASE = {"c": 4, "h": 7, "w": 6, "o": 6, "kernel": 3}


@pytest.mark.parametrize(
    "window",
    [
        Window(7, 3), Window(7, 3, 2, 1, 1), Window(7, 3, 2, -1, 4), Window(2, 3), Window(0, 1),
        Window(9, 3, 3, 0, 0, 2), Window(3, 1, 1, 5, 5), Window(3, 1, 1, -2, -2),
    ],
)  # fmt: skip
def test_windows_are_counted_one_by_one(window):
    last = window.size + window.before + window.after - (window.kernel - 1) * window.dilation
    assert window.out == len(range(0, max(last, 0), window.stride))
    assert window.span <= max(window.size + window.before + window.after, 0)


def one_by_one(shape, data, weight):
    """Compute a convolution by its definition."""
    rows, columns = shape.rows, shape.columns
    result = np.zeros(shape.result)
    per_group = shape.o // shape.groups
    for n, o, y, x in np.ndindex(*shape.result):
        for i, p, q in np.ndindex(*shape.weight[1:]):
            r = y * rows.stride + p * rows.dilation - rows.before
            s = x * columns.stride + q * columns.dilation - columns.before
            # What negative padding cut off counts as 0, too.
            low = max(-rows.before, 0), max(-columns.before, 0)
            high = rows.size + min(rows.after, 0), columns.size + min(columns.after, 0)
            if low[0] <= r < high[0] and low[1] <= s < high[1]:
                channel = o // per_group * shape.weight[1] + i
                result[n, o, y, x] += np.float64(data[n, channel, r, s]) * weight[o, i, p, q]
    return result


@pytest.mark.parametrize(
    "change",
    [
        {}, {"stride": 2, "padding": 1}, {"padding": (2, -1, 0, 3)}, {"dilation": (2, 1)},
        {"groups": 2, "n": 2}, {"kernel": (1, 5), "padding": (-2, 1), "stride": (1, 3)},
        {"c": 0}, {"n": 0}, {"h": 2}, {"padding": -2}, {"h": 0, "padding": 2},
    ],
)  # fmt: skip
def test_the_reference_is_the_definition(change):
    work = workload("conv2d", **BASE | change)
    shape = shape_of(work)
    found = reference(work, seed=1)
    expected = one_by_one(shape, found.inputs["data"], found.inputs["weight"])
    np.testing.assert_allclose(found.expected["result"], expected, rtol=1e-12, atol=1e-12)
    assert found.bound["result"].shape == shape.result


def test_images_are_framed_and_cut():
    shape = shape_of(workload("conv2d", **BASE | {"padding": (1, -2, 0, 1)}))
    image = np.arange(42.0).reshape(1, 1, 7, 6)
    expected = np.pad(image, [(0, 0), (0, 0), (1, 0), (0, 1)])[..., 2:]
    np.testing.assert_array_equal(framed(shape, image), expected)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"h": -1}, "h is out of range"), ({"kernel": 0}, "kernel is out of range"),
        ({"kernel": (1, 2, 3)}, "kernel is not an int"), ({"stride": True}, "stride is not an int"),
        ({"padding": 1.5}, "padding is not an int"), ({"groups": 4}, "do not divide the channels"),
        ({"dtype": "int32"}, "not a dtype"), ({"epilogue": "bias+x"}, "no such step"),
    ],
)  # fmt: skip
def test_what_is_no_convolution_is_refused(change, problem):
    with pytest.raises(TuningError, match=problem):
        workload("conv2d", **BASE | change)


@pytest.mark.parametrize("groups", [1, 2])
def test_the_plain_definition_agrees_with_the_reference(groups):
    params = BASE | {"stride": 2, "padding": (1, 0, 2, 1), "dilation": (1, 2), "groups": groups}
    work = workload("conv2d", **params)
    shape = shape_of(work)
    data, weight = (te.placeholder(extents, "float32") for extents in (shape.image, shape.weight))
    out = conv2d_nchw(data, weight, 2, (1, 0, 2, 1), (1, 2), groups=groups)
    found = reference(work, seed=2)
    result = te.evaluate(out, {data: found.inputs["data"], weight: found.inputs["weight"]})
    assert (np.abs(result - found.expected["result"]) <= found.bound["result"]).all()
