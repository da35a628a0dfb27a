"""Estimate how long a product takes on a GPU, from its config alone: for default configs.

A block makes steps: it copies tiles to shared memory, synchronises, and multiplies them. A step
takes as long as the resource that binds: multiply-adds, shared memory and L1, or the port to L2.
Blocks that run at once on a multiprocessor share it; what one waits for memory is hidden behind the
work of the others, but for the first wait. Blocks run in waves, the last of which is not full. This
is the model of ``docs/GPU_TIME.md`` for one kernel, with counts from formulas instead of programs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dlcompiler import dtypes
from dlcompiler.target import Target
from dlcompiler.target.gpus import A100

LANES = 32
_PASS_BYTES = 128
"""Bytes of shared memory in a pass [byte]."""
_RESERVED_REGISTERS = 8
_UNIT_REGISTERS = 8
"""Registers of a thread come in units of 256 for each warp [1]."""
_MOST_REGISTERS = 255


@dataclass(frozen=True, slots=True)
class Work:
    """What a block of a kernel does in a step, and how many steps and blocks there are."""

    blocks: int
    """Blocks of the launch [1]."""
    threads: int
    """Threads of a block [1]."""
    steps: int
    """Steps of a block [1]."""
    products: float
    """Multiply-adds of a block in a step [1]."""
    unit: str
    """What computes them: the name of a rate of the target."""
    instructions: float
    """Instructions of a warp in a step [1]."""
    passes: float
    """Passes through shared memory of a block in a step [1]."""
    loads: float
    """Requests of a block's warps to global memory in a step, by which L1 is busy [clock]."""
    bytes: float
    """Bytes that a block loads in a step [byte]."""
    stored: float
    """Bytes that a block stores at its end [byte]."""
    least_bytes: float
    """Bytes that the whole launch needs of memory if each is loaded once [byte]."""
    registers: int
    """Registers of a thread [1]."""
    shared: int
    """Shared memory of a block [byte]."""
    is_ahead: bool
    """Whether the next step is loaded while one is multiplied."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The rates of a GPU; a target without rates counts as an A100 with its own limits."""

    target: Target

    def rate(self, name: str) -> float:
        """Return a rate or a latency: see `dlcompiler.target.gpu_rates`."""
        rates = self.target.rates or A100.rates
        return rates[name].value if name in rates else A100.rates[name].value

    def resident(self, work: Work) -> int:
        """Return how many blocks a multiprocessor runs at once; 0 if not one fits."""
        limit = self.target.limit
        warps = -(-work.threads // LANES)
        registers = _up(min(work.registers, _MOST_REGISTERS), _UNIT_REGISTERS) * LANES * warps
        shared = work.shared + self.target.limits.get("reserved_shared_bytes", 0)
        files = limit("registers_per_processor"), limit("shared_bytes_per_processor")
        found = min(
            files[0] / registers,
            files[1] / max(shared, 1),
            limit("max_threads_per_processor") / work.threads,
            limit("max_blocks_per_processor"),
        )
        return int(min(found, 64)) if work.shared <= limit("max_shared_bytes") else 0

    def seconds(self, work: Work) -> float:
        """Return the time of a kernel [s]; infinite if no block fits."""
        resident = self.resident(work)
        if not resident:
            return math.inf
        processors, clock = self.target.cores, self.rate("clock")
        full, rest = divmod(work.blocks, resident * processors)
        clocks = full * self._clocks(work, resident)
        if rest:
            clocks += self._clocks(work, -(-rest // processors))
        moved = work.least_bytes + work.blocks * work.stored
        memory = moved / (self.rate("dram") * self.rate("dram_fraction"))
        return max(clocks / clock, memory) + self.rate("launch") / clock

    def _clocks(self, work: Work, resident: int) -> float:
        """Return the clocks of some blocks that a multiprocessor runs at once."""
        warps = -(-work.threads // LANES)
        shared_l1 = work.passes + work.loads
        l2 = self.rate("l2") / self.target.cores
        own = max(
            work.products / self.rate(work.unit),
            work.instructions * warps / self.rate("schedulers"),
            shared_l1,
            work.bytes / min(self.rate("l2_port"), l2),
        )
        latency = self.rate("l1_latency") + self.rate("l2_latency")
        wait = latency + self.rate("shared_latency")
        busy, alone = own * resident, work.instructions + wait
        step = max(busy, alone) + min(busy, wait) * (0.5 if work.is_ahead else 1.0)
        end = work.stored * resident / min(self.rate("l2_port"), l2)
        start = wait + self.rate("dram_latency")
        return work.steps * (step + self.rate("barrier")) + start + end


def copied(rows: int, depth: int, item: int, lanes: int, *, is_scattered: bool) -> tuple[float, float]:
    """Return the passes of shared memory and the clocks of L1 that copying a tile takes.

    Parameters
    ----------
    rows, depth
        Extents of the tile, of which the one along memory is not told.
    item
        Size of an element [byte].
    lanes
        Elements that a thread loads at once.
    is_scattered
        Whether they are stored one by one.
    """
    elements = rows * depth
    requests = elements / (lanes * LANES)
    stores = elements / LANES if is_scattered else max(elements * item / _PASS_BYTES, requests)
    return stores, max(elements * item / _PASS_BYTES, requests)


def registers_of(sums: int, operands: int, dtype: str) -> int:
    """Return the registers of a thread: its sums and operands, and those of addresses."""
    wide = max(dtypes.bytes_of(dtype) // 4, 1)
    return wide * (sums + operands) + _RESERVED_REGISTERS + 24


def _up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
