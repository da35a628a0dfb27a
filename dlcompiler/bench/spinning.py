"""Threads of other libraries that spin after a call, and take the cores of whoever comes next."""

from __future__ import annotations

import time

_STEP_S = 2e-3
_BUSY = 0.25
_LONGEST_S = 0.3


def wait_until_quiet() -> None:
    """Return when no thread of this process computes any more, or after 0.3 s.

    OpenBLAS's threads spin for about 0.1 s after a call, those of OpenMP and of ONNX Runtime for
    some milliseconds. The process's own clock tells.
    """
    end = time.perf_counter() + _LONGEST_S
    while time.perf_counter() < end:
        before = time.process_time()
        time.sleep(_STEP_S)
        if time.process_time() - before < _BUSY * _STEP_S:
            return
