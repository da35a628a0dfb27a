"""PyTorch's movements: slices, repetitions, elements at indices, and images of another size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from dlcompiler.bench.peers.job import Absent, Job
from dlcompiler.bench.peers.movements import (
    BLOCKS,
    blocks_of,
    reps_of,
    slices_of,
    strides_of,
)

Tensors = Mapping[str, Any]


def _slice(torch: Any, job: Job, tensors: Tensors, out: Any) -> Callable[[], object]:
    if min(strides_of(job)) < 0:
        raise Absent("torch has no negative steps")
    part = slices_of(job)
    return lambda: out.copy_(tensors["data"][part])


def _tile(torch: Any, job: Job, tensors: Tensors, out: Any) -> Callable[[], object]:
    shape, reps = reps_of(job)
    seen = out.view([n for pair in zip(reps, shape, strict=True) for n in pair])
    x = tensors["data"].view([n for extent in shape for n in (1, extent)])
    return lambda: seen.copy_(x)


def _repeat(torch: Any, job: Job, tensors: Tensors, out: Any) -> Callable[[], object]:
    x, (axis,) = tensors["data"], job.axes("axis")
    seen = out.view([*x.shape[: axis + 1], job.sizes["repeats"], *x.shape[axis + 1 :]])
    return lambda: seen.copy_(x.unsqueeze(axis + 1))


def _reshape(torch: Any, job: Job, tensors: Tensors, out: Any) -> Callable[[], object]:
    return lambda: out.copy_(tensors["data"].view(job.out))


def _take(torch: Any, job: Job, tensors: Tensors, out: Any) -> Callable[[], object]:
    x, indices = tensors["data"], tensors["indices"].view(-1)
    axis = 0 if job.family == "embedding" else job.axes("axis")[0]
    seen = out.view([*x.shape[:axis], len(indices), *x.shape[axis + 1 :]])
    return partial(torch.index_select, x, axis, indices, out=seen)


def _gather(torch: Any, job: Job, tensors: Tensors, out: Any) -> Callable[[], object]:
    if job.sizes["index_dtype"] != "int64":
        raise Absent("torch gathers at indices of int64 only")
    return partial(torch.gather, tensors["data"], job.axes("axis")[0], tensors["indices"], out=out)


def _one_hot(torch: Any, job: Job, tensors: Tensors, out: Any) -> Callable[[], object]:
    (axis,), indices = job.axes("axis"), tensors["indices"]
    numbers = torch.arange(job.sizes["depth"], dtype=indices.dtype)
    along = [-1 if n == axis else 1 for n in range(out.ndim)]
    return partial(torch.eq, indices.unsqueeze(axis), numbers.view(along), out=out)


def _blocks(torch: Any, job: Job, tensors: Tensors, out: Any) -> Callable[[], object]:
    split, order, seen = blocks_of(job)
    view, x = out.view(seen), tensors["data"].view(split).permute(order)
    return lambda: view.copy_(x)


WRITING: dict[str, Callable[[Any, Job, Tensors, Any], Callable[[], object]]] = {
    "strided_slice": _slice,
    "tile": _tile,
    "repeat": _repeat,
    "reshape": _reshape,
    "take": _take,
    "embedding": _take,
    "gather": _gather,
    "one_hot": _one_hot,
    **dict.fromkeys(BLOCKS, _blocks),
}
"""Family -> returns the call that writes into an array."""


def resized(torch: Any, job: Job, data: Any) -> Any:
    """Return images of another size.

    Raises
    ------
    Absent
        PyTorch has no such coordinates.
    """
    given = job.sizes
    if job.layout != "NCHW":
        raise Absent(f"torch has no layout {job.layout}")
    modes = {
        ("linear", "half_pixel"): ("bilinear", False),
        ("linear", "align_corners"): ("bilinear", True),
        ("cubic", "half_pixel"): ("bicubic", False),
        ("cubic", "align_corners"): ("bicubic", True),
    }
    mode, corners = modes.get((given["method"], given["mode"]), ("", False))
    if (given["method"], given["mode"]) == ("nearest_neighbor", "asymmetric"):
        mode = "nearest" if given["rounding"] in ("default", "floor") else ""
    if not mode or "alpha" in job.options:
        raise Absent(f"torch has no {given['method']} resizing with {given['mode']}")
    corner = {} if mode == "nearest" else {"align_corners": corners}
    return torch.nn.functional.interpolate(data, tuple(given["to"]), mode=mode, **corner)


def split(torch: Any, job: Job, data: Any) -> list[Any]:
    """Return copies of equal sections."""
    (axis,) = job.axes("axis")
    size = data.shape[axis] // job.results
    return list(torch.split_copy(data, size, axis))
