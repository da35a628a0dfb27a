"""The parts of a timed simulation that all profiles share: queues, tokens, engines.

An engine is idle or runs one instruction. In an idle cycle it accepts the next instruction of its
queue if that was dispatched before and all tokens that it pops are there. The instruction starts in
the next cycle. When it ends, its tokens can be popped and the engine is idle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dlcompiler.simulate.accelerators.errors import InstructionError
from dlcompiler.simulate.accelerators.program import InstructionProgram
from dlcompiler.simulate.accelerators.timing.events import ACT, Events
from dlcompiler.simulate.accelerators.work import Work, works_of

FREE, FETCH = -1, -2
"""Reasons of a start: the engine had nothing else to wait for; the instruction was fetched late.
Other reasons are numbers of token queues."""


class Profile(Protocol):
    """The rules in which machines differ: fetch, memory port, what an instruction takes."""

    def launch(self) -> None:
        """Begin to fetch."""

    def begin(self, step: int, time: int) -> None:
        """Run an instruction that starts at a cycle, and call `Machine.finish` in the end."""


class Machine:
    """Engines that run the instructions of a program, cycle by cycle."""

    def __init__(self, program: InstructionProgram) -> None:
        accelerator = program.accelerator
        assert accelerator.queues is not None
        self.program = program
        self.events = Events()
        self.works: list[Work] = works_of(program)
        self.depths = [engine.queue for engine in accelerator.engines]
        self.queues = list(accelerator.queues)
        numbers = {engine.name: n for n, engine in enumerate(accelerator.engines)}
        self._sinks = [numbers[queue.sink] for queue in self.queues]
        count = len(self.works)
        self.dispatched = [0] * count
        self.start = [-1] * count
        self.end = [-1] * count
        self.idle_since = [0] * count
        """The cycle from which the engine could have accepted the instruction."""
        self.reason = [FREE] * count
        self.reason_step = [-1] * count
        """The instruction that pushed the token of the reason."""
        self.port_wait = [0] * count
        self._lanes: list[list[int]] = [[] for _ in self.depths]
        self._position = [0] * len(self.depths)
        self._idle = [0] * len(self.depths)
        self._running = [False] * len(self.depths)
        self._pushes: list[list[tuple[int, int]]] = [[] for _ in self.queues]
        self._popped = [0] * len(self.queues)
        self._held = [0] * len(self.queues)
        self._next = self._stop = 0
        self._then: Callable[[int], None] | None = None
        self._blocked: tuple[int, int] | None = None

    # Fetch

    def dispatch(self, time: int, count: int, then: Callable[[int], None]) -> None:
        """Dispatch the next instructions, one a cycle; a full queue delays this.

        Parameters
        ----------
        time : int
            The cycle of the first one.
        count : int
            How many.
        then : callable
            Called with the cycle of the last one.
        """
        self._stop, self._then = self._next + count, then
        self._dispatch(time)

    def _dispatch(self, time: int) -> None:
        self._blocked = None
        lanes, works = self._lanes, self.works
        while self._next < self._stop:
            step = self._next
            engine = works[step].engine
            lane, depth = lanes[engine], self.depths[engine]
            if len(lane) >= depth:
                # The queue has a free place once the instruction `depth` places before has ended.
                before = lane[len(lane) - depth]
                if self._position[engine] + depth <= len(lane):
                    self._blocked = (engine, time)
                    return
                time = max(time, self.end[before])
            lane.append(step)
            self.dispatched[step] = time
            self._next = step + 1
            time += 1
            self._accept(engine)
        assert self._then is not None
        self._then(time - 1)

    # Engines

    def _accept(self, engine: int) -> None:
        """Let an idle engine accept its next instruction, if that is known to be possible."""
        position, lane = self._position[engine], self._lanes[engine]
        if self._running[engine] or position >= len(lane):
            return
        step = lane[position]
        work = self.works[step]
        idle = time = self._idle[engine]
        reason, pusher = FREE, -1
        if self.dispatched[step] >= time:
            time, reason = self.dispatched[step] + 1, FETCH
        for queue in work.pops:
            if self._popped[queue] >= len(self._pushes[queue]):
                return
            available, source = self._pushes[queue][self._popped[queue]]
            if available > time:
                time, reason, pusher = available, queue, source
        for queue in work.pops:
            self._popped[queue] += 1
        self._running[engine] = True
        self.start[step] = time + 1
        self.idle_since[step] = idle
        self.reason[step], self.reason_step[step] = reason, pusher
        self.events.at(time + 1, ACT, self._begin, step, time + 1)

    def _begin(self, step: int, time: int) -> None:
        for queue in self.works[step].pops:
            self._held[queue] -= 1
        self.profile.begin(step, time)

    profile: Profile

    def finish(self, step: int, time: int) -> None:
        """End an instruction: `time` is the first cycle in which its engine is idle."""
        self.end[step] = time
        self.events.at(time, ACT, self._finished, step, time)

    def _finished(self, step: int, time: int) -> None:
        work = self.works[step]
        engine = work.engine
        self._idle[engine] = time
        self._running[engine] = False
        self._position[engine] += 1
        for queue in work.pushes:
            self._pushes[queue].append((time, step))
            self._held[queue] += 1
            if self._held[queue] > self.queues[queue].depth:
                raise InstructionError(
                    "simulate the program", f"too many tokens in {self.queues[queue].name}",
                    kind="token overflow", step=step, program=self.program,
                    got=f"{self._held[queue]} tokens in cycle {time}",
                    expected=f"at most {self.queues[queue].depth}",
                )  # fmt: skip
        self._accept(engine)
        for queue in work.pushes:
            self._accept(self._sinks[queue])
        if self._blocked is not None and self._blocked[0] == engine:
            self._dispatch(max(time, self._blocked[1]))

    # Result

    def run(self) -> None:
        """Run the program, and check that it ends as it should.

        Raises
        ------
        InstructionError
            Engines wait for tokens that nobody pushes, or tokens are left.
        """
        self.profile.launch()
        self.events.run()
        self._check_ended()
        left = {self.queues[q].name: held for q, held in enumerate(self._held) if held}
        if left:
            queue = next(q for q, held in enumerate(self._held) if held)
            raise InstructionError(
                "simulate the program", "tokens are left when the program ends",
                kind="leftover tokens", step=self._pushes[queue][self._popped[queue]][1],
                program=self.program,
                got=", ".join(f"{count} in {name}" for name, count in left.items()),
                expected="each token is popped", hint="the excerpt pushed the first of them",
            )  # fmt: skip

    def _check_ended(self) -> None:
        waiting = []
        for engine, lane in enumerate(self._lanes):
            if self._position[engine] < len(lane):
                waiting.append(lane[self._position[engine]])
        if not waiting:
            return
        names = [engine.name for engine in self.program.accelerator.engines]
        texts = []
        for step in waiting:
            missing = [
                self.queues[q].name for q in self.works[step].pops
                if self._popped[q] >= len(self._pushes[q])
            ]  # fmt: skip
            text = (
                f"{names[self.works[step].engine]} at instruction {step} for {', '.join(missing)}"
            )
            texts.append(text)
        raise InstructionError(
            "simulate the program",
            "deadlock: every engine that has instructions waits for a token", kind="deadlock",
            step=waiting[0], program=self.program, got="; ".join(texts),
            because="no instruction that can still run pushes one of these tokens",
        )  # fmt: skip
