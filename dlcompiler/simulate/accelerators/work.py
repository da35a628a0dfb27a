"""The instructions of a program as the simulators read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dlcompiler.simulate.accelerators.errors import InstructionError
from dlcompiler.simulate.accelerators.program import InstructionProgram
from dlcompiler.target.accelerators import Accelerator, Instruction
from dlcompiler.target.accelerators.encodings import operand_fields


class Work(NamedTuple):
    """An instruction, with its engine and queues by number."""

    instruction: Instruction
    engine: int
    pops: tuple[int, ...]
    pushes: tuple[int, ...]
    fields: Mapping[str, int]
    """Values by the names of fields."""

    @property
    def is_nop(self) -> bool:
        """Tell whether it only moves tokens: a copy of nothing, or loops without an iteration.

        An instruction with micro-ops does not end without an iteration on VTA, and is refused.
        """
        instruction = self.instruction
        if instruction.is_copy:
            return not self.fields["x_size"]
        return instruction.kind != "finish" and not instruction.micro_ops and not self.updates

    @property
    def updates(self) -> int:
        """Number of micro-ops that an instruction that computes executes; [1]."""
        fields = self.fields
        micro_ops = fields["uop_end"] - fields["uop_bgn"] if "uop_end" in fields else 1
        return micro_ops * fields["iter_out"] * fields["iter_in"]


def works_of(program: InstructionProgram) -> list[Work]:
    """Return the instructions of a program, checked.

    Raises
    ------
    InstructionError
        An instruction copies no rows, runs no micro-op, leaves a memory, or names an unknown queue
        or operation.
    """
    accelerator = program.accelerator
    names = _names_of_fields(accelerator)
    engines = {engine.name: n for n, engine in enumerate(accelerator.engines)}
    assert accelerator.queues is not None
    queues = {queue.name: n for n, queue in enumerate(accelerator.queues)}
    depths = {memory.name: memory.depth for memory in accelerator.memories}
    works = []
    for number, (instruction, values, pops, pushes, _) in enumerate(program.steps):
        fields = dict(zip(names[instruction.name], values, strict=True))
        try:
            popped = tuple([queues[name] for name in pops]) if pops else ()
            pushed = tuple([queues[name] for name in pushes]) if pushes else ()
        except KeyError as error:
            raise InstructionError(
                "read the program", "no such token queue", kind="encoding", step=number,
                program=program, got=str(error.args[0]), expected=", ".join(queues),
            ) from None  # fmt: skip
        work = Work(instruction, engines[instruction.engine], popped, pushed, fields)
        if problem := _problem(work, depths):
            raise InstructionError(
                "read the program", problem[1], kind=problem[0], step=number, program=program
            )
        works.append(work)
    return works


def _names_of_fields(accelerator: Accelerator) -> dict[str, tuple[str, ...]]:
    return {each.name: operand_fields(accelerator, each) for each in accelerator.instructions}


def _problem(work: Work, depths: Mapping[str, int]) -> tuple[str, str] | None:
    """Return the kind and the text of what is wrong with an instruction, whatever its data."""
    instruction, fields = work.instruction, work.fields
    if instruction.kind == "finish":
        return None
    if instruction.is_copy:
        return _problem_of_copy(work, depths[instruction.memory])
    if work.is_nop:
        return None
    if work.updates < 1:
        return "unsupported", "an instruction without a micro-op: hardware does not end it"
    if work.updates > LARGEST_GRID:
        return "unsupported", f"{work.updates} updates are more than a simulation can hold"
    if instruction.micro_ops and fields["uop_end"] > (depth := depths[instruction.micro_ops]):
        return "out_of_bounds", f"its micro-ops leave {instruction.micro_ops}, which has {depth}"
    operation = fields.get("operation", 0)
    if instruction.operations and operation >= len(instruction.operations):
        known = ", ".join(instruction.operations)
        return "unsupported", f"no such operation: {operation}; this machine has {known}"
    return None


LARGEST_GRID = 1 << 22
"""Updates of one instruction at most; VTA's loops allow more than a simulation can hold."""


def _problem_of_copy(work: Work, depth: int) -> tuple[str, str] | None:
    fields = work.fields
    rows, columns = fields["y_size"], fields["x_size"]
    if not rows and columns:
        return "unsupported", "a copy of rows without a row: hardware does not end it"
    sides = fields.get("x_pad_0", 0) + fields.get("x_pad_1", 0)
    above = fields.get("y_pad_0", 0) + fields.get("y_pad_1", 0)
    if not columns:
        if sides or above:
            return "unsupported", "zeros around a copy of nothing: machines differ in what they do"
        return None
    last = fields["sram_base"] + (rows + above) * (columns + sides) - 1
    if last >= depth:
        memory = work.instruction.memory
        return "out_of_bounds", f"it leaves {memory}: element {last}, of {depth}"
    return None
