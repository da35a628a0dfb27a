"""What lies in DRAM before and after a program: arrays and micro-ops at their addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler.simulate.accelerators.functional.micro_ops import micro_op_bits
from dlcompiler.simulate.accelerators.program import DramBuffer, InstructionProgram
from dlcompiler.target.accelerators import Accelerator

Bytes = npt.NDArray[np.uint8]


def dram_image(program: InstructionProgram, arrays: Mapping[str, npt.NDArray[Any]]) -> Bytes:
    """Return DRAM as a program finds it; what no array gives is 0.

    Parameters
    ----------
    program
        The program.
    arrays
        Name of a buffer -> its values.
    """
    image = np.zeros(program.dram_bytes, np.uint8)
    for buffer in program.buffers:
        if buffer.name in arrays:
            given = np.ascontiguousarray(arrays[buffer.name])
            part(image, buffer)[:] = given.view(np.uint8).reshape(-1)
    words = micro_op_words(program.accelerator, program.micro_ops)
    start = program.micro_op_address
    image[start : start + words.nbytes] = words.view(np.uint8)
    return image


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
    """
    memory = next((i.micro_ops for i in accelerator.instructions if i.micro_ops), "")
    words = np.zeros(len(micro_ops), np.uint32)
    offset = 0
    for bits, column in zip(micro_op_bits(accelerator, memory), micro_ops.T, strict=False):
        words |= column.astype(np.uint32) << np.uint32(offset)
        offset += bits
    return words
