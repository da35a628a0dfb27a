"""Convert a call as a user writes it to a stage name and named arguments."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import ScheduleError
from dlcompiler.ir import Axis
from dlcompiler.schedule.arguments import has_axis, known_primitive
from dlcompiler.schedule.inference.recurrences import scan_of
from dlcompiler.schedule.primitives.env_threads import text_of
from dlcompiler.schedule.stage import Stage
from dlcompiler.schedule.stage_group import StageGroup
from dlcompiler.schedule.verdict import Illegal
from dlcompiler.te import Operation, Tensor, ThreadAxis

if TYPE_CHECKING:
    from dlcompiler.schedule.schedule import Schedule


def bind_call(
    schedule: Schedule, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Return the stage name and the named arguments of a call of `Schedule.can`."""
    item = known_primitive(f"can {name!r}", name)
    parameters = item.parameters
    stage, rest = _subject(schedule, name, args)
    first = next(iter(parameters), None)
    if first is not None and parameters[first] == "axes":
        return stage, {first: tuple(rest)}
    if name == "env_threads" and rest:
        return stage, {"threads": text_of(rest[0])}
    values = [_argument(schedule, value) for value in rest]
    if len(values) > len(parameters):
        raise ScheduleError(
            f"can {name!r}", "too many arguments", got=f"{args}", expected=item.signature or "none"
        )
    named = {**dict(zip(parameters, values, strict=False)), **kwargs}
    for parameter, kind in parameters.items():
        if kind == "stages" and not isinstance(named.get(parameter, ()), tuple):
            named[parameter] = (named[parameter],)
    if "output" in parameters and isinstance(args[0], Tensor) and (n := _place(schedule, args[0])):
        named["output"] = n
    return stage, named


def own_name(schedule: Schedule, stage: Stage) -> str:
    """Return the name of a stage of this schedule; refuse one of another schedule."""
    if stage.schedule.shares_history(schedule):
        return stage.name
    raise ScheduleError(
        f"stage {stage.name}", "the stage belongs to another schedule",
        hint="take it from this schedule: s[C]",
    )  # fmt: skip


def _place(schedule: Schedule, tensor: Tensor) -> int:
    """Return the number of a tensor among its stage's outputs, then the states of a scan."""
    scan = scan_of(schedule.state, tensor)
    return tensor.value_index if scan is None else scan.readable.index(tensor)


def stage_of_all(schedule: Schedule, name: str, tensors: tuple[Tensor, ...]) -> str:
    """Return the stage whose outputs are exactly `tensors`."""
    stages = [schedule[tensor] for tensor in tensors]
    if not all(isinstance(tensor, Tensor) for tensor in tensors):
        raise ScheduleError(f"{name} {stages[0].name}", "not a tensor", got=repr(tensors[0]))
    count = len(stages[0].state.tensors) if stages else 0
    given = {(tensor.op, tensor.value_index) for tensor in tensors}
    if len({stage.name for stage in stages}) == 1 and len(given) == len(tensors) == count:
        return stages[0].name
    outputs = ", ".join(tensor.name for tensor in stages[0].state.tensors) if stages else ""
    raise ScheduleError(
        f"{name} {stages[0].name if stages else ''}".rstrip(),
        "takes all outputs of one operation",
        got=", ".join(tensor.name for tensor in tensors) or "no tensor",
        hint=f"s.{name}([{outputs}], …)" if count > 1 else None,
    )


def _subject(schedule: Schedule, name: str, args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Return the stage that a call is about, and its other arguments."""
    if not args:
        raise ScheduleError(f"can {name!r}", "no stage or axis given")
    head = args[0]
    if isinstance(head, Stage):
        return own_name(schedule, head), args[1:]
    if isinstance(head, StageGroup):
        return own_name(schedule, head.stages[0]), args[1:]
    if isinstance(head, list | tuple):
        return stage_of_all(schedule, name, tuple(head)), args[1:]
    if isinstance(head, Tensor | Operation):
        scan = scan_of(schedule.state, head) if name == "cache_read" else None
        return (schedule[head] if scan is None else scan).name, args[1:]
    if not isinstance(head, Axis):
        raise ScheduleError(
            f"can {name!r}",
            "the first argument is neither a stage nor an axis",
            got=repr(head),
            expected="s[C], C or an axis of the schedule",
        )
    owners = [s for s in schedule.state.stages if s.has_leaf(head)] or [
        s for s in schedule.state.stages if head in s.paths
    ]
    return (owners[0] if owners else schedule.state.stages[-1]).name, args


def _argument(schedule: Schedule, value: Any) -> Any:
    """Convert an argument for `apply`: stages and tensors become names of stages."""
    if isinstance(value, Stage):
        return own_name(schedule, value)
    if isinstance(value, list | tuple):
        return tuple(_argument(schedule, item) for item in value)
    if isinstance(value, ThreadAxis):
        return value.tag
    return schedule[value].name if isinstance(value, Tensor | Operation) else value


def foreign_axis(schedule: Schedule, args: Mapping[str, Any]) -> Illegal | None:
    """Refuse axes of another schedule, and axes that do not exist in the current state."""
    for value in args.values():
        for axis in value if isinstance(value, tuple) else (value,):
            if not isinstance(axis, Axis) or axis.lineage is None:
                continue
            if axis.lineage is not schedule.history.history:
                return Illegal(
                    "structural",
                    "the axis belongs to another schedule",
                    got=f"axis {axis.name}",
                    hint="take the axes from this schedule's own stages and steps",
                )
            if not has_axis(schedule.state, axis):
                return _lost_axis(schedule, axis)
    return None


def _lost_axis(schedule: Schedule, axis: Axis) -> Illegal:
    """Return the refusal of an axis that a later step removed, or that an undone step made."""
    path = schedule.node.path()
    had = [has_axis(node.state, axis) for node in path]
    if True in had:
        gone = path[had.index(False, had.index(True))].title()
        return Illegal(
            "structural",
            "the axis is gone: its stage has other loops now",
            got=f"axis {axis.name}, gone since: {gone}",
            hint="take the loops that the stages have now: s[C].leaf_iter_vars",
        )
    made, hint = schedule.undone_step(functools.partial(has_axis, axis=axis))
    return Illegal(
        "structural",
        "the axis was made by an undone step",
        got=f"axis {axis.name}, made by: {made}",
        hint=hint,
    )
