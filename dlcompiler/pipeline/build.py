"""From a schedule to a kernel that runs: lower, generate code, load."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dlcompiler.analysis import Work, work_of
from dlcompiler.codegen import Source, emit
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import PrimFunc
from dlcompiler.pipeline.lower import lower
from dlcompiler.pipeline.observers import Observer
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.function import Function
from dlcompiler.runtime.llvm import LoadedModule, Options, compile_ir
from dlcompiler.schedule import Schedule
from dlcompiler.target import Target, resolve
from dlcompiler.te import Tensor

# Names that machine code may not take: they are, or may become, functions of the C library.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,200}")


class Kernel(Function):
    """A built function: call it with NumPy arrays, outputs last."""

    def __init__(
        self, module: LoadedModule, source: Source, func: PrimFunc, target: Target, work: Work
    ) -> None:
        super().__init__(module, source.symbol, parameters(func), func.name)
        self.func = func
        """The loop IR that was handed to the code generator."""
        self.target = target
        """What it was built for."""
        self.work = work
        """The work that its expression asks for."""


def build(
    schedule: Schedule,
    args: Sequence[Tensor],
    target: str | Target = "cpu",
    name: str = "main",
    *,
    observers: Sequence[Observer] = (),
) -> Kernel:
    """Build a kernel.

    Parameters
    ----------
    schedule
        The schedule, at the state to build.
    args
        Parameters of the kernel: inputs first, outputs last.
    target
        A target or its name; ``cpu`` is this machine.
    name
        Name of the kernel: letters, digits and '_'.
    observers
        Called after each pass of the lowering.

    Returns
    -------
    Kernel
        Takes NumPy arrays. Its LLVM IR and assembly are attributes.

    Raises
    ------
    ScheduleError
        If the schedule or the arguments do not allow it.
    TargetError
        If the target is unknown, or cannot do what the schedule asks.
    """
    machine = resolve(target)
    func = lower(schedule, args, name=checked_name(name), kind=machine.kind, observers=observers)
    source = emit(func, machine)
    module = compile_ir(source.text, Options.for_target(machine))
    return Kernel(module, source, func, machine, work_of(schedule.outputs))


def emit_source(
    schedule: Schedule, args: Sequence[Tensor], target: str | Target = "cpu", name: str = "main"
) -> tuple[Source, PrimFunc]:
    """Return the generated code of a schedule without compiling it, and its loop IR.

    This is what a worker process gets: text, never a program of this one.
    """
    machine = resolve(target)
    func = lower(schedule, args, name=checked_name(name), kind=machine.kind)
    return emit(func, machine), func


def parameters(func: PrimFunc) -> tuple[Param, ...]:
    """Return what the runtime needs to know of a function's parameters."""
    return tuple(
        Param(buffer.name, buffer.static_shape, buffer.dtype, buffer in func.outputs)
        for buffer in func.buffers
    )


def checked_name(name: str) -> str:
    """Return a kernel's name, or say why it cannot be one."""
    if type(name) is not str or not NAME.fullmatch(name):
        raise ScheduleError(
            "build", "not usable as the name of a kernel", got=repr(name),
            expected="letters, digits and '_'",
        )  # fmt: skip
    return name
