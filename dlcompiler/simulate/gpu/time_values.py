"""Which loads remain where loops are unrolled, and how many registers their values take.

Compilers make a load once whose value they have already, if nothing was stored in between. Then
the value must stay in a register until it is used for the last time.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dlcompiler.ir import Buffer, Var
from dlcompiler.simulate.gpu.time_phases import Loop, Reach, Read
from dlcompiler.simulate.gpu.unrolling import copies_together

MOST_COPIES = 1 << 16
"""Most copies of a load that are compared; of more, none is taken to be removed; [1]."""
LONGEST_REORDERED = 4096
"""Loads and sums of a piece of code that NVIDIA's assembler orders anew so that few values are in
registers at once. If it is longer, and its results are stored under a condition, they stay in the
order of the program. **Source:** machine code of 30 image convolutions, ptxas 12.9, sm_86; [1]."""
_Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Body:
    """What the copies of unrolled loops do in one piece of code without other loops."""

    executions: int
    """How often a thread goes through it; [1]."""
    loads: int
    """Loads of it that remain; [1]."""
    sums: int
    """Updates of elements in registers; [1]."""
    live: int
    """Registers of values that are used again, where most are, in the order of the program; [1]."""
    kept: int
    """Registers of all values that are used again; [1]."""
    reuses: int
    """Uses of them, without the first ones; [1]."""
    is_guarded: bool
    """Whether its results are stored under a condition."""
    early: int
    """Registers of values from global memory, if all of them are loaded first; [1]."""
    results: int
    """Registers of the sums; [1]."""

    @property
    def keeps_its_order(self) -> bool:
        """Tell whether the assembler leaves its loads and sums in the order of the program."""
        return self.is_guarded and self.loads + self.sums > LONGEST_REORDERED


def distinct_loads(reaches: Sequence[Reach]) -> float:
    """Return the fraction of a thread's loads that remain if none is made twice.

    Parameters
    ----------
    reaches
        Loads of one buffer in one stretch of code without a barrier: the copies of unrolled loops,
        and different loads of one statement.
    """
    total, kept = 0, 0
    groups: dict[tuple[object, ...], list[_Offsets]] = defaultdict(list)
    around: dict[tuple[object, ...], int] = {}
    for reach in reaches:
        times = math.prod(loop.extent for loop in reach.around)
        count = math.prod(loop.extent for loop in reach.copies)
        total += count * times
        offsets = _offsets(reach)
        if offsets is None:
            kept += count * times
            continue
        key = _place(reach)
        groups[key].append(np.unique(offsets))
        around[key] = times
    for key, found in groups.items():
        kept += len(np.unique(np.concatenate(found))) * around[key]
    return kept / total if total else 1.0


def bodies_of(read: Read, constant: Collection[Buffer] = ()) -> list[Body]:
    """Return the pieces of code of a phase in which sums are updated.

    Parameters
    ----------
    read
        What the phase touches.
    constant
        Arrays in constant memory, whose elements need no registers. They are counted as loads.
    """
    of: dict[tuple[int, ...], list[Reach]] = defaultdict(list)
    for reach in read.reaches:
        of[tuple(id(loop.var) for loop in reach.around)].append(reach)
    return [
        _body(reaches, read, constant)
        for reaches in of.values()
        if any(reach.is_update and reach.space == "local" for reach in reaches)
    ]


def _body(reaches: Sequence[Reach], read: Read, constant: Collection[Buffer]) -> Body:
    sums = [r for r in reaches if r.is_update and r.space == "local"]
    loads = [r for r in reaches if not r.is_write and r.space != "local"]
    size = sum(math.prod(loop.extent for loop in r.copies) for r in reaches)
    early_from = {r.buffer for r in loads if r.space == "global"} - set(constant)
    remain = live = kept = reuses = early = 0
    for buffer, words, uses in _uses(loads):
        places, first, count = np.unique(uses[0], return_index=True, return_counts=True)
        last = np.zeros(len(places), np.int64)
        np.maximum.at(last, np.searchsorted(places, uses[0]), uses[1])
        again = count > 1
        change = np.zeros(int(uses[1].max(initial=0)) + 2, np.int64)
        np.add.at(change, uses[1][first][again], words)
        np.add.at(change, last[again], -words)
        remain += len(places)
        if buffer in early_from:
            early += words * len(places)
        live = max(live, int(np.cumsum(change).max()))
        kept += words * int(again.sum())
        reuses += words * int((count - 1).sum())
    return Body(
        math.prod(loop.extent for loop in reaches[0].around), remain,
        sum(math.prod(loop.extent for loop in r.copies) for r in sums),
        live, kept, reuses, any(r.buffer in read.guarded for r in sums),
        early * copies_together(size), _results(sums),
    )  # fmt: skip


def _results(sums: Sequence[Reach]) -> int:
    """Return the registers of the elements that are updated."""
    return sum(
        math.prod(loop.extent for loop in reach.copies if loop.var in reach.address.terms)
        * max(reach.bytes // 4, 1)
        for reach in sums
    )


def _uses(loads: Sequence[Reach]) -> Iterator[tuple[Buffer, int, tuple[_Offsets, _Offsets]]]:
    """Yield, for loads that may touch the same, array, registers, offsets and times of use.

    Times are counted in iterations of the loops that are copied, in the order of the program.
    """
    groups: dict[tuple[object, ...], list[tuple[_Offsets, _Offsets]]] = defaultdict(list)
    of: dict[tuple[object, ...], Reach] = {}
    for reach in loads:
        offsets = _offsets(reach)
        if offsets is not None:
            key = _place(reach)
            groups[key].append((offsets, np.arange(len(offsets))))
            of[key] = reach
    for key, parts in groups.items():
        offsets, times = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(times, kind="stable")
        yield of[key].buffer, max(of[key].bytes // 4, 1), (offsets[order], times[order])


def _place(reach: Reach) -> tuple[object, ...]:
    """Return what loads have in common that touch the same where their offsets are equal."""
    copied = {loop.var for loop in reach.copies}
    rest = {term: factor for term, factor in reach.address.terms.items() if term not in copied}
    around = tuple(id(loop.var) for loop in reach.around)
    return reach.buffer, around, frozenset(rest.items()), reach.bytes


def _offsets(reach: Reach) -> _Offsets | None:
    """Return the constant part of the address in each copy, in the order of the program.

    It is None if the address in a copy is not known, or if there are too many copies.
    """
    copies = tuple(reversed(reach.copies))
    if math.prod(loop.extent for loop in copies) > MOST_COPIES or not _is_affine(reach, copies):
        return None
    offsets = np.array([reach.address.constant], np.int64)
    for loop in copies:
        factor = reach.address.terms.get(loop.var, 0)
        offsets = (offsets[:, None] + factor * np.arange(loop.extent)).ravel()
    return offsets


def _is_affine(reach: Reach, copies: Sequence[Loop]) -> bool:
    """Tell whether an address is known, and a sum over the variables of some loops and others."""
    if not reach.address.is_known:
        return False
    copied = {loop.var for loop in copies}
    parts = (part for part in reach.address.terms if not isinstance(part, Var))
    return all(copied.isdisjoint(part.variables) for part in parts)
