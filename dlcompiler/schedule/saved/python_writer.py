"""The Python code that makes a schedule: one line for each step, with a variable for each axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dlcompiler.ir import Axis, Var
from dlcompiler.schedule.history import Node
from dlcompiler.schedule.primitives import REGISTRY
from dlcompiler.schedule.primitives.base import ParameterKind
from dlcompiler.schedule.primitives.env_threads import axes_of
from dlcompiler.schedule.state import StageState, State, Step
from dlcompiler.te import Tensor
from dlcompiler.te.notation.python_names import is_free, plain_name, variable_name


@dataclass(frozen=True)
class PythonLine:
    """A line of the code."""

    text: str
    node: Node | None
    """The state that the line leads to; None where it only names what is there."""
    axes: tuple[Axis, ...]
    """The axes that have a variable in it."""


def write_python(
    path: Sequence[Node], schedule: str, variables: Mapping[Tensor | Var, str] | None = None
) -> str:
    """Return the code of the steps on a path through the history.

    Parameters
    ----------
    path
        The nodes from the first state to the last one.
    schedule
        The variable of the schedule.
    variables
        The variables of tensors and of symbols; by default, tensors have variables of their names.
    """
    return "\n".join(line.text for line in python_lines(path, schedule, variables)) + "\n"


def python_lines(
    path: Sequence[Node], schedule: str, variables: Mapping[Tensor | Var, str] | None = None
) -> list[PythonLine]:
    """Return the lines of `write_python`, each with its step and the axes that it names."""
    return _Writer(path[0], schedule, variables or {}).write(path[1:])


class _Writer:
    def __init__(self, start: Node, schedule: str, variables: Mapping[Tensor | Var, str]) -> None:
        self.start = start
        self.root = start.state
        self.schedule = schedule
        self.used = {schedule, *variables.values()}
        self.axes: dict[Axis, str] = {}
        self.tensors: dict[Tensor, str] = {}
        self.groups: dict[str, str] = {}
        for stage in self.root.stages:
            variable = variables.get(stage.tensor) or self.variable(stage.name)
            for n, tensor in enumerate(stage.tensors):
                self.tensors[tensor] = f"{variable}.op.output({n})" if n else variable
            for n, tensor in enumerate(stage.states):
                self.tensors[tensor] = f"{variable}.op.states[{n}]"
        self.given = variables
        self.lines: list[PythonLine] = []
        self.mentioned: dict[Axis, None] = {}

    def add(self, text: str, node: Node | None = None) -> None:
        """Add a line, together with the axes that were named since the previous line."""
        self.lines.append(PythonLine(text, node, tuple(self.mentioned)))
        self.mentioned.clear()

    def write(self, nodes: Sequence[Node]) -> list[PythonLine]:
        # Consumers first: a tensor whose name is no variable is reached through who reads it.
        for stage in reversed(self.root.stages):
            variable = self.tensors[stage.tensor]
            if variable not in (stage.name, self.given.get(stage.tensor)):
                self.add(self.find(stage, variable))
        ops = [f"{self.tensors[s.tensor]}.op" for s in self.root.stages if s.is_output]
        outputs = ops[0] if len(ops) == 1 else f"[{', '.join(ops)}]"
        self.add(f"{self.schedule} = te.create_schedule({outputs})", self.start)
        steps = [node.step for node in nodes if node.step is not None]
        touched = {name for step in steps for name in (step.stage, step.args.get("parent"))}
        for stage in self.root.stages:
            if stage.name in touched:
                self.stage_axes(stage)
        for node in nodes:
            self.step(node)
        return self.lines

    def find(self, stage: StageState, variable: str) -> str:
        """Return the line that assigns the tensor of a stage to a variable."""
        for reader in self.root.readers_of(stage):
            place = reader.op.input_tensors.index(stage.tensor)
            return f"{variable} = {self.tensors[reader.tensor]}.op.input_tensors[{place}]"
        return f"# {variable} is the tensor {stage.name!r}"

    def step(self, node: Node) -> None:
        assert node.parent is not None
        assert node.step is not None
        call = self.call(node.parent.state, node.step)
        self.result(node, call)
        if node.step.primitive in ("cache_write", "rfactor"):
            self.stage_axes(node.state.stage(node.step.stage))

    def result(self, node: Node, call: str) -> None:
        """Write a call that assigns its results to variables."""
        assert node.step is not None
        match node.result:
            case None:
                self.add(call, node)
            case Tensor():
                stage = node.state.producer_of(node.result)
                self.tensors[node.result] = self.variable(stage.name)
                self.add(f"{self.tensors[node.result]} = {call}", node)
                self.stage_axes(stage)
            case (Tensor(), *_) as tensors:
                stage = node.state.producer_of(tensors[0])
                for tensor in tensors:
                    self.tensors[tensor] = self.variable(tensor.name)
                names = ", ".join(self.tensors[tensor] for tensor in tensors)
                self.add(f"{names} = {call}", node)
                self.stage_axes(stage)
            case str() as group:
                self.groups[group] = self.variable(group)
                self.add(f"{self.groups[group]} = {call}", node)
            case Axis():
                self.add(f"{self.bind(node.result, node.step.stage)} = {call}", node)
            case axes:
                made = [self.bind(axis, node.step.stage) for axis in axes]
                self.add(f"{_targets(made)} = {call}", node)

    def call(self, state: State, step: Step) -> str:
        if step.primitive in ("cache_read", "cache_write", "rfactor"):
            return self.dataflow(state, step)
        subject, method = self.at(state.stage(step.stage)), step.primitive
        if method == "create_group":
            return self.grouping(state, step)
        group = state.stage(step.stage).group
        if group is not None and method in ("compute_group_at", "compute_group_root"):
            subject, method = self.groups[group.name], method.replace("_group", "")
        parts: list[str] = []
        for name, kind in REGISTRY[step.primitive].parameters.items():
            if step.args.get(name) is not None and name != "tensor_output":
                parts.extend(self.argument(state, step, kind, name))
        return f"{subject}.{method}({', '.join(parts)})"

    def grouping(self, state: State, step: Step) -> str:
        """Return the call of `create_group`."""
        ends = (
            ", ".join(self.handle(state.stage(name)) for name in step.args[end])
            for end in ("outputs", "inputs")
        )
        included = ", include_inputs=True" if step.args.get("include_inputs") else ""
        return f"{self.schedule}.create_group({', '.join(f'[{end}]' for end in ends)}{included})"

    def argument(self, state: State, step: Step, kind: ParameterKind, name: str) -> list[str]:
        """Return the texts of one argument of a call: several for a list of axes."""
        value = step.args[name]
        if name == "tensor":
            return [self.handle(state.stage(value), step.args.get("tensor_output", 0))]
        match kind:
            case "axis":
                return [self.axis(state, step.stage, value)]
            case "axes":
                return [self.axis(state, step.stage, item) for item in value]
            case "parent_axis":
                return [self.axis(state, step.args["parent"], value)]
            case "stage":
                return [self.at(state.stage(value))]
            case "text" if step.primitive == "bind":
                return [f"te.thread_axis({_quoted(value)})"]
            case "text" if step.primitive == "env_threads":
                axes = (f"te.thread_axis({n}, {_quoted(tag)})" for tag, n in axes_of(value))
                return [f"[{', '.join(axes)}]"]
            case "intrin":
                return [f"te.tensor_intrin({_quoted(value)})"]
            case "text":
                return [_quoted(value)]
        return [f"{name}={value}" if step.primitive == "split" else f"{value}"]

    def dataflow(self, state: State, step: Step) -> str:
        """Return the call of a method of the schedule that takes a tensor, such as `rfactor`."""
        if step.primitive == "rfactor":
            tensor = self.handle(state.stage(step.stage))
            place = f", {n}" if (n := step.args.get("factor_axis")) else ""
            axis = self.axis(state, step.stage, step.args["axis"])
            return f"{self.schedule}.rfactor({tensor}, {axis}{place})"
        stage = state.stage(step.stage)
        subject = self.handle(stage, step.args.get("output", 0))
        if step.primitive == "cache_write" and len(stage.tensors) > 1:
            outputs = (self.handle(stage, n) for n in range(len(stage.tensors)))
            subject = f"[{', '.join(outputs)}]"
        parts = [subject, _quoted(step.args["scope"])]
        if "readers" in step.args:
            readers = [self.handle(state.stage(name)) for name in step.args["readers"]]
            parts.append(f"[{', '.join(readers)}]")
        return f"{self.schedule}.{step.primitive}({', '.join(parts)})"

    def at(self, stage: StageState) -> str:
        return f"{self.schedule}[{self.handle(stage)}]"

    def handle(self, stage: StageState, output: int = 0) -> str:
        """Return the variable of an output of a stage, perhaps from before a change of its layout.

        The states of a scan are numbered after its outputs.
        """
        if output >= len(stage.tensors):
            return self.tensors[stage.readable[output]]
        handles = (*stage.tensors, *stage.aliases)[output :: len(stage.tensors)]
        return next(self.tensors[tensor] for tensor in handles if tensor in self.tensors)

    def axis(self, state: State, stage: str, path: str) -> str:
        paths = state.stage(stage).paths
        found = next(axis for axis, own in paths.items() if own == path)
        self.mentioned[found] = None
        return self.axes[found]

    def stage_axes(self, stage: StageState) -> None:
        """Write the lines that assign the axes of a stage to variables, unless all have one."""
        for attribute, axes in (("axis", stage.op.axis), ("reduce_axis", stage.op.reduce_axis)):
            if all(axis in self.axes for axis in axes):
                continue
            names = [self.bind(axis, stage.name, stage.paths[axis]) for axis in axes]
            self.add(f"{_targets(names)} = {self.at(stage)}.op.{attribute}")

    def bind(self, axis: Axis, stage: str, path: str | None = None) -> str:
        """Make a variable for an axis, and return its name."""
        self.axes[axis] = self.variable(path or axis.name, stage)
        self.mentioned[axis] = None
        return self.axes[axis]

    def variable(self, name: str, prefix: str = "") -> str:
        """Return an unused variable name made from `name`, with a prefix or a number if needed."""
        plain = plain_name(name)
        if prefix and (plain in self.used or not is_free(plain)):
            return variable_name(f"{prefix}_{name}", self.used)
        return variable_name(name, self.used)


def _targets(names: Sequence[str]) -> str:
    """Return the left side of an assignment from a tuple."""
    return f"({names[0]},)" if len(names) == 1 else ", ".join(names)


def _quoted(text: str) -> str:
    return f'"{text}"' if text.isprintable() and not set(text) & set('"\\') else repr(text)
