"""Compute what accesses to shared memory would cost if the rows of an array were longer."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler import dtypes
from dlcompiler.ir import Buffer
from dlcompiler.simulate.gpu.requests import Request
from dlcompiler.simulate.gpu.transactions import WORD_BYTES

PADDINGS = (1, 2, 4, 8)
"""Words, or the elements that a lane accesses at once, by which rows are made longer; [1]."""


def padded(request: Request, elements: int) -> Request:
    """Return a request as it would be if the rows of its array were some elements longer."""
    pitch = row_bytes(request.site.buffer)
    more = elements * dtypes.bytes_of(request.site.buffer.dtype)
    assert pitch
    return request.moved(
        [None if at is None else at + at // pitch * more for at in request.addresses]
    )


def row_bytes(buffer: Buffer) -> int | None:
    """Return the distance of two rows of an array; None if it has one row, or is not dense."""
    strides = buffer.strides
    if len(strides) < 2 or not all(isinstance(stride, int) for stride in strides):
        return None
    pitch = strides[-2]
    others = [stride for stride in strides[:-2] if isinstance(stride, int) and stride % pitch]
    if strides[-1] != 1 or pitch < 2 or others:
        return None
    return int(pitch) * dtypes.bytes_of(buffer.dtype)


def paddings(requests: Sequence[Request], buffer: Buffer) -> dict[int, tuple[int, int]]:
    """Return what the accesses to an array cost if its rows were longer.

    Parameters
    ----------
    requests
        A request of each access of the kernel.
    buffer
        The array, in shared memory.

    Returns
    -------
    dict
        Elements added to each row -> passes, and passes without conflicts, of one request of each
        access to the array. Elements are added so that wide accesses stay aligned. Without rows,
        only 0 is there.
    """
    own = [each for each in requests if each.site.buffer is buffer and each.addresses]
    if not own:
        return {}
    found = {0: (sum(r.wavefronts for r in own), sum(r.ideal_wavefronts for r in own))}
    if row_bytes(buffer) is None:
        return found
    unit = max(max(r.bytes for r in own), WORD_BYTES) // dtypes.bytes_of(buffer.dtype)
    for count in PADDINGS:
        moved = [padded(request, count * unit) for request in own]
        passes = sum(r.wavefronts for r in moved)
        found[count * unit] = passes, sum(r.ideal_wavefronts for r in moved)
    return found


def best_padding(found: dict[int, tuple[int, int]]) -> int:
    """Return the fewest elements by which rows must be longer for the fewest passes; 0 if none."""
    return min(found, key=lambda elements: (found[elements][0], elements), default=0)
