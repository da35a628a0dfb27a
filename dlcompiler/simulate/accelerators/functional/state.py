"""The memories of a simulated accelerator."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler.ir.numeric import cast_function
from dlcompiler.simulate.accelerators.functional.findings import Findings
from dlcompiler.simulate.accelerators.functional.micro_ops import micro_op_bits, unpacked
from dlcompiler.target.accelerators import Accelerator, Memory


class Store:
    """One memory: its elements, and which of them were ever written."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.written = np.zeros(memory.depth, dtype=bool)
        self.values: npt.NDArray[Any] = np.zeros((memory.depth, *memory.shape), memory.dtype)
        inside, outside = memory.dtype, memory.in_dram or memory.dtype
        self._little = np.dtype(outside).newbyteorder("<")
        self._loaded = cast_function(outside, inside, vector=True)
        self._stored = cast_function(inside, outside, vector=True)

    def from_dram(self, data: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """Return elements from their bytes in DRAM; (count, bytes) -> (count, *shape)."""
        elements = np.ascontiguousarray(data).view(self._little)
        return np.asarray(self._loaded(elements.reshape(len(data), *self.memory.shape)))

    def to_dram(self, first: int, count: int) -> npt.NDArray[np.uint8]:
        """Return the bytes of elements in DRAM; (count, bytes)."""
        elements = np.asarray(self._stored(self.values[first : first + count]))
        little = np.ascontiguousarray(elements.astype(self._little, copy=False))
        return little.view(np.uint8).reshape(count, -1)

    def set(self, first: int, elements: npt.NDArray[Any]) -> None:
        """Write elements from a place on."""
        self.values[first : first + len(elements)] = elements
        self.written[first : first + len(elements)] = True

    def forget(self, place: slice) -> None:
        """Make elements unknown, as if they were never written."""
        self.written[place] = False


class MicroOpStore(Store):
    """A memory of micro-ops: the element of each operand."""

    def __init__(self, memory: Memory, bits: tuple[int, ...]) -> None:
        super().__init__(memory)
        self.bits = bits
        self.values = np.zeros((memory.depth, len(bits)), dtype=np.int64)

    def from_dram(self, data: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """Return micro-ops from their words; (count, bytes) -> (count, operands)."""
        words = np.ascontiguousarray(data).view("<u4").reshape(-1).astype(np.int64)
        return unpacked(words, self.bits)


class State:
    """All memories, DRAM, and what was counted."""

    def __init__(self, accelerator: Accelerator, dram: npt.NDArray[np.uint8]) -> None:
        self.accelerator = accelerator
        self.dram = dram
        self.stores = {memory.name: _store(accelerator, memory) for memory in accelerator.memories}
        self.counters = _counters(accelerator)

    def require_written(
        self, name: str, elements: npt.NDArray[np.int64] | slice, step: int, findings: Findings
    ) -> None:
        """Report a read of an element that was never written."""
        written = self.stores[name].written[elements]
        if written.all():
            return
        where = int(np.argmin(written))
        first = elements.start + where if isinstance(elements, slice) else int(elements[where])
        findings.report(
            "uninitialised", f"it reads element {first} of {name}, which was never written", step
        )


def _store(accelerator: Accelerator, memory: Memory) -> Store:
    bits = micro_op_bits(accelerator, memory.name)
    return MicroOpStore(memory, bits) if bits else Store(memory)


def _counters(accelerator: Accelerator) -> dict[str, int]:
    """Return the counters at the start, by their names in VTA's simulator."""
    counters = {}
    for each in accelerator.instructions:
        if each.is_copy:
            counters[f"{each.memory}_{each.kind}_nbytes"] = 0
    for each in accelerator.instructions:
        if each.kind in ("tensor", "elementwise"):
            counters[f"{each.name}_counter"] = 0
    return counters
