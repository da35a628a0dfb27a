"""Find what the lanes of one warp touch in an access: their addresses, from the program itself.

`counters` adds up the accesses of all warps. This module picks one of them, so that a picture can
show it: the one of the first warp, in the first block and iteration, that has an active thread.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dlcompiler.ir import For, Var
from dlcompiler.simulate.gpu import transactions
from dlcompiler.simulate.gpu.counters import WARP, Given, read_launch
from dlcompiler.simulate.gpu.forms import Integers, Truth, is_computable, variables_of
from dlcompiler.simulate.gpu.populations import Access, Place, Warps
from dlcompiler.simulate.gpu.program import OneThread, Site

MOST_POINTS = 1 << 16
"""Combinations of iterations in which an active thread is looked for; [1]."""
OF_DATA = "what the threads touch depends on data"
INACTIVE = f"no thread is active in the first {MOST_POINTS:,} iterations"


@dataclass(frozen=True, eq=False)
class Request:
    """One access of one warp: what each of its lanes touches."""

    site: Site
    """The access in the text of the program."""
    space: str
    """``"global"`` or ``"shared"``."""
    bytes: int
    """Bytes that a lane accesses at once; [byte]."""
    addresses: tuple[int | None, ...] = ()
    """The first byte of each lane, from the begin of the array; None: the lane does not take part.
    Empty if the addresses are not known; [byte]."""
    warp: int = 0
    """The number of the warp in its block; [1]."""
    at: tuple[tuple[str, int], ...] = ()
    """The loops around it, blocks among them, whose iteration is not the first, with its number."""
    why_not: str = ""
    """Why the addresses are not known; '' if they are."""

    @cached_property
    def mask(self) -> Truth:
        """Which lanes take part, ``(lanes,)``."""
        return np.array([address is not None for address in self.addresses], np.bool_)

    @cached_property
    def _places(self) -> Integers:
        return np.array([address or 0 for address in self.addresses], np.int64)

    @property
    def name(self) -> str:
        """The access as text: ``load A``; as of `AccessCounters`."""
        return f"{'store' if self.site.is_write else 'load'} {self.site.buffer.name}"

    @property
    def sectors(self) -> int:
        """Sectors of global memory that the request moves; [1]."""
        return int(transactions.sectors(self._places, self.mask, self.bytes))

    @property
    def ideal_sectors(self) -> int:
        """Sectors that would hold the bytes of its lanes if these stood side by side; [1]."""
        return -(-int(self.mask.sum()) * self.bytes // transactions.SECTOR_BYTES)

    @property
    def wavefronts(self) -> int:
        """Passes through shared memory that the request takes; [1]."""
        return int(transactions.wavefronts(self._places, self.mask, self.bytes)[0])

    @property
    def ideal_wavefronts(self) -> int:
        """Passes that it would take without bank conflicts; [1]."""
        return int(transactions.wavefronts(self._places, self.mask, self.bytes)[1])

    @property
    def parts(self) -> int:
        """The number of parts in which shared memory serves the warp, one after another; [1]."""
        return transactions.shared_parts(self._places, self.mask, self.bytes)

    def moved(self, addresses: Sequence[int | None]) -> Request:
        """Return the request with other addresses: what it would be with another layout."""
        return Request(self.site, self.space, self.bytes, tuple(addresses), self.warp, self.at)


def first_requests(
    thread: OneThread,
    *,
    loops: Sequence[For] = (),
    given: Given | None = None,
    warp_size: int = WARP,
) -> tuple[Request, ...]:
    """Return one request for each access of a launch, in the order of `KernelCounters.accesses`.

    Parameters
    ----------
    thread
        What one thread does: see `dlcompiler.passes.merge_thread_loops`.
    loops
        Loops of the host around the launch, outermost first.
    given
        Values of symbols, and arrays.
    warp_size
        Threads of a warp. [1]

    Raises
    ------
    UserError
        As of `count_launch`.
    """
    _, warps, found = read_launch(thread, loops, given or Given(), warp_size)
    first: dict[tuple[Site, str, int], Request] = {}
    for site, place, access in found.accesses:
        key = site, access.space, access.bytes
        if key not in first or first[key].why_not == INACTIVE:
            first[key] = _first(site, place, access, warps)
    return tuple(first.values())


def _first(site: Site, place: Place, access: Access, warps: Warps) -> Request:
    if not access.address.is_known or not all(map(is_computable, place.guards)):
        return Request(site, access.space, access.bytes, why_not=OF_DATA)
    guarding = frozenset[Var]().union(*map(variables_of, place.guards))
    points = _points({var: n for var, n in place.extents.items() if var in guarding})
    zero = np.zeros(1, np.int64)
    known = {**dict.fromkeys(place.extents, zero), **points}
    if not warps.active.size or 0 in place.extents.values():
        return Request(site, access.space, access.bytes, why_not=INACTIVE)
    masks, addresses = _lanes(place, access, warps, known)
    active = np.argwhere(masks.any(axis=-1))
    if not len(active):
        return Request(site, access.space, access.bytes, why_not=INACTIVE)
    point, warp = map(int, active[0])
    return _request(site, access, (masks, addresses, points), (point, warp))


def _points(extents: Mapping[Var, int]) -> dict[Var, Integers]:
    """Return the first combinations of iterations in their order, the innermost loop first."""
    left = np.arange(min(math.prod(extents.values()), MOST_POINTS))
    points = {}
    for var, extent in reversed(list(extents.items())):
        points[var], left = left % max(extent, 1), left // max(extent, 1)
    return points


def _lanes(
    place: Place, access: Access, warps: Warps, points: Mapping[Var, Integers]
) -> tuple[Truth, Integers]:
    """Return which lanes take part, and their addresses, ``(points, warps, lanes)``."""
    count = max((len(at) for at in points.values()), default=1)
    values = {var: at[:, None, None] for var, at in points.items()}
    values |= {var: at[None] for var, at in warps.lanes.items()}
    shape = (count, *warps.active.shape)
    mask: Truth = np.broadcast_to(warps.active, shape)
    for guard in place.guards:
        mask = mask & guard.at(values)
    return mask, np.broadcast_to(access.address.at(values), shape)


def _request(
    site: Site, access: Access, lanes: tuple[Truth, Integers, Mapping[Var, Integers]],
    number: tuple[int, int],
) -> Request:  # fmt: skip
    masks, addresses, points = lanes
    at = ((var.name, int(values[number[0]])) for var, values in points.items())
    found = [
        int(address) if is_active else None
        for address, is_active in zip(addresses[number], masks[number], strict=True)
    ]
    return Request(
        site, access.space, access.bytes, tuple(found), number[1],
        tuple((name, n) for name, n in at if n),
    )  # fmt: skip
