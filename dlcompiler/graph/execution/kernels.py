"""The kernels of a model: from a fused group to an executable."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dlcompiler.errors import TargetError
from dlcompiler.graph.execution.anchors import Anchor, Packing, anchor_of
from dlcompiler.graph.execution.definition import Definition, define
from dlcompiler.graph.execution.epilogues import folded
from dlcompiler.graph.execution.scheduling import schedule_plainly, schedule_rest
from dlcompiler.graph.execution.steps import KernelCall, Steps
from dlcompiler.graph.inference import Types, types_of
from dlcompiler.graph.ir import Function, Module, Node, Op, calls
from dlcompiler.graph.operators.base import Array
from dlcompiler.ir.program import Program
from dlcompiler.measurement.aligned import aligned_copy
from dlcompiler.pipeline import lower_program
from dlcompiler.pipeline.build import build_program
from dlcompiler.pipeline.executables import Built
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.target import Target
from dlcompiler.te import Tensor

MOST_NAMES = 6
"""Most operators whose names are in the name of a kernel; [1]."""


@dataclass(frozen=True, slots=True)
class ModelKernel:
    """A kernel of a model."""

    function: Function
    """The fused group: its calls, as a function of the graph."""
    schedule: Schedule
    """How it is computed; the Explorer opens it."""
    built: Built
    """The executable: inputs, then `weights`, then outputs."""
    weights: tuple[Array, ...]
    """Arrays that stand inside the group."""
    packings: Mapping[int, Packing]
    """Parameters that are packed at build."""

    @property
    def name(self) -> str:
        """Name of the code."""
        return self.built.func.name


def built_kernel(call: KernelCall, target: Target) -> ModelKernel:
    """Build a kernel of a model.

    Raises
    ------
    GraphError
        If the group cannot be defined by tensor expressions.
    ScheduleError, TargetError
        If the target cannot do what the group needs.
    """
    if target.device != "cpu":
        raise TargetError(
            f"build a model for {target.name}", "models run on CPUs only", got=repr(target.device),
            expected="a target whose device is a CPU",
        )  # fmt: skip
    alone = Module.from_expr(call.function)
    function, types = alone.main, types_of(alone)
    anchor = anchor_of(function, types, target, call.constants)
    if anchor is None:
        definition = define(function, types)
        schedule = schedule_plainly(definition.outputs, target)
    else:
        definition, schedule = _anchored(function, types, anchor, target)
    program = lower_program(
        schedule, definition.args, target, symbol_of(function), unread=definition.unread
    )
    if call.is_in_place:
        program = Program.of(replace(program.func, is_in_place=True))
    built = build_program(program, target)
    built.args = definition.args
    packings = (
        {}
        if anchor is None
        else {
            function.params.index(anchor.call.args[n]): pack for n, pack in anchor.packings.items()
        }
    )
    inside = tuple(aligned_copy(array) for _, array in definition.weights)
    return ModelKernel(function, schedule, built, inside, packings)


def _anchored(
    function: Function, types: Types, anchor: Anchor, target: Target
) -> tuple[Definition, Schedule]:
    """Define and schedule a kernel with the schedule of its anchor."""
    known: dict[Node, Tensor] = dict(zip(anchor.call.args, anchor.inputs, strict=True))
    known[anchor.call] = anchor.result
    definition = define(function, types, known)
    result = anchor.result
    if len(definition.outputs) == 1:
        whole = folded(result, definition.outputs[0])
        if whole is not None:
            result = whole
            definition = replace(definition, outputs=(whole,))
    s = create_schedule([tensor.op for tensor in definition.outputs])
    chosen = anchor.selection
    apply = chosen.operator.schedule_for(target).apply
    apply(s, (result,), chosen.config, target)
    rest = [tensor for tensor in definition.outputs if tensor is not result]
    if rest:
        schedule_rest(s, rest, target)
    return definition, s


def symbol_of(function: Function) -> str:
    """Return the name of a kernel's code: the names of its operators.

    Equal kernels of different models have equal code, which the object cache keeps once.
    """
    names = [call.op.name for call in calls(function.body) if isinstance(call.op, Op)]
    shown = [re.sub(r"\W", "_", name.removeprefix("nn.")) for name in names[:MOST_NAMES]]
    rest = len(names) - len(shown)
    return "_".join(["fused", *shown, *([f"{rest}_more"] if rest else [])])


def pack_weights(steps: Steps, kernels: Sequence[ModelKernel]) -> None:
    """Replace the weights of a model by those that its kernels read.

    Parameters
    ----------
    steps : Steps
        Changed in place: its weights, and where its steps find them.
    kernels : sequence of ModelKernel
        Of the steps.
    """
    packed: dict[tuple[int, int | None], int] = {}
    weights: list[Array] = []

    def number_of(old: int, kernel: int | None, pack: Packing | None) -> int:
        key = (old, kernel)
        if key not in packed:
            packed[key] = len(weights)
            whole = steps.weights[old]
            weights.append(aligned_copy(whole if pack is None else pack(whole)))
        return packed[key]

    for at, step in enumerate(steps.steps):
        places = list(step.places)
        for n, place in enumerate(places):
            if place.kind == "weight":
                pack = kernels[step.kernel].packings.get(n)
                number = number_of(place.number, None if pack is None else step.kernel, pack)
                places[n] = replace(place, number=number, bytes=weights[number].nbytes)
        steps.steps[at] = replace(step, places=tuple(places))
    steps.weights[:] = weights
