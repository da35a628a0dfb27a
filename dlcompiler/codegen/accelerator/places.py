"""Places of buffers: elements of the memories on the chip, and addresses in DRAM."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dlcompiler.codegen.accelerator.copies import memory_of
from dlcompiler.errors import TargetError
from dlcompiler.ir import Allocate, Buffer, PrimFunc, Stmt
from dlcompiler.ir.rewrite import children
from dlcompiler.simulate.accelerators import DramBuffer
from dlcompiler.target.accelerators import Accelerator
from dlcompiler.target.accelerators.uses import why_no_stage

PAGE = 4096
"""Buffers in DRAM begin at multiples of this; [byte]."""


def chip_places(func: PrimFunc, accelerator: Accelerator) -> dict[Buffer, int]:
    """Return the first element of each buffer in the memories of an accelerator.

    A buffer has its place as long as its allocation lasts; later ones take the place again.

    Raises
    ------
    TargetError
        Buffers that are needed at the same time are larger than their memory.
    """
    places: dict[Buffer, int] = {}
    for live in _live(func.body, ()):
        buffer = live[-1]
        memory = memory_of(buffer, accelerator)
        if memory is None:
            continue
        if reason := why_no_stage(accelerator, memory):
            raise TargetError(
                f"build {func.name} for {accelerator.name}",
                f"{buffer.name} cannot be in {memory.name}",
                because=reason, hint="put it into another memory",
            )  # fmt: skip
        if buffer.dtype != memory.dtype:
            raise TargetError(
                f"build {func.name} for {accelerator.name}",
                f"{buffer.name} has another dtype than the memory {memory.name}",
                got=buffer.dtype, expected=memory.dtype,
                hint=f"compute {buffer.name} as {memory.dtype}, or put it into another memory",
            )  # fmt: skip
        together = [each for each in live if each.scope == buffer.scope]
        start = sum(_elements(each, memory.numbers) for each in together[:-1])
        if start + _elements(buffer, memory.numbers) > memory.depth:
            sizes = (f"{b.name} {_elements(b, memory.numbers)}" for b in together)
            raise TargetError(
                f"build {func.name} for {accelerator.name}",
                f"the memory {memory.name} is too small",
                got=f"{' + '.join(sizes)} elements", expected=f"at most {memory.depth} elements",
                because=f"an element is {memory.dtype}{list(memory.shape)}",
                hint="choose smaller tiles, or attach a stage deeper",
            )  # fmt: skip
        places[buffer] = start
    return places


def dram_places(func: PrimFunc, accelerator: Accelerator, start: int = PAGE) -> list[DramBuffer]:
    """Return where the parameters and the temporary buffers of a function lie in DRAM."""
    largest = _alignment(accelerator)
    outputs = set(func.outputs)
    buffers = [p for p in func.params if isinstance(p, Buffer)]
    inside = [live[-1] for live in _live(func.body, ())]
    buffers += [b for b in inside if memory_of(b, accelerator) is None]
    found: list[DramBuffer] = []
    for buffer in buffers:
        start = -(-start // largest) * largest
        is_param = buffer in func.params
        role = "output" if buffer in outputs else "input" if is_param else "temporary"
        shape = tuple(int(n) for n in buffer.shape if isinstance(n, int))
        found.append(DramBuffer(buffer.name, start, shape, buffer.dtype, role))
        start += found[-1].bytes
    return found


def zeros_place(accelerator: Accelerator) -> DramBuffer:
    """Return zeros in DRAM: the pages before the first buffer, one element of any memory or more.

    No tensor can have its name.
    """
    return DramBuffer("(zeros)", 0, (_alignment(accelerator),), "int8", "zeros")


def _alignment(accelerator: Accelerator) -> int:
    """Return a multiple of pages and of the elements of all memories [byte]."""
    return math.lcm(PAGE, *(memory.dram_bytes for memory in accelerator.memories))


def _elements(buffer: Buffer, numbers: int) -> int:
    """Return how many elements a buffer has; [1]."""
    strides = buffer.static_strides
    reach = sum((int(n) - 1) * s for n, s in zip(buffer.static_shape, strides, strict=True))
    return -(-(reach + 1) // numbers)


def _live(stmt: Stmt, outer: tuple[Buffer, ...]) -> Iterator[tuple[Buffer, ...]]:
    """Yield, for each allocation, the buffers that are allocated around it, and its own."""
    if isinstance(stmt, Allocate):
        outer = (*outer, stmt.buffer)
        yield outer
    for part in children(stmt):
        if isinstance(part, Stmt):
            yield from _live(part, outer)
