"""Instructions as words of bits: tables of fields, encoding and decoding."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from dlcompiler.simulate.accelerators.assembler import fitting
from dlcompiler.simulate.accelerators.errors import InstructionError
from dlcompiler.simulate.accelerators.program import Step
from dlcompiler.target.accelerators import Accelerator, Field, Instruction
from dlcompiler.target.accelerators.encodings import operand_fields


@dataclass(frozen=True, eq=False)
class Encoding:
    """How the instructions of an accelerator are words of bits."""

    accelerator: Accelerator
    fields: Mapping[str, tuple[Field, ...]]
    """Name of an instruction -> its fields."""
    factors: Mapping[str, Mapping[str, int]]
    """Name of an instruction -> field -> what its value is multiplied by in the word."""

    @functools.cached_property
    def _layouts(self) -> tuple[_Layout, ...]:
        return tuple(
            _layout(self.accelerator, each, self.fields[each.name], self.factors.get(each.name, {}))
            for each in self.accelerator.instructions
        )

    @functools.cached_property
    def _by_name(self) -> dict[str, _Layout]:
        return {layout.instruction.name: layout for layout in self._layouts}

    def encode(self, step: Step, number: int = 0) -> int:
        """Return an instruction as a word.

        Raises
        ------
        InstructionError
            A value does not fit its field, or the engine cannot pop or push such a token.
        """
        layout = self._by_name[step.instruction.name]
        where = f"instruction {number}"
        word = layout.fixed
        for (field, factor), value in zip(layout.operands, step.values, strict=True):
            scaled = value * factor
            if not field.least <= scaled <= field.most:
                of_field = replace(step.instruction, fields=(field,))
                fitting(of_field, field.name, scaled, where)
            word |= (scaled & ((1 << field.bits) - 1)) << field.offset
        for verb, names, bits in (
            ("pop", step.pops, layout.pops),
            ("push", step.pushes, layout.pushes),
        ):
            for name in names:
                if name not in bits:
                    raise InstructionError(
                        f"encode {where}", f"{step.instruction.engine} cannot {verb} such a token",
                        kind="encoding", got=name, expected=", ".join(bits),
                    )  # fmt: skip
                word |= 1 << bits[name]
        return word

    def decode(self, word: int, number: int = 0) -> Step:
        """Return the instruction that a word is.

        Raises
        ------
        InstructionError
            No instruction has these fixed fields, or bits outside all fields are set.
        """
        for layout in self._layouts:
            if word & layout.fixed_mask == layout.fixed:
                break
        else:
            raise InstructionError(
                f"decode instruction {number}", "no instruction has this code", kind="encoding",
                got=f"{word:#0{self.accelerator.word_bits // 4 + 2}x}",
                expected="; ".join(layout.code for layout in self._layouts),
            )  # fmt: skip
        if word & ~layout.mask:
            raise InstructionError(
                f"decode instruction {number}", "bits that belong to no field are set",
                kind="encoding", got=f"bits {word & ~layout.mask:#x} of {layout.instruction.name}",
                expected="0", hint="the word may be damaged, or of another version of the machine",
            )  # fmt: skip
        values = []
        for field, factor in layout.operands:
            value = word >> field.offset & ((1 << field.bits) - 1)
            if field.signed and value > field.most:
                value -= 1 << field.bits
            if factor != 1:
                value, rest = divmod(value, factor)
                if rest:
                    raise InstructionError(
                        f"decode instruction {number}", f"{field.name} is no multiple of {factor}",
                        kind="encoding", got=str(value * factor + rest),
                    )  # fmt: skip
            values.append(value)
        pops = tuple([name for name, bit in layout.pops.items() if word >> bit & 1])
        pushes = tuple([name for name, bit in layout.pushes.items() if word >> bit & 1])
        return Step(layout.instruction, tuple(values), pops, pushes)

    def encode_all(self, steps: tuple[Step, ...]) -> bytes:
        """Return instructions as bytes; the first byte of a word has its lowest bits."""
        size = self.accelerator.word_bits // 8
        words = (self.encode(step, number) for number, step in enumerate(steps))
        return b"".join(word.to_bytes(size, "little") for word in words)

    def decode_all(self, data: bytes) -> tuple[Step, ...]:
        """Return the instructions that bytes are.

        Raises
        ------
        InstructionError
            A word is no instruction, or the last one is cut off.
        """
        size = self.accelerator.word_bits // 8
        if len(data) % size:
            raise InstructionError(
                "decode instructions", "the last instruction is cut off", kind="encoding",
                got=f"{len(data)} bytes", expected=f"a multiple of {size}",
            )  # fmt: skip
        return tuple(
            self.decode(int.from_bytes(data[start : start + size], "little"), start // size)
            for start in range(0, len(data), size)
        )


@dataclass(frozen=True, slots=True)
class _Layout:
    """The fields of an instruction, prepared for encoding."""

    instruction: Instruction
    fixed: int
    """The bits of the fixed fields."""
    fixed_mask: int
    mask: int
    """All bits that belong to a field."""
    operands: tuple[tuple[Field, int], ...]
    """The other fields in the order of a step's values, each with its factor."""
    pops: Mapping[str, int]
    """Name of a queue -> the bit that says that a token is popped."""
    pushes: Mapping[str, int]
    code: str
    """The fixed fields as text."""


