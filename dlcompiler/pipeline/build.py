"""Build a kernel from a schedule: lower it, generate code, and load the code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dlcompiler.analysis import work_of
from dlcompiler.analysis.device_limits import check_blocks, check_scopes
from dlcompiler.codegen import emit
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import Expr, PrimFunc
from dlcompiler.ir.names import checked_label
from dlcompiler.ir.program import Program
from dlcompiler.pipeline.devices import load
from dlcompiler.pipeline.executables import Built
from dlcompiler.pipeline.lower import Argument, check_outputs, lower, without_unread
from dlcompiler.pipeline.observers import Change, Observer
from dlcompiler.pipeline.pipelines import pipeline_of
from dlcompiler.runtime.source import Source
from dlcompiler.schedule import Schedule
from dlcompiler.target import Target, resolve
from dlcompiler.te import Tensor, symbols_of

# Names that a kernel may not have: they are, or may become, functions of the C library.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,200}")


def build(
    schedule: Schedule,
    args: Sequence[Argument],
    target: str | Target = "cpu",
    name: str = "main",
    *,
    observers: Sequence[Observer] = (),
    extra: Sequence[str] = (),
    instrument: str | None = None,
    conditions: Sequence[Expr] = (),
    unread: Sequence[Tensor] = (),
) -> Built:
    """Build a kernel.

    Parameters
    ----------
    schedule
        The schedule, at the state to build.
    args
        Parameters of the kernel: inputs first, outputs last. A symbol (`te.var`) among them is
        passed as a number.
    target
        A target or its name; ``cpu`` is this machine, ``c`` is C99 for any. A program for a
        GPU is run by the simulator.
    name
        Name of the kernel: letters, digits and '_'.
    observers
        Called after each pass of the lowering.
    extra
        Names of passes to run that are left out otherwise: `pipeline.EXTRA_PASSES`.
    instrument
        ``"bounds"``: check each access before it happens. A call then raises ProgramError where
        one is outside its buffer, and is slow.
    conditions
        Of symbols: sizes that fulfil all of them get code of their own, as of `lower`.
    unread
        Placeholders among `args` that nothing reads: a call takes their arrays, and ignores them.

    Returns
    -------
    Kernel, CKernel or SimulatedKernel
        Takes NumPy arrays, outputs last. ``source(name)`` returns its texts, ``texts`` their names.

    Raises
    ------
    ScheduleError
        If the schedule or the arguments do not allow it.
    TargetError
        If the target is unknown, or cannot do what the schedule asks.
    """
    machine = resolve(target)
    check_outputs(schedule, without_unread(args, unread), name)
    program = lower_program(
        schedule,
        args,
        machine,
        name,
        observers=observers,
        extra=extra,
        instrument=instrument,
        conditions=conditions,
        unread=unread,
    )
    built = build_program(program, machine)
    built.work = None if symbols_of(schedule.outputs) else work_of(schedule.outputs)
    built.args = tuple(args)
    return built


def build_program(program: Program | PrimFunc, target: str | Target = "cpu") -> Built:
    """Generate code for a lowered program, and load it.

    Parameters
    ----------
    program
        What `lower_program` returns; or a function, the program of one kernel, as `lower`,
        `ir.Builder` or a graph make it.
    target
        A target or its name.

    Returns
    -------
    Built
        Takes NumPy arrays, outputs last.

    Raises
    ------
    ScheduleError
        If it is not a lowered program.
    TargetError
        If the target is unknown, or cannot do what the program asks.

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> from dlcompiler.pipeline import lower
    >>> from dlcompiler.schedule import create_schedule
    >>> A = te.placeholder((3,), name="A")
    >>> B = te.compute((3,), lambda i: A[i] + 1.0, name="B")
    >>> add_one = build_program(lower(create_schedule(B.op), [A, B]))
    >>> b = np.zeros(3, "float32")
    >>> add_one(np.arange(3, dtype="float32"), b)
    >>> b
    array([1., 2., 3.], dtype=float32)
    """
    machine = resolve(target)
    if not isinstance(program, Program | PrimFunc):
        raise ScheduleError(
            "build", "not a lowered program", got=repr(program), expected="lower(s, args)"
        )
    if isinstance(program, PrimFunc):
        pipeline = pipeline_of(machine)
        check_scopes(program, machine)
        pipeline.check_nests(program, machine)
        pipeline.check_result(program, machine)
        program = pipeline.divide(program)
        check_blocks(program, machine)
    checked_name(program.func.name)
    return load(emit(program, machine), machine)


def lower_program(
    schedule: Schedule,
    args: Sequence[Argument],
    target: str | Target = "cpu",
    name: str = "main",
    *,
    observers: Sequence[Observer] = (),
    **options: Any,
) -> Program:
    """Lower a schedule to a program within the limits of a target.

    Parameters
    ----------
    schedule, args, target, name, observers
        As of `build`.
    options
        As of `lower`: ``extra``, ``instrument``, ``conditions``, ``unread``, ``verify_passes``,
        ``check_races``.

    Raises
    ------
    ScheduleError
        If the schedule or the arguments do not allow it.
    TargetError
        If it exceeds a limit of the target, such as the threads of a block, or a stage is computed
        outside any thread.
    """
    machine = resolve(target)
    pipeline = pipeline_of(machine)

    def check(change: Change) -> None:
        if change.before is None:  # loops are as the schedule names them
            pipeline.check_nests(change.after, machine)

    func = lower(
        schedule,
        args,
        name=checked_name(name),
        target=machine,
        observers=(check, *observers),
        **options,
    )
    check_scopes(func, machine)
    pipeline.check_result(func, machine)
    program = pipeline.divide(func)
    check_blocks(program, machine)
    return program


def emit_source(
    schedule: Schedule,
    args: Sequence[Argument],
    target: str | Target = "cpu",
    name: str = "main",
    *,
    conditions: Sequence[Expr] = (),
    verify_passes: bool = True,
) -> tuple[Source, PrimFunc]:
    """Return the generated code of a schedule without compiling it, and its loop IR.

    A worker process receives this text, never Python objects. ``conditions`` and
    ``verify_passes`` are as of `lower`.
    """
    machine = resolve(target)
    check_outputs(schedule, args, name)
    program = lower_program(
        schedule, args, machine, name, conditions=conditions, verify_passes=verify_passes
    )
    return emit(program, machine), program.func


def checked_name(name: str) -> str:
    """Return the name of a kernel; raise an error if it is not usable."""
    if type(name) is str:
        checked_label(name, "build")
    if type(name) is not str or not NAME.fullmatch(name):
        raise ScheduleError(
            "build", "not usable as the name of a kernel", got=repr(name),
            expected="letters, digits and '_'",
        )  # fmt: skip
    return name
