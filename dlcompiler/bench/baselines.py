"""Baselines for works that only move memory: memcpy and streams."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial

from dlcompiler.bench.peers import Absent, Job, Offer
from dlcompiler.measurement.aligned import aligned
from dlcompiler.measurement.streams import granularity, stream

BASELINES = ("memcpy", "stream")
"""Names of the baselines."""

_MIXES = {
    "copy": "1:1",
    "scale": "1:1",
    "relu": "1:1",
    "add": "2:1",
    "multiply": "2:1",
    "sum": "1:0",
    "max": "1:0",
    "min": "1:0",
    "mean": "1:0",
}
"""Function -> its reads to writes. Other functions are limited by arithmetic."""


def baseline_offers(job: Job) -> dict[str, Callable[[Job], Sequence[Offer]]]:
    """Return the functions that make offers of memcpy and of streams."""
    sizes = {array.shape for array in job.arrays.values()}
    is_stream = job.family in ("elementwise", "reduction") and job.given == "float32"
    if job.function not in _MIXES or job.threads > 1 or not is_stream or len(sizes) > 1:
        return {}
    return {"memcpy": _memcpy, "stream": _stream}


def _memcpy(job: Job) -> list[Offer]:
    if _MIXES[job.function] != "1:1":
        raise Absent("memcpy reads as much as it writes")
    source, out = job.arrays["data"], aligned(job.out)
    addresses = out.ctypes.data, source.ctypes.data
    keep = out, source  # the call has addresses only

    def move() -> object:
        return ctypes.memmove(*addresses, source.nbytes), keep

    return [Offer("memmove of the C library", move, lambda: out, computes_the_work=False)]


def _stream(job: Job) -> list[Offer]:
    """Return streams with the reads and writes of the work, but with less arithmetic."""
    size = job.arrays["data"].size
    if size % granularity():
        raise Absent(f"the number of elements is no multiple of {granularity()}")
    if _MIXES[job.function] == "1:0":
        return [_way(job, "from end to end"), _way(job, "at 8 places at once", places=8)]
    return [_way(job, "through the caches"), _way(job, "past the caches", past_caches=True)]


def _way(job: Job, way: str, *, past_caches: bool = False, places: int = 1) -> Offer:
    inputs = [array.reshape(-1) for array in job.arrays.values()]
    kernel = stream(_MIXES[job.function], inputs[0].size, past_caches=past_caches, places=places)
    out = aligned(kernel.params[-1].static_shape)
    return Offer(way, partial(kernel, *inputs, out), lambda: out, computes_the_work=False)
