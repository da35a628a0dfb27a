"""Heldout shapes: random shapes that no shipped config was tuned for, drawn from a seed.

The suites ``heldout`` and ``heldout-FAMILY`` measure them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from dlcompiler.bench.works import Work, parse_work

LEAST_FLOPS, MOST_FLOPS = 1e6, 1e9
LEAST_ELEMENTS, MOST_ELEMENTS = 1 << 12, 1 << 22


def heldout_works(family: str, seed: int, count: int) -> tuple[Work, ...]:
    """Draw different works of heldout shapes of a family.

    Parameters
    ----------
    family : str
        A key of `FAMILIES`.
    seed : int
        Equal seeds give equal works.
    count : int
        Number of works.

    Examples
    --------
    >>> heldout_works("softmax", seed=1, count=2) == heldout_works("softmax", seed=1, count=2)
    True
    """
    generator = random.Random(f"{family} {seed}")
    found: dict[str, Work] = {}
    while len(found) < count:
        work = parse_work(FAMILIES[family](generator))
        if _is_of_ordinary_size(work):
            found.setdefault(work.text, work)
    return tuple(found.values())


def _is_of_ordinary_size(work: Work) -> bool:
    if work.flops and work.family != "depthwise":
        return LEAST_FLOPS <= work.flops <= MOST_FLOPS
    elements = math.prod(work.shapes["data"])
    return LEAST_ELEMENTS <= elements <= MOST_ELEMENTS


def _extent(generator: random.Random, low: int, high: int) -> int:
    """Draw an extent, log-uniformly; round half of those from 8 on down to a multiple of 8."""
    extent = round(math.exp(generator.uniform(math.log(low), math.log(high + 1))))
    if extent >= 8 and generator.random() < 0.5:
        extent -= extent % 8
    return max(low, min(extent, high))


def _gemm(generator: random.Random) -> str:
    m, n, k = (_extent(generator, 1, 2048) for _ in range(3))
    return f"gemm:{m}x{n}x{k}"


def _image(generator: random.Random, channels: int) -> tuple[str, str]:
    """Draw an image, and a kernel with stride and padding that fits into it."""
    height = _extent(generator, 5, 128)
    width = height if generator.random() < 0.7 else _extent(generator, 5, 128)
    batch = generator.choice((1, 1, 1, 2, 4))
    kernel = generator.choice((1, 3, 3, 3, 5, 7))
    stride = generator.choice((1, 1, 2))
    padding = generator.choice((kernel // 2, kernel // 2, 0))
    if min(height, width) + 2 * padding < kernel:
        padding = kernel // 2
    return f"{batch}x{channels}x{height}x{width}", f"{kernel},{stride},{padding}"


def _conv2d(generator: random.Random) -> str:
    channels = 3 if generator.random() < 0.1 else _extent(generator, 4, 512)
    image, window = _image(generator, channels)
    return f"conv2d:{image},{_extent(generator, 4, 512)},{window}"


def _depthwise(generator: random.Random) -> str:
    image, window = _image(generator, _extent(generator, 4, 1024))
    return f"depthwise:{image},{window}"


def _rows(family: str) -> Callable[[random.Random], str]:
    def draw(generator: random.Random) -> str:
        return f"{family}:{_extent(generator, 1, 4096)}x{_extent(generator, 2, 8192)}"

    return draw


FAMILIES: dict[str, Callable[[random.Random], str]] = {
    "gemm": _gemm,
    "conv2d": _conv2d,
    "depthwise": _depthwise,
    "softmax": _rows("softmax"),
    "layer_norm": _rows("layer_norm"),
}
"""Family -> function that draws the text of a work."""
