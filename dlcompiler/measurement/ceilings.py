"""Measure what this machine can do at most: its FMA peak, and the read rate of each memory level.

These are the ceilings of a roofline. Each is measured with the number of threads of the programs
that are compared with it.

**Source:** S. Williams, A. Waterman, D. Patterson, "Roofline: An Insightful Visual Performance
Model for Multicore Architectures", CACM 52(4), 2009; the read loops follow J. D. McCalpin, "Memory
Bandwidth and Machine Balance in Current High Performance Computers", TCCA Newsletter, 1995.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dlcompiler.measurement.aligned import aligned
from dlcompiler.measurement.fma_peak import LLVM_TYPES, FMALoop
from dlcompiler.measurement.pinned import run_together
from dlcompiler.measurement.streams import granularity, stream
from dlcompiler.runtime.provenance import MEASURED, Provenance
from dlcompiler.runtime.serve import Request
from dlcompiler.runtime.timing import Call, measured_here, sample, undisturbed
from dlcompiler.runtime.workers import Worker
from dlcompiler.target import CacheLevel, resolve
from dlcompiler.target.detect import available_memory_bytes

MEMORY = "memory"
"""Name of the level behind the last cache."""
TIME_LIMIT_S = 60.0
_SAMPLES = 7
_READ_BYTES = 256 << 20
"""Bytes that a sample reads [byte]: 1 to 30 ms."""
_READ_BYTES_TOGETHER = 1 << 30
"""Bytes that several threads read in a sample [byte]: more, since starting them takes time."""
_SMALLEST_BEHIND, _LARGEST_BEHIND = 64 << 20, 1 << 30
"""Least and largest size of the arrays that are read from memory [byte]."""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The FMA peak and the read rates of a machine, for a number of threads.

    Examples
    --------
    >>> Ceilings(1, "float32", 100.0, (("L1d", 200.0), ("memory", 10.0))).bound_gflops(2.0)
    20.0
    """

    threads: int
    """Threads that computed or read at once."""
    dtype: str
    """Dtype of the multiply-adds."""
    peak_gflops: float
    """Rate of vector multiply-adds on registers; one is two operations [GFLOP/s]."""
    reads: tuple[tuple[str, float], ...]
    """For each memory level, nearest first, how fast all threads read from it [GB/s]."""
    provenance: Provenance = MEASURED

    def bound_gflops(self, intensity: float, level: str = MEMORY) -> float:
        """Return the highest rate of a program [GFLOP/s].

        Parameters
        ----------
        intensity : float
            Operations for each byte that it moves from and to `level` [FLOP/byte].
        level : str
            A name in `reads`.
        """
        return min(self.peak_gflops, intensity * dict(self.reads)[level])

    def best_with(self, other: Ceilings) -> Ceilings:
        """Return the higher of each rate of two measurements on one machine.

        Examples
        --------
        >>> quiet = Ceilings(1, "float32", 100.0, (("memory", 20.0),))
        >>> busy = Ceilings(1, "float32", 60.0, (("memory", 25.0),))
        >>> busy.best_with(quiet).reads, busy.best_with(quiet).peak_gflops
        ((('memory', 25.0),), 100.0)
        """
        others = dict(other.reads)
        reads = tuple((name, max(rate, others.get(name, 0.0))) for name, rate in self.reads)
        return replace(self, peak_gflops=max(self.peak_gflops, other.peak_gflops), reads=reads)

    def to_json(self) -> dict[str, Any]:
        """Return a value that ``json`` can write."""
        return {
            "threads": self.threads, "dtype": self.dtype, "peak_gflops": self.peak_gflops,
            "reads": [list(each) for each in self.reads], "provenance": self.provenance.to_json(),
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: object) -> Ceilings:
        """Read what `to_json` wrote.

        Raises
        ------
        ValueError
            If it is something else, or a rate is no positive number.
        """
        match data:
            case {"threads": int(threads), "dtype": str(dtype), "peak_gflops": peak,
                  "reads": [*items], "provenance": provenance}:  # fmt: skip
                reads = tuple((str(name), _rate(rate)) for name, rate in map(_pair, items))
                if threads >= 1 and threads is not True and reads and dtype in LLVM_TYPES:
                    origin = Provenance.from_json(provenance)
                    return cls(threads, dtype, _rate(peak), reads, origin)
        raise ValueError("these are no ceilings of a machine")


