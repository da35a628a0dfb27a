"""Metrics of a state: arithmetic operations, memory traffic and iterations at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypedDict

from dlcompiler.analysis.footprint import Nest, ProgramFootprint
from dlcompiler.analysis.operations import operations_of
from dlcompiler.analysis.traffic import moved_to_memory
from dlcompiler.errors import DLCompilerError
from dlcompiler.ir import is_thread
from dlcompiler.schedule import Schedule, State
from dlcompiler.target import Target
from dlcompiler.te import Tensor
from dlcompiler.views.memory.footprints import footprint_of, is_for_device
from dlcompiler.views.per_state import per_state
from dlcompiler.views.render.units import format_bytes, format_count

NO_MODEL = "the cache model is for CPUs, not for threads of a device"


class Metric(TypedDict):
    """One metric of a state."""

    name: str
    """The metric's name: equal in all states."""
    value: float | None
    """None if the metric is unknown; then `text` has the reason."""
    unit: str
    text: str
    """The value with its unit, for people."""
    kind: Literal["exact", "predicted"]
    """Counted in the program, or predicted by a model."""


def metrics(program: Schedule | State, args: Sequence[Tensor], target: Target) -> list[Metric]:
    """Return the metrics by which states are compared.

    Parameters
    ----------
    program
        A schedule, at the state to look at, or a state: also that of an `Attempt`.
    args
        Parameters of the function: inputs first, outputs last.
    target
        The machine.

    Returns
    -------
    list of Metric
        ``operations``: arithmetic on data, recomputation included; exact.
        ``memory traffic``: bytes between the last cache and memory, predicted
        (see `dlcompiler.analysis.traffic`); unknown for a program of a device.
        ``at once``: iterations that may run at the same time where most of the work is: those of
        parallel loops, or threads, times the lanes of a vector register that are used; exact.
    """
    return [metric.copy() for metric in _metrics(program, tuple(args), target)]


@per_state
def _metrics(program: Schedule | State, args: tuple[Tensor, ...], target: Target) -> list[Metric]:
    try:
        footprint = footprint_of(program, args, target)
    except DLCompilerError as error:
        return [_none(name, unit, kind, error.problem) for name, unit, kind in _NAMES]
    return [make(footprint, target) for make in (_operations, _moved, _at_once)]


_NAMES: tuple[tuple[str, str, Literal["exact", "predicted"]], ...] = (
    ("operations", "op", "exact"),
    ("memory traffic", "byte", "predicted"),
    ("at once", "iterations", "exact"),
)


def _none(name: str, unit: str, kind: Literal["exact", "predicted"], why: str) -> Metric:
    return {"name": name, "value": None, "unit": unit, "text": f"unknown: {why}", "kind": kind}


def _operations(footprint: ProgramFootprint, target: Target) -> Metric:
    count, is_exact = operations_of(footprint)
    text = f"{'' if is_exact else 'at most '}{format_count(count)} operations"
    return {"name": "operations", "value": count, "unit": "op", "text": text,
            "kind": "exact" if is_exact else "predicted"}  # fmt: skip


def _moved(footprint: ProgramFootprint, target: Target) -> Metric:
    if is_for_device(footprint, target):
        return _none("memory traffic", "byte", "predicted", NO_MODEL)
    moved = moved_to_memory(footprint, target)
    return {"name": "memory traffic", "value": moved, "unit": "byte",
            "text": f"{format_bytes(moved)} to and from memory", "kind": "predicted"}  # fmt: skip


def _at_once(footprint: ProgramFootprint, target: Target) -> Metric:
    """Return how many iterations of the most frequent statement run at once."""
    _, parallel, lanes = max(_widths(footprint.root, target, 1, 1), default=(0, 1, 1))
    noun = "threads" if is_for_device(footprint, target) else "parallel"
    return {"name": "at once", "value": parallel * lanes, "unit": "iterations",
            "text": f"{parallel:,} {noun} × {lanes} {'lane' if lanes == 1 else 'lanes'}",
            "kind": "exact"}  # fmt: skip


def _is_launched(kind: str) -> bool:
    """Tell whether a loop kind is blocks or threads; virtual threads are not: they run in turn."""
    return is_thread(kind) and kind != "vthread"


def _widths(
    nest: Nest, target: Target, parallel: int, extent: int
) -> Iterator[tuple[int, int, int]]:
    """Yield, for each store, its executions, its parallel iterations, and its vector lanes."""
    if nest.loop is not None:
        is_at_once = nest.loop.kind == "parallel" or _is_launched(nest.loop.kind)
        parallel *= nest.trips if is_at_once else 1
        extent *= nest.trips if nest.loop.kind == "vectorized" else 1
    for item in nest.own:
        if item.access.is_write:
            lanes = min(extent, target.lanes(item.access.buffer.dtype))
            yield nest.runs * nest.trips, parallel, lanes
    for child in nest.children:
        yield from _widths(child, target, parallel, extent)
