"""NumPy's movements: slices, repetitions, and elements at indices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from dlcompiler.bench.peers.job import Array, Job, Offer
from dlcompiler.bench.peers.movements import BLOCKS, blocks_of, reps_of, slices_of


def _offer(call: Callable[[], object], out: Array) -> Offer:
    return Offer("views and functions with out=", call, lambda: out)


def _copy(view: Callable[[Job], Array]) -> Callable[[Job], Offer]:
    """Return the maker of a copy of a view of the data."""

    def make(job: Job) -> Offer:
        out = job.result()
        return _offer(lambda: np.copyto(out, view(job)), out)

    return make


def _split(job: Job) -> Offer:
    outs = [job.result() for _ in range(job.results)]
    x, (axis,) = job.arrays["data"], job.axes("axis")

    def call() -> None:
        for out, part in zip(outs, np.split(x, job.results, axis), strict=True):
            np.copyto(out, part)

    return Offer("copies of views", call, lambda: outs)


def _tile(job: Job) -> Offer:
    out, (shape, reps) = job.result(), reps_of(job)
    seen = out.reshape([n for pair in zip(reps, shape, strict=True) for n in pair])
    x = job.arrays["data"].reshape([n for extent in shape for n in (1, extent)])
    return _offer(lambda: np.copyto(seen, x), out)


def _repeat(job: Job) -> Offer:
    out, x, (axis,) = job.result(), job.arrays["data"], job.axes("axis")
    seen = out.reshape([*x.shape[: axis + 1], job.sizes["repeats"], *x.shape[axis + 1 :]])
    return _offer(lambda: np.copyto(seen, np.expand_dims(x, axis + 1)), out)


def _take(job: Job) -> Offer:
    out, x, indices = job.result(), job.arrays["data"], job.arrays["indices"]
    axis = 0 if job.family == "embedding" else job.axes("axis")[0]
    return _offer(partial(np.take, x, indices, axis=axis, out=out, mode="clip"), out)


def _gathered(job: Job) -> Array:
    x, indices, (axis,) = job.arrays["data"], job.arrays["indices"], job.axes("axis")
    part = tuple(slice(None if n == axis else e) for n, e in enumerate(indices.shape))
    return np.take_along_axis(x[part], indices, axis)


def _one_hot(job: Job) -> Offer:
    out, (axis,) = job.result(), job.axes("axis")
    indices = np.expand_dims(job.arrays["indices"], axis)
    along = [-1 if n == axis else 1 for n in range(out.ndim)]
    numbers = np.arange(job.sizes["depth"], dtype=indices.dtype).reshape(along)
    return _offer(lambda: np.equal(indices, numbers, out=out, casting="unsafe"), out)


def _blocks(job: Job) -> Offer:
    out, (split, order, seen) = job.result(), blocks_of(job)
    view, x = out.reshape(seen), job.arrays["data"].reshape(split).transpose(order)
    return _offer(lambda: np.copyto(view, x), out)


MOVEMENTS: dict[str, Callable[[Job], Offer]] = {
    "strided_slice": _copy(lambda job: job.arrays["data"][slices_of(job)]),
    "split": _split,
    "flip": _copy(lambda job: np.flip(job.arrays["data"], job.axes("axis"))),
    "tile": _tile,
    "repeat": _repeat,
    "reshape": _copy(lambda job: job.arrays["data"].reshape(job.out)),
    "take": _take,
    "embedding": _take,
    "gather": _copy(_gathered),
    "one_hot": _one_hot,
    **dict.fromkeys(BLOCKS, _blocks),
}
"""Family -> makes NumPy's offer."""
