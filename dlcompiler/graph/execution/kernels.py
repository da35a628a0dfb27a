"""The kernels of a model: from a fused group to an executable."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from dlcompiler.errors import TargetError
from dlcompiler.graph.execution.definition import Definition, define
from dlcompiler.graph.execution.scheduling import schedule_plainly
from dlcompiler.graph.execution.steps import KernelCall
from dlcompiler.graph.inference import types_of
from dlcompiler.graph.ir import Function, Module, Op, calls
from dlcompiler.graph.operators.base import Array
from dlcompiler.ir.program import Program
from dlcompiler.pipeline import lower_program
from dlcompiler.pipeline.build import build_program
from dlcompiler.pipeline.executables import Built
from dlcompiler.schedule import Schedule
from dlcompiler.target import Target

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
    alone = Module.from_expr(call.function)
    definition = define(alone.main, types_of(alone))
    schedule = _schedule(definition, target)
    program = lower_program(
        schedule, definition.args, target, symbol_of(call.function), unread=definition.unread
    )
    if call.is_in_place:
        program = Program.of(replace(program.func, is_in_place=True))
    built = build_program(program, target)
    built.args = definition.args
    return ModelKernel(call.function, schedule, built, tuple(a for _, a in definition.weights))


def _schedule(definition: Definition, target: Target) -> Schedule:
    if target.device == "cpu":
        return schedule_plainly(definition.outputs, target)
    raise TargetError(
        f"build a model for {target.name}", "models run on CPUs only", got=repr(target.device),
        expected="a target whose device is a CPU",
    )  # fmt: skip


def symbol_of(function: Function) -> str:
    """Return the name of a kernel's code: the names of its operators.

    Equal kernels of different models have equal code, which the object cache keeps once.
    """
    names = [call.op.name for call in calls(function.body) if isinstance(call.op, Op)]
    shown = [re.sub(r"\W", "_", name.removeprefix("nn.")) for name in names[:MOST_NAMES]]
    rest = len(names) - len(shown)
    return "_".join(["fused", *shown, *([f"{rest}_more"] if rest else [])])
