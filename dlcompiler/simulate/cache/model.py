"""The model of a hierarchy of caches: its state, and its code as LLVM IR.

Each level is set-associative, and the line that was used least recently leaves (LRU). A store
fetches its line like a load (write-allocate); a written line is written back when it leaves. A
level is looked into if the nearer one misses. Lines that leave a farther level stay in the nearer
ones (the hierarchy is neither inclusive nor exclusive). There is no prefetcher and no TLB.

**Source:** the same rules as cachegrind, *Valgrind User Manual*, section 5; it has two levels, and
does not count lines that are written back.
"""

from __future__ import annotations

import importlib.resources
import string
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from dlcompiler.errors import InternalError, TargetError
from dlcompiler.target import CacheLevel

Words: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.int64]]"

BINS = 64
"""Intervals of time, of equal numbers of accesses; [1]."""
PARTS = 64
"""Most parts of a tensor whose misses are counted separately; [1]."""
LEAST_PART_BYTES = 128
"""Smallest of these parts, so that it holds a line or more; [byte]."""
ADDRESS_BITS = 48
"""Lower bits of an address; above them stands the number of the buffer."""
_FOLDER = __name__.rpartition(".")[0]
HEADER = 8
"""Words of the state before the counters; [1]."""
_LARGEST_ELEMENT_BYTES = 8
_LANES = 4
_CANCELLED = 5
OUTSIDE = 6
"""Place of the number of a buffer, plus 1, that was accessed outside its shape; 0: none was."""
_SIGN = -(1 << 63)
_EMPTY = (1 << 63) - 1


def sets_of(level: CacheLevel) -> int:
    """Return the number of sets of a cache.

    Raises
    ------
    TargetError
        If its size is not a whole number of sets, or its line is not a power of two that holds an
        element of each dtype.

    Examples
    --------
    >>> sets_of(CacheLevel("L1d", 32 * 1024, line=64, shared_by=1, ways=8))
    64
    """
    line, ways = level.line, level.ways
    is_whole = line > 0 and ways > 0 and level.bytes > 0 and level.bytes % (line * ways) == 0
    if not is_whole or line & (line - 1) or line < _LARGEST_ELEMENT_BYTES:
        raise TargetError(
            f"simulate the cache {level.name}",
            "its size is not a whole number of sets",
            got=f"{level.bytes} bytes, lines of {line} bytes, {ways} ways",
            expected="bytes = sets × ways × line, where the line is a power of two, 8 or more",
        )
    return level.bytes // (line * ways)


