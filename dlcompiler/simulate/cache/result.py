"""The result of a cache simulation: hits and misses by loop, tensor and level, and over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dlcompiler.display import render
from dlcompiler.errors import CallError
from dlcompiler.ir import Buffer, For, PrimFunc
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.simulate.cache.model import Placement, Words
from dlcompiler.simulate.cache.tracing import Site
from dlcompiler.target import CacheLevel, Target

if TYPE_CHECKING:
    from dlcompiler.simulate.cache.sampling import Sample


@dataclass(frozen=True, slots=True)
class Counts:
    """Hits and misses of one cache level."""

    level: CacheLevel
    accesses: int
    """Accesses that reached this level: those that missed in the nearer one; [1]."""
    misses: int
    """Accesses whose line was not in this level; [1]."""

    @property
    def hits(self) -> int:
        """Accesses whose line was in this level; [1]."""
        return self.accesses - self.misses

    @property
    def miss_rate(self) -> float:
        """Misses per access that reached this level; 0 without accesses; [1]."""
        return self.misses / self.accesses if self.accesses else 0.0

    @property
    def fetched_bytes(self) -> int:
        """Bytes loaded from the next farther level; [byte]."""
        return self.misses * self.level.line


@dataclass(frozen=True, eq=False)
class CacheSimulation:
    """Hits and misses of a program in the simulated caches of a target.

    `Counts` are asked for by loop and tensor; the arrays are for pictures. See
    `dlcompiler.pipeline.simulate_cache` for what is simulated.
    """

    func: PrimFunc
    """The simulated program; loops in `sampled` are cut."""
    target: Target
    """The machine whose caches are simulated."""
    sampled: tuple[Sample, ...]
    """The loops of which only the first iterations were simulated; empty: the whole program."""
    sites: tuple[Site, ...]
    """The accesses of each statement to each tensor."""
    placements: dict[Buffer, Placement]
    """The address of each tensor."""
    counters: Words
    """Accesses, then misses of each level, in each interval of time, by site:
    ``(intervals, sites, 1 + levels)``; [1]."""
    bin_accesses: int
    """Accesses of an interval of time; the last may have fewer; [1]."""
    by_part: Words
    """Misses in each part of each tensor: ``(levels, tensors, parts)``; [1]."""
    written: Words
    """Lines written back, including those that are still newer than memory at the end:
    ``(levels, tensors)``; [1]."""
    inputs: tuple[Buffer, ...] = ()
    """The inputs that were given, because indices or conditions depend on their values."""
    whole_accesses: int = 0
    """Accesses of the whole program; of a sampled one, as if all its conditions held; [1]."""

    @property
    def provenance(self) -> Provenance:
        """Say that the numbers are simulated, and for which target."""
        return Provenance("simulated", self.target.name)

    @property
    def levels(self) -> tuple[CacheLevel, ...]:
        """The caches, nearest first."""
        return self.target.caches

    @property
    def accesses(self) -> int:
        """Number of simulated loads and stores; [1]."""
        return int(self.counters[:, :, 0].sum())

    @property
    def tensors(self) -> tuple[Buffer, ...]:
        """The tensors that are accessed, in the order of their addresses."""
        used = {site.buffer for site in self.sites}
        return tuple(buffer for buffer in self.placements if buffer in used)

    def counts(
        self,
        loop: str | For | None = None,
        tensor: str | Buffer | None = None,
        *,
        is_write: bool | None = None,
    ) -> tuple[Counts, ...]:
        """Return hits and misses of each level, nearest first.

        Parameters
        ----------
        loop : str or For, optional
            Only accesses inside this loop: its name as printed, ``"k"`` or ``"i.outer"``.
        tensor : str or Buffer, optional
            Only accesses to this tensor.
        is_write : bool, optional
            Only stores, or only loads.

        Raises
        ------
        CallError
            If the program has no such loop or tensor.
        """
        self._check(loop, tensor)
        rows = [
            n for n, site in enumerate(self.sites)
            if (loop is None or any(loop in (each, each.var.name) for each in site.loops))
            and (tensor is None or tensor in (site.buffer, site.buffer.name))
            and (is_write is None or is_write == site.is_write)
        ]  # fmt: skip
        return self.counts_of(rows)

    def counts_of(self, rows: Sequence[int]) -> tuple[Counts, ...]:
        """Return hits and misses of each level for access sites, by their numbers."""
        total = self.counters[:, list(rows), :].sum(axis=(0, 1)).tolist()
        return tuple(
            Counts(level, reached, misses)
            for level, reached, misses in zip(self.levels, total, total[1:], strict=False)
        )

    def memory_bytes(self, tensor: str | Buffer | None = None) -> int:
        """Return the bytes moved between the last cache and memory, in both directions; [byte].

        Notes
        -----
        A store fetches its line, too. Lines of a temporary that are newer than memory at the end
        are not counted: nobody reads them again.
        """
        last = self.levels[-1]
        numbers = [
            self.placements[buffer].number for buffer in self.tensors
            if tensor is None or tensor in (buffer, buffer.name)
        ]  # fmt: skip
        written = int(self.written[-1, numbers].sum()) * last.line
        return self.counts(tensor=tensor)[-1].fetched_bytes + written

    def over_time(self, level: int, tensor: Buffer) -> tuple[Words, Words]:
        """Return the accesses that reach a level, and its misses, in each interval of time.

        Parameters
        ----------
        level
            Number of the level; 0 is the nearest.
        tensor
            One of `tensors`.

        Returns
        -------
        tuple of two arrays ``(intervals,)``
        """
        rows = [n for n, site in enumerate(self.sites) if site.buffer is tensor]
        found = self.counters[:, rows, :].sum(axis=1)
        return found[:, level], found[:, level + 1]

    def over_tensor(self, level: int, tensor: Buffer) -> Words:
        """Return the misses of a level in each part of a tensor, ``(parts,)``; [1].

        The parts have `part_bytes` of its placement; the last may have fewer.
        """
        place = self.placements[tensor]
        parts = -(-place.bytes // place.part_bytes)
        return self.by_part[level, place.number, :parts]

    def _check(self, loop: str | For | None, tensor: str | Buffer | None) -> None:
        names = dict.fromkeys(each.var.name for site in self.sites for each in site.loops)
        if isinstance(loop, str) and loop not in names:
            raise CallError(
                "look up hits and misses", "the program has no such loop", got=repr(loop),
                expected=", ".join(names) or "none: it has no loops",
            )  # fmt: skip
        tensors = [buffer.name for buffer in self.tensors]
        if isinstance(tensor, str) and tensor not in tensors:
            raise CallError(
                "look up hits and misses", "the program accesses no such tensor", got=repr(tensor),
                expected=", ".join(tensors) or "none",
            )  # fmt: skip

    def __repr__(self) -> str:
        misses = ", ".join(f"{each.level.name} {each.misses:,}" for each in self.counts())
        cut = f"; sampled: {', '.join(map(str, self.sampled))}" if self.sampled else ""
        share = f" of {self.whole_accesses:,}" if self.sampled else ""
        program = f"{self.func.name} on {self.target.name}: {self.accesses:,}{share} accesses"
        return f"CacheSimulation({program}, misses: {misses}{cut})"

    def _repr_html_(self) -> str:
        return render("caches", self)


def non_empty(counters: Words) -> Words:
    """Return the intervals of time up to the last one with an access."""
    used = np.flatnonzero(counters[:, :, 0].sum(axis=1))
    return counters[: int(used[-1]) + 1 if len(used) else 0]
