"""Random inputs and empty outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dlcompiler.compat.d2ltvm.expressions import conv_out_size

Constructor = Callable[[Any], Any] | None
SEED = 0
"""Seed of the generator: two calls with the same arguments give the same data."""


def _made(constructor: Constructor, *arrays: Any) -> tuple[Any, ...]:
    """Convert arrays to float32, and pass each one to the constructor."""
    values = [np.asarray(array, "float32") for array in arrays]
    return tuple(values if constructor is None else [constructor(value) for value in values])


def get_abc(shape: Any, constructor: Constructor = None) -> tuple[Any, ...]:
    """Return random a and b, and an empty c, of one shape.

    Parameters
    ----------
    shape : int or tuple of int
        Extents.
    constructor : callable, optional
        Makes an array of another kind from NumPy's, for example ``tvm.nd.array``.
    """
    random = np.random.default_rng(SEED)
    a, b = random.normal(size=shape), random.normal(size=shape)
    return _made(constructor, a, b, np.empty(shape, "float32"))


def get_bcast_data(
    shape1: Sequence[int], shape2: Sequence[int], constructor: Constructor = None
) -> tuple[Any, ...]:
    """Return random a and b, and an empty output of their broadcast shape."""
    random = np.random.default_rng(SEED)
    a, b = random.normal(size=tuple(shape1)), random.normal(size=tuple(shape2))
    return _made(constructor, a, b, np.empty(np.broadcast_shapes(a.shape, b.shape), "float32"))


def get_conv_data(
    oc: int, ic: int, n: int, k: int, p: int = 0, s: int = 1,
    constructor: Constructor = None, conv_type: str = "direct",
) -> tuple[Any, ...]:  # fmt: skip
    """Return a random image (ic, n, n), random filters, and an empty result (oc, on, on).

    Parameters
    ----------
    oc, ic, n, k, p, s : int
        Channels of result and image, extent of image, filters, border and step.
    constructor : callable, optional
        As in `get_abc`.
    conv_type : {"direct", "depthwise"}
        Filters (oc, ic, k, k), or (oc, 1, k, k).
    """
    random = np.random.default_rng(SEED)
    data = random.normal(size=(ic, n, n))
    weight = random.normal(size=(oc, 1 if conv_type == "depthwise" else ic, k, k))
    on = conv_out_size(n, k, p, s)
    return _made(constructor, data, weight, np.empty((oc, on, on), "float32"))


def get_bn_data(c: int, n: int, constructor: Constructor = None) -> tuple[Any, ...]:
    """Return random data (c, n, n), mean, variance, gamma, beta (c, 1, 1), and an empty result."""
    random = np.random.default_rng(SEED)
    data = random.normal(size=(c, n, n))
    mean = random.normal(size=(c, 1, 1))
    variance = np.absolute(random.normal(loc=1.0, scale=0.1, size=(c, 1, 1)))
    gamma, beta = random.normal(size=(c, 1, 1)), random.normal(size=(c, 1, 1))
    return _made(constructor, data, mean, variance, gamma, beta, np.empty((c, n, n), "float32"))


def image_preprocessing(image: Any) -> Any:
    """Return an image (h, w, 3) of bytes as (1, 3, h, w), normalized for ImageNet's networks.

    Notes
    -----
    **Source:** mean and spread of ImageNet's channels: the documentation of torchvision's models.
    """
    mean, spread = np.array([123.675, 116.28, 103.53]), np.array([58.395, 57.12, 57.375])
    values = (np.asarray(image) - mean) / spread
    return values.transpose(2, 0, 1)[np.newaxis].astype("float32")
