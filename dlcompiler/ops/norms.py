"""Normalisations of rows (layer norm, RMS norm), and of channels with fixed statistics.

The variance is the mean of squared distances from the mean. This needs a second pass over the row,
which is in the nearest cache; the difference of two large sums would lose digits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.errors import TuningError
from dlcompiler.ops.base import DeviceSchedule, Operator, Reference, by_device
from dlcompiler.ops.helpers import over, tensor
from dlcompiler.ops.lanes import reduce_in_lanes, widest_power
from dlcompiler.ops.options import options_text
from dlcompiler.ops.rounding import Array, Wide, unit
from dlcompiler.ops.rows import INTERLEAVED, interleave_rows, row_knobs, split_rows, width_knob
from dlcompiler.ops.shapes import checked_dtype, shape_of, shape_text
from dlcompiler.ops.sharing import is_worth_sharing
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Space, Workload, parallel_knob
from dlcompiler.target import Target
from dlcompiler.te import ComputeOp, Tensor

DTYPES = ("float32", "float64")
_CYCLES = 1.0
"""Time of an element on one core [cycle]; measured."""
EPSILON = 1e-5
"""Number added to the variance."""


def layer_norm(data: Tensor, scale: Tensor, shift: Tensor, epsilon: float = EPSILON) -> Tensor:
    """Define ``(x - mean) / sqrt(variance + epsilon) * scale + shift`` of each row.

    Parameters
    ----------
    data : Tensor
        Of shape ``(…, n)``; a row is what the last dimension holds.
    scale, shift : Tensor
        Of shape ``(n,)``.
    epsilon : float
        Keeps the root from 0.

    Notes
    -----
    **Source:** J. L. Ba, J. R. Kiros, G. E. Hinton, arXiv:1607.06450, equation 3.
    """
    *rows, n = data.shape
    inverse = te.const(1 / max(n, 1), data.dtype)
    mean = _row_sum(data, "layer_norm.sum", lambda x, i: x)
    centre = tensor(rows, lambda *i: mean[i] * inverse, "layer_norm.mean")
    squares = _row_sum(data, "layer_norm.squares", lambda x, i: _square(x - centre[i]))
    root = tensor(
        rows,
        lambda *i: inverse_root(squares[i] * inverse, epsilon),
        "layer_norm.inverse_deviation",
    )
    return tensor(
        data.shape,
        lambda *i: (data[i] - centre[i[:-1]]) * root[i[:-1]] * scale[i[-1]] + shift[i[-1]],
        "layer_norm",
    )


def rms_norm(data: Tensor, scale: Tensor, epsilon: float = EPSILON) -> Tensor:
    """Define ``x / sqrt(mean of squares + epsilon) * scale`` of each row; see `layer_norm`.

    Notes
    -----
    **Source:** B. Zhang, R. Sennrich, arXiv:1910.07467, equation 4.
    """
    *rows, n = data.shape
    inverse = te.const(1 / max(n, 1), data.dtype)
    squares = _row_sum(data, "rms_norm.squares", lambda x, i: _square(x))
    root = tensor(
        rows, lambda *i: inverse_root(squares[i] * inverse, epsilon), "rms_norm.inverse_root"
    )
    return tensor(data.shape, lambda *i: data[i] * root[i[:-1]] * scale[i[-1]], "rms_norm")


def _row_sum(data: Tensor, name: str, term: Any) -> Tensor:
    k = over(data.shape[-1])
    return tensor(data.shape[:-1], lambda *i: te.sum(term(data[(*i, k)], i), axis=k), name)


def _square(x: Any) -> Any:
    return x * x


def inverse_root(mean: Any, epsilon: float) -> Any:
    """Return ``1 / sqrt(mean + epsilon)`` of a mean of squares."""
    return te.const(1, mean.dtype) / te.sqrt(mean + te.const(epsilon, mean.dtype))


def workload(
    name: str, *, shape: Sequence[int] | str, dtype: str = "float32", epsilon: float | str = EPSILON
) -> Workload:
    """Return the workload of `layer_norm` or `rms_norm`; rows lie along the last dimension.

    A workload names `epsilon` only if it is not `EPSILON`.
    """
    text = shape_text(shape, name)
    if not shape_of(text):
        text = "1"
    kind = checked_dtype(dtype, DTYPES, name)
    return Workload.of(name, shape=text, dtype=kind, **epsilon_parameter(epsilon, name))


def epsilon_parameter(epsilon: float | str, where: str) -> dict[str, str]:
    """Return the parameter of a workload that holds an epsilon; none if it is the usual one."""
    text = options_text({"epsilon": epsilon}, {"epsilon": EPSILON}, where)
    value = epsilon_of(dict([text.split("=")]) if text else {})
    if not 0 <= value < math.inf:
        raise TuningError(where, "epsilon is negative or infinite", got=repr(epsilon))
    return {"epsilon": text.partition("=")[2]} if text else {}


def epsilon_of(params: Mapping[str, Any]) -> float:
    """Return the epsilon of a workload's parameters."""
    return float(params.get("epsilon", EPSILON))


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``data``, ``scale``, ``shift`` (for a layer norm only), and the result."""
    shape, dtype = shape_of(workload["shape"]), workload["dtype"]
    epsilon = epsilon_of(workload.as_dict())
    data = te.placeholder(shape, dtype, "data")
    scale = te.placeholder(shape[-1:], dtype, "scale")
    if workload.op == "rms_norm":
        return data, scale, rms_norm(data, scale, epsilon)
    shift = te.placeholder(shape[-1:], dtype, "shift")
    return data, scale, shift, layer_norm(data, scale, shift, epsilon)


def reference(workload: Workload, seed: int) -> Reference:
    """Return inputs around 1, the result, and its bound (`exact`)."""
    shape, dtype = shape_of(workload["shape"]), dtypes.to_numpy(workload["dtype"])
    generator = np.random.default_rng(seed)
    inputs = {
        "data": generator.uniform(-1, 3, shape).astype(dtype),
        "scale": generator.uniform(0.5, 1.5, shape[-1:]).astype(dtype),
    }
    if workload.op == "layer_norm":
        inputs["shift"] = generator.uniform(-1, 1, shape[-1:]).astype(dtype)
    expected, bound = exact(inputs, workload["dtype"], epsilon_of(workload.as_dict()))
    return Reference(inputs, {workload.op: expected}, {workload.op: bound})


def exact(inputs: dict[str, Array], dtype: str, epsilon: float = EPSILON) -> tuple[Wide, Wide]:
    """Return the result in float64 and its error bound.

    Notes
    -----
    The mean of n numbers is off by ``n·u·mean|x|``, and so is each distance from it; the mean of
    the squared distances is off by ``(n + 4)·u`` of itself, and by what the distances are off to
    the second power (to the first they cancel, but for roundings).
    **Source:** T. F. Chan, G. H. Golub, R. J. LeVeque, "Algorithms for computing the sample
    variance", The American Statistician 37(3), 1983, section 2.
    """
    x = inputs["data"].astype(np.float64)
    scale = inputs["scale"].astype(np.float64)
    n, own = x.shape[-1], unit(dtype) * (2 if dtype == "float64" else 1)
    if x.size == 0:
        return x, x
    shift = inputs.get("shift")
    mean = x.mean(axis=-1, keepdims=True) if shift is not None else np.zeros_like(x[..., :1])
    off = (n + 1) * own * np.abs(x).mean(axis=-1, keepdims=True) if shift is not None else mean
    distance = x - mean
    off = off + own * np.abs(distance)
    variance = np.square(distance).mean(axis=-1, keepdims=True)
    of_variance = (n + 4) * own * variance + np.square(off).mean(axis=-1, keepdims=True)
    root = 1 / np.sqrt(variance + epsilon)
    of_root = root * (0.5 * of_variance / (variance + epsilon) + 4 * own)
    result = distance * root * scale
    bound = np.abs(scale) * (off * root + np.abs(distance) * of_root) + 3 * own * np.abs(result)
    if shift is not None:
        result = result + shift
        bound = bound + own * np.abs(result)
    return result, 1.1 * bound


# -- the choices --------------------------------------------------------------------------------


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule`.

    ==============  ============================================================================
    ``rows``        in a block: each stage is computed for one before the next stage is
    ``interleave``  add up the rows of a block side by side
    ``sums``        lanes in which a row is added up, of a layer norm
    ``squares``     lanes in which the squares are added
    ``results``     computed side by side
    ``parallel``    run blocks on several cores
    ==============  ============================================================================
    """
    shape = shape_of(workload["shape"])
    lanes = target.lanes(workload["dtype"])
    names = ("sums", "squares") if workload.op == "layer_norm" else ("squares",)
    knobs = [
        *row_knobs(shape),
        *(width_knob(name, shape[-1], lanes) for name in names),
        width_knob("results", shape[-1], lanes),
        parallel_knob(target.cores),
    ]
    return Space(workload, knobs, [INTERLEAVED])


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config with eight vectors of partial sums, which hide the addition latency."""
    shape = shape_of(workload["shape"])
    elements, lanes = int(np.prod(shape)), target.lanes(workload["dtype"])
    rows = elements // max(shape[-1], 1)
    four, eight = (widest_power(shape[-1], lanes * vectors) for vectors in (4, 8))
    choices = space(workload, target)
    values: dict[str, Any] = {"rows": 1, "interleave": False, "results": four}
    values |= {knob.name: eight for knob in choices.knobs if knob.name in ("sums", "squares")}
    is_parallel = rows >= target.cores and is_worth_sharing(_CYCLES * elements, target)
    return choices.config(**values, parallel=is_parallel)


# -- the schedule -------------------------------------------------------------------------------


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule a normalisation of rows on a CPU: each row's sums in lanes, then its results."""
    del target
    (out,) = outs
    blocks = split_rows(s, out, cfg["rows"], is_parallel=cfg["parallel"])
    _, vector = s[out].split(out.op.axis[-1], cfg["results"])
    s[out].vectorize(vector)
    for stage in s.stages:
        if not isinstance(stage.op, ComputeOp) or stage.op is out.op:
            continue
        made, parts = stage.op.output(0), []
        if stage.op.reduce_axis:
            width = cfg["sums" if stage.name.endswith(".sum") else "squares"]
            parts = reduce_in_lanes(s, made, width)
        if blocks is not None:
            for part in (made, *parts):
                s[part].compute_at(s[out], blocks)
            if cfg["interleave"]:
                interleave_rows(s, parts)


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


LAYER_NORM = _operator("layer_norm")
RMS_NORM = _operator("rms_norm")
