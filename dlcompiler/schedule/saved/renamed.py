"""Rename the stages and axes of a schedule to names that are valid in notation and Python.

A tensor may be called ``data.pad``, and two axes of different extents may both be called ``k``. The
notation of the expression has a valid, unique name for each. Here the notation is read back, and
the steps are repeated on the result. Stages and axes are found by position, not by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dlcompiler import te
from dlcompiler.errors import InternalError, ScheduleError
from dlcompiler.schedule.history import Node
from dlcompiler.schedule.primitives import REGISTRY
from dlcompiler.schedule.schedule import Schedule, create_schedule
from dlcompiler.schedule.state import State, Step
from dlcompiler.schedule.trace import decode
from dlcompiler.te import Tensor, post_order
from dlcompiler.te.notation.line import names_of


def renamed(
    schedule: Schedule, args: Iterable[Tensor], *, is_whole: bool = False
) -> tuple[Schedule, list[Tensor]]:
    """Write the expression of a schedule as notation, read it back, and repeat the steps on it.

    Parameters
    ----------
    schedule
        The schedule, at its state.
    args
        Tensors of its expression.
    is_whole
        Whether all states of the history are repeated, or only those on the way to its state.

    Returns
    -------
    tuple
        The new schedule, at the same state, and the tensors for `args`.

    Raises
    ------
    DLCompilerError
        If the expression has no text: it has a reduction of the user's own.
    """
    history = schedule.history.history
    outputs = [t for stage in history.root.state.stages if stage.is_output for t in stage.tensors]
    tensors = _read_back(outputs)
    twin = create_schedule([tensors[tensor] for tensor in outputs])
    stages = {stage.name: twin[tensors[stage.tensor]].name for stage in history.root.state.stages}
    nodes = sorted(history.nodes.values(), key=lambda node: node.number)
    places = _repeat(twin, nodes if is_whole else schedule.node.path(), stages)
    twin.jump(places[schedule.node.id])
    for tensor in args:
        if tensor not in tensors:
            raise ScheduleError(
                "write a schedule", "a parameter is no tensor of the expression", got=repr(tensor)
            )
    return twin, [tensors[tensor] for tensor in args]


def _read_back(outputs: list[Tensor]) -> dict[Tensor, Tensor]:
    """Write an expression as notation and read it back; map each old tensor to the new one."""
    names = names_of(outputs).tensors
    declarations = te.notation_arguments(*outputs)
    if any(callable(declared) for declared in declarations.values()):
        raise ScheduleError(
            "write a schedule", "a reduction of the user's own has no text",
            hint="its functions are Python code: share the code that defines the expression",
        )  # fmt: skip
    read = te.notation(te.notation_text(*outputs), **declarations)
    by_name = tensors_by_name(read if isinstance(read, tuple) else (read,))
    return {tensor: by_name[name] for tensor, name in names.items()}


def tensors_by_name(outputs: Iterable[Tensor]) -> dict[str, Tensor]:
    """Return all tensors that outputs depend on."""
    return {tensor.name: tensor for op in post_order(outputs) for tensor in op.outputs}


def _repeat(twin: Schedule, nodes: Iterable[Node], stages: dict[str, str]) -> dict[str, str]:
    """Replay the steps on `twin`; map the ids of the old states to the ids of the new ones."""
    places: dict[str, str] = {}
    names: dict[str, dict[str, str]] = {}
    for node in nodes:
        if node.step is None or node.parent is None:
            places[node.id], names[node.id] = twin.node.id, stages
        else:
            twin.jump(places[node.parent.id])
            before, known = twin.state, names[node.parent.id]
            step = _translated(node.step, node.parent.state, before, known)
            twin.apply(step.primitive, step.stage, decode(before, step))
            places[node.id] = twin.node.id
            names[node.id] = known | _new_stages(node, known, twin.state, before)
        twin.node.notes.update(node.notes)
        twin.describe(node.name, node.note)
    return places


def _translated(step: Step, old: State, new: State, stages: Mapping[str, str]) -> Step:
    """Return a step with the names of its stages and axes in the new schedule."""

    def path(stage: str, axis: str) -> str:
        place = list(old.stage(stage).paths.values()).index(axis)
        return list(new.stage(stages[stage]).paths.values())[place]

    args: dict[str, Any] = {}
    for name, value in step.args.items():
        match REGISTRY[step.primitive].parameters[name]:
            case "axis":
                args[name] = path(step.stage, value)
            case "axes":
                args[name] = [path(step.stage, axis) for axis in value]
            case "parent_axis":
                args[name] = path(step.args["parent"], value)
            case "stage":
                args[name] = stages[value]
            case "stages":
                args[name] = [stages[stage] for stage in value]
            case _:
                args[name] = value
    return Step(step.primitive, stages[step.stage], args)


def _new_stages(
    node: Node, known: Mapping[str, str], state: State, before: State
) -> dict[str, str]:
    """Map the names in `node` of the stages that a step made to their names in `state`."""
    made = [stage.name for stage in node.state.stages if stage.name not in known]
    own = [stage.name for stage in state.stages if not before.has_stage(stage.name)]
    if len(made) != len(own):
        raise InternalError(f"repeat {node.title()}", "it made other stages", got=f"{own}")
    return dict(zip(made, own, strict=True))
