"""Which elements of the memories on the chip each instruction reads and writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dlcompiler.simulate.accelerators.functional.micro_ops import Grids, Indices, own_micro_op
from dlcompiler.simulate.accelerators.program import InstructionProgram
from dlcompiler.simulate.accelerators.work import Work, works_of

Elements: TypeAlias = "slice | Indices"
How: TypeAlias = Literal["read", "write", "update"]
"""``update`` reads an element and writes it."""


class Access(NamedTuple):
    """An instruction's access to elements of one memory."""

    memory: str
    elements: Elements
    how: How


def accesses_of(program: InstructionProgram) -> Iterator[list[Access]]:
    """Yield the accesses of each instruction, in the order of the program.

    Accesses to DRAM are left out. The micro-ops of an instruction are those that were loaded last,
    in the order of the program.
    """
    chip = _Chip(program)
    for work in works_of(program):
        if work.instruction.is_copy:
            yield [] if work.is_nop else [chip.copied(work)]
        elif work.instruction.kind == "finish":
            yield []
        else:
            yield list(chip.computed(work))


class _Chip:
    """What must be known to find the elements: the micro-ops on the chip."""

    def __init__(self, program: InstructionProgram) -> None:
        self.program, self.grids = program, Grids()
        uses = {each.micro_ops for each in program.accelerator.instructions} - {""}
        width = program.micro_ops.shape[1] if program.micro_ops.ndim == 2 else 0
        self.micro_ops = {
            name: np.zeros((program.accelerator.memory(name).depth, width), np.int64)
            for name in uses
        }

    def copied(self, work: Work) -> Access:
        """Return the access of a copy, and note micro-ops that it loads."""
        fields, name = work.fields, work.instruction.memory
        rows = fields["y_size"] + fields.get("y_pad_0", 0) + fields.get("y_pad_1", 0)
        columns = fields["x_size"] + fields.get("x_pad_0", 0) + fields.get("x_pad_1", 0)
        first = fields["sram_base"]
        elements = slice(first, first + rows * columns)
        if work.instruction.kind == "store":
            return Access(name, elements, "read")
        if name in self.micro_ops:
            self._load_micro_ops(work, elements)
        return Access(name, elements, "write")

    def _load_micro_ops(self, work: Work, elements: slice) -> None:
        memory = self.program.accelerator.memory(work.instruction.memory)
        begin = self.program.micro_op_address // memory.dram_bytes
        fields, loaded = work.fields, self.program.micro_ops
        rows = np.arange(fields["y_size"])[:, None] * fields["x_stride"]
        source = (fields["dram_base"] - begin + rows + np.arange(fields["x_size"])).reshape(-1)
        place = np.arange(elements.start, elements.stop)[: len(source)]
        known = (source >= 0) & (source < len(loaded))
        self.micro_ops[memory.name][place[known]] = loaded[source[known]]

    def computed(self, work: Work) -> Iterator[Access]:
        """Yield the accesses of an instruction that computes."""
        instruction, fields = work.instruction, work.fields
        if not instruction.micro_ops:
            micro_ops = own_micro_op(work)
        else:
            used = slice(fields["uop_bgn"], fields["uop_end"])
            yield Access(instruction.micro_ops, used, "read")
            count = len(instruction.operands)
            micro_ops = np.ascontiguousarray(self.micro_ops[instruction.micro_ops][used, :count])
        unique = self.grids.of(work, micro_ops).unique
        for n, (operand, memory) in enumerate(instruction.operands.items()):
            if n and (fields.get("reset") or fields.get("use_imm")):
                break  # it reads no other operand
            how: How = "read" if n else "write" if fields.get("reset") else "update"
            yield Access(memory, dense(unique[operand]), how)
        if not fields.get("reset"):
            for operand, memory in instruction.also_writes.items():
                yield Access(memory, dense(unique[operand]), "write")


def dense(elements: npt.NDArray[np.int64]) -> Elements:
    """Return ascending elements as a slice, if none is left out."""
    if len(elements) and int(elements[-1] - elements[0]) + 1 == len(elements):
        return slice(int(elements[0]), int(elements[-1]) + 1)
    return elements
