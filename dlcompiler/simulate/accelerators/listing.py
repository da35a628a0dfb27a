"""Instructions as text: one line each, which `assembler.assemble` reads back."""

from __future__ import annotations

from dlcompiler.ir import IntrinsicCall, Store
from dlcompiler.ir.printer import format_intrinsic, format_store
from dlcompiler.simulate.accelerators.program import InstructionProgram, Step
from dlcompiler.target.accelerators import Accelerator
from dlcompiler.target.accelerators.encodings import operand_fields


def instruction_text(accelerator: Accelerator, step: Step) -> str:
    """Return an instruction as a line: its name, its fields, what it pops and pushes.

    Fields that are 0 are left out.

    Parameters
    ----------
    accelerator : Accelerator
        The machine of the instruction.
    step : Step
        The instruction.

    Examples
    --------
    >>> from dlcompiler.target.accelerators.vta import preset
    >>> vta = preset("vta-pynq")
    >>> gemm = vta.instruction("gemm")
    >>> values = [1 if name in ("iter_out", "iter_in", "uop_end") else 0
    ...           for name in operand_fields(vta, gemm)]
    >>> instruction_text(vta, Step(gemm, tuple(values), ("load->compute",)))
    'gemm uop_end=1 iter_out=1 iter_in=1 pop load->compute'
    """
    names = operand_fields(accelerator, step.instruction)
    parts = [step.instruction.name]
    parts += [f"{name}={value}" for name, value in zip(names, step.values, strict=True) if value]
    parts += [f"pop {queue}" for queue in step.pops]
    parts += [f"push {queue}" for queue in step.pushes]
    return " ".join(parts)


def origin_text(origin: object) -> str:
    """Return the statement that an instruction comes from as a line; '' without one."""
    match origin:
        case Store():
            return format_store(origin)
        case IntrinsicCall():
            return format_intrinsic(origin)
    return "" if origin is None else str(origin).replace("\n", " ")


def excerpt(program: InstructionProgram, step: int) -> str:
    """Return an instruction with those around it, and where it comes from: at most 12 lines.

    Parameters
    ----------
    program : InstructionProgram
        The program.
    step : int
        Number of the instruction, which is marked.
    """
    first = max(step - _AROUND, 0)
    shown = range(first, min(step + _AROUND + 1, len(program.steps)))
    lines = []
    for number in shown:
        mark = ">" if number == step else " "
        lines.append(f"{mark} {number}: {_short_text(program.accelerator, program.steps[number])}")
        if number == step and (origin := origin_text(program.steps[step].origin)):
            lines.append(f"    # {_cut(origin)}")
    return "\n".join(lines)


_AROUND = 5
"""Instructions before and after the one of an excerpt; [1]."""
_WIDEST = 66
"""Longest text of a line, so that it fits a cell of a notebook with what is around it;
[characters]."""


def _short_text(accelerator: Accelerator, step: Step) -> str:
    """Return an instruction as a line of an excerpt: tokens are kept, fields may be left out."""
    fields = instruction_text(accelerator, step._replace(pops=(), pushes=()))
    tokens = instruction_text(accelerator, step)[len(fields) :]
    return _cut(fields, max(_WIDEST - len(tokens), 24)) + tokens


def _cut(text: str, longest: int = _WIDEST) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def disassemble(program: InstructionProgram, *, origins: bool = False) -> str:
    """Return a program as text, one line an instruction.

    Parameters
    ----------
    program : InstructionProgram
        The program.
    origins : bool
        Whether a comment says where each instruction comes from.
    """
    lines = []
    for step in program.steps:
        origin = origin_text(step.origin) if origins else ""
        comment = f"  # {origin}" if origin else ""
        lines.append(instruction_text(program.accelerator, step) + comment)
    return "".join(f"{line}\n" for line in lines)
