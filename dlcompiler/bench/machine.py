"""Describe the machine for the readers of figures, and measure its memory bandwidth."""

from __future__ import annotations

import importlib.metadata
import platform
from functools import partial

import numpy as np

from dlcompiler.measurement.aligned import aligned
from dlcompiler.measurement.fma_peak import fma_peak_gflops
from dlcompiler.measurement.streams import stream
from dlcompiler.runtime.llvm import version
from dlcompiler.runtime.timing import time_call
from dlcompiler.target.detect import available_cores

BANDWIDTH_ELEMENTS = 1 << 24


def describe_machine() -> dict[str, str]:
    """Return a description of the machine and the libraries, for the readers of figures."""
    cores = available_cores()
    peaks = [f"{fma_peak_gflops(1):.0f} GFLOP/s (1 thread)"]
    if cores > 1:
        peaks.append(f"{fma_peak_gflops(cores):.0f} ({cores} threads)")
    return {
        "FMA peak, float32": ", ".join(peaks) + ", measured",
        "memory, 1 thread": f"{memory_bandwidth('1:1'):.1f} GB/s copied, "
        f"{memory_bandwidth('1:0'):.1f} read, measured",
        **describe_system(),
    }


def describe_system() -> dict[str, str]:
    """Return a description of the system and the libraries, without any measurement."""
    return {
        "system": f"{platform.platform()}, Python {platform.python_version()}",
        "libraries": f"numpy {np.__version__}, llvmlite {importlib.metadata.version('llvmlite')} "
        f"(LLVM {version()})",
    }


def memory_bandwidth(mix: str = "1:1", repeats: int = 5) -> float:
    """Measure how fast one thread moves memory, on arrays of 64 MiB [GB/s].

    Parameters
    ----------
    mix : str
        Reads to writes, a key of `dlcompiler.measurement.streams.MIXES`.
    repeats : int
        Samples of each way; the median of the fastest is returned.
    """
    best = 0.0
    for past_caches, places in ((False, 1), (False, 8), (True, 1), (True, 4)):
        kernel = stream(mix, BANDWIDTH_ELEMENTS, past_caches=past_caches, places=places)
        arrays = [aligned(param.static_shape) for param in kernel.params]
        for array in arrays:
            array[...] = 0
        timing = time_call(
            partial(kernel, *arrays), min_repeats=repeats, max_repeats=repeats, min_seconds=0.0
        )
        best = max(best, sum(array.nbytes for array in arrays) / timing.median_s / 1e9)
    return best
