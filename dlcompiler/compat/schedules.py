"""`create_schedule` of classic code; a tuner can replace it to get symbolic schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from dlcompiler import schedule
from dlcompiler.schedule import Schedule
from dlcompiler.te import Tensor

Make: TypeAlias = Callable[[tuple[Tensor, ...]], Schedule]

_make: ContextVar[Make | None] = ContextVar("classic_schedules", default=None)


@contextmanager
def made_by(make: Make) -> Iterator[None]:
    """Replace the function that makes schedules inside a ``with``."""
    token = _make.set(make)
    try:
        yield
    finally:
        _make.reset(token)


def create_schedule(ops: Any) -> Schedule:
    """Start a schedule; see `dlcompiler.schedule.create_schedule`."""
    made = schedule.create_schedule(ops)
    make = _make.get()
    return made if make is None else make(made.outputs)
