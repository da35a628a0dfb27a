"""Tokens: which instruction waits for which of another engine.

An instruction waits for the last writer of each element that it reads, and for the last writer and
the last readers of each element that it writes. It does not wait for what is known to be over: with
a token it learns all that the sender knew.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dlcompiler.errors import InternalError
from dlcompiler.simulate.accelerators import Step
from dlcompiler.target.accelerators import Accelerator

Elements = npt.NDArray[np.int64]


@dataclass(slots=True)
class Draft:
    """An instruction before it has its tokens, with the elements that it accesses."""

    step: Step
    reads: tuple[tuple[str, Elements | slice], ...] = ()
    """Name of a memory, and the elements of it that are read."""
    writes: tuple[tuple[str, Elements | slice], ...] = ()
    pops: list[str] = field(default_factory=list)
    pushes: list[str] = field(default_factory=list)

    @property
    def engine(self) -> str:
        """The engine that runs it."""
        return self.step.instruction.engine

    def finished(self) -> Step:
        """Return the instruction with its tokens."""
        return self.step._replace(pops=tuple(self.pops), pushes=tuple(self.pushes))


class _Accesses:
    """The last accesses of each element of one memory, by engine, as numbers from 1; 0: none."""

    def __init__(self, depth: int, engines: int) -> None:
        self.written = np.zeros((engines, depth), np.int64)
        self.read = np.zeros((engines, depth), np.int64)


class ExactTokens:
    """Inserts tokens for the dependences between elements.

    Parameters
    ----------
    accelerator
        Its engines and queues.
    depths
        Name of a memory, or of a buffer in DRAM -> number of its elements.
    nop
        Returns an instruction of an engine that does nothing but pass tokens on.
    """

    def __init__(
        self,
        accelerator: Accelerator,
        depths: Mapping[str, int],
        nop: Callable[[str], Step],
    ) -> None:
        self.engines = [engine.name for engine in accelerator.engines]
        self.queues = {(q.source, q.sink): q.name for q in accelerator.queues or ()}
        self.nop = nop
        count = len(self.engines)
        self._accesses = {name: _Accesses(depth, count) for name, depth in depths.items()}
        self._done: list[list[Draft]] = [[] for _ in self.engines]
        self._known = [np.zeros(count, np.int64) for _ in self.engines]
        """For each engine, how many instructions of each are known to be over."""
        self._clocks: list[list[npt.NDArray[np.int64]]] = [[] for _ in self.engines]
        """For each instruction of an engine, what is known when it is over."""
        self.order: list[Draft] = []

    def add(self, draft: Draft) -> None:
        """Append an instruction, with the tokens that it needs."""
        mine = self.engines.index(draft.engine)
        needed = np.zeros(len(self.engines), np.int64)
        for name, elements in draft.reads:
            np.maximum(needed, _latest(self._accesses[name].written, elements), out=needed)
        for name, elements in draft.writes:
            accesses = self._accesses[name]
            np.maximum(needed, _latest(accesses.written, elements), out=needed)
            np.maximum(needed, _latest(accesses.read, elements), out=needed)
        self._wait(mine, needed, draft)
        number = self._append(mine, draft)
        for name, elements in draft.reads:
            self._accesses[name].read[mine, elements] = number
        for name, elements in draft.writes:
            self._accesses[name].written[mine, elements] = number

    def join(self, draft: Draft) -> None:
        """Append an instruction that waits for all engines."""
        mine = self.engines.index(draft.engine)
        self._wait(mine, np.array([len(done) for done in self._done]), draft)
        self._append(mine, draft)

    def _append(self, engine: int, draft: Draft) -> int:
        self.order.append(draft)
        self._done[engine].append(draft)
        number = len(self._done[engine])
        clock = self._known[engine].copy()
        clock[engine] = number
        self._known[engine] = clock
        self._clocks[engine].append(clock)
        return number

    def _wait(self, mine: int, needed: npt.NDArray[np.int64], draft: Draft) -> None:
        """Let an instruction wait until the needed instructions of other engines are over."""
        needed[mine] = 0
        while True:
            open_ = list(np.flatnonzero(needed > self._known[mine]))
            if not open_:
                return
            # What another wait brings anyway needs no token of its own.
            source = next(
                n
                for n in open_
                if not any(self._clocks[o][needed[o] - 1][n] >= needed[n] for o in open_ if o != n)
            )
            self._token(int(source), mine, int(needed[source]), draft)

    def _token(self, source: int, sink: int, number: int, draft: Draft) -> None:
        """Send a token to `draft`, through other engines if no queue leads to its own."""
        path = self._path(source, sink)
        sender, before = self._done[source][number - 1], self._clocks[source][number - 1]
        for place, (start, end) in enumerate(itertools.pairwise(path)):
            is_last = place == len(path) - 2
            receiver = draft if is_last else Draft(self.nop(self.engines[end]))
            if self._known[end][source] < number:
                queue = self.queues[self.engines[start], self.engines[end]]
                sender.pushes.append(queue)
                receiver.pops.append(queue)
                self._known[end] = np.maximum(self._known[end], before)
            if not is_last:
                passed = self._append(end, receiver)
                sender, before = receiver, self._clocks[end][passed - 1]

    def _path(self, source: int, sink: int) -> list[int]:
        """Return the engines on the shortest way of queues from one to another."""
        ways = deque([[source]])
        while ways:
            way = ways.popleft()
            if way[-1] == sink:
                return way
            ways.extend(
                [*way, n]
                for n, name in enumerate(self.engines)
                if n not in way and (self.engines[way[-1]], name) in self.queues
            )
        raise InternalError(
            "insert tokens", "no queues lead from one engine to another",
            got=f"{self.engines[source]} to {self.engines[sink]}",
        )  # fmt: skip


def _latest(accesses: npt.NDArray[np.int64], elements: Elements | slice) -> npt.NDArray[np.int64]:
    """Return, for each engine, the number of its last access of some elements."""
    part = accesses[:, elements]
    latest: npt.NDArray[np.int64] = part.max(axis=1) if part.shape[1] else part.sum(axis=1)
    return latest
