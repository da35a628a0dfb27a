"""Measure the time from a schedule to loaded code, with and without the compiler's cache."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace

from dlcompiler.bench.programs import Program
from dlcompiler.ops.gemm import MATMUL
from dlcompiler.pipeline import build
from dlcompiler.runtime import object_cache
from dlcompiler.target import resolve

ROUNDS = 21


def default_gemm() -> Program:
    """Return a 512³ product as the operator schedules it untuned, for one thread."""
    target = replace(resolve("cpu"), cores=1)
    workload = MATMUL.workload(m=512, n=512, k=512)
    config = MATMUL.default_config(workload, target)
    schedule, tensors = MATMUL.template(workload, target, config)
    return schedule, list(tensors)


def time_build(make: Callable[[], Program], rounds: int = ROUNDS) -> tuple[float, float]:
    """Return the median times to build a program without and with the object cache; [s].

    The cache already holds the code. If there is no cache, both times are without it.
    """
    before = object_cache.current()
    object_cache.use(None)
    try:
        compiled = _median(make, rounds)
    finally:
        object_cache.use(before)
    return compiled, _median(make, rounds)


def _median(make: Callable[[], Program], rounds: int) -> float:
    seconds = []
    for _ in range(rounds):
        schedule, args = make()
        start = time.perf_counter()
        build(schedule, args)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)