def _stride(level: CacheLevel) -> int:
    """Return the words of a set: the code compares four lines at a time."""
    return -(-level.ways // _LANES) * _LANES


def _entries(level: CacheLevel) -> int:
    return sets_of(level) * _stride(level)


@dataclass(frozen=True)
class Placement:
    """The address of a buffer."""

    base: int
    """Address of its first element; [byte]."""
    bytes: int
    """Distance from its first byte to the end of its last element; [byte]."""
    number: int

    @property
    def part_bytes(self) -> int:
        """Size of the parts whose misses are counted separately: a power of two; [byte]."""
        least = max(-(-self.bytes // PARTS), LEAST_PART_BYTES)
        return 1 << (least - 1).bit_length()


@dataclass(frozen=True, eq=False)
class Model:
    """The caches of a simulation, and the layout of the array that holds their state.

    The array begins with ``left``, the accesses until the interval of time ends; ``bin``, the
    place of its counters; their length, size and last place; whether the run is cancelled; and
    whether an index that depends on inputs was outside (`OUTSIDE`). Then follow the counters: for
    each interval of time and each access site the number of accesses, and the misses of each level.
    """

    levels: tuple[CacheLevel, ...]
    placements: tuple[Placement, ...]
    sites: int
    bin_accesses: int
    """Accesses of an interval of time; [1]."""
    is_inlined: bool = True
    """Whether each call of the model gets a copy of its code."""

    @property
    def row(self) -> int:
        """Words of a site in an interval: accesses, then the misses of each level."""
        return 1 + len(self.levels)

    @cached_property
    def _starts(self) -> dict[str, int]:
        buffers, levels = len(self.placements), len(self.levels)
        sizes = {
            "counters": BINS * self.sites * self.row,
            "written": levels * buffers,
            "by_part": levels * buffers * PARTS,
            "bases": buffers,
            "part_shifts": buffers,
            **{f"entries {n}": _entries(level) for n, level in enumerate(self.levels)},
        }
        starts, place = {}, HEADER
        for name, size in sizes.items():
            starts[name] = place
            place += size
        return {**starts, "end": place}

    @property
    def words(self) -> int:
        """Length of the state; [1]."""
        return self._starts["end"]

    def fresh_state(self) -> Words:
        """Return the state before the first access: all caches are empty."""
        starts = self._starts
        state = np.zeros(self.words, np.int64)
        size = self.sites * self.row
        last = starts["counters"] + (BINS - 1) * size
        state[:5] = (self.bin_accesses, starts["counters"], self.bin_accesses, size, last)
        for place in self.placements:
            state[starts["bases"] + place.number] = place.base
            state[starts["part_shifts"] + place.number] = place.part_bytes.bit_length() - 1
        state[starts["entries 0"] :] = _EMPTY
        return state

    # -- reading the state ------------------------------------------------------------------------

    def counters(self, state: Words) -> Words:
        """Return the counters ``(bins, sites, 1 + levels)`` of a state; [1]."""
        shape = (BINS, self.sites, self.row)
        return self._part(state, "counters", shape)

    def by_part(self, state: Words) -> Words:
        """Return the misses ``(levels, buffers, parts)``; [1]."""
        return self._part(state, "by_part", (len(self.levels), len(self.placements), PARTS))

    def written(self, state: Words) -> Words:
        """Return the lines ``(levels, buffers)`` that were written back; [1]."""
        return self._part(state, "written", (len(self.levels), len(self.placements)))

    def still_written(self, state: Words) -> Words:
        """Return the lines ``(levels, buffers)`` that a level would write back if it were flushed.

        A line that is also dirty in a nearer level counts once for each level that it passes.
        """
        found = []
        passing = np.zeros(0, np.int64)
        for n, level in enumerate(self.levels):
            start = self._starts[f"entries {n}"]
            entries = state[start : start + _entries(level)]
            own = (entries[entries < 0] & _EMPTY) * level.line
            passing = np.unique(np.concatenate([passing & -level.line, own]))
            found.append(np.bincount(passing >> ADDRESS_BITS, minlength=len(self.placements)))
        return np.array(found)

    def _part(self, state: Words, name: str, shape: tuple[int, ...]) -> Words:
        start = self._starts[name]
        return state[start : start + int(np.prod(shape))].reshape(shape)

    # -- the code ---------------------------------------------------------------------------------

    def code(self) -> str:
        """Return the definition of ``dlc_extern.cache_access`` and what it calls, as LLVM IR."""
        starts, last = self._starts, len(self.levels) - 1
        common = {
            **{name: start for name, start in starts.items() if " " not in name},
            "buffers": len(self.placements),
            "parts": PARTS,
            "last_part": PARTS - 1,
            "address_mask": (1 << ADDRESS_BITS) - 1,
            "without_sign": _EMPTY,
            "sign": _SIGN,
            "inlining": "alwaysinline" if self.is_inlined else "noinline",
        }
        each = [{**common, **self._constants(n)} for n in range(len(self.levels))]
        for n, names in enumerate(each):
            names["fetch"] = _FETCH.format(next=n + 1) if n < last else ""
            names["hand_on"] = _HAND_ON.format(next=n + 1) if n < last else ""
        parts = [_filled("access", each[0]), _filled("counters", common)]
        return "\n".join([*parts, *(_filled("level", names) for names in each)])

    def _constants(self, n: int) -> dict[str, object]:
        level = self.levels[n]
        sets, shift = sets_of(level), level.line.bit_length() - 1
        is_power = sets & (sets - 1) == 0
        return {
            "level": n,
            "line_shift": shift,
            "line_mask": (1 << (ADDRESS_BITS - shift)) - 1,
            "set_operation": "and" if is_power else "urem",
            "set_operand": sets - 1 if is_power else sets,
            "ways": level.ways,
            "last_way": level.ways - 1,
            "moved_bytes": 8 * (level.ways - 1),
            "stride": _stride(level),
            "entries": self._starts[f"entries {n}"],
            "written": self._starts["written"] + n * len(self.placements),
            "miss_column": 1 + n,
        }


_FETCH = "call void @find.{next}(ptr %state, i64 %word, i64 %address, i64 0)"
_HAND_ON = """%is.there = call i1 @mark.{next}(ptr %state, i64 %address)
  br i1 %is.there, label %kept, label %absent
kept:
  ret void
absent:
  call void @write_back.{next}(ptr %state, i64 %address)"""


def _filled(name: str, names: Mapping[str, object]) -> str:
    text = importlib.resources.files(_FOLDER).joinpath(f"{name}.ll").read_text("utf-8")
    return string.Template(text).substitute(names)


def linked(text: str, code: str) -> str:
    """Return the LLVM IR of a traced program with the code that gets its accesses.

    Raises
    ------
    InternalError
        If the program declares the function in another way.
    """
    declaration = "declare void @dlc_extern.cache_access(ptr, i64, i64, i64)\n"
    if declaration not in text:
        raise InternalError("simulate caches", "the traced program does not call the model")
    return text.replace(declaration, code)


def cancel(state: Words) -> None:
    """Make a running simulation end early; its counts are then incomplete."""
    state[_CANCELLED] = 1


def is_cancelled(state: Words) -> bool:
    """Tell whether `cancel` was called for a state."""
    return bool(state[_CANCELLED])


def outside(state: Words) -> int | None:
    """Return the number of a buffer that was accessed outside its shape; None if none was."""
    return int(state[OUTSIDE]) - 1 if state[OUTSIDE] else None
