"""Check the arguments of steps against the declarations of primitives."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from dlcompiler.errors import ScheduleError, shown_number
from dlcompiler.ir import Axis, Const
from dlcompiler.ir.operators import Operators
from dlcompiler.schedule.primitives import REGISTRY, Primitive
from dlcompiler.schedule.primitives.base import ParameterKind
from dlcompiler.schedule.state import State
from dlcompiler.schedule.verdict import Illegal

LARGEST = 10**4000
"""Largest number in a step. A split clips it; a trace must be able to print it, and Python
prints no integer of more than 4,300 digits; [1]."""


def operation_title(state: State, name: str, stage: str, args: Mapping[str, Any]) -> str:
    """Return a step as text, for the first line of the error that refuses it: ``split C.i``."""
    values = [v if isinstance(v, tuple) else (v,) for v in args.values()]
    axes = [axis for value in values for axis in value if isinstance(axis, Axis)]
    parent = args.get("parent", stage)
    paths = state.stage(parent if state.has_stage(parent) else stage).paths
    names = [paths.get(axis, axis.name) for axis in axes]
    if not names:
        return f"{name} {stage}"
    if name in ("compute_at", "compute_group_at"):
        return f"{name} {stage} at {args['parent']}.{names[0]}"
    if len(names) == 1:
        return f"{name} {stage}.{names[0]}"
    return f"{name} {stage} ({', '.join(names)})"


def known_primitive(operation: str, name: str) -> Primitive:
    """Return a primitive by its name, or raise an error that lists all names."""
    if name in REGISTRY:
        return REGISTRY[name]
    raise ScheduleError(operation, "no such primitive", expected=", ".join(sorted(REGISTRY)))


def plain_arguments(item: Primitive, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with constants and knob values replaced by plain numbers."""
    return {
        name: _plain(value) if item.parameters.get(name) == "int" else value
        for name, value in args.items()
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Const):
        return value.value
    if hasattr(value, "__index__") and not isinstance(value, bool | Operators):
        with contextlib.suppress(TypeError):  # an array of NumPy is an index only if it is a scalar
            return operator.index(value)
    return value


def wrong_arguments(item: Primitive, state: State, args: Mapping[str, Any]) -> Illegal | None:
    """Refuse missing arguments, unknown arguments, and arguments of a wrong type."""
    if missing := item.missing(args):
        return Illegal("structural", f"{' and '.join(missing)} must be given")
    if unknown := [name for name in args if name not in item.parameters]:
        hint = f"the arguments are: {item.signature or 'none'}"
        return Illegal("structural", f"no argument is called {unknown[0]}", hint=hint)
    kinds = item.parameters
    wrong = (_wrong_value(state, name, kinds[name], value) for name, value in args.items())
    return next((refused for refused in wrong if refused is not None), None)


def _wrong_value(state: State, name: str, kind: ParameterKind, value: Any) -> Illegal | None:
    """Refuse a value that is out of range, or not of the kind that the parameter declares."""
    if isinstance(value, int) and abs(value) > LARGEST:
        got = shown_number(value)
        return Illegal("limit", f"{name} is out of range", got=got, expected="±10^4000 at most")
    if isinstance(value, np.ndarray):  # its comparisons return arrays
        return Illegal("structural", f"{name} must not be an array", got=repr(value))
    if kind == "stages":
        return next(iter(_wrong_stages(state, name, value)), None)
    if kind == "axes" and not isinstance(value, tuple):
        return Illegal("structural", f"{name} must be a tuple of axes", got=repr(value))
    if kind == "int" and isinstance(value, list | tuple | dict):  # for example, from a trace
        got = f"{value!r} ({type(value).__name__})"
        return Illegal("structural", f"{name} must be an integer", got=got)
    if kind == "stage" and not (isinstance(value, str) and state.has_stage(value)):
        known = ", ".join(stage.name for stage in state.stages)
        return Illegal("structural", "no such stage", got=repr(value), hint=f"there are {known}")
    return None


def _wrong_stages(state: State, name: str, value: object) -> tuple[Illegal, ...]:
    """Return () if the value is a tuple of stage names, else a tuple with the refusal."""
    known = [stage.name for stage in state.stages]
    if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
        return (Illegal("structural", f"{name} must be a tuple of stages", got=repr(value)),)
    unknown = [item for item in value if item not in known]
    hint = f"there are {', '.join(known)}"
    return tuple(Illegal("structural", "no such stage", hint, repr(item)) for item in unknown)


def has_axis(state: State, axis: Axis) -> bool:
    """Tell whether an axis belongs to some stage, even if it is no longer a loop."""
    return any(axis in stage.paths for stage in state.stages)


def refusal(operation: str, verdict: Illegal) -> ScheduleError:
    """Return the error that says why a step is illegal."""
    return ScheduleError(
        operation, verdict.reason, got=verdict.got, expected=verdict.expected,
        because=verdict.because, hint=verdict.hint,
    )  # fmt: skip
