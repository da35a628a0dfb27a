"""How both measured profiles fetch: chunks of instructions, each a read of the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dlcompiler.simulate.accelerators.timing.events import ACT
from dlcompiler.simulate.accelerators.timing.machine import Machine

CHUNK = 128
"""Instructions that one request fetches at most."""


class Fetch:
    """Requests chunks of instructions, the next one when the last one was dispatched.

    Parameters
    ----------
    machine
        The engines, and the instructions.
    after_dispatch
        Cycles from the last dispatch of a chunk to the request of the next one; [clock].
    read
        Called with the cycle of a request, the number of instructions, and a function that it
        calls with the cycle of the first dispatch.
    """

    def __init__(
        self,
        machine: Machine,
        after_dispatch: int,
        read: Callable[[int, int, Callable[[int], None]], None],
    ) -> None:
        self._machine, self._read, self._after_dispatch = machine, read, after_dispatch
        self._left = len(machine.works)

    def at(self, time: int) -> None:
        """Request the next instructions at a cycle."""
        self._machine.events.at(time, ACT, self._request, time)

    def _request(self, time: int) -> None:
        count = min(CHUNK, self._left)
        self._left -= count

        def arrived(first: int) -> None:
            self._machine.dispatch(first, count, dispatched)

        def dispatched(last: int) -> None:
            if self._left:
                self.at(last + self._after_dispatch)

        self._read(time, count, arrived)


def pieces(total: int, most: int) -> Iterator[int]:
    """Yield the sizes of the bursts of a row.

    Examples
    --------
    >>> list(pieces(600, 256))
    [256, 256, 88]
    """
    while total > 0:
        yield min(total, most)
        total -= most
