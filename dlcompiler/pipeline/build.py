"""From a schedule to a kernel that runs: lower, generate code, load."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from dlcompiler.analysis import Work, work_of
from dlcompiler.codegen import Source, emit
from dlcompiler.errors import InternalError, ScheduleError
from dlcompiler.ir import Binary, Compare, Const, Expr, Extent, Logical, PrimFunc, Var
from dlcompiler.ir.names import checked_label
from dlcompiler.output_files import write_file
from dlcompiler.pipeline.lower import Argument, check_outputs, lower, without_unread
from dlcompiler.pipeline.observers import Observer
from dlcompiler.pipeline.simulated import SimulatedKernel, build_simulated
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.c_source import CCode
from dlcompiler.runtime.formulas import Formula
from dlcompiler.runtime.function import Code, Function
from dlcompiler.runtime.llvm import Options, compile_ir
from dlcompiler.runtime.symbols import Check, Variable
from dlcompiler.schedule import Schedule
from dlcompiler.schedule.state import unique_name
from dlcompiler.target import Target, resolve
from dlcompiler.te import Tensor, symbols_of

# Names that machine code may not take: they are, or may become, functions of the C library.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,200}")


class Kernel(Function):
    """A built function: call it with NumPy arrays, outputs last."""

    def __init__(
        self,
        module: Code,
        source: Source,
        func: PrimFunc,
        target: Target,
        work: Work | None,
        args: Sequence[Argument] = (),
    ) -> None:
        super().__init__(
            module,
            source.symbol,
            parameters(func),
            func.name,
            variables=variables(func),
            checks=checks(func),
            messages=source.messages,
        )
        self.func = func
        """The loop IR that was handed to the code generator."""
        self.target = target
        """What it was built for."""
        self.work = work
        """The work that its expression asks for; None where symbols decide."""
        self.args = tuple(args)
        """The tensors and symbols that its parameters stand for; () where they are not known."""


class CKernel(Kernel):
    """A kernel as C source; where there is a C compiler it can be called like any other."""

    def __init__(
        self,
        source: Source,
        func: PrimFunc,
        target: Target,
        work: Work | None,
        args: Sequence[Argument] = (),
    ) -> None:
        code = CCode(
            source.text, func.name,
            returns_number=bool(source.messages), reports_values=source.reports_values,
        )  # fmt: skip
        super().__init__(code, source, func, target, work, args)
        self.header = source.header
        """The header; the source begins with it."""

    def save(self, folder: str | Path) -> tuple[Path, Path]:
        """Write source and header into a folder, and return their paths.

        Raises
        ------
        UserError
            They cannot be written.
        """
        paths = tuple(Path(folder) / f"{self.symbol}.{suffix}" for suffix in ("c", "h"))
        for path, text in zip(paths, (self.source, self.header), strict=True):
            write_file(path, text)
        return paths[0], paths[1]


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
) -> Kernel | SimulatedKernel:
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
    Kernel or SimulatedKernel
        Takes NumPy arrays. Its LLVM IR and assembly, or its text for the device, are attributes.
        For ``c`` a `CKernel`, whose ``source`` and ``header`` are C.

    Raises
    ------
    ScheduleError
        If the schedule or the arguments do not allow it.
    TargetError
        If the target is unknown, or cannot do what the schedule asks.
    """
    machine = resolve(target)
    check_outputs(schedule, without_unread(args, unread), name)
    make = build_simulated if machine.language == "loops" else build_kernel
    return make(
        schedule,
        args,
        machine,
        checked_name(name),
        observers=observers,
        extra=extra,
        instrument=instrument,
        conditions=conditions,
        unread=unread,
    )


def build_kernel(
    schedule: Schedule,
    args: Sequence[Argument],
    machine: Target,
    name: str,
    *,
    observers: Sequence[Observer] = (),
    extra: Sequence[str] = (),
    instrument: str | None = None,
    conditions: Sequence[Expr] = (),
    unread: Sequence[Tensor] = (),
) -> Kernel:
    """Build a kernel for a CPU, or as C; see `build`."""
    func = lower(
        schedule,
        args,
        name=name,
        target=machine,
        observers=observers,
        extra=extra,
        instrument=instrument,
        conditions=conditions,
        unread=unread,
    )
    source = emit(func, machine)
    work = None if symbols_of(schedule.outputs) else work_of(schedule.outputs)
    if source.language == "c":
        return CKernel(source, func, machine, work, args)
    module = compile_ir(source.text, Options.for_target(machine))
    return Kernel(module, source, func, machine, work, args)


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

    This is what a worker process gets: text, never a program of this one. ``conditions`` and
    ``verify_passes`` are as of `lower`.
    """
    machine = resolve(target)
    check_outputs(schedule, args, name)
    func = lower(
        schedule,
        args,
        name=checked_name(name),
        target=machine,
        conditions=conditions,
        verify_passes=verify_passes,
    )
    return emit(func, machine), func


def parameters(func: PrimFunc) -> tuple[Param, ...]:
    """Return what the runtime needs to know of a function's parameters."""
    names = _symbol_names(func)
    return tuple(
        Param(names[param], (), param.dtype, is_number=True)
        if isinstance(param, Var)
        else Param(
            param.name,
            tuple(formula(extent, names) for extent in param.shape),
            param.dtype,
            param in func.outputs,
        )
        for param in func.params
    )


def variables(func: PrimFunc) -> tuple[Variable, ...]:
    """Return the numbers that the code of a function takes after the arrays."""
    names = _symbol_names(func)
    return tuple(Variable(names[variable], variable.dtype) for variable in func.variables)


def checks(func: PrimFunc) -> tuple[Check, ...]:
    """Return what a call must check of the symbols."""
    names = _symbol_names(func)
    return tuple(Check(formula(condition, names), problem) for condition, problem in func.checks)


def _symbol_names(func: PrimFunc) -> dict[Var, str]:
    """Return a name for each symbol, unique among them."""
    names: dict[Var, str] = {}
    for variable in func.variables:
        names[variable] = unique_name(variable.name, names.values())
    return names


def formula(expr: Extent, names: Mapping[Var, str]) -> Formula:
    """Return an expression of symbols as the runtime takes it: as data."""
    match expr:
        case int():
            return expr
        case Const(value):
            return int(value)
        case Var():
            return names[expr]
        case Binary(op, a, b) | Compare(op, a, b) | Logical(op, a, b):
            return (op, formula(a, names), formula(b, names))
    raise InternalError("formula of symbols", "not a formula", got=str(expr))


def checked_name(name: str) -> str:
    """Return a kernel's name, or say why it cannot be one."""
    if type(name) is str:
        checked_label(name, "build")
    if type(name) is not str or not NAME.fullmatch(name):
        raise ScheduleError(
            "build", "not usable as the name of a kernel", got=repr(name),
            expected="letters, digits and '_'",
        )  # fmt: skip
    return name
