"""What lies in DRAM before and after a program: arrays and micro-ops at their addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler.errors import CallError
from dlcompiler.simulate.accelerators.functional.micro_ops import micro_op_bits
from dlcompiler.simulate.accelerators.program import DramBuffer, InstructionProgram
from dlcompiler.target.accelerators import Accelerator

Bytes = npt.NDArray[np.uint8]
WORD_BITS = 32
"""Size of a micro-op in DRAM [bit]."""


def dram_image(program: InstructionProgram, arrays: Mapping[str, npt.NDArray[Any]]) -> Bytes:
    """Return DRAM as a program finds it; what no array gives is 0.

    Parameters
    ----------
    program
        The program.
    arrays
        Name of a buffer -> its values.

    Raises
    ------
    CallError
        An array belongs to no buffer, or has another shape or dtype; a micro-op does not fit its
        word; a buffer or the micro-ops lie outside DRAM.
    """
    if problem := problem_of_places(program):
        raise CallError("simulate the program", problem, got=f"{program.dram_bytes} bytes of DRAM")
    try:
        image = np.zeros(program.dram_bytes, np.uint8)
    except MemoryError as error:
        raise CallError(
            "simulate the program", "its DRAM does not fit into the memory of this machine",
            got=f"{program.dram_bytes} bytes",
        ) from error  # fmt: skip
    for name, given in arrays.items():
        buffer = buffer_of(program, name)
        array = np.asarray(given)
        if array.shape != buffer.shape or array.dtype != np.dtype(buffer.dtype):
            raise CallError(
                "simulate the program", f"the array of {name} does not fit its buffer",
                got=f"{array.dtype}{list(array.shape)}",
                expected=f"{buffer.dtype}{list(buffer.shape)}",
            )  # fmt: skip
        part(image, buffer)[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    words = micro_op_words(program.accelerator, program.micro_ops)
    start = program.micro_op_address
    image[start : start + words.nbytes] = words.view(np.uint8)
    return image


def problem_of_places(program: InstructionProgram) -> str:
    """Return which buffer lies outside DRAM, or that micro-ops do; "" if all have a place."""
    for buffer in program.buffers:
        if buffer.address + buffer.bytes > program.dram_bytes:
            return f"the buffer {buffer.name} does not lie in DRAM"
    end = program.micro_op_address + WORD_BITS // 8 * len(program.micro_ops)
    if len(program.micro_ops) and end > program.dram_bytes:
        return "its micro-ops do not lie in DRAM"
    return ""


def buffer_of(program: InstructionProgram, name: str) -> DramBuffer:
    """Return the buffer of a name.

    Raises
    ------
    CallError
        The program has none of this name.
    """
    for buffer in program.buffers:
        if buffer.name == name:
            return buffer
    raise CallError(
        "simulate the program", "it has no such buffer", got=name,
        expected=", ".join(each.name for each in program.buffers) or "none",
    )  # fmt: skip


def part(image: Bytes, buffer: DramBuffer) -> Bytes:
    """Return the bytes of a buffer in DRAM, not copied."""
    return image[buffer.address : buffer.address + buffer.bytes]


def array_of(image: Bytes, buffer: DramBuffer) -> npt.NDArray[Any]:
    """Return the values of a buffer in DRAM, not copied."""
    return part(image, buffer).view(buffer.dtype).reshape(buffer.shape)


def micro_op_words(
    accelerator: Accelerator, micro_ops: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint32]:
    """Return micro-ops as words; the first operand has the lowest bits.

    Parameters
    ----------
    accelerator
        Its memories say how many bits an operand has.
    micro_ops
        (count, operands) [elements].

    Raises
    ------
    CallError
        An operand does not fit its bits, or all together not a word.
    """
    memory = next((i.micro_ops for i in accelerator.instructions if i.micro_ops), "")
    bits = micro_op_bits(accelerator, memory)
    if len(micro_ops) and sum(bits) > WORD_BITS:
        raise CallError(
            "encode micro-ops", f"operands of {memory} need more than {WORD_BITS} bits",
            got=" + ".join(map(str, bits)), hint="make the memories smaller",
        )  # fmt: skip
    words = np.zeros(len(micro_ops), np.uint32)
    offset = 0
    for place, (width, column) in enumerate(zip(bits, micro_ops.T, strict=False)):
        if len(column) and not 0 <= column.min() <= column.max() < 1 << width:
            raise CallError(
                "encode micro-ops", f"operand {place} does not fit its {width} bits",
                got=f"{column.min()} to {column.max()}",
            )  # fmt: skip
        words |= column.astype(np.uint32) << np.uint32(offset)
        offset += width
    return words
