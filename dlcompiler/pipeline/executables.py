"""Executable programs: loaded on this CPU, compiled from C, simulated, or only checked."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, cast

from dlcompiler.analysis import Work
from dlcompiler.codegen import emit
from dlcompiler.display import render
from dlcompiler.ir import PrimFunc, Var
from dlcompiler.ir.program import Program
from dlcompiler.output_files import write_file
from dlcompiler.passes.cut_at_barriers import as_cpu_function
from dlcompiler.passes.vectorize_unrolled import vectorize_unrolled
from dlcompiler.pipeline.gpu_report import GPUReport, report_of
from dlcompiler.pipeline.launch_limits import LaunchLimits
from dlcompiler.runtime.arguments import check_all
from dlcompiler.runtime.c_source import CCode
from dlcompiler.runtime.device import Executable
from dlcompiler.runtime.function import Code, Function, described_by
from dlcompiler.runtime.llvm import compile_ir
from dlcompiler.runtime.options import Options
from dlcompiler.runtime.source import Source
from dlcompiler.simulate import Report, interpret
from dlcompiler.simulate.steps import count_steps
from dlcompiler.target import Target, resolve
from dlcompiler.te import Tensor

MAX_STEPS = 20_000_000
"""Most steps of a simulated call, which take about a minute; [1]."""
MAX_CHECKED_STEPS = 20_000
"""Most steps of a call that the interpreter runs, in about 0.1 s, to find races; [1]."""


def program_of(source: Source) -> Program:
    """Return the program that code was generated from."""
    return cast(Program, source.program)


class Built(Executable, Protocol):
    """An executable that holds its program and target: what `pipeline.build` returns."""

    generated: Source
    """What the code generator wrote."""
    program: Program
    """The loop IR that was handed to the code generator."""
    target: Target
    """What it was built for."""
    work: Work | None
    """The work that its expression asks for; None where symbols decide, or without one."""
    args: tuple[Tensor | Var, ...]
    """The tensors and symbols that its parameters stand for; () where they are not known."""

    @property
    def func(self) -> PrimFunc:
        """The loop IR of the whole program."""


class Kernel(Function):
    """A built function: call it with NumPy arrays, outputs last."""

    def __init__(self, module: Code, source: Source, target: Target) -> None:
        program = program_of(source)
        super().__init__(module, name=program.func.name, **described_by(source.interface))
        self.generated = source
        """What the code generator wrote."""
        self.program = program
        """The loop IR that was handed to the code generator."""
        self.target = target
        """What it was built for."""
        self.work: Work | None = None
        """The work that its expression asks for; None where symbols decide."""
        self.args: tuple[Tensor | Var, ...] = ()
        """The tensors and symbols that its parameters stand for; () where they are not known."""

    @property
    def func(self) -> PrimFunc:
        """The loop IR that was handed to the code generator."""
        return self.program.func

    def report(self, *arguments: Any) -> GPUReport:
        """Report what the program does on its GPU, without running it: see `report_of`.

        Parameters
        ----------
        arguments : ndarray and numbers, optional
            As of a call. They are needed where a shape is a symbol, or data decides an index.

        Raises
        ------
        TargetError
            It was built for a CPU.
        """
        return report_of(self.generated, self.program, self.target, arguments)


class CKernel(Kernel):
    """A kernel as C source. It can be called where a C compiler is installed."""

    def __init__(self, source: Source, target: Target) -> None:
        called = source.interface
        texts = {name: text.text for name, text in source.texts.items()}
        code = CCode(
            texts, program_of(source).func.name,
            returns_number=bool(called.messages), reports_values=called.reports_values,
        )  # fmt: skip
        super().__init__(code, source, target)

    @property
    def header(self) -> str:
        """The header; the source begins with it."""
        return self.source("header")

    def save(self, folder: str | Path) -> tuple[Path, Path]:
        """Write source and header into a folder, and return their paths.

        Raises
        ------
        UserError
            They cannot be written.
        """
        paths = tuple(Path(folder) / f"{self.symbol}.{suffix}" for suffix in ("c", "h"))
        for path, text in zip(paths, (self.source(), self.header), strict=True):
            write_file(path, text)
        return paths[0], paths[1]


class LoadedSource:
    """A program without machine code: the common part of simulated and null kernels.

    Parameters
    ----------
    source : Source
        What the code generator wrote, with the program that it was generated from.
    target : Target
        What it was built for.
    """

    def __init__(self, source: Source, target: Target) -> None:
        self.generated = source
        """What the code generator wrote."""
        self.program = program_of(source)
        """The kernels and the host part."""
        self.target = target
        """What it was built for."""
        self.work: Work | None = None
        """The work that its expression asks for; None where symbols decide."""
        self.args: tuple[Tensor | Var, ...] = ()
        """The tensors and symbols that its parameters stand for; () where they are not known."""

    @property
    def func(self) -> PrimFunc:
        """The loop IR of the whole program."""
        return self.program.func

    @property
    def name(self) -> str:
        """Name of the program."""
        return self.func.name

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of the texts that `source` returns."""
        return tuple(self.generated.texts)

    def source(self, name: str | None = None) -> str:
        """Return one of its texts; without a name, the generated one."""
        return self.generated.named(name)

    def report(self, *arguments: Any) -> GPUReport:
        """Report what the program does on its GPU, without running it: see `report_of`.

        Parameters
        ----------
        arguments : ndarray and numbers, optional
            As of a call. They are needed where a shape is a symbol, or data decides an index.
        """
        return report_of(self.generated, self.program, self.target, arguments)


