"""Callbacks that a classic tuner calls after each trial: a log file and a progress line."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from io import TextIOBase
from pathlib import Path
from typing import Any, TypeAlias

from dlcompiler.compat.autotvm.measuring import MeasureInput, MeasureResult
from dlcompiler.compat.autotvm.recording import append, encode, median
from dlcompiler.errors import TuningError

Inputs: TypeAlias = Sequence[MeasureInput]
Results: TypeAlias = Sequence[MeasureResult]
_PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def log_to_file(
    file_out: str | Path | TextIOBase, protocol: str = "json"
) -> Callable[[Any, Inputs, Results], None]:
    """Return a callback that appends each measurement to a log.

    Parameters
    ----------
    file_out : path or file
        The log.
    protocol : str
        ``"json"``.
    """
    if protocol != "json":
        raise TuningError("log_to_file", "only the JSON format is supported", got=repr(protocol))

    def callback(tuner: Any, inputs: Inputs, results: Results) -> None:
        del tuner
        if isinstance(file_out, str | Path):
            append(file_out, zip(inputs, results, strict=True))
            return
        for inp, result in zip(inputs, results, strict=True):
            file_out.write(encode(inp, result) + "\n")

    return callback


def progress_bar(
    total: int, prefix: str = "", si_prefix: str = "G"
) -> Callable[[Any, Inputs, Results], None]:
    """Return a callback that shows in one line the rate of the last trial, the best, and progress.

    Parameters
    ----------
    total : int
        Number of trials of the run.
    prefix : str
        Text at the start of the line.
    si_prefix : {"G", "M", "K", "T", ""}
        Unit of the rates.
    """
    if si_prefix not in _PREFIXES:
        raise TuningError(
            "progress_bar", "not an SI prefix", got=repr(si_prefix),
            expected=", ".join(map(repr, _PREFIXES)),
        )  # fmt: skip
    begun, done, best = time.perf_counter(), 0, 0.0

    def callback(tuner: Any, inputs: Inputs, results: Results) -> None:
        nonlocal done, best
        last = 0.0
        for inp, result in zip(inputs, results, strict=True):
            done += 1
            if result.error_no == 0:
                last = inp.task.flop / median(result) / _PREFIXES[si_prefix]
                best = max(best, last)
        elapsed_s = time.perf_counter() - begun
        sys.stdout.write(
            f"\r{prefix} Current/Best: {last:7.2f}/{best:7.2f} {si_prefix}FLOPS | "
            f"Progress: ({done}/{total}) | {elapsed_s:.2f} s" + ("\n" if done >= total else "")
        )
        sys.stdout.flush()

    return callback
