"""The operators softmax and log_softmax, along one dimension.

Their stages are the maximum of each row, the powers ``exp(x - largest)``, their sum, and the
result. Inside the loop over rows, the stages are computed one after the other, so that all but the
first read the row from the nearest cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.ir import Expr
from dlcompiler.ops.base import DeviceSchedule, Operator, Reference, by_device
from dlcompiler.ops.helpers import along, dimensions, reduced, tensor, without
from dlcompiler.ops.lanes import reduce_in_lanes, widest_power
from dlcompiler.ops.rounding import SMALLEST, Wide, unit
from dlcompiler.ops.rows import INTERLEAVED, interleave_rows, row_knobs, split_rows, width_knob
from dlcompiler.ops.shapes import checked_dimension, checked_dtype, shape_of, shape_text
from dlcompiler.ops.sharing import is_worth_sharing
from dlcompiler.ops.widening import converted, sums_dtype
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Knob, Space, Workload, parallel_knob, split_knob
from dlcompiler.target import Target
from dlcompiler.te import Tensor

DTYPES = ("float32", "float64")
_CYCLES = 2.0
"""Time of an element on one core [cycle]; measured."""
_WIDTHS = ("largest", "powers", "sums", "results")
_STEPS = (1, 2, 4, 8)
_SHORT_ROWS = 16
"""Rows of a block, if each has one or two vectors."""
_EXP_ULPS = 4
"""Error of the powers, with that of the subtraction before them."""


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """Define ``exp(x)`` divided by its sum along a dimension.

    Examples
    --------
    >>> softmax(te.placeholder((64, 1000), name="data"))
    Tensor(T_softmax_norm: float32[64, 1000])
    """
    n, largest, power, total = _powers(x, axis, "softmax")
    del largest
    # One division a row: the quotient is within 1.5 units of the last place instead of 0.5.
    return tensor(
        x.shape,
        lambda *i: converted(power[i] * (te.const(1, total.dtype) / total[without(i, n)]), x.dtype),
        name="T_softmax_norm",
    )


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """Define the logarithm of `softmax`."""
    n, largest, _, total = _powers(x, axis, "log_softmax")

    def element(*i: Expr) -> Expr:
        below = _below(x, largest, n, *i)
        return converted(below - te.log(total[without(i, n)]), x.dtype)

    return tensor(x.shape, element, name="T_log_softmax")


def _powers(x: Tensor, axis: int, name: str) -> tuple[int, Tensor, Tensor, Tensor]:
    """Return the dimension, the maximum along it, the exponentials, and their sum.

    The difference from the maximum is at most 0. Stating this in the expression allows a faster
    exponential; the difference of two infinities is still NaN. Powers of 16-bit floats are float32,
    so that only the result is rounded to 16 bits.
    """
    (n,) = dimensions(axis, len(x.shape), name)
    largest = along(x, n, _LARGEST, "T_softmax_maxelem")
    zero = te.const(0, sums_dtype(x.dtype))
    power = tensor(
        x.shape,
        lambda *i: te.exp(te.minimum(_below(x, largest, n, *i), zero)),
        name="T_softmax_exp",
    )
    return n, largest, power, along(power, n, te.sum, "T_softmax_expsum")


def _below(x: Tensor, largest: Tensor, n: int, *i: Expr) -> Expr:
    """Return the difference of an element from the maximum along dimension `n`."""
    dtype = sums_dtype(x.dtype)
    below: Expr = converted(x[i], dtype) - converted(largest[without(i, n)], dtype)
    return below


_LARGEST = te.comm_reducer(
    lambda x, y: te.select(y > x, y, x), lambda dtype: te.const(-math.inf, dtype), name="largest"
)
"""The maximum by one instruction; `te.max` needs three, because it propagates NaN.

A NaN still reaches the whole row through its power and the sum.
"""


def workload(
    name: str, *, shape: Sequence[int] | str, axis: int = -1, dtype: str = "float32"
) -> Workload:
    """Return the workload of `softmax` or `log_softmax`."""
    text = shape_text(shape, name)
    n = checked_dimension(axis, len(shape_of(text)), name)
    return Workload.of(name, shape=text, axis=n, dtype=checked_dtype(dtype, DTYPES, name))


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``data`` and the result."""
    data = te.placeholder(shape_of(workload["shape"]), workload["dtype"], "data")
    function = {"softmax": softmax, "log_softmax": log_softmax}[workload.op]
    return data, function(data, workload["axis"])


