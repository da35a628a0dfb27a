"""The rules for accelerators that have no profile of their own.

Instructions are dispatched one a cycle, from cycle 0 on. Each takes the cycles that its description
says, at least one. A copy without them has the memory port for itself, in the order of the
requests: it takes the port's latency and the beats of its rows. Zeros around a load take no time.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

from dlcompiler.simulate.accelerators.errors import InstructionError
from dlcompiler.simulate.accelerators.timing.machine import Machine
from dlcompiler.simulate.accelerators.work import Work
from dlcompiler.target.accelerators.parts import MOST_CYCLES


def _are_cycles(number: Any) -> bool:
    """Tell whether a number is a possible count of cycles: whole, such as 3 or 3.0."""
    is_number = isinstance(number, Real) and not isinstance(number, bool)
    return is_number and 1 <= number <= MOST_CYCLES and float(number).is_integer()


class GeneralProfile:
    """The general rules."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._port = machine.program.accelerator.port
        self._port_free = 0

    def launch(self) -> None:
        """Dispatch all instructions."""
        if count := len(self._machine.works):
            self._machine.dispatch(0, count, lambda _: None)

    def begin(self, step: int, time: int) -> None:
        """Run an instruction that starts at a cycle."""
        machine = self._machine
        work = machine.works[step]
        instruction = work.instruction
        if instruction.kind == "finish" or work.is_nop:
            machine.finish(step, time + 1)
        elif instruction.cycles is not None:
            machine.finish(step, time + self._own_cycles(step, work))
        elif instruction.is_copy:
            start = max(time, self._port_free)
            machine.port_wait[step] = start - time
            self._port_free = start + self._port.latency + self._beats(work)
            machine.finish(step, self._port_free)
        else:
            raise InstructionError(
                "time the program", f"nothing says how many cycles {instruction.name} takes",
                kind="unsupported", step=step, program=machine.program,
                hint="give its description cycles=lambda n: …, n being the number of micro-ops",
            )  # fmt: skip

    def _own_cycles(self, step: int, work: Work) -> int:
        """Return what an instruction takes by its own description."""
        fields, instruction = work.fields, work.instruction
        count = fields["y_size"] * fields["x_size"] if instruction.is_copy else work.updates
        assert instruction.cycles is not None
        try:
            cycles: Any = instruction.cycles(count)
        except Exception as error:  # the function is a user's
            raise InstructionError(
                "time the program", f"the function cycles of {instruction.name} fails",
                kind="unsupported", step=step, program=self._machine.program,
                got=f"cycles({count})", because=f"{type(error).__name__}: {error}",
            ) from error  # fmt: skip
        if not _are_cycles(cycles):
            raise InstructionError(
                "time the program", f"{instruction.name} takes no number of cycles",
                kind="unsupported", step=step, program=self._machine.program,
                got=f"cycles({count}) = {cycles!r:.80}", expected="a whole number of at least 1",
            )  # fmt: skip
        return int(cycles)

    def _beats(self, work: Work) -> int:
        memory = self._machine.program.accelerator.memory(work.instruction.memory)
        row = work.fields["x_size"] * memory.dram_bytes
        return work.fields["y_size"] * -(-row // self._port.bytes_per_cycle)
