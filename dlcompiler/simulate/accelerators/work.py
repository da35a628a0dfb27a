"""The instructions of a program as the simulators read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

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
    _check_values(program, names)
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
        if len({*popped}) < len(popped) or len({*pushed}) < len(pushed):
            raise InstructionError(
                "read the program", "it pops or pushes a token queue twice", kind="encoding",
                step=number, program=program, got=", ".join((*pops, *pushes)),
                because="an instruction has one bit for each queue and direction",
            )  # fmt: skip
        work = Work(instruction, engines[instruction.engine], popped, pushed, fields)
        if problem := _problem(work, depths):
            raise InstructionError(
                "read the program", problem[1], kind=problem[0], step=number, program=program
            )
        works.append(work)
    return works


def _check_values(program: InstructionProgram, names: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse instructions of other machines, and values that their fields cannot hold.

    Raises
    ------
    InstructionError
        The message names the field.
    """
    steps: dict[str, list[int]] = {name: [] for name in names}
    for number, step in enumerate(program.steps):
        name = step.instruction.name
        if name not in steps or len(step.values) != len(names[name]):
            raise InstructionError(
                "read the program", f"instruction {number} has not one value for each field",
                kind="encoding", got=f"{name} {step.values}",
                expected=", ".join(names.get(name, ())) or f"one of {', '.join(names)}",
            )  # fmt: skip
        steps[name].append(number)
    for name, numbers in steps.items():
        if not numbers or not names[name]:
            continue
        instruction = program.accelerator.instruction(name)
        fields = [field for each in names[name] if (field := instruction.field(each))]
        values = np.array([program.steps[number].values for number in numbers])
        least, most = (np.array([getattr(f, end) for f in fields]) for end in ("least", "most"))
        wrong = (values < least) | (values > most) | (values.dtype.kind not in "iuO")
        if wrong.any():
            row, column = map(int, np.argwhere(wrong)[0])
            raise InstructionError(
                "read the program", f"the value of {names[name][column]} does not fit its field",
                kind="encoding", step=numbers[row], program=program,
                got=str(values[row, column]), expected=f"{least[column]} to {most[column]}",
            )  # fmt: skip


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
