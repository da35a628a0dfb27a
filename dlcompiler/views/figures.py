"""Three figures of a state: how much it computes, how much it moves, how much it does at once."""

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
from dlcompiler.views.footprints import footprint_of, is_for_device
from dlcompiler.views.units import format_bytes, format_count

NO_MODEL = "the model of caches knows no threads of a device"


class Figure(TypedDict):
    """A number of a state."""

    name: str
    """The same in every state."""
    value: float | None
    """None where there is none; `text` says why."""
    unit: str
    text: str
    """The value with its unit, to be read."""
    kind: Literal["exact", "predicted"]
    """Counted, or said by a model."""


def figures(program: Schedule | State, args: Sequence[Tensor], target: Target) -> list[Figure]:
    """Return the three figures by which states are compared.

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
    list of Figure
        ``operations``: arithmetic on data, also what is computed again; exact.
        ``memory traffic``: bytes between the last cache and memory, predicted
        (`dlcompiler.analysis.traffic` says how); unknown of a program for a device.
        ``at once``: iterations that may run at the same time where most of the work is: those of
        parallel loops, or threads, times the lanes of a vector register that are used; exact.
    """
    state = program.state if isinstance(program, Schedule) else program
    names = " ".join(tensor.name for tensor in args)
    key = f"figures {hash(target)} {names}"
    if key not in state.cache:
        state.cache[key] = _figures(state, args, target)
    found: list[Figure] = state.cache[key]
    return [figure.copy() for figure in found]


def _figures(state: State, args: Sequence[Tensor], target: Target) -> list[Figure]:
    try:
        footprint = footprint_of(state, args, target)
    except DLCompilerError as error:
        return [_none(name, unit, kind, error.problem) for name, unit, kind in _NAMES]
    return [make(footprint, target) for make in (_operations, _moved, _at_once)]


_NAMES: tuple[tuple[str, str, Literal["exact", "predicted"]], ...] = (
    ("operations", "op", "exact"),
    ("memory traffic", "byte", "predicted"),
    ("at once", "iterations", "exact"),
)


def _none(name: str, unit: str, kind: Literal["exact", "predicted"], why: str) -> Figure:
    return {"name": name, "value": None, "unit": unit, "text": f"unknown: {why}", "kind": kind}


def _operations(footprint: ProgramFootprint, target: Target) -> Figure:
    count, is_exact = operations_of(footprint)
    text = f"{'' if is_exact else 'at most '}{format_count(count)} operations"
    return {"name": "operations", "value": count, "unit": "op", "text": text,
            "kind": "exact" if is_exact else "predicted"}  # fmt: skip


def _moved(footprint: ProgramFootprint, target: Target) -> Figure:
    if is_for_device(footprint, target):
        return _none("memory traffic", "byte", "predicted", NO_MODEL)
    moved = moved_to_memory(footprint, target)
    return {"name": "memory traffic", "value": moved, "unit": "byte",
            "text": f"{format_bytes(moved)} to and from memory", "kind": "predicted"}  # fmt: skip


def _at_once(footprint: ProgramFootprint, target: Target) -> Figure:
    """Return the figure of the statement that runs most often."""
    _, parallel, lanes = max(_widths(footprint.root, target, 1, 1), default=(0, 1, 1))
    noun = "threads" if is_for_device(footprint, target) else "parallel"
    return {"name": "at once", "value": parallel * lanes, "unit": "iterations",
            "text": f"{parallel:,} {noun} × {lanes} {'lane' if lanes == 1 else 'lanes'}",
            "kind": "exact"}  # fmt: skip


def _is_launched(kind: str) -> bool:
    """Tell whether iterations are blocks or threads; those of virtual threads take turns."""
    return is_thread(kind) and kind != "vthread"


def _widths(
    nest: Nest, target: Target, parallel: int, extent: int
) -> Iterator[tuple[int, int, int]]:
    """Yield how often the statements of a place run, in how many iterations and lanes at once."""
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
