"""Place blocks in an arena: which begins where."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dlcompiler.graph.memory.blocks import Block, lower_bound

MOST_TRIES = 2_000_000
"""Comparisons of blocks that improving an order may take; [1]."""


def place(blocks: Sequence[Block], kernels: int) -> dict[Block, int]:
    """Return the begin of each block in the arena; [byte].

    Parameters
    ----------
    blocks : sequence of Block
        The blocks; those that are reserved at the same time do not overlap in the arena.
    kernels : int
        Number of kernels; [1].

    Notes
    -----
    Each block is put into the lowest gap that is large enough, the largest block first. If the
    arena is larger than the lower bound, other orders are tried, and then orders in which a block
    at the end of the arena comes earlier.

    **Source:** Y. Pisarchyk, J. Lee, "Efficient memory management for deep neural net inference",
    arXiv:2001.03288, 2020 (greedy by size, and by breadth).
    """
    bound = lower_bound(blocks, kernels)
    best: dict[Block, int] = {}
    orders: list[Callable[[Block], tuple[int, ...]]] = [
        lambda b: (-b.bytes, b.first),
        lambda b: (-b.bytes * (b.last - b.first + 1), b.first),
        lambda b: (-(b.last - b.first), -b.bytes),
        lambda b: (b.first, -b.bytes),
    ]
    for key in orders:
        found = _in_order(sorted(blocks, key=key))
        if not best or end(found) < end(best):
            best = found
        if end(best) == bound:
            return best
    return _improved(best, bound)


def end(offsets: dict[Block, int]) -> int:
    """Return the size of the arena; [byte]."""
    return max((offset + block.bytes for block, offset in offsets.items()), default=0)


def _in_order(order: Sequence[Block]) -> dict[Block, int]:
    """Put each block into the lowest gap beside the earlier ones."""
    placed: list[tuple[int, Block]] = []
    offsets: dict[Block, int] = {}
    for block in order:
        beside = sorted((o, b.bytes) for o, b in placed if b.overlaps(block))
        offset = 0
        for begin, size in beside:
            if begin - offset >= block.bytes:
                break
            offset = max(offset, begin + size)
        offsets[block] = offset
        placed.append((offset, block))
    return offsets


def _improved(best: dict[Block, int], bound: int) -> dict[Block, int]:
    """Try to move the blocks that end last to earlier places in the order."""
    order = list(best)
    tries = MOST_TRIES // max(len(order) ** 2, 1)
    seen: set[tuple[int, ...]] = set()
    while tries > 0 and end(best) > bound:
        top = end(best)
        last = [b for b, offset in best.items() if offset + b.bytes == top]
        improved = False
        for block in last:
            others = [b for b in order if b is not block]
            for position in range(len(others) + 1):
                tries -= 1
                candidate = [*others[:position], block, *others[position:]]
                key = tuple(map(id, candidate))
                if key in seen or tries < 0:
                    continue
                seen.add(key)
                found = _in_order(candidate)
                if end(found) < end(best):
                    best, order, improved = found, candidate, True
                    break
            if improved:
                break
        if not improved:
            break
    return best
