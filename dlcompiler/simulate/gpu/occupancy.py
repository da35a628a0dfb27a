"""Compute how many blocks of a kernel a multiprocessor runs at once, and what limits them.

**Source:** NVIDIA's ``cuda_occupancy.h`` of CUDA 12.9 (`cudaOccMaxActiveBlocksPerMultiprocessor`),
with which the tests compare it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dlcompiler.target import Target

NEEDED = (
    "max_threads_per_processor", "max_blocks_per_processor", "registers_per_processor",
    "register_unit", "register_files", "shared_bytes_per_processor", "shared_unit",
)  # fmt: skip
"""Limits that a target must name."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How many blocks of a kernel a multiprocessor runs at once.

    Examples
    --------
    >>> from dlcompiler.target.gpus import RTX_A6000
    >>> found = occupancy(RTX_A6000, threads=256, registers=40, shared_bytes=2048)
    >>> print(found)
    6 blocks on a multiprocessor, 48 of 48 warps (100 %); limited by registers and threads
    """

    blocks: int
    """Blocks that run at once; 0: the kernel cannot run; [1]."""
    warps: int
    """Warps of these blocks; [1]."""
    most_warps: int
    """Warps that a multiprocessor has room for; [1]."""
    limits: Mapping[str, int]
    """How many blocks each resource has room for: ``threads``, ``registers``, ``shared memory``,
    ``blocks``. A resource that the kernel does not use is left out; [1]."""

    @property
    def fraction(self) -> float:
        """Warps that run, of those that a multiprocessor has room for; [1]."""
        return self.warps / self.most_warps

    @property
    def limited_by(self) -> tuple[str, ...]:
        """The resources that allow no further block."""
        return tuple(name for name, blocks in self.limits.items() if blocks == self.blocks)

    def __str__(self) -> str:
        blocks = "1 block" if self.blocks == 1 else f"{self.blocks} blocks"
        return (
            f"{blocks} on a multiprocessor, {self.warps} of {self.most_warps} warps"
            f" ({self.fraction:.0%}); limited by {' and '.join(self.limited_by)}"
        ).replace("%", " %")

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as values that ``json`` can write."""
        return {
            "blocks": self.blocks, "warps": self.warps, "most_warps": self.most_warps,
            "fraction": self.fraction, "limits": dict(self.limits),
            "limited_by": list(self.limited_by),
        }  # fmt: skip


def occupancy(
    target: Target, *, threads: int, registers: int, shared_bytes: int
) -> Occupancy | None:
    """Return the occupancy of a kernel; None if the target does not name the limits it needs.

    Parameters
    ----------
    target
        The GPU.
    threads
        Threads of a block. [1]
    registers
        Registers of a thread. [1]
    shared_bytes
        Shared memory of a block. [byte]
    """
    if any(name not in target.limits for name in NEEDED):
        return None
    limit = target.limits
    warp = limit["warp_size"]
    most_warps = limit["max_threads_per_processor"] // warp
    warps = -(-threads // warp)
    fits_threads = threads <= limit["max_threads_per_block"]
    blocks = {
        "registers": _by_registers(limit, warps, registers),
        "threads": most_warps // warps if fits_threads else 0,
        "shared memory": _by_shared_memory(limit, shared_bytes),
        "blocks": limit["max_blocks_per_processor"],
    }
    known = {name: count for name, count in blocks.items() if count is not None}
    least = min(known.values())
    return Occupancy(least, least * warps, most_warps, known)


def _by_registers(limit: Mapping[str, int], warps: int, registers: int) -> int | None:
    """Return the number of blocks for which there are registers; None if they use none."""
    if registers == 0:
        return None
    unit, files = limit["register_unit"], limit["register_files"]
    of_warp = _rounded_up(registers * limit["warp_size"], unit)
    # A launch is checked as if its warps were spread evenly over the register files.
    needed = of_warp * _rounded_up(warps, files)
    if needed > limit["registers_per_block"] or registers > limit["max_registers_per_thread"]:
        return 0
    in_each = limit["registers_per_processor"] // files // of_warp
    return in_each * files // warps


def _by_shared_memory(limit: Mapping[str, int], bytes_: int) -> int | None:
    """Return the number of blocks for which there is shared memory; None if they use none."""
    if bytes_ > limit["max_shared_bytes"]:
        return 0
    size = _rounded_up(bytes_ + limit.get("reserved_shared_bytes", 0), limit["shared_unit"])
    return limit["shared_bytes_per_processor"] // size if size else None


def _rounded_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit
