"""The kernels of a model: from a fused group to an executable."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from dlcompiler.autotune import RecordStore, best
from dlcompiler.errors import ScheduleError, TargetError
from dlcompiler.graph.execution.accelerators import offloaded_kernel
from dlcompiler.graph.execution.anchors import Anchor, Packing, anchor_of
from dlcompiler.graph.execution.definition import Definition, Tensors, define
from dlcompiler.graph.execution.epilogues import folded
from dlcompiler.graph.execution.prologues import is_injective, place_before, preceded
from dlcompiler.graph.execution.scheduling import (
    schedule_plainly,
    schedule_rest,
    schedule_stages,
)
from dlcompiler.graph.execution.steps import COPY, KernelCall, Steps
from dlcompiler.graph.execution.translations import Conversion
from dlcompiler.graph.inference import Types, types_of
from dlcompiler.graph.ir import Function, Module, Node, Op, TupleType, calls
from dlcompiler.graph.operators.base import Array
from dlcompiler.ir.program import Program
from dlcompiler.measurement.aligned import aligned_copy
from dlcompiler.pipeline import lower_program
from dlcompiler.pipeline.build import build_program
from dlcompiler.pipeline.executables import Built
from dlcompiler.runtime.arguments import Param
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.target import Target
from dlcompiler.te import Tensor

Records: TypeAlias = str | Path | RecordStore
MOST_NAMES = 6
"""Most operators whose names are in the name of a kernel; [1]."""
_LOOKED_AT = 64
"""Elements that tell most weights apart; [1]."""


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
    operator: str
    """The operator of the library that schedules it; "" for a plain schedule."""

    @property
    def name(self) -> str:
        """Name of the code."""
        return self.built.func.name

    @property
    def params(self) -> tuple[Param, ...]:
        """Arrays of the executable: inputs, then `weights`, then outputs."""
        return self.built.generated.interface.params


def built_kernel(call: KernelCall, target: Target, db: Records | None = None) -> ModelKernel:
    """Build a kernel of a model.

    Parameters
    ----------
    call : KernelCall
        The kernel.
    target : Target
        A CPU or a GPU.
    db : path or RecordStore, optional
        Records of tuning runs.

    Raises
    ------
    GraphError
        If the group cannot be defined by tensor expressions.
    ScheduleError, TargetError
        If the target cannot do what the group needs.
    """
    if target.device not in ("cpu", "gpu", "accelerator"):
        raise TargetError(
            f"build a model for {target.name}", "models run on CPUs, GPUs and accelerators only",
            got=repr(target.device),
            expected="a target whose device is a CPU, a GPU or an accelerator",
        )  # fmt: skip
    alone = Module.from_expr(call.function)
    function, types = alone.main, types_of(alone)
    made = _made(function, types, call, target, db)
    definition = made.definition
    try:
        built = _compiled(made, symbol_of(function), target, is_in_place=call.is_in_place)
    except TargetError as error:
        if target.device == "cpu":
            raise
        raise TargetError(
            error.operation, error.problem, got=error.got, because=error.because,
            hint='run it on a CPU: op.on_device(value, "cpu"), and a target for each device',
        ) from error  # fmt: skip
    inside = tuple(aligned_copy(array) for _, array in definition.weights)
    for array in inside:  # other models may have the same kernel
        array.flags.writeable = False
    return ModelKernel(function, made.schedule, built, inside, made.packings, made.operator)


def _made(
    function: Function, types: Types, call: KernelCall, target: Target, db: Records | None
) -> _Made:
    if target.accelerator is not None:
        found = offloaded_kernel(function, types, target, call.constants)
        return _Made(found.definition, found.schedule, found.packings, found.operator)
    return _anchored(function, types, call, target, db) or _plain(function, types, target)


def _compiled(made: _Made, name: str, target: Target, *, is_in_place: bool) -> Built:
    definition = made.definition
    program = lower_program(made.schedule, definition.args, target, name, unread=definition.unread)
    if is_in_place:
        program = Program.of(replace(program.func, is_in_place=True))
    built = build_program(program, target)
    built.args = definition.args
    return built


@dataclass(frozen=True, slots=True)
class _Made:
    """The definition of a kernel with its schedule."""

    definition: Definition
    schedule: Schedule
    packings: Mapping[int, Packing]
    operator: str


def _plain(function: Function, types: Types, target: Target) -> _Made:
    definition = define(function, types, target)
    return _Made(definition, schedule_plainly(definition.outputs, target), {}, "")


def _anchored(
    function: Function, types: Types, call: KernelCall, target: Target, db: Records | None
) -> _Made | None:
    """Define and schedule a kernel by the operator of its anchor; None if there is no such."""
    anchor = anchor_of(function, types, target, call.constants)
    if anchor is None:
        return None
    defined = _defined_by(anchor, function, types, target)
    if defined is None:
        return None
    definition, results, before = defined
    s = create_schedule([tensor.op for tensor in definition.outputs])
    chosen = anchor.selection
    record = None if db is None else best(chosen.workload, target, db)
    config = chosen.config if record is None else record.config
    try:
        stored = place_before(s, before)
        chosen.operator.schedule_for(target).apply(s, results, config, target)
    except ScheduleError:  # of an expression that is too large for its loops
        return None
    schedule_stages(s, stored, target)
    schedule_rest(s, [each for each in definition.outputs if each not in results], target)
    packings = {function.params.index(anchor.sources[n]): p for n, p in anchor.packings.items()}
    return _Made(definition, s, packings, chosen.operator.name)


def _defined_by(
    anchor: Anchor, function: Function, types: Types, target: Target
) -> tuple[Definition, tuple[Tensor, ...], list[Tensor]] | None:
    """Define a kernel around the stages of its anchor.

    Returns
    -------
    tuple or None
        The definition, the results of the anchor, and what is computed before it.
    """
    inputs = dict(zip(anchor.sources, anchor.inputs, strict=True))
    converted = {anchor.sources[n]: convert for n, convert in anchor.before.items()}
    known: dict[Node, Tensors] = {
        arg: tensor
        for arg, tensor in inputs.items()
        if arg in function.params and arg not in converted
    }
    # The operator converts a stored weight itself.
    known.update(
        (arg, inputs[source])
        for arg, source in zip(anchor.call.args, anchor.sources, strict=True)
        if arg is not source
    )
    results = anchor.results
    known[anchor.call] = results if isinstance(types[anchor.call], TupleType) else results[0]
    if anchor.after is not None:
        known[anchor.call] = anchor.after(results[0])
    definition = define(function, types, target, known)
    before = {
        inputs[arg]: _converted(definition.values[arg], converted.get(arg))
        for arg in inputs
        if arg not in known
    }
    given = {a: b for a, b in before.items() if isinstance(b, Tensor) and is_injective(b)}
    if len(given) < len(before):
        return None
    stored = list(given.values())
    for arg, tensor in zip(anchor.sources, anchor.inputs, strict=True):
        if tensor is not inputs[arg]:  # the argument is given twice
            given[tensor] = given.get(inputs[arg], inputs[arg])
    if given:
        changed = preceded(definition.outputs, given)
        if changed is None:
            return None
        outputs = tuple(changed.get(each, each) for each in definition.outputs)
        definition = replace(definition, outputs=outputs)
        results = tuple(changed.get(each, each) for each in results)
    if len(definition.outputs) == len(results) == 1:
        whole = folded(results[0], definition.outputs[0])
        if whole is not None:
            results = (whole,)
            definition = replace(definition, outputs=results)
    return definition, results, stored


def _converted(value: Tensors, convert: Conversion | None) -> Tensors:
    """Return what an anchor reads in the form that its operator takes."""
    return convert(value) if convert is not None and isinstance(value, Tensor) else value


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

    Equal arrays are stored once: the cells of a recurrence, each of which may have a constant of
    its own, would else need the cache several times.

    Parameters
    ----------
    steps : Steps
        Changed in place: its weights, and where its steps find them.
    kernels : sequence of ModelKernel
        Of the steps.
    """
    packed: dict[tuple[int, int | None], int] = {}
    alike: dict[tuple[Any, ...], list[int]] = {}
    weights: list[Array] = []

    def number_of(old: int, kernel: int | None, pack: Packing | None) -> int:
        key = (old, kernel)
        if key not in packed:
            whole = steps.weights[old]
            made = whole if pack is None else pack(whole)
            known = alike.setdefault(_look(made), [])
            found = next((n for n in known if _has_same_bytes(weights[n], made)), None)
            if found is None:
                found = len(weights)
                known.append(found)
                weights.append(aligned_copy(made))
            packed[key] = found
        return packed[key]

    for at, step in enumerate(steps.steps):
        places = list(step.places)
        packings = {} if step.kernel == COPY else kernels[step.kernel].packings
        for n, place in enumerate(places):
            if place.kind == "weight":
                pack = packings.get(n)
                number = number_of(place.number, None if pack is None else step.kernel, pack)
                places[n] = replace(place, number=number, bytes=weights[number].nbytes)
        steps.steps[at] = replace(step, places=tuple(places))
    steps.weights[:] = weights


def _look(array: Array) -> tuple[Any, ...]:
    """Return what equal arrays have in common, and most others do not."""
    some = array.reshape(-1)[:: max(array.size // _LOOKED_AT, 1)]
    return array.shape, array.dtype, some.tobytes()


def _has_same_bytes(a: Array, b: Array) -> bool:
    """Tell whether two arrays have the same type and elements; each NaN counts as itself."""
    return (a.shape, a.dtype) == (b.shape, b.dtype) and a.tobytes() == b.tobytes()
