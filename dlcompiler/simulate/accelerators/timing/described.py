"""Cycles of an instruction as the function of its own description gives them."""

from __future__ import annotations

from numbers import Real
from typing import Any

from dlcompiler.simulate.accelerators.errors import InstructionError
from dlcompiler.simulate.accelerators.program import InstructionProgram
from dlcompiler.target.accelerators import Instruction
from dlcompiler.target.accelerators.parts import MOST_CYCLES


def described_cycles(
    operation: str,
    instruction: Instruction,
    count: int,
    step: int | None = None,
    program: InstructionProgram | None = None,
) -> int:
    """Return what an instruction with the function ``cycles`` takes; [clock].

    Parameters
    ----------
    operation : str
        What an error says was being done.
    instruction : Instruction
        It has the function.
    count : int
        Number of its micro-ops, or of the elements that it copies.
    step, program
        Where the instruction stands, if it stands in a program.

    Raises
    ------
    InstructionError
        The function fails, or returns no whole number of at least 1.
    """
    assert instruction.cycles is not None
    try:
        cycles: Any = instruction.cycles(count)
    except Exception as error:  # the function is a user's
        raise InstructionError(
            operation, f"the function cycles of {instruction.name} fails",
            kind="unsupported", step=step, program=program,
            got=f"cycles({count})", because=f"{type(error).__name__}: {error}",
        ) from error  # fmt: skip
    if not _are_cycles(cycles):
        raise InstructionError(
            operation, f"{instruction.name} takes no number of cycles",
            kind="unsupported", step=step, program=program,
            got=f"cycles({count}) = {cycles!r:.80}", expected="a whole number of at least 1",
        )  # fmt: skip
    return int(cycles)


def _are_cycles(number: Any) -> bool:
    """Tell whether a number is a possible count of cycles: whole, such as 3 or 3.0."""
    is_number = isinstance(number, Real) and not isinstance(number, bool)
    return is_number and 1 <= number <= MOST_CYCLES and float(number).is_integer()