def reference(workload: Workload, seed: int) -> Reference:
    """Return inputs in [-8, 8), the result, and its bound.

    Notes
    -----
    A power ``p = exp(x - m)`` is off by ``(|x - m| + 4)·u·p``: what its argument is off, and its
    own. A sum of n adds at most ``n·u``, and the division ``u``.
    **Source:** N. J. Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., section 3.1
    """
    shape, axis, dtype = shape_of(workload["shape"]), workload["axis"], workload["dtype"]
    data = np.random.default_rng(seed).uniform(-8, 8, shape).astype(dtypes.to_numpy(dtype))
    expected, bound = exact(workload.op, data.astype(np.float64), axis, dtype)
    out = define(workload)[-1].name
    return Reference({"data": data}, {out: expected}, {out: bound})


def exact(name: str, x: Wide, axis: int, dtype: str) -> tuple[Wide, Wide]:
    """Return softmax or its logarithm in float64, and the error bound."""
    if x.size == 0:
        return x, x
    own = unit(dtype) * (2 if dtype == "float64" else 1)
    below = x - x.max(axis=axis, keepdims=True)
    powers = np.exp(below)
    total = powers.sum(axis=axis, keepdims=True)
    off = (np.abs(below) + _EXP_ULPS) * own
    of_total = (off * powers).sum(axis=axis, keepdims=True) / total + x.shape[axis] * own
    if name == "softmax":
        result = powers / total
        return result, 1.1 * (result * (off + of_total + 2 * own) + SMALLEST[dtype])
    result = below - np.log(total)
    rounding = np.abs(below) + np.abs(np.log(total)) + np.abs(result)
    return result, 1.1 * (of_total + 4 * own * (rounding + 1))


