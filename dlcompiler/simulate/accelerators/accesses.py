"""Which elements of the memories on the chip each instruction reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from operator import itemgetter
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dlcompiler.simulate.accelerators.functional.micro_ops import Grids, Indices, own_micro_op
from dlcompiler.simulate.accelerators.program import InstructionProgram, Step
from dlcompiler.simulate.accelerators.work import Work, works_of
from dlcompiler.target.accelerators import Accelerator, Instruction
from dlcompiler.target.accelerators.encodings import operand_fields

Elements: TypeAlias = "slice | Indices"
How: TypeAlias = Literal["read", "write", "update"]
"""``update`` reads an element and writes it."""


class Access(NamedTuple):
    """An instruction's access to elements of one memory."""

    memory: str
    elements: Elements
    how: How


@dataclass(frozen=True, eq=False)
class Accesses:
    """The accesses of a program: those of equal instructions are there once."""

    kinds: tuple[list[Access], ...]
    """The accesses of each kind of instruction."""
    kind: Indices
    """The kind of each instruction, in the order of the program; (instructions,)."""

    def __iter__(self) -> Iterator[list[Access]]:
        """Yield the accesses of each instruction, in the order of the program."""
        return (self.kinds[n] for n in self.kind.tolist())


def accesses_of(program: InstructionProgram) -> Accesses:
    """Return the accesses of each instruction.

    Accesses to DRAM are left out. The micro-ops of an instruction are those that were loaded last,
    in the order of the program.
    """
    firsts: list[Step] = []
    known: dict[tuple[object, ...], int] = {}
    kinds: list[int] = []
    keys = {i.name: _key_of(program.accelerator, i) for i in program.accelerator.instructions}
    loads = 0
    for step in program.steps:
        name = step.instruction.name
        fields, use = keys[name]
        loads += use is _Use.LOADS
        key = (name, use and loads, fields(step.values))
        number = known.get(key)
        if number is None:
            number = known[key] = len(firsts)
            firsts.append(step)
        kinds.append(number)
    # The first instructions of each kind, with all loads of micro-ops, are in order.
    found = tuple(_accesses(replace(program, steps=tuple(firsts))))
    return Accesses(found, np.array(kinds, np.int64))


class _Use(Enum):
    """What an instruction does with micro-ops."""

    LOADS = 1
    RUNS = 2


def _key_of(
    accelerator: Accelerator, instruction: Instruction
) -> tuple[Callable[[tuple[int, ...]], object], _Use | None]:
    """Return which values decide the elements that an instruction accesses, and its micro-ops."""
    uses = {each.micro_ops for each in accelerator.instructions} - {""}
    if instruction.kind == "load" and instruction.memory in uses:
        return tuple, _Use.LOADS
    if not instruction.is_copy:
        return tuple, _Use.RUNS if instruction.micro_ops else None
    names = operand_fields(accelerator, instruction)
    places = [n for n, name in enumerate(names) if name not in ("dram_base", "x_stride")]
    return itemgetter(*places), None


def _accesses(program: InstructionProgram) -> Iterator[list[Access]]:
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
