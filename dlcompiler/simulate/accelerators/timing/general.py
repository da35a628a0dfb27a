"""The rules for accelerators that have no profile of their own.

Instructions are dispatched one a cycle, from cycle 0 on. Each takes the cycles that its description
says, at least one. A copy without them has the memory port for itself, in the order of the
requests: it takes the port's latency and the beats of its rows. Zeros around a load take no time.
"""

from __future__ import annotations

from dlcompiler.simulate.accelerators.errors import InstructionError
from dlcompiler.simulate.accelerators.timing.described import described_cycles
from dlcompiler.simulate.accelerators.timing.machine import Machine
from dlcompiler.simulate.accelerators.work import Work


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
        program = self._machine.program
        return described_cycles("time the program", instruction, count, step, program)

    def _beats(self, work: Work) -> int:
        memory = self._machine.program.accelerator.memory(work.instruction.memory)
        row = work.fields["x_size"] * memory.dram_bytes
        return work.fields["y_size"] * -(-row // self._port.bytes_per_cycle)
