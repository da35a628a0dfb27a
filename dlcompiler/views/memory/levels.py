"""Bytes that move between the levels of a target's memory, one metric for each level."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.analysis.traffic import moved_to_memory, traffic
from dlcompiler.errors import DLCompilerError
from dlcompiler.schedule import Schedule, State
from dlcompiler.target import Target
from dlcompiler.te import Tensor
from dlcompiler.views.memory.footprints import footprint_of, is_for_device
from dlcompiler.views.memory.metrics import NO_MODEL, Metric
from dlcompiler.views.per_state import per_state
from dlcompiler.views.render.units import format_bytes

MODEL = "the cache model, which assumes that a working set that fits a cache stays in it"
"""Where the bytes come from, in words: see `dlcompiler.analysis.traffic`."""
MEMORY = "memory"


def level_metrics(
    program: Schedule | State, args: Sequence[Tensor], target: Target
) -> list[Metric]:
    """Predict the bytes that move between neighbouring levels of memory, nearest level first.

    Parameters
    ----------
    program
        A schedule, at the state to look at, or a state.
    args
        Parameters of the function: inputs first, outputs last.
    target
        The machine.

    Returns
    -------
    list of Metric
        One for each cache: ``L1 ↔ L2``, ``L2 ↔ memory``. If there is no cache, or no model, one for
        the memory. The last one is the ``memory traffic`` of `metrics`.
    """
    return [metric.copy() for metric in _levels(program, tuple(args), target)]


@per_state
def _levels(program: Schedule | State, args: tuple[Tensor, ...], target: Target) -> list[Metric]:
    try:
        footprint = footprint_of(program, args, target)
    except DLCompilerError as error:
        return [_unknown(error.problem)]
    if is_for_device(footprint, target):
        return [_unknown(NO_MODEL)]
    if not target.caches:
        return [_moved(f"to and from {MEMORY}", moved_to_memory(footprint, target))]
    names = [level.name for level in target.caches]
    fills = traffic(footprint, target)
    return [
        _moved(f"{near} ↔ {far}", sum(fill.moved_bytes for fill in fills[near]))
        for near, far in zip(names, [*names[1:], MEMORY], strict=True)
    ]


def _moved(name: str, count: int) -> Metric:
    text = format_bytes(count)
    return {"name": name, "value": count, "unit": "byte", "text": text, "kind": "predicted"}


def _unknown(why: str) -> Metric:
    return {"name": f"to and from {MEMORY}", "value": None, "unit": "byte",
            "text": f"unknown: {why}", "kind": "predicted"}  # fmt: skip
