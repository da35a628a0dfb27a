"""Settings of Python's interpreter while one thread generates candidates and other threads work.

- Schedules and programs are many small objects without cycles: looking for cycles among them, and
  among all that a model keeps, took an eighth of the time that generating took.
- A thread that has waited, for a worker or for a disk, gets the interpreter back when the one that
  generates gives it away. At Python's own 5 ms, a record that needs ten writes took up to 20 ms.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

_COLLECTED_AFTER = 100_000
"""New objects between two collections; Python's own number is 700."""
_SWITCH_S = 0.5e-3
"""Time after which a thread releases the interpreter for a waiting one [s]."""

_Settings: TypeAlias = tuple[tuple[int, int, int], float]

_lock = threading.Lock()
_usual: list[_Settings] = []
"""The settings to restore, one for each open block."""


@contextmanager
def generating_beside() -> Iterator[None]:
    """Inside a block, collect garbage rarely and switch threads often; blocks may overlap."""
    with _lock:
        _usual.append(_usual[0] if _usual else (gc.get_threshold(), sys.getswitchinterval()))
        gc.set_threshold(_COLLECTED_AFTER, *_usual[0][0][1:])
        sys.setswitchinterval(_SWITCH_S)
    try:
        yield
    finally:
        with _lock:
            threshold, switch_s = _usual.pop()
            if not _usual:
                gc.set_threshold(*threshold)
                sys.setswitchinterval(switch_s)
