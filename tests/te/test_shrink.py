"""Smaller expressions of the same form."""

import pytest

from dlcompiler import te
from dlcompiler.te.evaluation.shrink import shrunk


def _shapes(*outputs):
    return [
        {tensor.name: small.shape for tensor, small in known.items()} for known in shrunk(outputs)
    ]


def test_equal_extents_stay_equal():
    A, B = te.placeholder((1024, 512), name="A"), te.placeholder((512, 1024), name="B")
    k = te.reduce_axis((0, 512), name="k")
    C = te.compute((1024, 1024), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    for shapes in _shapes(C):
        assert shapes["A"] == shapes["B"][::-1]
        assert shapes["C"] == (shapes["A"][0],) * 2


def test_windows_and_paddings_still_fit():
    X = te.placeholder((56, 56), name="X")
    P = te.compute(
        (58, 58),
        lambda h, w: te.if_then_else(te.all(h >= 1, h < 57, w >= 1, w < 57), X[h - 1, w - 1], 0.0),
        name="P",
    )
    r, q = te.reduce_axis((0, 3), name="r"), te.reduce_axis((0, 3), name="q")
    Y = te.compute((56, 56), lambda h, w: te.sum(P[h + r, w + q], axis=[r, q]), name="Y")
    first = next(shrunk([Y]))
    small = first[P]
    assert small.shape == tuple(extent + 2 for extent in first[X].shape)
    assert f"h < {first[X].shape[0] + 1}" in str(small.op.body)


def test_strides_still_fit():
    X = te.placeholder((224,), name="X")
    Y = te.compute((112,), lambda i: X[i * 2] + X[i * 2 + 1], name="Y")
    assert {"X": (14,), "Y": (7,)} in _shapes(Y)


@pytest.mark.parametrize("extent", [1, 3, 4])
def test_what_is_small_stays(extent):
    A = te.placeholder((extent,), name="A")
    assert _shapes(te.compute((extent,), lambda i: A[i], name="B")) == []
