"""Tokens: which instruction waits for which of another engine.

`ExactTokens` looks at elements. An instruction waits for the last writer of each element that it
reads, and for the last writer and the last readers of each element that it writes. It does not wait
for what is known to be over: with a token it learns all that the sender knew.

A queue never holds more tokens than its depth, in whatever order the engines run. The token that
takes its last place is pushed by the latest instruction of its source, so that it stands for all
before. The next instruction of the source waits until that token has been popped.

`ContextTokens` looks at engines only, as classic TVM does: each instruction waits for the one
before it in its virtual thread, if that is on another engine.
"""

from __future__ import annotations

import itertools
from bisect import bisect
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dlcompiler.errors import TargetError
from dlcompiler.ir import Var
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
    thread: Mapping[Var, int] = field(default_factory=dict)
    """Loops of virtual threads around it, with their numbers."""

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
        self._outgoing = [
            [(n, self.queues[engine, sink]) for n, sink in enumerate(self.engines)
             if (engine, sink) in self.queues] for engine in self.engines
        ]  # fmt: skip
        """For each engine, the number of each engine that it sends tokens, and their queue."""
        self._depths = {queue.name: queue.depth for queue in accelerator.queues or ()}
        self._pops: dict[str, list[int]] = {name: [] for name in self._depths}
        """For each queue, the number of the instruction that pops each of its tokens."""
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
        self._wait(mine, self._needed(draft), draft)
        self._note(mine, self._append(mine, draft), draft)

    def _note(self, mine: int, number: int, draft: Draft) -> None:
        """Note what the instruction of a number accesses."""
        for name, elements in draft.reads:
            self._accesses[name].read[mine, elements] = number
        for name, elements in draft.writes:
            self._accesses[name].written[mine, elements] = number

    def _needed(self, draft: Draft) -> npt.NDArray[np.int64]:
        """Return, for each engine, the number of the instruction that must be over before one."""
        needed = np.zeros(len(self.engines), np.int64)
        for name, elements in draft.reads:
            np.maximum(needed, _latest(self._accesses[name].written, elements), out=needed)
        for name, elements in draft.writes:
            accesses = self._accesses[name]
            np.maximum(needed, _latest(accesses.written, elements), out=needed)
            np.maximum(needed, _latest(accesses.read, elements), out=needed)
        return needed

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
        self._room(mine, needed)
        needed[mine] = 0
        while True:
            open_ = list(np.flatnonzero(needed > self._known[mine]))
            if not open_:
                return
            # What another wait brings anyway needs no token of its own: that of an instruction
            # which knows of it, or of an engine through which another token passes.
            source = max(
                (
                    n
                    for n in open_
                    if not any(
                        self._clocks[o][needed[o] - 1][n] >= needed[n] for o in open_ if o != n
                    )
                ),
                key=lambda n: len(self._path(int(n), mine)),
            )
            self._token(int(source), mine, int(needed[source]), draft)

    def _room(self, source: int, needed: npt.NDArray[np.int64]) -> None:
        """Add to `needed`, for each engine, what must be over before `source` may push."""
        for sink, queue in self._outgoing[source]:
            held, pops = self._held(queue, self._known[source][sink]), self._pops[queue]
            if held >= self._depths[queue]:
                needed[sink] = max(needed[sink], pops[-1])

    def _held(self, queue: str, over: np.int64) -> int:
        """Return how many tokens a queue holds at most if its sink has run so many instructions."""
        pops = self._pops[queue]
        return len(pops) - bisect(pops, int(over)) if pops and pops[-1] > over else 0

    def _token(self, source: int, sink: int, number: int, draft: Draft) -> None:
        """Send a token to `draft`, through other engines if no queue leads to its own."""
        path, sent = self._path(source, sink), number
        for place, (start, end) in enumerate(itertools.pairwise(path)):
            is_last = place == len(path) - 2
            receiver = draft if is_last else Draft(self.nop(self.engines[end]))
            if self._known[end][source] < number:
                queue = self.queues[self.engines[start], self.engines[end]]
                if queue in receiver.pops:  # an instruction pops a queue once
                    before_it = Draft(self.nop(receiver.engine), pops=[*receiver.pops])
                    self._append(end, before_it)
                    receiver.pops.clear()
                sent = self._sender(queue, start, end, sent)
                self._done[start][sent - 1].pushes.append(queue)
                receiver.pops.append(queue)
                self._pops[queue].append(len(self._done[end]) + 1)
                self._known[end] = np.maximum(self._known[end], self._clocks[start][sent - 1])
            if not is_last:
                sent = self._append(end, receiver)

    def _sender(self, queue: str, source: int, sink: int, number: int) -> int:
        """Return the instruction from `number` on that pushes a token.

        Raises
        ------
        TargetError
            The queue may be full.
        """
        last, depth = len(self._done[source]), self._depths[queue]
        for sender in (number, last):
            held = self._held(queue, self._clocks[source][sender - 1][sink])
            if held < depth - (sender < last):
                return sender
        raise TargetError(
            "insert tokens", f"the token queue {queue} is too short", got=f"depth {depth}",
            because="one token more would not fit, and the way back passes through other engines",
            hint="TokenQueue(…, depth=…), or a queue in each direction",
        )  # fmt: skip

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
        start, end = self.engines[source], self.engines[sink]
        raise TargetError(
            "insert tokens", f"no token queues lead from {start} to {end}",
            got=", ".join(self.queues.values()) or "none",
            because=f"an instruction of {end} needs what one of {start} does",
            hint=f"TokenQueue({start!r}, {end!r}); without queues= there are queues between all"
            " engines of a memory",
        )  # fmt: skip


