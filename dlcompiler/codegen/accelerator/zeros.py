"""Split what a load writes as zeros into pieces whose padding fits the fields of an instruction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dlcompiler.codegen.accelerator.copies import PADS, Block, CopyPattern


def pieces(pattern: CopyPattern, block: Block) -> Iterator[Block]:
    """Yield blocks that together write what one does, each with padding that its fields can say.

    Parameters
    ----------
    pattern : CopyPattern
        Its instruction has the fields.
    block : Block
        Data with padding of any size, or padding only. One that must be one copy stays one.

    Notes
    -----
    A load moves at least one element. Where there is only padding, that element comes from a page
    of zeros in DRAM, with padding on all its sides.
    """
    top, bottom, left, right = block.pads
    fields = (pattern.instruction.field(name) for name in PADS)
    most = min((field.most for field in fields if field), default=block.covered)
    if block.is_zeros:
        yield from _run(block.sram, block.covered, most)
    elif max(block.pads) <= most or pattern.is_one:  # one that does not fit is refused
        yield block
    elif max(left, right) <= most:
        width = left + block.columns + right
        above, below = max(top - most, 0), max(bottom - most, 0)
        start = block.sram + above * width
        yield from _run(block.sram, above * width, most)
        inside = replace(block, sram=start, pads=(top - above, bottom - below, left, right))
        yield inside
        yield from _run(start + inside.covered, below * width, most)
    else:
        yield from _rows(block, most)


def _rows(block: Block, most: int) -> Iterator[Block]:
    """Yield the blocks of one whose padding at the sides is too wide: row by row."""
    top, bottom, left, right = block.pads
    before, after = max(left - most, 0), max(right - most, 0)
    width = left + block.columns + right
    start = block.sram
    yield from _run(start, top * width, most)
    for row in range(block.rows):
        start = block.sram + (top + row) * width
        yield from _run(start, before, most)
        pads = (0, 0, left - before, right - after)
        source = block.dram + row * block.stride
        yield Block(start + before, source, 1, block.columns, block.columns, pads)
        yield from _run(start + width - after, after, most)
    yield from _run(start + width, bottom * width, most)


def _run(start: int, count: int, most: int) -> Iterator[Block]:
    """Yield loads of one zero each, with padding around it, for neighbouring elements."""
    side = 2 * most + 1
    while count:
        columns = min(count, side)
        rows = min(count // columns, side)
        top, left = min(rows - 1, most), min(columns - 1, most)
        pads = (top, rows - 1 - top, left, columns - 1 - left)
        yield Block(start, 0, 1, 1, 1, pads, is_zeros=True)
        start, count = start + rows * columns, count - rows * columns
