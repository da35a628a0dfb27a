"""Blocks: values that share memory, because one is stored in the place of another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dlcompiler.graph.memory.values import Value, aligned

PART_ALIGNMENT = 16
"""Where a part of a concatenation may begin: a vector of 4 floats; [byte]."""


@dataclass(eq=False, slots=True)
class Block:
    """A piece of the arena that is reserved from one kernel to another."""

    bytes: int
    """Its size; [byte]."""
    first: int
    """Number of the first kernel that uses it; [1]."""
    last: int
    members: dict[Value, int] = field(default_factory=dict)
    """Values in it, with the distance of each from the begin of the block; [byte]."""

    @property
    def name(self) -> str:
        """Name of the value that it was made for: the first one."""
        return next(iter(self.members)).name

    def overlaps(self, other: Block) -> bool:
        """Tell whether two blocks are reserved at the same time."""
        return self.first <= other.last and other.first <= self.last


def block_of(value: Value) -> Block:
    """Return a block for one value."""
    return Block(aligned(value.bytes), value.made_at, value.used_at, {value: 0})


def merged(blocks: Sequence[tuple[Block, int]], size: int) -> Block:
    """Return a block in which others lie at some places; [byte]."""
    members = {v: place + offset for block, place in blocks for v, offset in block.members.items()}
    parts = [block for block, _ in blocks]
    return Block(
        aligned(size), min(b.first for b in parts), max(b.last for b in parts), members
    )  # fmt: skip


def live_bytes(blocks: Iterable[Block], kernels: int) -> list[int]:
    """Return the bytes that are reserved while each kernel runs; [byte]."""
    changes = [0] * (kernels + 2)
    for block in blocks:
        changes[block.first] += block.bytes
        changes[block.last + 1] -= block.bytes
    total, found = 0, []
    for change in changes[:-1]:
        total += change
        found.append(total)
    return found


def lower_bound(blocks: Iterable[Block], kernels: int) -> int:
    """Return the bytes that are reserved at the same time at most: no arena is smaller; [byte]."""
    return max(live_bytes(blocks, kernels), default=0)
