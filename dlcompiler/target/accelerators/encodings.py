"""The fields of an instruction's word: those of a new instruction, and the checks of all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from dlcompiler.errors import TargetError
from dlcompiler.target.accelerators.parts import Field, Instruction, TokenQueue, is_whole

if TYPE_CHECKING:
    from dlcompiler.target.accelerators.model import Accelerator

DRAM_BITS, SIZE_BITS, PAD_BITS, LOOP_BITS, IMMEDIATE_BITS = 32, 16, 4, 14, 16
"""Widths of fields that follow from no size of the accelerator [bit]; those of VTA."""
OPCODE_BITS = 8
PADS = ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")


def with_fields(accelerator: Accelerator, instruction: Instruction) -> Instruction:
    """Return an instruction with an encoding: its own, or fields one after another.

    The word begins with an opcode, the number of the instruction in the accelerator, and a bit for
    each queue that its engine pushes or pops.
    """
    if instruction.fields:
        return instruction
    fields: list[Field] = []
    for name, bits, signed in _widths(accelerator, instruction):
        offset = fields[-1].offset + fields[-1].bits if fields else 0
        fields.append(Field(name, bits, offset, signed))
    fixed = {"opcode": accelerator.instructions.index(instruction), **instruction.fixed}
    return replace(instruction, fields=tuple(fields), fixed=MappingProxyType(fixed))


def token_fields(queues: tuple[TokenQueue, ...], engine: str) -> tuple[str, ...]:
    """Return the names of the fields by which an engine pops and pushes tokens."""
    pops = (queue.pop_field for queue in queues if queue.sink == engine)
    return (*pops, *(queue.push_field for queue in queues if queue.source == engine))


def operand_fields(accelerator: Accelerator, instruction: Instruction) -> tuple[str, ...]:
    """Return the names of the fields that are neither fixed nor tokens."""
    assert accelerator.queues is not None
    others = {*instruction.fixed, *token_fields(tuple(accelerator.queues), instruction.engine)}
    return tuple(each.name for each in instruction.fields if each.name not in others)


def checked_fields(accelerator: Accelerator, instruction: Instruction, where: str) -> None:
    """Refuse an encoding whose fields overlap, or that cannot address a whole memory.

    Raises
    ------
    TargetError
        The message names the field.
    """
    _check_names(accelerator, instruction, where)
    end = 0
    for each in sorted(instruction.fields, key=lambda item: item.offset):
        if each.offset < end or each.offset + each.bits > accelerator.word_bits:
            raise TargetError(
                where, f"the field {each.name!r} of {instruction.name!r} has no place of its own",
                got=f"bits {each.offset} to {each.offset + each.bits - 1}",
                expected=f"from bit {end} on, in a word of {accelerator.word_bits} bits",
                hint="make memories smaller, or word_bits larger" if each.offset >= end else None,
            )  # fmt: skip
        end = each.offset + each.bits
    for name, value in instruction.fixed.items():
        field = instruction.field(name)
        if field is None or not field.least <= value <= field.most:
            raise TargetError(
                where, f"{name}={value} of {instruction.name!r} does not fit its field",
                got=repr(field) if field else "no such field",
            )  # fmt: skip
    for name, memory_name in _addresses(instruction):
        field, memory = instruction.field(name), accelerator.memory(memory_name)
        if field is not None and memory.depth - 1 > field.most:
            raise TargetError(
                where, f"{name} of {instruction.name!r} cannot address all of {memory_name}",
                got=f"{memory.depth} elements", expected=f"at most {field.most + 1}",
            )  # fmt: skip


def _check_names(accelerator: Accelerator, instruction: Instruction, where: str) -> None:
    """Refuse what is no field, and an instruction without a field that it needs."""
    names = [each.name for each in instruction.fields]
    for each in instruction.fields:
        is_field = is_whole(each.bits) and is_whole(each.offset, 0)
        if not is_field or names.count(each.name) > 1:
            raise TargetError(
                where, f"{each.name!r} of {instruction.name!r} is no field", got=repr(each),
                expected="a name of its own, and whole numbers of bits",
            )  # fmt: skip
    own = operand_fields(accelerator, instruction)
    for name, _, _ in _own_widths(accelerator, instruction):
        if name not in own and name != "reset":
            raise TargetError(
                where, f"{instruction.name!r} has no field {name!r}", got=", ".join(own) or "none",
                because="a fixed field, or one of tokens, is not enough",
                hint="without fields= it gets an encoding of its own",
            )  # fmt: skip


def _addresses(instruction: Instruction) -> Iterator[tuple[str, str]]:
    """Yield each field that is an address, and the memory that it addresses."""
    if instruction.is_copy:
        yield "sram_base", instruction.memory
    elif instruction.micro_ops:
        yield "uop_bgn", instruction.micro_ops
    else:
        yield from instruction.operands.items()


def _widths(accelerator: Accelerator, instruction: Instruction) -> Iterator[tuple[str, int, bool]]:
    """Yield the name, the width and the sign of each field of a new encoding."""
    yield "opcode", OPCODE_BITS, False
    assert accelerator.queues is not None
    for name in token_fields(tuple(accelerator.queues), instruction.engine):
        yield name, 1, False
    yield from _own_widths(accelerator, instruction)


def _own_widths(
    accelerator: Accelerator, instruction: Instruction
) -> Iterator[tuple[str, int, bool]]:
    if instruction.is_copy:
        yield from _widths_of_copy(accelerator, instruction)
    elif instruction.kind != "finish":
        yield from _widths_of_loops(accelerator, instruction)


def _widths_of_copy(
    accelerator: Accelerator, instruction: Instruction
) -> Iterator[tuple[str, int, bool]]:
    yield "sram_base", _bits(accelerator.memory(instruction.memory).depth), False
    yield "dram_base", DRAM_BITS, False
    for name in ("y_size", "x_size", "x_stride"):
        yield name, SIZE_BITS, False
    for name in PADS if instruction.pads else ():
        yield name, PAD_BITS, False


def _widths_of_loops(
    accelerator: Accelerator, instruction: Instruction
) -> Iterator[tuple[str, int, bool]]:
    if instruction.kind == "tensor":
        yield "reset", 1, False
    if instruction.micro_ops:
        bits = _bits(accelerator.memory(instruction.micro_ops).depth)
        yield "uop_bgn", bits, False
        yield "uop_end", bits + 1, False
    yield "iter_out", LOOP_BITS, False
    yield "iter_in", LOOP_BITS, False
    for operand, memory in instruction.operands.items():
        bits = _bits(accelerator.memory(memory).depth)
        if not instruction.micro_ops:
            yield operand, bits, False
        yield f"{operand}_factor_out", bits, False
        yield f"{operand}_factor_in", bits, False
    if instruction.kind == "elementwise":
        yield "operation", max(_bits(len(instruction.operations)), 1), False
        yield "use_imm", 1, False
        yield "imm", IMMEDIATE_BITS, True


def _bits(count: int) -> int:
    """Return the width of a field that can hold each number below `count` [bit]."""
    return max((count - 1).bit_length(), 1)
