"""Movements as nodes of ONNX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from dlcompiler.bench.peers.job import Absent, Array, Job
from dlcompiler.bench.peers.movements import reps_of, slices_of, strides_of
from dlcompiler.dtypes import to_numpy

Node: TypeAlias = tuple[str, Sequence[str], str, Mapping[str, Any]]
"""Kind, inputs, output and attributes of a node."""
Nodes: TypeAlias = tuple[list[Node], dict[str, Array]]
"""Nodes, and the constants that they read, by name."""
_BEFORE_FIRST = np.iinfo(np.int64).min
"""End of a slice that goes backwards as far as the first element."""


def _one(kind: str, inputs: Sequence[str], more: Mapping[str, Any], **constants: Any) -> Nodes:
    """Return a node, whose constants follow the inputs."""
    found = {name: np.asarray(value) for name, value in constants.items()}
    return [(kind, [*inputs, *found], "out", more)], found


def _slice(job: Job) -> Nodes:
    ends = [_BEFORE_FIRST if part.stop is None else part.stop for part in slices_of(job)]
    begin, strides = job.sizes["begin"], strides_of(job)
    return _sliced(begin, ends, range(len(ends)), strides)


def _flip(job: Job) -> Nodes:
    return _sliced([-1], [_BEFORE_FIRST], job.axes("axis"), [-1])


def _sliced(*given: Sequence[int]) -> Nodes:
    """Return a slice of begins, ends, dimensions and steps."""
    starts, ends, axes, steps = (np.array(numbers, np.int64) for numbers in given)
    return _one("Slice", ["data"], {}, starts=starts, ends=ends, axes=axes, steps=steps)


def _tile(job: Job) -> Nodes:
    shape, reps = reps_of(job)
    if len(shape) > len(job.sizes["shape"]):
        raise Absent("Tile takes one number for each dimension")
    return _one("Tile", ["data"], {}, repeats=np.array(reps, np.int64))


def _reshape(job: Job) -> Nodes:
    return _one("Reshape", ["data"], {}, to=np.array(job.out, np.int64))


def _take(job: Job) -> Nodes:
    axis = 0 if job.family == "embedding" else job.axes("axis")[0]
    return _one("Gather", ["data", "indices"], {"axis": axis})


def _gather(job: Job) -> Nodes:
    return _one("GatherElements", ["data", "indices"], {"axis": job.axes("axis")[0]})


def _one_hot(job: Job) -> Nodes:
    kind = to_numpy(job.sizes["index_dtype"])
    return _one(
        "OneHot", ["indices"], {"axis": job.axes("axis")[0]},
        depth=np.array(job.sizes["depth"], kind), values=np.array([0, 1], to_numpy(job.given)),
    )  # fmt: skip


def _blocks(job: Job) -> Nodes:
    if job.layout != "NCHW":
        raise Absent(f"ONNX Runtime has no layout {job.layout}")
    more = {"blocksize": job.sizes["block"]}
    if job.family == "space_to_depth":
        return _one("SpaceToDepth", ["data"], more)
    return _one("DepthToSpace", ["data"], {**more, "mode": job.sizes["mode"]})


def _resize(job: Job) -> Nodes:
    if job.layout != "NCHW":
        raise Absent(f"ONNX Runtime has no layout {job.layout}")
    given = job.sizes
    method = {"nearest_neighbor": "nearest"}.get(given["method"], given["method"])
    rounding = {"default": "floor", "round": "round_prefer_ceil"}
    more: dict[str, Any] = {
        "mode": method,
        "coordinate_transformation_mode": given["mode"],
        "cubic_coeff_a": float(job.options.get("alpha", -0.75)),
    }
    if method == "nearest":
        more["nearest_mode"] = rounding.get(given["rounding"], given["rounding"])
    return _one("Resize", ["data", "", ""], more, sizes=np.array(job.out, np.int64))


MOVEMENTS: dict[str, Callable[[Job], Nodes]] = {
    "strided_slice": _slice,
    "flip": _flip,
    "tile": _tile,
    "reshape": _reshape,
    "take": _take,
    "embedding": _take,
    "gather": _gather,
    "one_hot": _one_hot,
    "depth_to_space": _blocks,
    "space_to_depth": _blocks,
    "resize2d": _resize,
}
"""Family -> returns its nodes."""
