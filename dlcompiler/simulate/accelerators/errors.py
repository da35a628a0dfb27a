"""The error of a program of an accelerator: which instruction, and what it did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlcompiler.errors import ProgramError
from dlcompiler.simulate.accelerators.listing import excerpt

if TYPE_CHECKING:
    from dlcompiler.simulate.accelerators.program import InstructionProgram


class InstructionError(ProgramError):
    """A program of an accelerator does what its machine cannot do, or does not define.

    Parameters
    ----------
    operation, problem, kind, got, expected, because, hint
        As in `ProgramError`. Kinds besides those: ``deadlock``, ``leftover tokens``,
        ``token overflow``, ``hazard`` (a known fault of the hardware changes the values),
        ``encoding`` and ``unsupported``.
    step : int, optional
        Number of the instruction in its program.
    program : InstructionProgram, optional
        The program, for the text and the origin of the instruction.
    """

    def __init__(
        self,
        operation: str,
        problem: str,
        *,
        kind: str = "",
        step: int | None = None,
        program: InstructionProgram | None = None,
        got: object = None,
        expected: object = None,
        because: str | None = None,
        hint: str | None = None,
    ) -> None:
        shown = None if program is None or step is None else excerpt(program, step)
        super().__init__(
            operation, problem, kind=kind, got=got, expected=expected, because=because,
            hint=hint, excerpt=shown,
        )  # fmt: skip
        self.step = step
        self.origin = None
        if program is not None and step is not None:
            self.origin = program.steps[step].origin