def _pair(item: object) -> tuple[str, object]:
    match item:
        case [str(name), rate]:
            return name, rate
    raise ValueError("a level has a name and a rate")


def _rate(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError("a rate is a positive number")
    return float(value)


def measure_ceilings(threads: int, dtype: str = "float32") -> Ceilings:
    """Measure the ceilings of this machine; takes some seconds.

    Parameters
    ----------
    threads : int
        Number of threads that run at once.
    dtype : str
        ``float32`` or ``float64``.

    Notes
    -----
    The best of several samples is taken: what else runs on the machine only makes it slower. The
    levels take turns, so that a disturbance of a second does not hit all samples of one.
    """
    peak = FMALoop(threads, dtype)
    loops: list[tuple[str, Call, int]] = [("", peak, peak.flops)]
    for name, size in working_sets(threads):
        loops += [(name, *loop) for loop in _read_loops(size, threads)]
    best = dict.fromkeys((name for name, _, _ in loops), 0.0)
    with undisturbed():
        for name, call, amount in loops * _SAMPLES:
            call()  # the arrays of the others have left the caches
            best[name] = max(best[name], amount / sample(call, 1) / 1e9)
    peak_gflops = best.pop("")
    return Ceilings(threads, dtype, peak_gflops, tuple(best.items()), measured_here())


def ceilings_entry(request: Request) -> dict[str, Any]:
    """Measure the ceilings in a worker process: ``threads`` and ``dtype``."""
    return measure_ceilings(request.params["threads"], request.params["dtype"]).to_json()


def remote_ceilings(worker: Worker, threads: int, dtype: str = "float32") -> Ceilings:
    """Measure the ceilings of this machine in a worker process.

    Raises
    ------
    MeasurementError
        If the worker crashes, hangs or is interrupted.
    """
    params = {"threads": threads, "dtype": dtype}
    outcome = worker.call("ceilings", params, timeout_s=TIME_LIMIT_S)
    return Ceilings.from_json(outcome.unwrap("measure the ceilings of this machine"))


def working_sets(threads: int, caches: Sequence[CacheLevel] | None = None) -> list[tuple[str, int]]:
    """Return, for each memory level, how many bytes a thread reads again and again [byte].

    Parameters
    ----------
    threads : int
        Number of threads that read at once; they divide a cache that they share.
    caches : sequence of CacheLevel, optional
        By default, those of this machine.

    Notes
    -----
    The size is the geometric mean of the level's share and that of the level before it: too much
    for the nearer cache, and little enough for this one even if others use a part of it.

    Examples
    --------
    >>> levels = [CacheLevel("L1d", 32 << 10, 64, 1), CacheLevel("L2", 512 << 10, 64, 1)]
    >>> working_sets(1, levels)
    [('L1d', 16384), ('L2', 131072), ('memory', 67108864)]
    """
    caches = resolve("cpu").caches if caches is None else caches
    found, nearer = [], 0
    for level in caches:
        share = level.bytes // max(min(level.shared_by, threads), 1)
        found.append((level.name, math.isqrt(share * nearer) if nearer else share // 2))
        nearer = max(share, nearer)
    behind = 4 * max((level.bytes for level in caches), default=0)
    most = min(_LARGEST_BEHIND, (available_memory_bytes() or _LARGEST_BEHIND) // 4)
    size = min(max(behind, _SMALLEST_BEHIND), max(most, _SMALLEST_BEHIND))
    return [*found, (MEMORY, size // threads)]


def _read_loops(size: int, threads: int) -> Iterator[tuple[Call, int]]:
    """Yield calls in which threads read arrays of `size` bytes each, and the bytes that they read.

    Several places of an array may be read from memory faster than one.
    """
    elements = max(size // 4 // granularity(), 1) * granularity()
    arrays = [aligned((elements,)) for _ in range(threads)]
    for array in arrays:
        array[...] = 0
    wanted = _READ_BYTES if threads == 1 else _READ_BYTES_TOGETHER
    passes = max(wanted // threads // (4 * elements), 1)
    for places in (1, 4) if size >= _SMALLEST_BEHIND // threads else (1,):
        kernel = stream("1:0", elements, places=places, passes=passes)
        outputs = [aligned(kernel.params[-1].static_shape) for _ in arrays]
        calls = [partial(kernel, *pair) for pair in zip(arrays, outputs, strict=True)]
        yield partial(run_together, calls), threads * passes * elements * 4
