"""The operators group_norm and instance_norm: each group of channels of an image is normalised.

The second dimension holds the channels, such as in NCHW. The elements of a group are neighbours in
memory, so that its sums are those of a row. `dlcompiler.ops.norms` has the normalisations of rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.errors import TuningError
from dlcompiler.ops import norms
from dlcompiler.ops.base import DeviceSchedule, Operator, Reference, by_device
from dlcompiler.ops.helpers import over, tensor
from dlcompiler.ops.lanes import reduce_in_lanes, widest_power
from dlcompiler.ops.rows import width_knob
from dlcompiler.ops.shapes import checked_dtype, shape_of, shape_text
from dlcompiler.ops.sharing import is_worth_sharing
from dlcompiler.ops.stages import stages_by_role
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Space, Workload, parallel_knob
from dlcompiler.target import Target
from dlcompiler.te import Tensor

_CYCLES = 1.0
"""Time of an element on one core [cycle]; that of a layer norm."""


def group_norm(
    data: Tensor, scale: Tensor, shift: Tensor, groups: int, epsilon: float = norms.EPSILON
) -> Tensor:
    """Define ``(x - mean) / sqrt(variance + epsilon) * scale[c] + shift[c]`` of groups of channels.

    Parameters
    ----------
    data : Tensor
        Of shape ``(n, c, …)``.
    scale, shift : Tensor
        Of shape ``(c,)``.
    groups : int
        Divides c. Mean and variance are those of c / groups channels of an image.
    epsilon : float
        Keeps the root from 0.

    Notes
    -----
    **Source:** Y. Wu, K. He, "Group normalization", arXiv:1803.08494, equations 1 to 6.
    """
    n, c, *image = data.static_shape
    each = c // max(groups, 1)
    rows = (n, groups)
    inverse = te.const(1 / max(each * math.prod(image), 1), data.dtype)

    def summed(name: str, term: Any) -> Tensor:
        k, *inside = (over(extent, f"k{m}") for m, extent in enumerate((each, *image)))

        def element(i: Any, g: Any) -> Any:
            return te.sum(term(data[(i, g * each + k, *inside)], i, g), axis=[k, *inside])

        return tensor(rows, element, name)

    total = summed("group_norm.sum", lambda x, i, g: x)
    mean = tensor(rows, lambda *i: total[i] * inverse, "group_norm.mean")

    def square(x: Any, *at: Any) -> Any:
        distance = x - mean[at]
        return distance * distance

    squares = summed("group_norm.squares", square)
    root = tensor(
        rows,
        lambda *i: norms.inverse_root(squares[i] * inverse, epsilon),
        "group_norm.inverse_deviation",
    )

    def element(i: Any, ch: Any, *at: Any) -> Any:
        group = (i, te.floordiv(ch, max(each, 1)))
        factor = root[group] * scale[ch]
        return (data[(i, ch, *at)] - mean[group]) * factor + shift[ch]

    return tensor(data.shape, element, "group_norm")


# -- the operators ------------------------------------------------------------------------------


def workload(
    *,
    shape: Sequence[int] | str,
    groups: int,
    dtype: str = "float32",
    epsilon: float | str = norms.EPSILON,
) -> Workload:
    """Return the workload of `group_norm`; a workload names an unusual `epsilon` only."""
    text = _image_text(shape, "group_norm")
    channels = shape_of(text)[1]
    if type(groups) is not int or groups < 1 or channels % groups:
        raise TuningError(
            "group_norm", "the groups do not divide the channels", got=repr(groups),
            expected=f"a divisor of {channels}",
        )  # fmt: skip
    kind = checked_dtype(dtype, norms.DTYPES, "group_norm")
    more = norms.epsilon_parameter(epsilon, "group_norm")
    return Workload.of("group_norm", shape=text, groups=groups, dtype=kind, **more)


def instance_workload(
    *, shape: Sequence[int] | str, dtype: str = "float32", epsilon: float | str = norms.EPSILON
) -> Workload:
    """Return the workload of `instance_norm`, whose groups are single channels."""
    text = _image_text(shape, "instance_norm")
    kind = checked_dtype(dtype, norms.DTYPES, "instance_norm")
    more = norms.epsilon_parameter(epsilon, "instance_norm")
    return Workload.of("instance_norm", shape=text, dtype=kind, **more)


def _image_text(shape: Sequence[int] | str, where: str) -> str:
    text = shape_text(shape, where)
    if len(shape_of(text)) < 2:
        raise TuningError(
            where, "the shape has no dimension of channels", got=text,
            expected="two dimensions or more, such as 1x64x56x56",
        )  # fmt: skip
    return text


def groups_of(workload: Workload) -> int:
    """Return the number of groups of a workload."""
    return int(workload.as_dict().get("groups", shape_of(workload["shape"])[1]))


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``data``, ``scale``, ``shift`` and the result."""
    shape, dtype = shape_of(workload["shape"]), workload["dtype"]
    data = te.placeholder(shape, dtype, "data")
    scale, shift = (te.placeholder(shape[1:2], dtype, name) for name in ("scale", "shift"))
    epsilon = norms.epsilon_of(workload.as_dict())
    return data, scale, shift, group_norm(data, scale, shift, groups_of(workload), epsilon)


