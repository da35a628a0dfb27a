"""The level of memory that holds each buffer while a loop runs, and the traffic between levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dlcompiler import dtypes
from dlcompiler.analysis.footprint import Footprint, Nest, ProgramFootprint
from dlcompiler.analysis.traffic import (
    Fill,
    compulsory_bytes,
    occupied_bytes,
    share_bytes,
    traffic,
)
from dlcompiler.schedule import Schedule
from dlcompiler.target import Target
from dlcompiler.te import Tensor
from dlcompiler.views.device.memory import device_memories, device_memory_scene
from dlcompiler.views.memory.footprints import around, footprint_of, is_for_device, loop_of, nest_of
from dlcompiler.views.memory.scene import memory_scene
from dlcompiler.views.render.scene import Scene


@dataclass(frozen=True, slots=True)
class Held:
    """The part of a buffer that an iteration touches, in the level where it fits."""

    footprint: Footprint
    bytes: int
    """Whole cache lines; [byte]."""
    keys: tuple[str, ...]
    """Keys of the loops that load it into the level; the loop that moves most bytes is first."""


@dataclass(frozen=True, slots=True)
class LoopTraffic:
    """Predicted total of the bytes that a loop moves into and out of a level."""

    key: str | None
    """None: the whole program."""
    fills: tuple[Fill, ...]

    @property
    def moved_bytes(self) -> int:
        """Bytes moved in both directions; [byte]."""
        return sum(fill.moved_bytes for fill in self.fills)


@dataclass(frozen=True, slots=True)
class Level:
    """A level of the memory hierarchy: a cache or, as the last level, main memory."""

    name: str
    behind: str
    """The level that it is filled from; '' for memory."""
    capacity_bytes: int | None
    """Bytes of it that the iteration may use; None: no limit; [byte]."""
    sharers: int
    """Iterations that run at once and share it."""
    nearer_bytes: int
    """Bytes of it that duplicate data of nearer levels; [byte]."""
    held: tuple[Held, ...]
    loops: tuple[LoopTraffic, ...]
    """Traffic of the loops that fill it; the loop that moves most bytes is first."""

    @property
    def moved_bytes(self) -> int:
        """Predicted total traffic between this level and the next one; [byte]."""
        return sum(loop.moved_bytes for loop in self.loops)


@dataclass(frozen=True, slots=True)
class Scope:
    """A memory scope with the buffers that a schedule allocates in it."""

    name: str
    capacity_bytes: int | None
    """Largest allowed size of a buffer; None: the target sets no limit; [byte]."""
    buffers: tuple[tuple[str, int], ...]
    """Names and sizes; [byte]."""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Data that one iteration of a loop touches, by memory level, and the program's traffic."""

    key: str | None
    """The loop; None: the whole program."""
    levels: tuple[Level, ...]
    """Nearest first; memory last."""
    scopes: tuple[Scope, ...]
    compulsory_bytes: int
    """Traffic that no schedule can avoid; [byte]."""

    @property
    def touched_bytes(self) -> int:
        """Bytes that one iteration touches, in whole cache lines; [byte]."""
        return sum(held.bytes for level in self.levels for held in level.held)


def memory_scopes(
    schedule: Schedule, args: Sequence[Tensor], target: Target, chosen: str | None = None
) -> Scene:
    """Return the picture of the memories that hold each buffer while one iteration of a loop runs.

    For a program on a GPU, the picture shows the memories of the device.

    Parameters
    ----------
    schedule
        The schedule, at the state to show.
    args
        Parameters of the function: inputs first, outputs last.
    target
        The machine whose levels of memory are drawn.
    chosen
        Key of a loop or a stage, as in the loop tree; None: the whole program.

    Raises
    ------
    DLCompilerError
        If the state cannot be lowered, or the sizes are known only when the program runs.
    """
    footprint = footprint_of(schedule, args, target)
    if is_for_device(footprint, target):
        return device_memory_scene(device_memories(footprint, target), target)
    return memory_scene(memory_use(footprint, target, chosen))


def memory_use(footprint: ProgramFootprint, target: Target, chosen: str | None = None) -> MemoryUse:
    """Return the data that one iteration touches; each buffer is at the nearest level with room.

    Notes
    -----
    Small footprints are placed first: they are what is used again soonest. A level holds what the
    nearer ones hold, too (inclusive caches).
    """
    nest = nest_of(footprint, chosen)
    fills = traffic(footprint, target)
    at_once = _at_once(footprint, nest)
    left = sorted(
        footprint.one(nest).values(),
        key=lambda item: (occupied_bytes(item, footprint.line_bytes), item.buffer.name),
    )
    levels, used = [], 0
    names = [*(level.name for level in target.caches), "memory"]
    for level, behind in zip(target.caches, names[1:], strict=True):
        room = share_bytes(level, at_once, target)
        held, nearer = [], used
        while left and used + occupied_bytes(left[0], footprint.line_bytes) <= room:
            item = _held(left.pop(0), footprint, fills[level.name])
            held.append(item)
            used += item.bytes
        loops = _by_loop(fills[level.name])
        sharers = level.bytes // max(room, 1)
        levels.append(Level(level.name, behind, room, sharers, nearer, tuple(held), loops))
    last = fills[target.caches[-1].name] if target.caches else []
    rest = tuple(_held(item, footprint, last) for item in left)
    levels.append(Level("memory", "", None, 1, used, rest, ()))
    return MemoryUse(
        loop_of(nest), tuple(levels), _scopes(footprint, target), compulsory_bytes(footprint)
    )


def _held(item: Footprint, footprint: ProgramFootprint, fills: Sequence[Fill]) -> Held:
    loops = _by_loop([fill for fill in fills if fill.buffer is item.buffer])
    keys = tuple(dict.fromkeys(loop.key for loop in loops if loop.key is not None))
    return Held(item, occupied_bytes(item, footprint.line_bytes), keys)


def _by_loop(fills: Sequence[Fill]) -> tuple[LoopTraffic, ...]:
    groups: dict[str | None, list[Fill]] = {}
    for fill in fills:
        groups.setdefault(loop_of(fill.nest), []).append(fill)
    loops = [LoopTraffic(key, tuple(group)) for key, group in groups.items()]
    return tuple(sorted(loops, key=lambda loop: -loop.moved_bytes))


def _at_once(footprint: ProgramFootprint, nest: Nest) -> int:
    """Return how many iterations of the parallel loops around a loop run at once."""
    kinds = [each for each in around(footprint, nest) if each.loop and each.loop.kind == "parallel"]
    return max((each.trips for each in kinds), default=1)


def _scopes(footprint: ProgramFootprint, target: Target) -> tuple[Scope, ...]:
    found: dict[str, list[tuple[str, int]]] = {}
    for buffer in footprint.root.references:
        if buffer.scope != "global":
            size = math.prod(buffer.static_shape) * dtypes.bytes_of(buffer.dtype)
            found.setdefault(buffer.scope, []).append((buffer.name, size))
    scopes = []
    for name, buffers in found.items():
        known = target.scope(name)
        scopes.append(Scope(name, known.capacity if known else None, tuple(buffers)))
    return tuple(scopes)