def source_for_host(program: Program) -> Source:
    """Return code for this CPU that computes what a program for a GPU computes.

    The threads of a block run one after another to each barrier: see `passes.cut_at_barriers`. What
    one of them computes in unrolled loops becomes vectors: `passes.vectorize_unrolled`.

    Raises
    ------
    TargetError
        The threads of a kernel cannot be merged: see `passes.merge_thread_loops`.
    """
    return emit(Program.of(vectorize_unrolled(as_cpu_function(program))), resolve("cpu"))


class SimulatedKernel(LoadedSource):
    """A built program for a GPU, simulated: call it with NumPy arrays, outputs last."""

    def __call__(self, *arguments: Any) -> None:
        """Compute what the threads compute.

        A short program runs in the interpreter, which finds races and elements that were read
        before they were written. A long one runs as machine code of this CPU, without these checks:
        `verify` makes them on a smaller shape, `simulate` on this one.

        Parameters
        ----------
        arguments : ndarray and numbers
            One for each parameter; outputs are written.

        Raises
        ------
        CallError
            If the arguments do not fit.
        TargetError
            If there are too many blocks, or one needs more shared memory than the GPU has; nothing
            has run then.
        ProgramError
            If an index is outside its tensor; of a short program also at a race, at an element that
            nothing has written, and at a barrier that only some threads reach.
        """
        self._limits.check(arguments)
        if self._is_short:
            self.simulate(*arguments)
        else:
            self.on_host(*arguments)

    @cached_property
    def _limits(self) -> LaunchLimits:
        return LaunchLimits(self.program, self.generated.interface, self.target)

    @cached_property
    def on_host(self) -> Kernel:
        """The program as machine code of this CPU; it is compiled when it is first used.

        Raises
        ------
        TargetError
            The threads of a kernel cannot be merged: see `passes.merge_thread_loops`.
        """
        source, machine = source_for_host(self.program), resolve("cpu")
        return Kernel(compile_ir(source.text, Options.for_target(machine)), source, machine)

    @cached_property
    def _is_short(self) -> bool:
        return not self.func.variables and count_steps(self.func) <= MAX_CHECKED_STEPS

    def simulate(
        self, *arguments: Any, order: int | None = None, max_steps: int = MAX_STEPS
    ) -> Report:
        """Run the kernel in the interpreter and return the counters; it is slow.

        Parameters
        ----------
        arguments : ndarray and numbers
            As of a call.
        order, max_steps : int
            As of `interpret`.

        Raises
        ------
        ProgramError
            At a race, an access out of bounds or an element that nothing has written, with the loop
            and the statement; or when the program takes too many steps.
        """
        return interpret(self.func, arguments, order=order, max_steps=max_steps)

    def __repr__(self) -> str:
        count = len(self.program.launches)
        kernels = "1 kernel" if count == 1 else f"{count} kernels"
        return f"SimulatedKernel({self.name} for {self.target.name}: {kernels}; run by simulation)"

    def _repr_html_(self) -> str:
        return render("func", self.func)


class NullKernel(LoadedSource):
    """A program whose calls only check the arguments: nothing is computed."""

    def __call__(self, *arguments: Any) -> None:
        """Check arrays and numbers as a device would, without changing them."""
        check_all(self.name, self.generated.interface.params, arguments)

    def __repr__(self) -> str:
        return f"NullKernel({self.name} for {self.target.name}: never run)"
