"""Programs of accelerators: instructions for the nests that use its memories."""

from __future__ import annotations

from collections.abc import Mapping

from dlcompiler.codegen.accelerator.computations import check_operands, instruction_for
from dlcompiler.codegen.accelerator.instructions import instructions_of
from dlcompiler.codegen.interface import interface_of
from dlcompiler.codegen.lines import statement_lines
from dlcompiler.errors import TargetError
from dlcompiler.ir import IntrinsicCall, PrimFunc, Stmt, walk
from dlcompiler.ir.program import Launch, Program
from dlcompiler.passes.split_host_accelerator import is_of_accelerator
from dlcompiler.runtime.source import Source, Text, Texts
from dlcompiler.simulate.accelerators import InstructionProgram
from dlcompiler.simulate.accelerators.listing import instruction_text
from dlcompiler.target import Accelerator, Target

__all__ = ["emit", "instructions_of"]


def emit(program: Program, target: Target) -> Source:
    """Return the instructions of a program for an accelerator.

    Parameters
    ----------
    program
        Kernels, some of which use memories of the accelerator.
    target
        The target of an accelerator.

    Returns
    -------
    Source
        Its text ``"instructions"`` has a line for each instruction. `Source.parts` holds the
        `InstructionProgram` of each launch, or None for one that the host runs.

    Raises
    ------
    TargetError
        The target is no accelerator, or a buffer does not fit.
    ScheduleError
        No instruction computes a nest.
    """
    if target.accelerator is None:
        raise TargetError(
            f"generate code for {program.func.name}", "the target is no accelerator",
            got=target.name, hint="dlc.target.Accelerator describes one",
        )  # fmt: skip
    parts = tuple(_instructions(launch.kernel, target.accelerator) for launch in program.launches)
    interface = interface_of(program.func, program.func.name)
    texts = Texts({}, {"instructions": lambda: _text(program, parts)})
    return Source("instructions", texts, interface, program, parts=parts)


def _instructions(kernel: PrimFunc, accelerator: Accelerator) -> InstructionProgram | None:
    """Return the instructions of a kernel; None if the host computes it.

    Raises
    ------
    ScheduleError
        The host would have to compute an intrinsic that an instruction computes.
    """
    if is_of_accelerator(kernel.body):
        return instructions_of(kernel, accelerator)
    for node in walk(kernel.body):
        if isinstance(node, IntrinsicCall):
            instruction = instruction_for(node, accelerator)
            if instruction is not None:
                check_operands(node, instruction, accelerator)
    return None


def _text(program: Program, parts: tuple[InstructionProgram | None, ...]) -> Text:
    """Return all instructions as text; each line belongs to a line of the loop IR."""
    lines: list[str] = []
    numbers: list[int] = []
    line_of: Mapping[int, int] = statement_lines(program.func)
    for launch, part in zip(program.launches, parts, strict=True):
        lines.append(_title(launch, part))
        numbers.append(0)
        for step in part.steps if part is not None else ():
            lines.append(instruction_text(part.accelerator, step) if part else "")
            origin = step.origin
            numbers.append(line_of.get(id(origin), 0) if isinstance(origin, Stmt) else 0)
    return Text("".join(f"{line}\n" for line in lines), tuple(numbers))


def _title(launch: Launch, part: InstructionProgram | None) -> str:
    name = launch.kernel.name
    return f"# {name}: {len(part)} instructions" if part else f"# {name}: computed by the host"
