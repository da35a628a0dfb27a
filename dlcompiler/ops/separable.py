"""Windows in two passes: down the columns of an image, then along its rows.

The largest element of a window is that of its columns' largest elements, and so is the sum. The
windows of a row share their columns: a window of 9 × 9 takes about 9 + 9 steps instead of 81.

The first pass is a stage ``….down``, between ``….padded`` and ``….sums``. For ``….sums`` it is the
image, and windows are one row tall: `dlcompiler.ops.sliding` schedules them as all others.
"""

from __future__ import annotations

from typing import Any

from dlcompiler.ops.conv2d.shapes import Window
from dlcompiler.ops.helpers import over, tensor
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config
from dlcompiler.te import Tensor

_STORE_STEPS = 3
"""Steps of a window that take as long as storing a result of the first pass; measured."""
_STRIDED_STEPS = 2
"""Steps that take as long as one whose loads are strided; measured."""


def is_separable(rows: Window, columns: Window) -> bool:
    """Tell whether two passes over the windows of an image take less time than one.

    Examples
    --------
    >>> is_separable(Window(20, 9, 1, 4, 4), Window(20, 9, 1, 4, 4))
    True
    >>> is_separable(Window(20, 2, 2), Window(20, 2, 2))
    False
    """
    if not rows.out or not columns.out:
        return False
    # The first pass computes each column that the windows of a row read.
    shared = columns.span / columns.out
    step = 1 if columns.stride == 1 else _STRIDED_STEPS
    passes = (rows.kernel + _STORE_STEPS) * shared + columns.kernel * step
    return passes < rows.kernel * columns.kernel * step


def down(image: Tensor, height: int, rows: Window, reduce: Any, name: str) -> Tensor:
    """Define the results of windows that are one column wide.

    Parameters
    ----------
    image : Tensor
        Padded images in NCHW.
    height : int
        Number of windows below each other.
    rows : Window
        The window along the height.
    reduce : callable
        ``te.max`` or ``te.sum``.
    name : str
        Of the stage.
    """
    p = over(rows.kernel, "p")
    return tensor(
        (*image.shape[:2], height, image.shape[3]),
        lambda n, c, y, x: reduce(image[n, c, y * rows.stride + p * rows.dilation, x], axis=p),
        name,
    )


def schedule_down(s: Schedule, stage: Tensor, cfg: Config) -> None:
    """Compute windows of one column in vectors of columns, some rows at a time in registers."""
    n, c, y, x = stage.op.axis
    (p,) = stage.op.reduce_axis
    s[stage].align_extent(x, cfg["copy_lanes"])
    columns, lane = s[stage].split(x, cfg["copy_lanes"])
    rows, row = s[stage].split(y, cfg["down_rows"])
    s[stage].reorder(n, c, rows, columns, p, row, lane)
    s[stage].unroll(row)
    s[stage].vectorize(lane)
