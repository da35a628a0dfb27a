"""Compile a schedule for another machine: an object file for its linker, and assembly text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dlcompiler.ir import PrimFunc
from dlcompiler.output_files import write_file
from dlcompiler.pipeline.build import emit_source
from dlcompiler.pipeline.lower import Argument
from dlcompiler.runtime.cross import compile_elsewhere
from dlcompiler.runtime.llvm import Options
from dlcompiler.runtime.object_files import ObjectFacts
from dlcompiler.schedule import Schedule
from dlcompiler.target import Target, resolve


@dataclass(frozen=True)
class CrossModule:
    """A kernel compiled for another machine, or for this one."""

    name: str
    """Symbol of the kernel: ``void name(ptr, …)``, as `dlcompiler.codegen.emit` describes it."""
    target: Target
    """The machine it is for."""
    func: PrimFunc = field(repr=False)
    """The loop IR that was handed to the code generator."""
    source: str = field(repr=False)
    """LLVM IR as the code generator wrote it."""
    llvm_ir: str = field(repr=False)
    """LLVM IR after LLVM's passes."""
    assembly: str = field(repr=False)
    """Assembly text."""
    object: bytes = field(repr=False)
    """The object file, for the linker of that machine."""
    facts: ObjectFacts | None
    """Its format, machine and undefined symbols; None for a format that cannot be read here."""
    messages: tuple[str, ...] = ()
    """What went wrong, by the number from 1 that the status receives; without any, the kernel takes
    no pointer to a status. The status is 9 numbers of 64 bits: that of the message, which is 0
    before the call, and up to 8 that go into the message (`errors.filled`)."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Functions that the program linked with the object must provide.

        Those of the C library have their usual meaning. ``dlc_parallel_for(body, env, begin, end)``
        calls ``body(b, e, env)`` for parts of the range from `begin` to below `end`, on as many
        threads as it likes; all numbers are ``int64_t``. ``dlc_workspace_alloc(bytes)`` returns a
        pointer to a multiple of 64, or null, and ``dlc_workspace_free(pointer)`` takes it back.
        """
        return self.facts.needs if self.facts else ()

    def save(self, path: str | Path) -> None:
        """Write the object to a file.

        Raises
        ------
        UserError
            It cannot be written.
        """
        write_file(path, self.object)


def cross_compile(
    schedule: Schedule, args: Sequence[Argument], target: str | Target, name: str = "main"
) -> CrossModule:
    """Compile a kernel for another machine, or for this one.

    Parameters
    ----------
    schedule
        The schedule, at the state to compile.
    args
        Parameters of the kernel: inputs first, outputs last.
    target
        A target or its name: ``"aarch64"``, ``"cortex-a53"``, ``"armv7"``, ``"riscv64"``,
        ``"wasm32"``, a level of x86-64, …
    name
        Name of the kernel: letters, digits and '_'.

    Returns
    -------
    CrossModule

    Raises
    ------
    ScheduleError
        If the schedule or the arguments do not allow it.
    TargetError
        If the target is unknown, or LLVM cannot generate code for it. LLVM then ends its process;
        it therefore runs in a child process.
    DeviceUnavailable
        If a child process cannot be started here.

    Examples
    --------
    >>> from dlcompiler import te
    >>> from dlcompiler.schedule import create_schedule
    >>> A = te.placeholder((64,), name="A")
    >>> B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
    >>> s = create_schedule(B.op)
    >>> s[B].vectorize(s[B].split(B.op.axis[0], resolve("cortex-a53").lanes("float32"))[1])
    >>> module = cross_compile(s, [A, B], "cortex-a53", "twice")
    >>> module.facts
    ObjectFacts(format='elf', machine='aarch64', bits=64, needs=())
    """
    machine = resolve(target)
    source, func = emit_source(schedule, args, machine, name)
    made = compile_elsewhere(source.text, Options.for_target(machine), name)
    return CrossModule(
        source.symbol,
        machine,
        func,
        source.text,
        made.llvm_ir,
        made.assembly,
        made.image,
        made.facts,
        source.messages,
    )