# -- the choices --------------------------------------------------------------------------------


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule`.

    Along the last dimension:

    =================  =========================================================================
    ``rows``           in a block: each stage is computed for one before the next stage is
    ``interleave``     reduce the rows of a block side by side
    ``largest_first``  find the largest of all rows before anything else
    ``largest``        lanes in which the largest is found
    ``powers``         computed side by side
    ``sums``           lanes in which the powers are added
    ``results``        computed side by side
    ``parallel``       run blocks on several cores
    =================  =========================================================================

    Along another:

    =================  =========================================================================
    ``width``          neighbouring rows that are computed side by side
    ``largest_steps``  elements that are compared without a loop
    ``sums_steps``     powers that are added without a loop
    ``parallel``       run rows on several cores
    =================  =========================================================================
    """
    shape = shape_of(workload["shape"])
    extent, lanes = shape[-1], target.lanes(workload["dtype"])
    parallel = parallel_knob(target.cores)
    if workload["axis"] != len(shape) - 1:
        along = shape[workload["axis"]]
        steps = [split_knob(name, along, _STEPS) for name in ("largest_steps", "sums_steps")]
        return Space(workload, [width_knob("width", extent, lanes), *steps, parallel])
    widths = [width_knob(name, extent, lanes) for name in _WIDTHS]
    first = Knob("largest_first", (False, True)[: len(shape)])
    knobs = [*row_knobs(shape), first, *widths, parallel]
    return Space(workload, knobs, [INTERLEAVED])


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config with four vectors of partial results and eight of powers.

    The largest elements of all rows are found first if one core computes all and the array fits
    half of the second cache: 5 to 25 % faster on an Emerald Rapids.
    """
    shape, axis = shape_of(workload["shape"]), workload["axis"]
    elements, lanes = int(np.prod(shape)), target.lanes(workload["dtype"])
    rows = elements // max(shape[axis], 1)
    four, eight = (widest_power(shape[-1], lanes * vectors) for vectors in (4, 8))
    is_parallel = rows >= target.cores and is_worth_sharing(_CYCLES * elements, target)
    values: dict[str, Any] = {"width": eight, "largest_steps": 1, "sums_steps": 1}
    if axis == len(shape) - 1:
        size = elements * dtypes.bytes_of(workload["dtype"])
        is_first = size <= target.cache_bytes(1) // 2 and len(shape) > 1 and not is_parallel
        values = {"rows": _rows(workload, lanes), "interleave": False, "largest_first": is_first}
        values |= {"largest": four, "powers": eight, "sums": four, "results": four}
    return space(workload, target).config(**values, parallel=is_parallel)


def _rows(workload: Workload, lanes: int) -> int:
    """Return the rows of a block: several short ones hide the latency of a logarithm.

    Examples
    --------
    >>> _rows(workload("log_softmax", shape=(400, 20)), lanes=16)
    16
    """
    shape = shape_of(workload["shape"])
    if workload.op == "softmax" or shape[-1] > 2 * lanes or len(shape) < 2:
        return 1
    return widest_power(shape[-2], _SHORT_ROWS)


# -- the schedule -------------------------------------------------------------------------------


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule a softmax on a CPU.

    Along the last dimension, each row is reduced in lanes (`reduce_in_lanes`). Along another
    dimension, the lanes are neighbouring rows.
    """
    del target
    (out,) = outs
    stages = _Stages.of(out)
    if stages.axis == len(out.shape) - 1:
        _schedule_rows(s, stages, cfg)
    else:
        _schedule_columns(s, stages, cfg)


@dataclass(frozen=True)
class _Stages:
    """The stages of a softmax by name."""

    out: Tensor
    largest: Tensor
    power: Tensor
    total: Tensor
    axis: int
    """The dimension that it goes along."""

    @staticmethod
    def of(out: Tensor) -> _Stages:
        """Find the stages from the result."""
        total = next(t for t in out.op.input_tensors if t.name == "T_softmax_expsum")
        (power,) = total.op.input_tensors
        largest = next(t for t in power.op.input_tensors if t.name == "T_softmax_maxelem")
        _, (axis,) = reduced(total)
        return _Stages(out, largest, power, total, axis)


def _schedule_rows(s: Schedule, stages: _Stages, cfg: Config) -> None:
    out, largest, total = stages.out, stages.largest, stages.total
    blocks = split_rows(s, out, cfg["rows"], is_parallel=cfg["parallel"])
    for stage, width in ((stages.power, cfg["powers"]), (out, cfg["results"])):
        _, vector = s[stage].split(s[stage].op.axis[-1], width)
        s[stage].vectorize(vector)
    is_first = cfg["largest_first"]
    widest = reduce_in_lanes(s, largest, cfg["largest"])
    added = reduce_in_lanes(s, total, cfg["sums"])
    if blocks is None:
        return
    if is_first:
        first = s[largest].fuse(*s[largest].op.axis)
        if cfg["parallel"]:
            s[largest].parallel(first)
        for stage in widest:
            s[stage].compute_at(s[largest], first)
        widest = []
    else:
        s[largest].compute_at(s[out], blocks)
    for stage in (*widest, stages.power, total, *added):
        s[stage].compute_at(s[out], blocks)
    if cfg["interleave"]:
        interleave_rows(s, widest)
        interleave_rows(s, added)


def _schedule_columns(s: Schedule, stages: _Stages, cfg: Config) -> None:
    out, n = stages.out, stages.axis
    axes = list(out.op.axis)
    chunk, vector = s[out].split(axes[-1], cfg["width"])
    others = [*axes[:n], *axes[n + 1 : -1], chunk]
    s[out].reorder(*others, axes[n], vector)
    s[out].vectorize(vector)
    if cfg["parallel"]:
        chunk = s[out].fuse(*others)
        s[out].parallel(chunk)
    for stage in (stages.largest, stages.power, stages.total):
        s[stage].compute_at(s[out], chunk)
    for stage, steps in ((stages.largest, cfg["largest_steps"]), (stages.total, cfg["sums_steps"])):
        (k,) = s[stage].op.reduce_axis
        last = s[stage].op.axis[-1]
        k, step = s[stage].split(k, steps)
        s[stage].reorder(k, step, last)
        s[stage].unroll(step)
        s[stage].vectorize(last)
    s[stages.power].vectorize(s[stages.power].op.axis[-1])


def _operator(name: str) -> Operator:
    def named(**parameters: Any) -> Workload:
        return workload(name, **parameters)

    return Operator(
        name,
        named,
        define,
        reference,
        by_device(
            {
                "cpu": DeviceSchedule(space, default_config, schedule),
                "gpu": "dlcompiler.ops.gpu.rows:ROWS",
            }
        ),
    )


SOFTMAX = _operator("softmax")
LOG_SOFTMAX = _operator("log_softmax")
