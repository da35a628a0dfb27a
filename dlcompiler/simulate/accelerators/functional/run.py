"""Run a program of an accelerator: its values, its counters, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler.errors import CallError
from dlcompiler.simulate.accelerators.errors import InstructionError
from dlcompiler.simulate.accelerators.functional import compute, hazards, transfers
from dlcompiler.simulate.accelerators.functional.findings import Findings
from dlcompiler.simulate.accelerators.functional.meaning import Meaning, meaning_of
from dlcompiler.simulate.accelerators.functional.micro_ops import Grid, Grids, own_micro_op
from dlcompiler.simulate.accelerators.functional.order import Interleaving
from dlcompiler.simulate.accelerators.functional.races import Races
from dlcompiler.simulate.accelerators.functional.state import State
from dlcompiler.simulate.accelerators.images import array_of, buffer_of, dram_image
from dlcompiler.simulate.accelerators.program import InstructionProgram
from dlcompiler.simulate.accelerators.work import Work, works_of


@dataclass(frozen=True, eq=False)
class FunctionalRun:
    """What a program computed."""

    program: InstructionProgram
    dram: npt.NDArray[np.uint8]
    """DRAM after it; (bytes,)."""
    counters: dict[str, int]
    """``inp_load_nbytes``, ``gemm_counter``, …: names of VTA's functional simulator. Bytes are
    without zeros around a load; a reset does not count."""
    findings: tuple[InstructionError, ...]
    """What is wrong with it, if that was to be collected."""
    memories: dict[str, npt.NDArray[np.generic]]
    """The memories of the accelerator after it."""

    def array(self, name: str) -> npt.NDArray[Any]:
        """Return a buffer of the program after it, as an array of its shape."""
        return array_of(self.dram, buffer_of(self.program, name))

    def __repr__(self) -> str:
        counted = ", ".join(f"{name} {number:,}" for name, number in self.counters.items())
        return f"FunctionalRun({len(self.findings)} findings; {counted})"


def run_program(
    program: InstructionProgram,
    dram: npt.NDArray[np.uint8] | Mapping[str, npt.NDArray[Any]],
    *,
    seed: int | None = None,
    by_steps: bool = False,
    collect: bool = False,
) -> FunctionalRun:
    """Run a program on the values in DRAM.

    Parameters
    ----------
    program : InstructionProgram
        The program.
    dram : array of uint8, shape (bytes,), or mapping of names to arrays
        DRAM before it, or the contents of buffers of the program, of which the others are zeros;
        it is not changed.
    seed : int, optional
        Chooses one of the orders in which the engines may run. All give the same values if there
        is no finding.
    by_steps : bool
        Whether to run the updates of an instruction one after another: slow, for tests.
    collect : bool
        Whether to collect findings in the result, and go on, rather than raise the first one.

    Raises
    ------
    InstructionError
        A finding: a deadlock; tokens that are left or too many; an access outside a memory; a read
        of what was never written; a race of engines; a known fault of the hardware of the profile.
        The message names the instruction.
    CallError
        DRAM is no array of bytes, an array is none of the program's buffers, or the program leaves
        out instructions.
    """
    if program.is_partial:
        raise CallError(
            "simulate the program", "it leaves out instructions, and computes nothing",
            because="its schedule has a pragma skip_dma_copy or skip_alu, or such an intrinsic",
            hint="time_program says how long it takes",
        )  # fmt: skip
    image = dram_image(program, dram) if isinstance(dram, Mapping) else np.array(dram)
    if image.dtype != np.uint8 or image.ndim != 1:
        raise CallError("simulate the program", "DRAM is no array of bytes", got=repr(dram)[:80])
    with np.errstate(all="ignore"):  # floats become infinite, or no number, without a warning
        return _Run(program, image, by_steps=by_steps, collect=collect).run(seed)


class _Run:
    """The parts of one run."""

    def __init__(
        self, program: InstructionProgram, dram: npt.NDArray[np.uint8], *, by_steps: bool,
        collect: bool,
    ) -> None:  # fmt: skip
        self._program = program
        self._works = works_of(program)
        self._findings = Findings(program, collect=collect)
        self._state = State(program.accelerator, dram)
        self._races = Races(program.accelerator, self._works, len(dram), self._findings)
        self._grids = Grids()
        self._meanings: dict[str, Meaning] = {}
        self._by_steps = by_steps

    def run(self, seed: int | None) -> FunctionalRun:
        actions: dict[str, Callable[[Work, int], None]] = {
            "load": self._load, "store": self._store, "tensor": self._tensor,
            "elementwise": self._elementwise, "finish": lambda _work, _step: None,
        }  # fmt: skip
        races, works = self._races, self._works
        for step in Interleaving(self._program, works, self._findings, seed).steps():
            work = works[step]
            races.begin(work, step)
            if not work.is_nop:
                actions[work.instruction.kind](work, step)
            races.clocks.end(work)
        state = self._state
        return FunctionalRun(
            self._program, state.dram, state.counters, tuple(self._findings.found),
            {name: store.values for name, store in state.stores.items()},
        )  # fmt: skip

    def _load(self, work: Work, step: int) -> None:
        state, races = self._state, self._races
        block = transfers.block_of(work, state)
        transfers.check_block(block, state, step, self._findings)
        hazards.check_load(state.accelerator, work, block, step, self._findings)
        races.access_dram(block, work, step, is_write=False)
        races.access(work.instruction.memory, block.memory, work, step, is_write=True)
        transfers.load(block, work, state)
        if work.instruction.memory == "uop" and state.accelerator.profile == "A":
            bus = state.accelerator.port.bytes_per_cycle
            state.stores["uop"].forget(hazards.unknown_micro_ops(work, block, bus))

    def _store(self, work: Work, step: int) -> None:
        state, races, name = self._state, self._races, work.instruction.memory
        block = transfers.block_of(work, state)
        transfers.check_block(block, state, step, self._findings)
        state.require_written(name, block.memory, step, self._findings)
        races.access(name, block.memory, work, step, is_write=False)
        races.access_dram(block, work, step, is_write=True)
        transfers.store(block, work, state)

    def _tensor(self, work: Work, step: int) -> None:
        instruction = work.instruction
        grid = self._grid(work, step)
        hazards.check_tensor(self._state.accelerator, work, grid, step, self._findings)
        meaning = self._meanings.get(instruction.name)
        if meaning is None:
            meaning = meaning_of(self._state.accelerator, instruction)
            self._meanings[instruction.name] = meaning
        names = list(instruction.operands)
        reads = [] if work.fields.get("reset") else names[0 if meaning.accumulates else 1 :]
        self._note_accesses(work, grid, step, reads)
        run = compute.tensor_by_steps if self._by_steps else compute.tensor
        run(work, grid, self._state, meaning)

    def _elementwise(self, work: Work, step: int) -> None:
        grid = self._grid(work, step)
        hazards.check_elementwise(self._state.accelerator, work, grid, step, self._findings)
        names = list(work.instruction.operands)
        reads = names[:1] if work.fields.get("use_imm") else names
        self._note_accesses(work, grid, step, reads)
        compute.elementwise(work, grid, self._state, step, self._findings, by_steps=self._by_steps)

    def _grid(self, work: Work, step: int) -> Grid:
        """Return the updates of an instruction, all of which are inside the memories."""
        instruction, state = work.instruction, self._state
        if instruction.micro_ops:
            first, end = work.fields["uop_bgn"], work.fields["uop_end"]
            place = slice(first, end)
            state.require_written(instruction.micro_ops, place, step, self._findings)
            self._races.access(instruction.micro_ops, place, work, step, is_write=False)
            micro_ops = state.stores[instruction.micro_ops].values[place]
        else:
            micro_ops = own_micro_op(work)
        grid = self._grids.of(work, np.ascontiguousarray(micro_ops))
        for name, memory in instruction.operands.items():
            depth, last = state.stores[memory].memory.depth, int(grid.unique[name][-1])
            if last >= depth and not self._is_unused(work, name):
                raise self._findings.error(
                    "out_of_bounds", f"{name} leaves the memory {memory}", step,
                    got=f"element {last}", expected=f"at most {depth - 1}",
                )  # fmt: skip
        return grid

    def _is_unused(self, work: Work, name: str) -> bool:
        """Tell whether an instruction ignores an operand: it resets, or has an immediate."""
        is_result = name == next(iter(work.instruction.operands))
        return not is_result and bool(work.fields.get("reset") or work.fields.get("use_imm"))

    def _note_accesses(self, work: Work, grid: Grid, step: int, reads: list[str]) -> None:
        """Check what an instruction reads and writes."""
        instruction, races = work.instruction, self._races
        for name in reads:
            memory = instruction.operands[name]
            self._state.require_written(memory, grid.unique[name], step, self._findings)
            races.access(memory, grid.unique[name], work, step, is_write=False)
        result = next(iter(instruction.operands))
        races.access(instruction.operands[result], grid.unique[result], work, step, is_write=True)
        if not work.fields.get("reset"):
            for name, memory in instruction.also_writes.items():
                races.access(memory, grid.unique[name], work, step, is_write=True)
