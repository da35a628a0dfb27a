"""Loads and stores: blocks of rows between DRAM and a memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dlcompiler.simulate.accelerators.functional.findings import Findings
from dlcompiler.simulate.accelerators.functional.state import State
from dlcompiler.simulate.accelerators.work import Work


class Block(NamedTuple):
    """What a copy reads or writes."""

    memory: slice
    """Elements on the chip."""
    first: int
    """First element in DRAM, in elements."""
    rows: int
    columns: int
    stride: int
    """From row to row in DRAM [elements]."""
    element_bytes: int
    """Size of an element in DRAM [byte]."""

    @property
    def dram_end(self) -> int:
        """End of the last row in DRAM [byte]."""
        last = self.first + (self.rows - 1) * self.stride + self.columns
        return last * self.element_bytes

    @property
    def is_dense(self) -> bool:
        """Tell whether the rows lie one after another in DRAM."""
        return self.rows == 1 or self.stride == self.columns


def block_of(work: Work, state: State) -> Block:
    """Return what a copy reads and writes."""
    fields = work.fields
    memory = state.stores[work.instruction.memory].memory
    row = fields["x_size"] + fields.get("x_pad_0", 0) + fields.get("x_pad_1", 0)
    rows = fields["y_size"] + fields.get("y_pad_0", 0) + fields.get("y_pad_1", 0)
    first = fields["sram_base"]
    return Block(
        slice(first, first + rows * row), fields["dram_base"], fields["y_size"], fields["x_size"],
        fields["x_stride"], memory.dram_bytes,
    )  # fmt: skip


def check_block(block: Block, state: State, step: int, findings: Findings) -> None:
    """Refuse a copy outside DRAM.

    Raises
    ------
    InstructionError
        The message names the last byte.
    """
    if block.dram_end > len(state.dram):
        raise findings.error(
            "out_of_bounds", "it leaves DRAM", step,
            got=f"a last byte {block.dram_end - 1}", expected=f"at most {len(state.dram) - 1}",
        )  # fmt: skip


def load(block: Block, work: Work, state: State) -> None:
    """Copy a block from DRAM, with zeros around it."""
    fields, store = work.fields, state.stores[work.instruction.memory]
    elements = store.from_dram(_rows(block, state.dram))
    top, left = fields.get("y_pad_0", 0), fields.get("x_pad_0", 0)
    if top or left or fields.get("y_pad_1") or fields.get("x_pad_1"):
        shape = elements.shape[1:]
        width = block.columns + left + fields["x_pad_1"]
        padded = np.zeros((block.rows + top + fields["y_pad_1"], width, *shape), elements.dtype)
        rows = elements.reshape(block.rows, block.columns, *shape)
        padded[top : top + block.rows, left : left + block.columns] = rows
        elements = padded.reshape(-1, *shape)
    store.set(block.memory.start, elements)
    state.counters[f"{work.instruction.memory}_load_nbytes"] += (
        block.rows * block.columns * block.element_bytes
    )


def store(block: Block, work: Work, state: State) -> None:
    """Copy a block to DRAM."""
    count = block.rows * block.columns
    data = state.stores[work.instruction.memory].to_dram(block.memory.start, count)
    if block.is_dense:
        start = block.first * block.element_bytes
        state.dram[start : start + data.size] = data.reshape(-1)
    else:
        # Row after row: where rows overlap, the last one counts.
        row = block.columns * block.element_bytes
        for number, values in enumerate(data.reshape(block.rows, row)):
            start = (block.first + number * block.stride) * block.element_bytes
            state.dram[start : start + row] = values
    state.counters[f"{work.instruction.memory}_store_nbytes"] += data.size


def _rows(block: Block, dram: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the elements of a block; (count, bytes)."""
    size, start = block.element_bytes, block.first * block.element_bytes
    if block.is_dense:
        return dram[start : start + block.rows * block.columns * size].reshape(-1, size)
    shape = (block.rows, block.columns * size)
    rows = np.lib.stride_tricks.as_strided(
        dram[start:], shape, (block.stride * size, 1), writeable=False
    )
    return np.ascontiguousarray(rows).reshape(-1, size)
