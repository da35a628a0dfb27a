"""The buffers of a program in each memory of a device: global, shared, or private to a thread."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dlcompiler import dtypes
from dlcompiler.analysis.footprint import Footprint, Nest, ProgramFootprint
from dlcompiler.ir import Allocate, Buffer, Const, For, Stmt, is_in_block, is_thread
from dlcompiler.ir.rewrite import children
from dlcompiler.target import Target
from dlcompiler.views.memory.scene import VIRIDIS, Flow
from dlcompiler.views.render.scene import Cell, Mark, Scene
from dlcompiler.views.render.units import format_bytes

_WIDTH, _BAR, _LINE, _LEAST = 364.0, 16.0, 17.0, 4.0
_OWNERS = {
    "global": "all blocks",
    "shared": "each block has its own",
    "warp": "each warp has its own",
    "local": "each thread has its own",
}


@dataclass(frozen=True, slots=True)
class Copies:
    """One buffer in a device memory, with the size and the number of its copies."""

    buffer: Buffer
    bytes: int
    """Size of one copy, which belongs to one thread, one block or the whole program [byte]."""
    count: int
    """Total number of copies."""
    stage: str
    """Key of the stage in the loop tree; for an input or an output, its name."""
    touched: Footprint | None
    """Elements that one block touches, for a buffer in global memory."""


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """One memory of a device, with the buffers in it."""

    name: str
    capacity_bytes: int | None
    """Bytes that a block or a thread may use; None: no limit is known; [byte]."""
    held: tuple[Copies, ...]

    @property
    def used_bytes(self) -> int:
        """Bytes that one block, one thread or the program uses; [byte]."""
        return sum(copies.bytes for copies in self.held)


@dataclass(frozen=True, slots=True)
class _Around:
    """Numbers of blocks, threads and virtual threads that the loops around a place run."""

    blocks: int = 1
    threads: int = 1
    virtual: int = 1

    def inside(self, loop: For) -> _Around:
        extent = int(loop.extent.value) if isinstance(loop.extent, Const) else 1
        if loop.kind == "vthread":
            return replace(self, virtual=self.virtual * extent)
        if is_in_block(loop.kind):
            return replace(self, threads=self.threads * extent)
        return replace(self, blocks=self.blocks * extent) if is_thread(loop.kind) else self


def device_memories(footprint: ProgramFootprint, target: Target) -> tuple[DeviceMemory, ...]:
    """Return the memories of a device with the buffers that a program allocates in each.

    Parameters
    ----------
    footprint
        Of the program's loops.
    target
        The device. Another target has no limits to compare with.
    """
    in_block = _in_one_block(footprint)
    held: dict[str, list[Copies]] = {name: [] for name in _OWNERS}
    for buffer in footprint.func.buffers:
        held["global"].append(_copies(buffer, buffer.name, _Around(), in_block.get(buffer)))
    for allocate, around in _allocations(footprint.func.body, _Around()):
        buffer = allocate.buffer
        stage = next((ref.stage for ref in allocate.origin), buffer.name)
        touched = in_block.get(buffer) if buffer.scope == "global" else None
        held.setdefault(buffer.scope, []).append(_copies(buffer, stage, around, touched))
    return tuple(
        DeviceMemory(name, _capacity(target, name), tuple(copies))
        for name, copies in held.items()
        if copies or name != "warp"
    )


def _capacity(target: Target, name: str) -> int | None:
    scope = target.scope(name) if target.thread_axes else None
    return scope.capacity if scope else None


def _copies(buffer: Buffer, stage: str, around: _Around, touched: Footprint | None) -> Copies:
    size = math.prod(buffer.static_shape) * dtypes.bytes_of(buffer.dtype)
    # One thread runs its virtual ones in turns, and has the copies of all of them.
    return Copies(buffer, size * around.virtual, around.blocks * around.threads, stage, touched)


def _allocations(stmt: Stmt, around: _Around) -> Iterator[tuple[Allocate, _Around]]:
    if isinstance(stmt, Allocate):
        yield stmt, around
    inside = around.inside(stmt) if isinstance(stmt, For) else around
    for child in children(stmt):
        if isinstance(child, Stmt):
            yield from _allocations(child, inside)


def _in_one_block(footprint: ProgramFootprint) -> dict[Buffer, Footprint]:
    """Return what one block touches in each buffer; of several launches, the largest part."""
    found: dict[Buffer, Footprint] = {}
    for nest in footprint.root.walk():
        if not _is_block(nest) or any(map(_is_block, nest.children)):
            continue
        for buffer, item in footprint.one(nest).items():
            if buffer not in found or item.elements > found[buffer].elements:
                found[buffer] = item
    return found


def _is_block(nest: Nest) -> bool:
    return nest.loop is not None and nest.loop.kind.startswith("blockIdx")


def device_memory_scene(memories: tuple[DeviceMemory, ...], target: Target) -> Scene:
    """Return the picture of a device's memories."""
    buffers = sorted({copies.buffer.name for memory in memories for copies in memory.held})
    colors = {name: VIRIDIS[n % len(VIRIDIS)] for n, name in enumerate(buffers)}
    marks: list[Mark] = []
    y = 2.0
    for memory in memories:
        y = _draw(memory, colors, y, marks)
    return {
        "title": "Memory scopes",
        "summary": _summary(memories, target),
        "how_to_read": "each bar is a memory of the device. If a block or a thread may use only a "
        "part of it, the bar is as long as this part and holds the buffers of one block or "
        "thread. All numbers are counted in the program.",
        "width": _WIDTH,
        "height": y + 4,
        "marks": marks,
        "table": {
            "columns": [
                "memory", "buffer", "bytes of a copy", "copies", "bytes in all",
                "touched by a block [byte]", "limit [byte]",
            ],
            "rows": [row for memory in memories for row in _rows(memory)],
        },
    }  # fmt: skip


