"""Count what the warps of a GPU execute: instructions, accesses to memory, transactions.

The counts are those of the program as it is written. A compiler may remove loads that it has made
before, and turns the arithmetic of indices into steps of pointers; this arithmetic is not counted.
An instruction is counted once for each warp that has an active thread there. Arrays begin at a
multiple of a line (128 bytes).

Nothing is sampled. Where an index or a condition depends on data that is not given, a least and a
greatest number take the place of the exact one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dlcompiler.errors import UserError
from dlcompiler.ir import Buffer, Expr, For, Var
from dlcompiler.simulate.gpu.forms import constant_form
from dlcompiler.simulate.gpu.merging import merged
from dlcompiler.simulate.gpu.populations import Place, Populations, Tally, Warps
from dlcompiler.simulate.gpu.program import Found, OneThread, Site, found_in, inside_loop
from dlcompiler.simulate.gpu.reading import Reader, Scope
from dlcompiler.simulate.gpu.transactions import SECTOR_BYTES

WARP = 32
"""Threads of a warp, if nothing else is said; [1]."""


@dataclass(frozen=True, slots=True, eq=False)
class AccessCounters:
    """What all warps of a launch do for one access of a program."""

    site: Site
    """Where it stands in the program."""
    space: str
    """``"global"`` or ``"shared"``."""
    bytes: int
    """Bytes that a thread accesses at once; [byte]."""
    least: Tally
    """The counts; where data decides, the least possible ones."""
    most: Tally
    """The counts; where data decides, the greatest possible ones."""

    @property
    def is_exact(self) -> bool:
        """Tell whether the counts do not depend on data."""
        return self.least == self.most

    @property
    def name(self) -> str:
        """The access as text: ``load A``."""
        return f"{'store' if self.site.is_write else 'load'} {self.site.buffer.name}"

    @property
    def sectors_per_request(self) -> float | None:
        """Sectors of 32 bytes for each access of a warp; None without global memory; [1]."""
        return _ratio(self.most.sectors, self.most.requests) if self.space == "global" else None

    @property
    def efficiency(self) -> float | None:
        """Bytes that threads use of those moved; above 1 where they share them; [1]."""
        moved = SECTOR_BYTES * self.most.sectors
        return _ratio(self.most.lanes * self.bytes, moved) if self.space == "global" else None

    @property
    def conflict_degree(self) -> float | None:
        """Passes through shared memory, over those without bank conflicts; [1]."""
        if self.space != "shared":
            return None
        return _ratio(self.most.wavefronts, self.most.ideal_wavefronts)


def together(accesses: Sequence[AccessCounters]) -> AccessCounters:
    """Return the sum of accesses of one width in one memory, as if they were the first of them."""
    least = most = Tally()
    for access in accesses:
        least, most = least.plus(access.least), most.plus(access.most)
    return replace(accesses[0], least=least, most=most)


@dataclass(frozen=True, slots=True, eq=False)
class KernelCounters:
    """What all warps of a launch execute."""

    name: str
    """Name of the kernel."""
    blocks: int
    """Blocks of all launches of the kernel; [1]."""
    threads: int
    """Threads of a block; [1]."""
    warps: int
    """Warps of a block; [1]."""
    accesses: tuple[AccessCounters, ...]
    """Accesses to global and shared memory, in the order of the program."""
    instructions: Mapping[str, tuple[Tally, Tally]]
    """For each kind of instruction the least and the greatest count, which are equal where no data
    decides: ``requests`` counts warps, and ``lanes`` threads."""
    warp_size: int = WARP
    """Threads of a warp; [1]."""

    @property
    def is_exact(self) -> bool:
        """Tell whether no count depends on data."""
        return all(low == high for low, high in self.instructions.values()) and all(
            access.is_exact for access in self.accesses
        )

    @property
    def issued(self) -> int:
        """Instructions that warps execute, at most; [1]."""
        return sum(most.requests for _, most in self.instructions.values())

    @property
    def active_fraction(self) -> float | None:
        """Active threads of those in the warps that execute an instruction; 1: no divergence."""
        lanes = sum(most.lanes for _, most in self.instructions.values())
        return _ratio(lanes, self.warp_size * self.issued)

    def total(self, space: str) -> tuple[Tally, Tally]:
        """Return the least and the greatest counts of all accesses to ``global`` or ``shared``."""
        least = most = Tally()
        for access in self.accesses:
            if access.space == space:
                least, most = least.plus(access.least), most.plus(access.most)
        return least, most


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """What is known of the arguments of a call."""

    numbers: Mapping[Var, int] = field(default_factory=dict)
    """Values of symbols and of other integer parameters."""
    arrays: Mapping[Buffer, np.ndarray] = field(default_factory=dict)
    """Arrays that the program only reads, and that decide indices or conditions."""


def count_launch(
    thread: OneThread,
    name: str = "kernel",
    *,
    loops: Sequence[For] = (),
    given: Given | None = None,
    warp_size: int = WARP,
    is_merged: bool = False,
) -> KernelCounters:
    """Count what the warps of a launch execute.

    Parameters
    ----------
    thread
        What one thread does: see `dlcompiler.passes.merge_thread_loops`.
    name
        Name of the kernel.
    loops
        Loops of the host around the launch, outermost first.
    given
        Values of symbols, and arrays.
    warp_size
        Threads of a warp. [1]
    is_merged
        Whether neighbouring loads are counted as compilers merge them: see `merging`.

    Raises
    ------
    UserError
        The number of blocks, threads or iterations is not known.
    """
    place, warps, found = read_launch(thread, loops, given or Given(), warp_size)
    threads, populations = int(warps.active.sum()), Populations(warps)
    if threads == 1:  # one thread waits for nobody
        for kinds in found.instructions.values():
            kinds.pop("barrier", None)
    everything = populations.count(place)[1].requests
    return KernelCounters(
        name, everything // max(len(warps.active), 1), threads, len(warps.active),
        _accesses(found, populations, is_merged=is_merged), _instructions(found, populations),
        warp_size,
    )  # fmt: skip


def read_launch(
    thread: OneThread, loops: Sequence[For], given: Given, warp_size: int
) -> tuple[Place, Warps, Found]:
    """Return the blocks and host's loops of a launch, its warps, and what one thread executes.

    Parameters as of `count_launch`.
    """
    reader = Reader(given.arrays)
    scope: Scope = {var: constant_form(value) for var, value in given.numbers.items()}
    place = Place({})
    for loop in loops:
        place, scope = inside_loop(reader, loop.var, loop.extent, place, scope)
    sizes: dict[str, tuple[Var, int]] = {}
    for tag, var in thread.axes.items():
        if tag.startswith("blockIdx"):
            place, scope = inside_loop(reader, var, thread.extents[tag], place, scope)
        else:
            size = _constant(reader, var, thread.extents[tag], scope)
            lane, form = reader.variable(var.name, size)
            sizes[tag], scope = (lane, size), {**scope, var: form}
    warps = Warps.of([sizes[tag] for tag in sorted(sizes)], warp_size)
    return place, warps, found_in(thread, reader, place, scope)


def _constant(reader: Reader, var: Var, extent: Expr, scope: Scope) -> int:
    """Return the number of threads along an axis."""
    low, high = reader.interval(reader.form(extent, scope))
    if low != high:
        raise UserError(
            "count what a GPU does", f"the number of threads of {var.name} is not known",
            got=str(extent), hint="split the loop by a number, and bind the inner one",
        )  # fmt: skip
    return max(int(high), 0)


def _accesses(
    found: Found, populations: Populations, *, is_merged: bool
) -> tuple[AccessCounters, ...]:
    """Count the accesses; the copies that unrolling made of one are added."""
    sums: dict[tuple[Site, str, int], tuple[Tally, Tally]] = {}
    for site, place, access in found.accesses:
        if is_merged and access.space == "shared" and not site.is_write:
            place, access = merged(place, access, found.unrolled)
        key = site, access.space, access.bytes
        least, most = sums.get(key, (Tally(), Tally()))
        low, high = populations.count(place, access)
        sums[key] = least.plus(low), most.plus(high)
    return tuple(AccessCounters(*key, *both) for key, both in sums.items())


def _instructions(found: Found, populations: Populations) -> dict[str, tuple[Tally, Tally]]:
    sums: dict[str, tuple[Tally, Tally]] = {}
    for place, kinds in found.instructions.items():
        low, high = populations.count(place)
        for kind, times in kinds.items():
            least, most = sums.get(kind, (Tally(), Tally()))
            sums[kind] = least.plus(low, times), most.plus(high, times)
    return dict(sorted(sums.items()))


def _ratio(a: int, b: int) -> float | None:
    return a / b if b else None
