"""A simple processor model for choosing register tiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dlcompiler.target import Target

TILE_CYCLES = 30
"""Time to begin and to end a tile [cycle]."""
COPY_CYCLES = 0.25
"""Time to copy an element of a contiguous row [cycle]."""

LINE_CYCLES = 2.5 / 64
"""Time to load contiguous data from the second cache [cycle / byte]; this and the next measured on
a Sapphire Rapids."""
PAGE_LINE_CYCLES = 9 / 64
"""The same where each step is in another page, as the channels of an image are [cycle / byte]."""

_BYTES_FROM_FAR = 8
"""Bandwidth of one core beyond its own caches [byte / cycle]; measured."""


def far_cycles(size: float, target: Target) -> float:
    """Return the time to store a stage and to load it again beyond the own caches [cycle].

    Parameters
    ----------
    size : float
        Of the stage; [byte].
    target : Target
        A CPU.

    Examples
    --------
    >>> from dlcompiler.target import resolve
    >>> far_cycles(1024, resolve("cpu"))
    0.0
    """
    return 2 * size / _BYTES_FROM_FAR if size > target.cache_bytes(1) else 0.0


@dataclass(frozen=True, slots=True)
class Machine:
    """A cost model of register tiles.

    **Source:** two multiply-adds and two loads in a cycle, and the latency of an FMA, from A. Fog,
    instruction tables (Zen 3); the loads of single elements a little slower, as measured there.
    """

    registers: int
    """Vector registers of one thread."""

    @staticmethod
    def of(target: Target) -> Machine:
        """Return the model of a target."""
        return Machine(target.vector_registers)

    def fits(self, elements: int, vectors: int) -> bool:
        """Tell whether a tile of `elements` × `vectors` vectors fits in the registers."""
        return elements * vectors + vectors + 1 <= self.registers

    def cycles(self, elements: int, vectors: int) -> float:
        """Return the time of one reduction step for a tile [cycle]."""
        return max(elements * vectors / 2, (elements + vectors) / 2, 0.8 * elements, 4.0)


def pieces(extent: int, tile: int) -> Iterator[tuple[int, int]]:
    """Yield (size, count) of the pieces of an extent: the whole tiles, then the remainder."""
    yield tile, extent // tile
    if extent % tile:
        yield extent % tile, 1


def shares_evenly(pieces: int, cores: int) -> bool:
    """Tell whether equal pieces of work keep the cores busy for at least 80 % of the time.

    Examples
    --------
    >>> shares_evenly(2, 2), shares_evenly(3, 2), shares_evenly(9, 2)
    (True, False, True)
    """
    rounds = -(-pieces // cores)
    return pieces >= 0.8 * rounds * cores
