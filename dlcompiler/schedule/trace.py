"""The trace of a schedule: its steps as data, as JSON, and as the Python that made it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import ScheduleError
from dlcompiler.ir import Axis
from dlcompiler.schedule.primitives import REGISTRY, Primitive, primitive
from dlcompiler.schedule.state import StageState, State, Step

if TYPE_CHECKING:
    from dlcompiler.schedule.schedule import Schedule

SCHEMA_VERSION = 1


def encode(item: Primitive, state: State, stage: StageState, args: Mapping[str, Any]) -> Step:
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
                encoded[name] = int(value)
            case "text" | "stage":
                encoded[name] = str(value)
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
    parameters = primitive(step.primitive).parameters
    unknown = set(step.args) - set(parameters)
    if unknown:
        raise _malformed(step, f"unknown argument {min(unknown)!r}", ", ".join(parameters))
    stage = _stage(state, step, step.stage)
    args: dict[str, Any] = {}
    for name, value in step.args.items():
        match parameters[name]:
            case "axis":
                args[name] = _axis(stage, step, value)
            case "axes":
                items = value if isinstance(value, list) else [value]
                args[name] = tuple(_axis(stage, step, item) for item in items)
            case "parent_axis":
                args[name] = _axis(_stage(state, step, step.args.get("parent")), step, value)
            case "int":
                args[name] = value
            case "text" | "stage":
                if not isinstance(value, str):
                    raise _malformed(step, f"{name} is not a text", "a text")
                args[name] = value
    if "parent" in args:
        _stage(state, step, args["parent"])
    return args


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
    root: State | None = None

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        return "\n".join(str(step) for step in self.steps) or "(no steps)"

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
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
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
            If a step does not apply; the schedule then stands where it failed.
        """
        for step in self.steps:
            schedule.apply(step.primitive, step.stage, decode(schedule.state, step))

    def to_python(self, schedule: str = "s") -> str:
        """Return the Python code of the steps.

        The tensors are expected in variables of their names.
        """
        if self.root is None:
            raise ScheduleError("print a trace", "a trace that was read knows no tensors",
                                hint="replay it on a schedule, and print that one's trace")  # fmt: skip
        return _Writer(self.root, schedule).write(self.steps)


def _read_step(item: Any) -> Step:
    match item:
        case {"primitive": str(name), "stage": str(stage), "args": dict(args)}:
            return Step(name, stage, args)
    raise ScheduleError(
        "read a trace", "a step is malformed", got=repr(item),
        expected='{"primitive": "split", "stage": "C", "args": {…}}',
    )  # fmt: skip


class _Writer:
    """Writes steps as Python, with a variable for each axis."""

    def __init__(self, root: State, schedule: str) -> None:
        self.schedule = schedule
        self.axes: dict[tuple[str, str], str] = {}
        self.used: set[str] = {schedule}
        self.lines: list[str] = []
        self.root = root

    def write(self, steps: tuple[Step, ...]) -> str:
        outputs = [s for s in self.root.stages if s.is_output]
        ops = ", ".join(f"{variable(s.name)}.op" for s in outputs)
        ops = ops if len(outputs) == 1 else f"[{ops}]"
        self.used.update(variable(stage.name) for stage in self.root.stages)
        self.lines.append(f"{self.schedule} = te.create_schedule({ops})")
        for stage in self.root.stages:
            if any(step.stage == stage.name or step.args.get("parent") == stage.name
                   for step in steps):  # fmt: skip
                self.axes_of(stage.name, stage.op.axis, stage.op.reduce_axis, stage.paths)
        for step in steps:
            self.step(step)
        return "\n".join(self.lines) + "\n"

    def axes_of(self, stage: str, data: Any, reduce: Any, paths: Mapping[Axis, str]) -> None:
        for attribute, axes in (("axis", data), ("reduce_axis", reduce)):
            if axes:
                names = self.bind(stage, [paths[axis] for axis in axes])
                self.lines.append(f"{names} = {self.at(stage)}.op.{attribute}")

    def bind(self, stage: str, paths: list[str]) -> str:
        names = []
        for path in paths:
            name = variable(path)
            if name in self.used:
                name = f"{variable(stage)}_{name}"
            self.used.add(name)
            self.axes[stage, path] = name
            names.append(name)
        return ", ".join(names) + ("," if len(names) == 1 else "")

    def at(self, stage: str) -> str:
        return f"{self.schedule}[{variable(stage)}]"

    def step(self, step: Step) -> None:
        args = dict(step.args)
        stage = step.stage
        if step.primitive == "cache_write":
            self.cache_write(step)
            return
        parts = []
        for name, kind in primitive(step.primitive).parameters.items():
            if name not in args:
                continue
            value = args[name]
            if kind == "axis":
                parts.append(self.axes[stage, value])
            elif kind == "axes":
                parts.extend(self.axes[stage, item] for item in value)
            elif kind == "parent_axis":
                parts.append(self.axes[args["parent"], value])
            elif kind == "stage":
                parts.append(self.at(value))
            else:
                parts.append(f"{name}={value!r}" if step.primitive == "split" else repr(value))
        call = f"{self.at(stage)}.{step.primitive}({', '.join(parts)})"
        made = self.results(step)
        self.lines.append(f"{self.bind(stage, made).removesuffix(',')} = {call}" if made else call)

    def results(self, step: Step) -> list[str]:
        """Return the paths of the axes that a step makes, in the order of its result."""
        args = step.args
        match step.primitive:
            case "split":
                return [
                    self.fresh(step.stage, f"{args['axis']}.{end}") for end in ("outer", "inner")
                ]
            case "tile":
                x, y = args["x"], args["y"]
                names = (f"{x}.outer", f"{y}.outer", f"{x}.inner", f"{y}.inner")
                return [self.fresh(step.stage, name) for name in names]
            case "fuse":
                path = args["axes"][0]
                for inner in args["axes"][1:]:
                    path = f"{path.removesuffix('.fused')}.{inner}.fused"
                return [self.fresh(step.stage, path)]
        return []

    def fresh(self, stage: str, path: str) -> str:
        taken = {own for owner, own in self.axes if owner == stage}
        candidate, n = path, 0
        while candidate in taken:
            n += 1
            candidate = f"{path}_{n}"
        return candidate

    def cache_write(self, step: Step) -> None:
        stage, scope = step.stage, step.args["scope"]
        cached = f"{stage}.{scope}"
        name = variable(cached)
        self.used.add(name)
        call = f"{self.schedule}.cache_write({variable(stage)}, {scope!r})"
        self.lines.append(f"{name} = {call}")
        data = [path for owner, path in self.axes if owner == stage]
        original = next((s for s in self.root.stages if s.name == stage), None)
        if original is None:
            return
        reduce = [original.paths[axis] for axis in original.op.reduce_axis]
        fresh = [f"{original.paths[axis]}.c" for axis in original.op.axis]
        self.lines.append(f"{self.bind(cached, fresh)} = {self.at(cached)}.op.axis")
        for path in reduce:
            if path in data:
                self.axes[cached, path] = self.axes[stage, path]
        if reduce and not all((cached, path) in self.axes for path in reduce):
            self.lines.append(f"{self.bind(cached, reduce)} = {self.at(cached)}.op.reduce_axis")


def variable(path: str) -> str:
    """Return a Python name for an axis path or a stage name."""
    name = re.sub(r"\W", "_", path)
    return name if name.isidentifier() else f"_{name}"