def _layout(
    accelerator: Accelerator,
    instruction: Instruction,
    fields: tuple[Field, ...],
    factors: Mapping[str, int],
) -> _Layout:
    by_name = {field.name: field for field in fields}
    fixed = fixed_mask = mask = 0
    for field in fields:
        mask |= ((1 << field.bits) - 1) << field.offset
    for name, value in instruction.fixed.items():
        field = by_name[name]
        fixed |= (value & ((1 << field.bits) - 1)) << field.offset
        fixed_mask |= ((1 << field.bits) - 1) << field.offset
    assert accelerator.queues is not None
    engine = instruction.engine
    pops = {
        queue.name: by_name[queue.pop_field].offset
        for queue in accelerator.queues
        if queue.sink == engine and queue.pop_field in by_name
    }
    pushes = {
        queue.name: by_name[queue.push_field].offset
        for queue in accelerator.queues
        if queue.source == engine and queue.push_field in by_name
    }
    operands = tuple(
        (by_name[name], factors.get(name, 1)) for name in operand_fields(accelerator, instruction)
    )
    code = f"{instruction.name}: " + ", ".join(f"{k}={v}" for k, v in instruction.fixed.items())
    return _Layout(instruction, fixed, fixed_mask, mask, operands, pops, pushes, code)


def encoding_of(accelerator: Accelerator) -> Encoding:
    """Return the encoding of an accelerator's own instructions.

    Parameters
    ----------
    accelerator : Accelerator
        The machine.

    Examples
    --------
    >>> from dlcompiler.simulate.accelerators import assemble
    >>> from dlcompiler.target.accelerators.vta import preset
    >>> encoding_of(preset("vta-pynq")).encode_all(assemble(preset("vta-pynq"), "finish")).hex()
    '03000000000000000000000000000000'
    """
    fields = {each.name: each.fields for each in accelerator.instructions}
    return Encoding(accelerator, MappingProxyType(fields), MappingProxyType({}))


def encoding_2019(accelerator: Accelerator) -> Encoding:
    """Return the encoding that the RTL of VTA of 2019 reads.

    The type of a memory and the operation of an ALU instruction have two bits instead of three, so
    the fields above them in the same half of the word lie one bit lower. Addresses in DRAM are in
    bytes. That RTL takes an accumulator for 16 bytes when it counts the stride of rows, so the
    stride of accumulators is multiplied by the number of inputs in it.

    Parameters
    ----------
    accelerator : Accelerator
        A VTA.
    """
    fields, factors = {}, {}
    inp_bytes = accelerator.memory("inp").dram_bytes
    for each in accelerator.instructions:
        fields[each.name] = tuple(_moved(field, each.fields) for field in each.fields)
        if each.is_copy:
            size = accelerator.memory(each.memory).dram_bytes
            stride = size // inp_bytes if each.memory == "acc" else 1
            factors[each.name] = MappingProxyType({"dram_base": size, "x_stride": stride})
    return Encoding(accelerator, MappingProxyType(fields), MappingProxyType(factors))


_SHORTER = ("memory_type", "operation")
_HALF = 64


def _moved(field: Field, fields: tuple[Field, ...]) -> Field:
    """Return a field where the encoding of 2019 has it."""
    if field.name in _SHORTER:
        return replace(field, bits=field.bits - 1)
    below = sum(
        other.name in _SHORTER and other.offset < field.offset
        and other.offset // _HALF == field.offset // _HALF
        for other in fields
    )  # fmt: skip
    return replace(field, offset=field.offset - below)
