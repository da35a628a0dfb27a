"""Simulated hits and misses beside the predicted ones, by tensor, level and loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dlcompiler.analysis.footprint import ProgramFootprint
from dlcompiler.analysis.traffic import occupied_bytes, traffic
from dlcompiler.errors import DLCompilerError
from dlcompiler.ir import Buffer
from dlcompiler.simulate.cache import CacheSimulation, Counts, Site
from dlcompiler.views.loops.line_keys import keys_of

DIFFERENCE = 1.5
"""Quotient of two counts from which on a prediction is marked; [1]."""


@dataclass(frozen=True, slots=True)
class TensorCounts:
    """The accesses to a tensor that reach a cache level, with the prediction of their misses."""

    tensor: Buffer
    counts: Counts
    predicted: int | None
    """Predicted misses; None if there is no prediction; [1]."""
    keys: tuple[str, ...]
    """Keys of the innermost loops that access it; the one with most misses is first."""

    @property
    def differs(self) -> bool:
        """Whether simulation and prediction are more than `DIFFERENCE` times apart."""
        if self.predicted is None:
            return False
        low, high = sorted((self.predicted, self.counts.misses))
        return high > DIFFERENCE * low


@dataclass(frozen=True, slots=True)
class LoopCounts:
    """The accesses to a tensor inside a loop, at one level."""

    key: str
    tensor: Buffer
    counts: Counts


def predicted_misses(found: CacheSimulation) -> dict[tuple[str, Buffer], int]:
    """Predict the misses of the simulated program, by level name and tensor; [1].

    The model is that of `dlcompiler.analysis.traffic`: each line that it moves into a level is a
    miss. As in the simulation, one core has each shared level for itself, and the caches are empty
    at the start: each line that the program touches misses at least once. The result is empty if
    the model does not apply.
    """
    alone = tuple(replace(level, shared_by=1) for level in found.levels)
    try:
        footprint = ProgramFootprint(found.func, found.levels[0].line)
        fills = traffic(footprint, replace(found.target, caches=alone))
    except DLCompilerError:
        return {}
    touched = footprint.one(footprint.root)
    sizes = {(level.name, tensor): 0 for level in found.levels for tensor in found.tensors}
    for name, each in fills.items():
        for fill in each:
            # What is written first is not fetched in the model, but its lines come in as well.
            if (name, fill.buffer) in sizes:
                sizes[name, fill.buffer] += max(fill.fetched_bytes, fill.written_bytes)
    for name, tensor in sizes:
        is_own = tensor not in found.func.buffers  # the model moves no temporary that fits
        if tensor in touched and (is_own or touched[tensor].is_exact):
            least = occupied_bytes(touched[tensor], footprint.line_bytes)
            sizes[name, tensor] = max(sizes[name, tensor], least)
    lines = {level.name: level.line for level in found.levels}
    return {key: -(-size // lines[key[0]]) for key, size in sizes.items()}


def by_tensor(found: CacheSimulation) -> list[list[TensorCounts]]:
    """Return, for each level, the counts of the tensors that are accessed there."""
    predicted = predicted_misses(found)
    levels = []
    for number, level in enumerate(found.levels):
        counts = ((tensor, found.counts(tensor=tensor)[number]) for tensor in found.tensors)
        levels.append([
            TensorCounts(tensor, each, predicted.get((level.name, tensor)),
                         _loops_of(found, tensor, number))
            for tensor, each in counts if each.accesses
        ])  # fmt: skip
    return levels


def by_loop(found: CacheSimulation) -> Iterator[LoopCounts]:
    """Yield the counts of each loop for each tensor and level.

    Of loops that contain the same accesses to a tensor, only the innermost is listed.
    """
    rows: dict[tuple[str, Buffer], list[int]] = {}
    for n, site in enumerate(found.sites):
        for key in _keys_around(site):
            rows.setdefault((key, site.buffer), []).append(n)
    innermost = {(tensor, tuple(numbers)): key for (key, tensor), numbers in rows.items()}
    for (tensor, numbers), key in innermost.items():
        for counts in found.counts_of(numbers):
            if counts.accesses:
                yield LoopCounts(key, tensor, counts)


def _loops_of(found: CacheSimulation, tensor: Buffer, level: int) -> tuple[str, ...]:
    misses: dict[str, int] = {}
    for n, site in enumerate(found.sites):
        keys = _keys_around(site)
        if site.buffer is tensor and keys:
            misses[keys[-1]] = misses.get(keys[-1], 0) + found.counts_of([n])[level].misses
    return tuple(sorted(misses, key=lambda key: -misses[key]))


def _keys_around(site: Site) -> list[str]:
    """Return the keys of the loops around an access, outermost first; each once."""
    found = (next((key for key in keys_of(loop) if "/" in key), None) for loop in site.loops)
    return list(dict.fromkeys(key for key in found if key is not None))
