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
_MOST_RESIDENT = 64
"""Blocks at once, where a target does not limit them [1]."""
_HIDDEN = 0.5
"""Share of the first wait that remains if the next step is loaded ahead [1]."""
_LIMITS = (
    *("registers_per_processor", "shared_bytes_per_processor", "max_threads_per_processor"),
    *("max_blocks_per_processor", "max_shared_bytes"),
)


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


class Machine:
    """The rates and limits of a GPU. One without rates counts as an A100 with its own limits."""

    def __init__(self, target: Target) -> None:
        self.processors = target.cores
        given = {**A100.rates, **target.rates} if target.rates else A100.rates
        self.rates = {name: rate.value for name, rate in given.items()}
        """By name: see `dlcompiler.target.gpu_rates`."""
        if target.rates and "tensor cores" not in target.rates:
            self.rates["tensor cores"] = self.rates["tensor cores, int8"] = 1.0
        self._limits = {name: target.limit(name) for name in _LIMITS}
        self._reserved = target.limits.get("reserved_shared_bytes", 0)
        self._port = min(self.rates["l2_port"], self.rates["l2"] / self.processors)
        self._wait = sum(self.rates[f"{name}_latency"] for name in ("l1", "l2", "shared"))

    def resident(self, work: Work) -> int:
        """Return how many blocks a multiprocessor runs at once; 0 if not one fits."""
        limits, warps = self._limits, -(-work.threads // LANES)
        if work.shared > limits["max_shared_bytes"]:
            return 0
        registers = _up(min(work.registers, _MOST_REGISTERS), _UNIT_REGISTERS) * LANES * warps
        found = min(
            limits["registers_per_processor"] / registers,
            limits["shared_bytes_per_processor"] / max(work.shared + self._reserved, 1),
            limits["max_threads_per_processor"] / work.threads,
            limits["max_blocks_per_processor"],
        )
        return int(min(found, _MOST_RESIDENT))

    def seconds(self, work: Work) -> float:
        """Return the time of a kernel [s]; infinite if no block fits."""
        resident = self.resident(work)
        if not resident:
            return math.inf
        rates = self.rates
        full, rest = divmod(work.blocks, resident * self.processors)
        clocks = full * self._clocks(work, resident)
        if rest:
            clocks += self._clocks(work, -(-rest // self.processors))
        computing = (clocks + rates["launch"]) / rates["clock"]
        return max(computing, self.moving(work.least_bytes + work.blocks * work.stored))

    def moving(self, bytes_: float) -> float:
        """Return the time of a kernel that only moves bytes from and to memory [s]."""
        rates = self.rates
        memory = bytes_ / (rates["dram"] * rates["dram_fraction"])
        return memory + rates["launch"] / rates["clock"]

    def _clocks(self, work: Work, resident: int) -> float:
        """Return the clocks of some blocks that a multiprocessor runs at once."""
        rates, wait = self.rates, self._wait
        own = max(
            work.products / rates[work.unit],
            work.instructions * -(-work.threads // LANES) / rates["schedulers"],
            work.passes + work.loads,
            work.bytes / self._port,
        )
        busy = own * resident
        first = min(busy, wait) * (_HIDDEN if work.is_ahead else 1.0)
        step = max(busy, work.instructions + wait) + first + rates["barrier"]
        return (
            work.steps * step + wait + rates["dram_latency"] + work.stored * resident / self._port
        )


def copied(
    rows: int, depth: int, item: int, lanes: int, *, is_scattered: bool
) -> tuple[float, float]:
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