def _draw(memory: DeviceMemory, colors: dict[str, str], y: float, marks: list[Mark]) -> float:
    flow = Flow(marks, 4.0, y)
    flow.text(memory.name, "name")
    flow.text(f"{_OWNERS.get(memory.name, '')}:", "soft")
    flow.text(_use(memory), "soft")
    top = flow.y + 18
    whole = _WIDTH - 8
    length = max(memory.capacity_bytes or 0, memory.used_bytes, 1)
    marks.append({"shape": "rect", "role": "capacity", "x": 4.0, "y": top, "w": whole, "h": _BAR,
                  "title": f"{memory.name}: {_use(memory)}"})  # fmt: skip
    x = 4.0
    for copies in memory.held:
        width = min(max(whole * copies.bytes / length, _LEAST), max(4.0 + whole - x, _LEAST))
        marks.append({"shape": "rect", "role": "bar", "x": round(x, 1), "y": top,
                      "w": round(width, 1), "h": _BAR, "fill": colors[copies.buffer.name],
                      "keys": [copies.stage], "title": _words(copies)})  # fmt: skip
        x += width
    flow = Flow(marks, 4.0, top + _BAR + 1)
    if not memory.held:
        flow.text("no buffer", "soft")
    for copies in memory.held:
        size = format_bytes(copies.bytes)
        name = copies.buffer.name
        flow.swatch(colors[name], f"{name} {size}", [copies.stage], _words(copies))
    return flow.y + _LINE + 6


def _use(memory: DeviceMemory) -> str:
    used = format_bytes(memory.used_bytes)
    if memory.capacity_bytes is None:
        return f"{used} in use"
    limit = format_bytes(memory.capacity_bytes)
    if memory.used_bytes > memory.capacity_bytes:
        return f"✕ {used}, more than the limit of {limit}"
    part = memory.used_bytes / memory.capacity_bytes
    share = "under 0.1%" if 0 < part < 0.001 else f"{part:.1%}"
    return f"{used} of {limit}, {share}"


def _words(copies: Copies) -> str:
    text = f"{copies.buffer.name}: {format_bytes(copies.bytes)}"
    if copies.count > 1:
        text += f", {copies.count:,} copies"
    if copies.touched is not None:
        least = "" if copies.touched.is_exact else "at most "
        text += f"; one block touches {least}{format_bytes(copies.touched.bytes)}"
    return text


def _summary(memories: tuple[DeviceMemory, ...], target: Target) -> str:
    parts = [
        f"{', '.join(copies.buffer.name for copies in memory.held)} in {memory.name} memory "
        f"({_use(memory)})"
        for memory in memories if memory.held
    ]  # fmt: skip
    where = f" on {target.name}" if target.thread_axes else ""
    return f"Where the buffers live{where}: {'; '.join(parts)}."


def _touched(copies: Copies) -> Cell:
    if copies.touched is None:
        return None
    size = copies.touched.bytes
    return size if copies.touched.is_exact else f"at most {size:,}"


def _rows(memory: DeviceMemory) -> list[list[Cell]]:
    return [
        [
            memory.name, copies.buffer.name, copies.bytes, copies.count,
            copies.bytes * copies.count,
            _touched(copies), memory.capacity_bytes,
        ]
        for copies in memory.held
    ]  # fmt: skip
