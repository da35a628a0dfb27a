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
        """Tell whether it only moves tokens: a copy of nothing."""
        return self.instruction.is_copy and not self.fields["x_size"]

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
        An instruction copies no rows, runs no micro-op, or names an unknown queue or operation.
    """
    accelerator = program.accelerator
    names = _names_of_fields(accelerator)
    engines = {engine.name: n for n, engine in enumerate(accelerator.engines)}
    assert accelerator.queues is not None
    queues = {queue.name: n for n, queue in enumerate(accelerator.queues)}
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
        if problem := _problem(work):
            raise InstructionError(
                "read the program", problem, kind="unsupported", step=number, program=program
            )
        works.append(work)
    return works


def _names_of_fields(accelerator: Accelerator) -> dict[str, tuple[str, ...]]:
    return {each.name: operand_fields(accelerator, each) for each in accelerator.instructions}


def _problem(work: Work) -> str | None:
    """Return what is wrong with an instruction whatever the machine holds, or None."""
    instruction, fields = work.instruction, work.fields
    if instruction.is_copy:
        if not fields["y_size"] and fields["x_size"]:
            return "a copy of rows without a row: hardware does not end it"
        if not fields["x_size"] and any(fields.get(f"{d}_pad_{n}") for d in "xy" for n in (0, 1)):
            return "zeros around a copy of nothing: machines differ in what they do"
        return None
    if instruction.kind == "finish":
        return None
    if work.updates < 1:
        return "an instruction without a micro-op: hardware does not end it"
    operation = fields.get("operation", 0)
    if instruction.operations and operation >= len(instruction.operations):
        return (
            f"no such operation: {operation}; this machine has {', '.join(instruction.operations)}"
        )
    return None
