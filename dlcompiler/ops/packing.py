"""Make kernels that pack weights: the same as an operator's ``prepack`` with NumPy.

They are for callers whose weights change from call to call.
"""

from __future__ import annotations

import math
from typing import Any

from dlcompiler import te
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.target import Target
from dlcompiler.te import Tensor

GIVEN = "_given"
"""Suffix of the name of the unpacked weights."""


def panels(
    weight: tuple[int, ...], groups: int, width: int, dtype: str, target: Target
) -> tuple[Schedule, tuple[Tensor, Tensor]]:
    """Return a kernel that packs weights into panels of `width` rows stored side by side.

    Parameters
    ----------
    weight : tuple of int
        Shape of the weights, ``(o, …)``, of which the first dimension is to be innermost.
    groups : int
        Number of groups, which divides ``o``; a panel holds rows of one group.
    width : int
        Rows in a panel; the last one of a group is filled up with 0.
    dtype : str
        Dtype of the weights.
    target : Target
        A CPU.

    Returns
    -------
    tuple
        The schedule, and the parameters ``weight_given`` of shape ``(groups, o / groups, r)``, with
        r elements in a row, and ``weight`` of shape ``(panels, r, width)``. Both are the weights in
        memory, whatever the number of their dimensions.

    Notes
    -----
    *Before*, then *after* for vectors of 8 and panels of 16 rows: squares of elements are read by
    rows and written by columns, transposed in registers::

        for b in range(4):              for b in range(4):
            for r in range(27):             for r.outer in range(4):
                for v in range(16):             for v.outer in range(2):
                    P[b, r, v] = …                  for r.inner in unrolled(8):
                                                        for v.inner in vectorized(8):
                                                            P[b, r, v] = …
    """
    rows, length = weight[0] // groups, math.prod(weight[1:])
    blocks = -(-rows // width)
    given = te.placeholder((groups, rows, length), dtype, "weight" + GIVEN)

    def element(b: Any, r: Any, v: Any) -> Any:
        row = b % blocks * width + v if groups > 1 else b * width + v
        value = given[b // blocks if groups > 1 else 0, row, r]
        if rows % width == 0:
            return value
        return te.if_then_else(row < rows, value, te.const(0, dtype))

    packed = te.compute((groups * blocks, length, width), element, name="weight")
    s = create_schedule(packed)
    lanes = min(target.lanes(dtype), width)
    block, r, v = packed.op.axis
    v_outer, v_inner = s[packed].split(v, lanes)
    r_outer, r_inner = s[packed].split(r, lanes)
    s[packed].reorder(block, r_outer, v_outer, r_inner, v_inner)
    s[packed].unroll(r_inner)
    s[packed].vectorize(v_inner)
    if target.cores > 1:
        s[packed].parallel(block)
    return s, (given, packed)
