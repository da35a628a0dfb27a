"""What a functional simulation finds wrong: it raises it, or collects it and goes on."""

from __future__ import annotations

from dlcompiler.simulate.accelerators.errors import InstructionError
from dlcompiler.simulate.accelerators.program import InstructionProgram

LIMIT = 100
"""Findings that are collected at most."""


class Findings:
    """Where the parts of a simulation report what is wrong."""

    def __init__(self, program: InstructionProgram, *, collect: bool) -> None:
        self.program = program
        self.collect = collect
        self.found: list[InstructionError] = []
        self._known: set[tuple[str, int]] = set()

    def report(
        self,
        kind: str,
        problem: str,
        step: int,
        *,
        got: object = None,
        expected: object = None,
        because: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Report that an instruction does something whose result is not defined.

        Raises
        ------
        InstructionError
            Unless findings are collected.
        """
        if (kind, step) in self._known or len(self._known) >= LIMIT:
            return
        error = self.error(
            kind, problem, step, got=got, expected=expected, because=because, hint=hint
        )
        if not self.collect:
            raise error
        self._known.add((kind, step))
        self.found.append(error)

    def error(
        self,
        kind: str,
        problem: str,
        step: int,
        *,
        got: object = None,
        expected: object = None,
        because: str | None = None,
        hint: str | None = None,
    ) -> InstructionError:
        """Return the error of an instruction after which a simulation cannot go on."""
        return InstructionError(
            "simulate the program", problem, kind=kind, step=step, program=self.program,
            got=got, expected=expected, because=because, hint=hint,
        )  # fmt: skip
