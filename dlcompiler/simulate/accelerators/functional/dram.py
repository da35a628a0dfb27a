"""The DRAM of a program: its buffers and micro-ops at their addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler.errors import CallError
from dlcompiler.simulate.accelerators.functional.micro_ops import micro_op_bits
from dlcompiler.simulate.accelerators.program import DramBuffer, InstructionProgram
from dlcompiler.target.accelerators import Accelerator

WORD_BITS = 32
"""Size of a micro-op in DRAM [bit]."""


def initial_dram(
    program: InstructionProgram, arrays: Mapping[str, npt.NDArray[Any]]
) -> npt.NDArray[np.uint8]:
    """Return DRAM with buffers and micro-ops at their addresses; the rest is 0.

    Raises
    ------
    CallError
        An array belongs to no buffer, or has another shape or dtype.
    """
    end = max((each.address + each.bytes for each in program.buffers), default=0)
    words = packed(program.accelerator, program.micro_ops)
    if len(words):
        end = max(end, program.micro_op_address + len(words))
    dram = np.zeros(max(program.dram_bytes, end), dtype=np.uint8)
    dram[program.micro_op_address : program.micro_op_address + len(words)] = words
    for name, array in arrays.items():
        buffer = _buffer(program, name)
        array = np.asarray(array)
        if array.shape != buffer.shape or array.dtype != np.dtype(buffer.dtype):
            raise CallError(
                "simulate the program", f"the array of {name} does not fit its buffer",
                got=f"{array.dtype}{list(array.shape)}",
                expected=f"{buffer.dtype}{list(buffer.shape)}",
            )  # fmt: skip
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        dram[buffer.address : buffer.address + buffer.bytes] = data
    return dram


def buffer_in(
    program: InstructionProgram, dram: npt.NDArray[np.uint8], name: str
) -> npt.NDArray[Any]:
    """Return the contents of a buffer in DRAM, as an array of its shape."""
    buffer = _buffer(program, name)
    data = dram[buffer.address : buffer.address + buffer.bytes]
    return data.copy().view(buffer.dtype).reshape(buffer.shape)


def packed(accelerator: Accelerator, micro_ops: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Return micro-ops as bytes of words, of which the first operand has the lowest bits.

    Parameters
    ----------
    accelerator : Accelerator
        Their machine.
    micro_ops : array, (count, operands)
        The elements of their operands.

    Raises
    ------
    CallError
        An operand does not fit its bits.
    """
    if not len(micro_ops):
        return np.zeros(0, dtype=np.uint8)
    memory = next((i.micro_ops for i in accelerator.instructions if i.micro_ops), "")
    bits = micro_op_bits(accelerator, memory)
    if sum(bits) > WORD_BITS:
        raise CallError(
            "encode micro-ops", f"operands of {memory} need more than {WORD_BITS} bits",
            got=f"{' + '.join(map(str, bits))} bits", hint="make the memories smaller",
        )  # fmt: skip
    words = np.zeros(len(micro_ops), dtype=np.int64)
    offset = 0
    for place, width in enumerate(bits[: micro_ops.shape[1]]):
        column = micro_ops[:, place]
        if len(column) and not 0 <= column.min() <= column.max() < 1 << width:
            raise CallError(
                "encode micro-ops", f"operand {place} does not fit its {width} bits",
                got=f"{column.min()} to {column.max()}",
            )  # fmt: skip
        words |= column << offset
        offset += width
    return words.astype("<u4").view(np.uint8)


def _buffer(program: InstructionProgram, name: str) -> DramBuffer:
    for buffer in program.buffers:
        if buffer.name == name:
            return buffer
    raise CallError(
        "simulate the program", "it has no such buffer", got=name,
        expected=", ".join(each.name for each in program.buffers) or "none",
    )  # fmt: skip