class ContextTokens(ExactTokens):
    """Inserts tokens where a virtual thread goes on to another engine.

    The program of each thread is then run one instruction after another. Engines overlap only if
    they work for different threads. An instruction outside the loops of virtual threads belongs to
    all of them. Where threads use the same elements, a token orders them as `ExactTokens` does.

    Parameters
    ----------
    accelerator, depths, nop
        As of `ExactTokens`.
    threads
        The numbers of each virtual thread in the loops of virtual threads; one without such loops.

    Notes
    -----
    **Source:** T. Chen et al., "TVM", OSDI 2018, section 4.4; the tokens at the end are those of
    VTA's runtime.
    """

    def __init__(
        self,
        accelerator: Accelerator,
        depths: Mapping[str, int],
        nop: Callable[[str], Step],
        threads: Sequence[Mapping[Var, int]],
    ) -> None:
        super().__init__(accelerator, depths, nop)
        self._threads = threads
        self._last: list[tuple[int, int] | None] = [None] * len(threads)
        """For each thread, the engine and the number of its last instruction."""

    def add(self, draft: Draft) -> None:
        """Append an instruction, which waits for the one before it in its threads."""
        mine = self.engines.index(draft.engine)
        own = [
            n
            for n, thread in enumerate(self._threads)
            if all(thread[var] == number for var, number in draft.thread.items())
        ]
        needed = self._needed(draft)
        for last in (self._last[n] for n in own):
            if last is not None:
                needed[last[0]] = max(needed[last[0]], last[1])
        self._wait(mine, needed, draft)
        number = self._append(mine, draft)
        self._note(mine, number, draft)
        for n in own:
            self._last[n] = mine, number

    def join(self, draft: Draft) -> None:
        """Append an instruction that waits for a token of each engine, even of an idle one."""
        mine = self.engines.index(draft.engine)
        for engine in reversed(range(len(self.engines))):
            queue = self.queues.get((self.engines[engine], draft.engine))
            if queue is None:
                continue
            last = self.order[-1] if self.order else None
            held = self._held(queue, self._known[engine][mine])
            is_free = last is not None and queue not in last.pushes and held < self._depths[queue]
            if last is None or last.engine != self.engines[engine] or not is_free:
                last = Draft(self.nop(self.engines[engine]))
                self._wait(engine, np.zeros(len(self.engines), np.int64), last)
                self._append(engine, last)
            last.pushes.append(queue)
            draft.pops.insert(0, queue)
            self._pops[queue].append(len(self._done[mine]) + 1)
        number = self._append(mine, draft)
        self._last = [(mine, number)] * len(self._last)


def _latest(accesses: npt.NDArray[np.int64], elements: Elements | slice) -> npt.NDArray[np.int64]:
    """Return, for each engine, the number of its last access of some elements."""
    part = accesses[:, elements]
    latest: npt.NDArray[np.int64] = part.max(axis=1) if part.shape[1] else part.sum(axis=1)
    return latest
