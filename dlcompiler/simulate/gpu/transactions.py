"""Count sectors and lines of global memory, and passes of shared memory, of a warp's access.

**Source:** CUDA C++ Programming Guide 12.9, sections 16.5.2 and 16.5.3 (global and shared memory of
compute capability 5.0 and later); Nsight Compute documentation, "Memory Tables" (sectors,
wavefronts).
"""

from __future__ import annotations

import math

import numpy as np

from dlcompiler.simulate.gpu.forms import Integers, Truth

SECTOR_BYTES = 32
"""Smallest part of global memory that is moved; [byte]."""
LINE_BYTES = 128
"""Line of the first level cache; [byte]."""
BANKS = 32
"""Banks of shared memory, each of which serves one word at a time; [1]."""
WORD_BYTES = 4
"""Width of a bank; [byte]."""
PERIOD = LINE_BYTES
"""Distance after which addresses cost the same: a line, and a row of all banks; [byte]."""
_NOWHERE = np.int64(1) << 60


def halves(bytes_: int) -> int:
    """Return the number of parts in which a warp accesses memory: more for wide elements.

    The threads access 4 bytes each at once, or half of them 8 bytes, or a quarter 16 bytes.
    """
    return max(bytes_ // 4, 1)


def sectors(addresses: Integers, mask: Truth, bytes_: int, unit: int = SECTOR_BYTES) -> Integers:
    """Return the number of sectors that each access of a warp moves.

    Parameters
    ----------
    addresses : array ``(…, lanes)``
        The first byte for each thread of the warp. [byte]
    mask : array ``(…, lanes)``
        Which threads take part.
    bytes_
        How many bytes each thread accesses, at a multiple of that. [byte]
    unit
        Size of a sector; `LINE_BYTES` counts lines instead. [byte]
    """
    parts = _split(np.where(mask, addresses // unit, _NOWHERE), halves(bytes_))
    return np.asarray(_distinct(np.sort(parts, axis=-1)).sum(axis=(-1, -2)))


def wavefronts(addresses: Integers, mask: Truth, bytes_: int) -> tuple[Integers, Integers]:
    """Return how many passes through shared memory each access takes, and would without conflicts.

    In one pass each bank serves one word, to any number of threads. Parameters as of `sectors`.
    """
    parts = halves(bytes_)
    found = _passes(addresses, mask, parts, parts), ideal_wavefronts(mask, bytes_)
    if parts == 1 or not (paired := are_paired(addresses, mask)).any():
        return found
    fewer = _passes(addresses, mask, parts, parts // 2), _used_parts(mask, parts // 2)
    return np.where(paired, fewer[0], found[0]), np.where(paired, fewer[1], found[1])


def shared_parts(addresses: Integers, mask: Truth, bytes_: int) -> int:
    """Return in how many parts, one after another, shared memory serves one access of a warp.

    Parameters as of `sectors`, for one access: arrays ``(lanes,)``.
    """
    parts = halves(bytes_)
    return parts // 2 if parts > 1 and are_paired(addresses, mask) else parts


def are_paired(addresses: Integers, mask: Truth) -> Truth:
    """Tell for which accesses of a warp the threads n and n ^ 1, or n and n ^ 2, want the same.

    A wide access then takes half as many passes: a pass fills a register of all threads, or two of
    each such pair.

    **Source:** NVIDIA's developer forum, "Unexpected shared memory bank conflict" (77228), 2019.
    """
    lanes = np.arange(addresses.shape[-1])
    found = np.zeros(addresses.shape[:-1], np.bool_)
    for distance in (1, 2):
        if 2 * distance > len(lanes):
            continue
        other = lanes ^ distance
        is_same = (addresses == addresses[..., other]) | ~mask | ~mask[..., other]
        found |= is_same.all(axis=-1)
    return found


def ideal_wavefronts(mask: Truth, bytes_: int) -> Integers:
    """Return how many passes an access takes without conflicts: one for each part of the warp."""
    return _used_parts(mask, halves(bytes_))


def _passes(addresses: Integers, mask: Truth, width: int, parts: int) -> Integers:
    """Return the passes of accesses of `width` words a thread, made by a warp in some parts."""
    first = _split(np.where(mask, addresses // WORD_BYTES, _NOWHERE), parts)
    words = np.concatenate(
        [np.where(first == _NOWHERE, _NOWHERE, first + n) for n in range(width)], axis=-1
    )
    words = np.sort(words, axis=-1)
    is_new = _distinct(words)
    rows = words.reshape(math.prod(words.shape[:-1]), words.shape[-1])
    place = np.arange(len(rows))[:, None] * BANKS + rows % BANKS
    load = np.bincount(place.ravel(), is_new.ravel(), minlength=len(rows) * BANKS)
    busiest = load.reshape(*words.shape[:-1], BANKS).max(axis=-1)
    return np.asarray(busiest.astype(np.int64).sum(axis=-1))


def _used_parts(mask: Truth, parts: int) -> Integers:
    return np.asarray(_split(mask, parts).any(axis=-1).sum(axis=-1))


def _split(lanes: Integers | Truth, parts: int) -> np.ndarray:
    parts = min(parts, lanes.shape[-1])
    return lanes.reshape(*lanes.shape[:-1], parts, lanes.shape[-1] // parts)


def _distinct(ordered: Integers) -> Truth:
    """Mark the first of equal values along the last axis, but of `_NOWHERE` none."""
    is_new: Truth = ordered != _NOWHERE
    is_new[..., 1:] &= ordered[..., 1:] != ordered[..., :-1]
    return is_new