def reference(workload: Workload, seed: int) -> Reference:
    """Return inputs around 1, the result, and its bound: that of `norms.exact` for each group."""
    shape, dtype = shape_of(workload["shape"]), dtypes.to_numpy(workload["dtype"])
    generator = np.random.default_rng(seed)
    inputs = {
        "data": generator.uniform(-1, 3, shape).astype(dtype),
        "scale": generator.uniform(0.5, 1.5, shape[1]).astype(dtype),
        "shift": generator.uniform(-1, 1, shape[1]).astype(dtype),
    }
    groups, image = groups_of(workload), math.prod(shape[2:])
    length = shape[1] // max(groups, 1) * image
    rows = {
        "data": inputs["data"].reshape(shape[0], groups, length),
        **{n: np.repeat(inputs[n], image).reshape(groups, length) for n in ("scale", "shift")},
    }
    found = norms.exact(rows, workload["dtype"], norms.epsilon_of(workload.as_dict()))
    expected, bound = (each.reshape(shape) for each in found)
    return Reference(inputs, {"group_norm": expected}, {"group_norm": bound})


# -- the choices --------------------------------------------------------------------------------


def inside_group(workload: Workload) -> tuple[int, int]:
    """Return the elements of a group, and how many neighbours have one scale and shift, or 1."""
    shape = shape_of(workload["shape"])
    each, image = shape[1] // max(groups_of(workload), 1), math.prod(shape[2:])
    return each * image, image if image != 1 else each


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule`.

    ==============  ============================================================================
    ``sums``        lanes in which a group is added up
    ``squares``     lanes in which its squares are added
    ``results``     computed side by side, in a channel
    ``parallel``    run groups on several cores
    ==============  ============================================================================
    """
    group, neighbours = inside_group(workload)
    lanes = target.lanes(workload["dtype"])
    knobs = [
        *(width_knob(name, group, lanes) for name in ("sums", "squares")),
        width_knob("results", neighbours, lanes),
        parallel_knob(target.cores),
    ]
    return Space(workload, knobs)


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config with eight vectors of partial sums, which hide the addition latency."""
    group, neighbours = inside_group(workload)
    elements = math.prod(shape_of(workload["shape"]))
    lanes = target.lanes(workload["dtype"])
    rows = elements // max(group, 1)
    eight, four = widest_power(group, lanes * 8), widest_power(neighbours, lanes * 4)
    is_parallel = rows >= target.cores and is_worth_sharing(_CYCLES * elements, target)
    return space(workload, target).config(
        sums=eight, squares=eight, results=four, parallel=is_parallel
    )


# -- the schedule -------------------------------------------------------------------------------


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule a normalisation of groups on a CPU: the sums of a group in lanes, then its results.

    *After*, for groups of two channels::

        for i.g in parallel(n * groups):
            sum = …                          in lanes, over neighbours in memory
            squares = …
            for c in range(2):
                for y.x in range(h * w):     in vectors
                    out[…] = (data[…] - mean) * (root * scale[c]) + shift[c]
    """
    del target
    (out,) = outs
    stages = stages_by_role(s, "group_norm")
    total, squares = stages["sum"], stages["squares"]
    images, channels, *inside = out.op.axis
    rows = total.static_shape[1]
    each = -(-out.static_shape[1] // max(rows, 1))
    group, channel = s[out].split(channels, max(each, 1))
    block = s[out].fuse(images, group)
    if math.prod(out.static_shape[2:]) == 1:
        inside = [channel, *inside]
    neighbours = s[out].fuse(*inside) if len(inside) > 1 else inside[0]
    _, vector = s[out].split(neighbours, cfg["results"])
    s[out].vectorize(vector)
    if cfg["parallel"]:
        s[out].parallel(block)
    for sums, width in ((total, cfg["sums"]), (squares, cfg["squares"])):
        if len(s[sums].op.reduce_axis) > 1:
            s[sums].fuse(*s[sums].op.reduce_axis)
        for part in (sums, *reduce_in_lanes(s, sums, width)):
            s[part].compute_at(s[out], block)
    for name in ("mean", "inverse_deviation"):
        s[stages[name]].compute_at(s[out], block)


def _operator(name: str, make_workload: Any) -> Operator:
    return Operator(
        name,
        make_workload,
        define,
        reference,
        by_device(
            {
                "cpu": DeviceSchedule(space, default_config, schedule),
                "gpu": "dlcompiler.ops.gpu.group_norms:GROUP_NORM",
            }
        ),
    )


GROUP_NORM = _operator("group_norm", workload)
INSTANCE_NORM = _operator("instance_norm", instance_workload)
