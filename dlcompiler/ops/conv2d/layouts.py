"""Layouts of images: the position of the element (n, c, y, x) in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dlcompiler.errors import TuningError
from dlcompiler.ops.base import Reference
from dlcompiler.ops.rounding import Array
from dlcompiler.space import Workload

Prepack: TypeAlias = Callable[[Workload, Mapping[str, Array]], Mapping[str, Array]]

LAYOUTS = ("NCHW", "NHWC", "NCHW8c", "NCHW16c")


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout of images.

    Examples
    --------
    >>> Layout("NCHW8c").shape((1, 32, 7, 5)), Layout("NHWC").place(0, 3, 2, 1)
    ((1, 4, 7, 5, 8), (0, 2, 1, 3))
    """

    name: str
    """One of `LAYOUTS`."""

    @property
    def channels(self) -> int:
        """Number of channels in a block, for layouts such as NCHW8c; 0 for other layouts."""
        return int(self.name[4:-1]) if self.name.endswith("c") else 0

    def shape(self, image: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of an array of images (n, c, h, w) in this layout."""
        n, c, h, w = image
        if self.channels:
            return n, c // self.channels, h, w, self.channels
        return (n, h, w, c) if self.name == "NHWC" else (n, c, h, w)

    def place(self, n: Any, c: Any, y: Any, x: Any) -> tuple[Any, ...]:
        """Return the indices at which the element (n, c, y, x) is stored."""
        if self.channels:
            return n, c // self.channels, y, x, c % self.channels
        return (n, y, x, c) if self.name == "NHWC" else (n, c, y, x)

    def element(self, *indices: Any) -> tuple[Any, Any, Any, Any]:
        """Return (n, c, y, x) of the element at indices: the inverse of `place`."""
        if self.channels:
            n, block, y, x, c = indices
            return n, block * self.channels + c, y, x
        if self.name == "NHWC":
            n, y, x, c = indices
            return n, c, y, x
        n, c, y, x = indices
        return n, c, y, x

    def store(self, array: Array) -> Array:
        """Return images (n, c, h, w) in this layout."""
        if self.channels:
            n, c, h, w = array.shape
            blocks = array.reshape(n, c // self.channels, self.channels, h, w)
            return blocks.transpose(0, 1, 3, 4, 2).copy()
        return array.transpose(0, 2, 3, 1).copy() if self.name == "NHWC" else array


def layout_of(op: str, name: Any, *channels: int) -> Layout:
    """Return a layout by its name.

    Raises
    ------
    TuningError
        The layout is unknown, or its blocks do not divide the numbers of channels.
    """
    if not isinstance(name, str) or name not in LAYOUTS:
        raise TuningError(op, "no such layout", got=repr(name), expected=", ".join(LAYOUTS))
    layout = Layout(name)
    for number in channels:
        if layout.channels and number % layout.channels:
            raise TuningError(
                op, f"the layout {name} does not divide the channels", got=f"{number} channels"
            )
    return layout


def stored(found: Reference, workload: Workload, prepack: Prepack) -> Reference:
    """Convert a reference on images in NCHW to the layout of a workload.

    Parameters
    ----------
    found : Reference
        Its images are ``data``, ``residual`` and the results; other inputs are unchanged.
    workload : Workload
        Has a ``layout``.
    prepack : callable
        Packs the inputs: `Operator.prepack`.
    """
    layout = Layout(workload["layout"])
    plain = {
        name: layout.store(array) if name in ("data", "residual") else array
        for name, array in found.inputs.items()
    }
    expected, bound = (
        {name: layout.store(array) for name, array in arrays.items()}
        for arrays in (found.expected, found.bound)
    )
    return Reference(prepack(workload, plain), expected, bound, plain=plain)
