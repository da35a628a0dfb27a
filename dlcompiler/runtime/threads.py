"""Set the number of threads of parallel loops, and call kernels that have parallel loops.

Machine code calls ``dlc_parallel_for`` (``native/thread_pool.ll``), which shares the iterations
among the calling thread and the helpers of `dlcompiler.runtime.thread_pool`.

- Many Python threads may call at once. One loop at a time uses the helpers. A loop that starts
while they are busy, or inside another
  parallel loop, runs in its own thread only.
- A forked child starts helpers of its own.
- Python delivers Ctrl-C when the kernel has returned.
"""

from __future__ import annotations

from functools import cache

from dlcompiler.errors import CallError
from dlcompiler.runtime.thread_pool import THREAD_POOL
from dlcompiler.target.detect import available_cores

_count: int | None = None


def num_threads() -> int:
    """Return the number of threads that a parallel loop uses: by default, the cores allowed."""
    return _default_count() if _count is None else _count


@cache
def _default_count() -> int:
    return available_cores()  # reads files: 0.1 ms


def set_num_threads(count: int | None) -> None:
    """Set the number of threads of parallel loops, in this process.

    Parameters
    ----------
    count : int or None
        At least 1; ``None`` restores the number of cores. With 1, no helper is used.

    Raises
    ------
    CallError
        The number is not positive.

    Notes
    -----
    Threads of other libraries may keep cores busy after their calls. OpenBLAS's, behind NumPy's
    ``@``, spin for 0.1 s; with ``OPENBLAS_THREAD_TIMEOUT=20`` in the environment before NumPy is
    imported, it is 0.4 ms, and products in turn with parallel kernels are as fast as alone.
    """
    global _count
    is_number = isinstance(count, int) and not isinstance(count, bool)
    if count is not None and (not is_number or count < 1):
        raise CallError(
            "set_num_threads",
            "not a number of threads",
            got=repr(count),
            expected="1 or more, or None",
        )
    _count = count


def prepare() -> None:
    """Start the helper threads that the next call of a kernel may use, or end some."""
    THREAD_POOL.prepare(num_threads())
