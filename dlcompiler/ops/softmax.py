"""Softmax and its logarithm along one dimension.

Both are the same up to the last stage: the largest of each row, the powers ``exp(x - largest)`` and
their sum. A row's stages are computed one after the other inside the loop over rows, so that all
but the first find it in the nearest cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.ops.base import Operator, Reference
from dlcompiler.ops.defining import along, dimensions, reduced, tensor, without
from dlcompiler.ops.lanes import reduce_in_lanes, widest_power
from dlcompiler.ops.rounding import SMALLEST, Wide, unit
from dlcompiler.ops.shapes import checked_dimension, checked_dtype, shape_of, shape_text
from dlcompiler.ops.sharing import is_worth_sharing
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Knob, Space, Workload, parallel_knob
from dlcompiler.target import Target
from dlcompiler.te import Tensor

DTYPES = ("float32", "float64")
_CYCLES = 2.0
"""What an element takes one core [cycle]: measured."""
_EXP_ULPS = 4
"""What the powers may be off, with the subtraction before them."""


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
        lambda *i: power[i] * (te.const(1, x.dtype) / total[without(i, n)]),
        name="T_softmax_norm",
    )


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """Define the logarithm of `softmax`."""
    n, largest, _, total = _powers(x, axis, "log_softmax")
    return tensor(
        x.shape,
        lambda *i: x[i] - largest[without(i, n)] - te.log(total[without(i, n)]),
        name="T_log_softmax",
    )


def _powers(x: Tensor, axis: int, name: str) -> tuple[int, Tensor, Tensor, Tensor]:
    """Return the dimension, the largest along it, the powers, and their sum.

    The difference from the largest is not above 0; that it is said lets the powers be computed in
    fewer steps, and a difference between infinities is NaN all the same.
    """
    (n,) = dimensions(axis, len(x.shape), name)
    largest = along(x, n, _LARGEST, "T_softmax_maxelem")
    power = tensor(
        x.shape,
        lambda *i: te.exp(te.minimum(x[i] - largest[without(i, n)], te.const(0, x.dtype))),
        name="T_softmax_exp",
    )
    return n, largest, power, along(power, n, te.sum, "T_softmax_expsum")


_LARGEST = te.comm_reducer(
    lambda x, y: te.select(y > x, y, x), lambda dtype: te.const(-math.inf, dtype), name="largest"
)
"""The largest number, which is one instruction, where `te.max` needs three to let NaN through.

A NaN reaches the whole row by its power and the sum.
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
    """Return softmax or its logarithm in float64, and how far a result may be off."""
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

    ============  ==============================================================================
    ``sums``      vectors of partial results of the largest and the sum
    ``powers``    vectors of powers computed side by side
    ``parallel``  run the rows on several cores
    ============  ==============================================================================
    """
    knobs = [
        Knob("sums", (1, 2, 4, 8)),
        Knob("powers", (1, 2, 4, 8)),
        parallel_knob(target.cores),
    ]
    return Space(workload, knobs)


def default_config(workload: Workload, target: Target) -> Config:
    """Return four vectors of partial results, eight of powers: each hides the wait for others."""
    shape = shape_of(workload["shape"])
    elements = int(np.prod(shape))
    rows = elements // max(shape[workload["axis"]], 1)
    is_parallel = rows >= target.cores and is_worth_sharing(_CYCLES * elements, target)
    return space(workload, target).config(sums=4, powers=8, parallel=is_parallel)


# -- the schedule -------------------------------------------------------------------------------


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule a softmax on a CPU.

    Along the last dimension, each row is reduced in lanes (`reduce_in_lanes`); along another, the
    lanes are neighbouring rows.
    """
    (out,) = outs
    stages = _Stages.of(out)
    lanes = target.lanes(out.dtype)
    n = stages.axis
    if n == len(out.shape) - 1:
        _schedule_rows(s, stages, cfg, lanes)
    else:
        _schedule_columns(s, stages, cfg, lanes)


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
        """Find them from the result."""
        total = next(t for t in out.op.input_tensors if t.name == "T_softmax_expsum")
        (power,) = total.op.input_tensors
        largest = next(t for t in power.op.input_tensors if t.name == "T_softmax_maxelem")
        _, (axis,) = reduced(total)
        return _Stages(out, largest, power, total, axis)


def _schedule_rows(s: Schedule, stages: _Stages, cfg: Config, lanes: int) -> None:
    out, extent = stages.out, stages.out.static_shape[-1]
    rows = out.op.axis[:-1]
    row = s[out].fuse(*rows) if rows else None
    width = widest_power(extent, lanes * cfg["sums"])
    powers = widest_power(extent, lanes * cfg["powers"])
    vectors: list[Any] = [stages.power, out]
    for stage, factor in zip(vectors, (powers, width), strict=True):
        _, vector = s[stage].split(s[stage].op.axis[-1], factor)
        s[stage].vectorize(vector)
    inner = [stages.largest, *reduce_in_lanes(s, stages.largest, width)]
    inner += [stages.power, stages.total, *reduce_in_lanes(s, stages.total, width)]
    if row is not None:
        for stage in inner:
            s[stage].compute_at(s[out], row)
        if cfg["parallel"]:
            s[out].parallel(row)


def _schedule_columns(s: Schedule, stages: _Stages, cfg: Config, lanes: int) -> None:
    out, n = stages.out, stages.axis
    axes = list(out.op.axis)
    width = widest_power(out.static_shape[-1], lanes * cfg["powers"])
    chunk, vector = s[out].split(axes[-1], width)
    others = [*axes[:n], *axes[n + 1 : -1], chunk]
    s[out].reorder(*others, axes[n], vector)
    s[out].vectorize(vector)
    for stage in (stages.largest, stages.power, stages.total):
        s[stage].compute_at(s[out], chunk)
    for stage in (stages.largest, stages.total):
        (k,) = s[stage].op.reduce_axis
        last = s[stage].op.axis[-1]
        s[stage].reorder(k, last)
        s[stage].vectorize(last)
    s[stages.power].vectorize(s[stages.power].op.axis[-1])
    if cfg["parallel"]:
        s[out].parallel(others[0])


def _operator(name: str) -> Operator:
    def named(**parameters: Any) -> Workload:
        return workload(name, **parameters)

    return Operator(name, named, define, reference, space, default_config, schedule)


SOFTMAX = _operator("softmax")
LOG_SOFTMAX = _operator("log_softmax")
