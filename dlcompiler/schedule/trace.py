"""The trace of a schedule: its steps as data, as JSON, and as the Python that made it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlcompiler.display import render
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import Axis, Var
from dlcompiler.json_text import JsonError, parse
from dlcompiler.schedule.history import Node
from dlcompiler.schedule.index_maps import index_map_of
from dlcompiler.schedule.primitives import REGISTRY, Primitive
from dlcompiler.schedule.primitives.base import ParameterKind
from dlcompiler.schedule.saved.python_writer import write_python
from dlcompiler.schedule.state import StageState, State, Step
from dlcompiler.te import Tensor

if TYPE_CHECKING:
    from dlcompiler.schedule.schedule import Schedule

SCHEMA_VERSION = 1


def encode(  # noqa: C901 - one case per kind
    item: Primitive, state: State, stage: StageState, args: Mapping[str, Any]
) -> Step:
    """Return a call as data; its axes must be valid."""
    encoded: dict[str, Any] = {}
    for name, kind in item.parameters.items():
        value = args.get(name)
        if value is None:
            continue
        match kind:
            case "axis":
                encoded[name] = stage.paths[value]
            case "axes":
                encoded[name] = [stage.paths[axis] for axis in value]
            case "parent_axis":
                encoded[name] = state.stage(args["parent"]).paths[value]
            case "int":
                # A knob has no number: a trace that holds one says so when it is read back.
                encoded[name] = value.name if isinstance(value, Var) else int(value)
            case "index_map":
                names = [axis.name for axis in stage.op.axis]
                encoded[name] = str(index_map_of(value, names))
            case "intrin":
                encoded[name] = value if isinstance(value, str) else value.id
            case "text" | "stage":
                encoded[name] = str(value)
            case "stages":
                encoded[name] = list(value)
    return Step(item.name, stage.name, encoded)


def decode(state: State, step: Step) -> dict[str, Any]:
    """Return the arguments of a step with its axes found in `state`.

    Raises
    ------
    ScheduleError
        If the step names an unknown primitive, stage or axis, or has malformed arguments.
    """
    if step.primitive not in REGISTRY:
        raise _malformed(step, "no such primitive", ", ".join(sorted(REGISTRY)))
    item = REGISTRY[step.primitive]
    parameters = item.parameters
    unknown = set(step.args) - set(parameters)
    if unknown:
        raise _malformed(step, f"unknown argument {min(unknown)!r}", item.signature or "none")
    stage = _stage(state, step, step.stage)
    args = {
        name: _argument(state, stage, step, parameters[name], value)
        for name, value in step.args.items()
    }
    if "parent" in args:
        _stage(state, step, args["parent"])
    return args


def _argument(state: State, stage: StageState, step: Step, kind: ParameterKind, value: Any) -> Any:
    match kind:
        case "axis":
            return _axis(stage, step, value)
        case "axes":
            items = value if isinstance(value, list) else [value]
            return tuple(_axis(stage, step, item) for item in items)
        case "parent_axis":
            return _axis(_stage(state, step, step.args.get("parent")), step, value)
        case "stages":
            return tuple(value) if isinstance(value, list) else value
        case "int":
            return value
    if not isinstance(value, str):
        raise _malformed(step, f"{value!r} is not a text", "a text")
    return value


def _stage(state: State, step: Step, name: object) -> StageState:
    for stage in state.stages:
        if stage.name == name:
            return stage
    raise _malformed(step, f"no stage {name!r}", ", ".join(s.name for s in state.stages))


def _axis(stage: StageState, step: Step, path: object) -> Axis:
    for axis, own in stage.paths.items():
        if own == path:
            return axis
    raise _malformed(
        step, f"stage {stage.name} has no axis {path!r}", ", ".join(stage.paths.values())
    )


def _malformed(step: Step, problem: str, expected: str) -> ScheduleError:
    return ScheduleError(f"replay {step}", problem, expected=expected)


@dataclass(frozen=True)
class Trace:
    """The steps from the start of a schedule to a state."""

    steps: tuple[Step, ...]
    nodes: tuple[Node, ...] = ()
    """The states: the first one, and the one after each step; empty for a trace that was read."""

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        return "\n".join(str(step) for step in self.steps) or "(no steps)"

    def _repr_html_(self) -> str:
        return render("trace", self)

    def to_json(self) -> str:
        """Return the trace as JSON; it holds primitives and names, no code."""
        return json.dumps(
            {"version": SCHEMA_VERSION, "steps": [step.to_json() for step in self.steps]}
        )

    @staticmethod
    def from_json(text: str) -> Trace:
        """Read a trace.

        Raises
        ------
        ScheduleError
            If the text is not a trace of this schema.
        """
        try:
            data = parse(text)
        except JsonError as error:
            raise ScheduleError("read a trace", "not JSON", got=str(error)) from None
        if not isinstance(data, dict) or data.get("version") != SCHEMA_VERSION:
            got = data.get("version") if isinstance(data, dict) else type(data).__name__
            raise ScheduleError(
                "read a trace", "not a trace of this version",
                got=repr(got), expected=f"version {SCHEMA_VERSION}",
            )  # fmt: skip
        steps = data.get("steps")
        if not isinstance(steps, list):
            raise ScheduleError("read a trace", "'steps' is not a list", got=repr(steps))
        return Trace(tuple(_read_step(item) for item in steps))

    def replay(self, schedule: Schedule) -> None:
        """Apply the steps to another schedule of the same expression, on any shape.

        Raises
        ------
        ScheduleError
            If a step is illegal; the schedule then stays at the state before this step.
        """
        for step in self.steps:
            schedule.apply(step.primitive, step.stage, decode(schedule.state, step))

    def to_python(
        self, schedule: str = "s", variables: Mapping[Tensor | Var, str] | None = None
    ) -> str:
        """Return the Python code of the steps.

        The code uses variables named like the tensors. If a name is not valid or has another
        meaning (``print``, ``te``), a comment says which variable stands for the tensor.

        Parameters
        ----------
        schedule
            The variable of the schedule.
        variables
            The variables of tensors and symbols that have a variable with another name.
        """
        if not self.nodes:
            raise ScheduleError(
                "print a trace",
                "a trace that was read has no tensors",
                hint="replay it on a schedule, and print that one's trace",
            )
        return write_python(self.nodes, schedule, variables)


def trace_of(node: Node) -> Trace:
    """Return the steps that lead to a state."""
    path = node.path()
    return Trace(tuple(item.step for item in path if item.step is not None), tuple(path))


def _read_step(item: Any) -> Step:
    match item:
        case {"primitive": str(name), "stage": str(stage), "args": dict(args)}:
            return Step(name, stage, args)
    raise ScheduleError(
        "read a trace", "a step is malformed", got=repr(item),
        expected='{"primitive": "split", "stage": "C", "args": {…}}',
    )  # fmt: skip
