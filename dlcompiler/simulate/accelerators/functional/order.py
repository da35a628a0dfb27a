"""The order in which a functional simulation runs instructions: any that the tokens allow."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from dlcompiler.simulate.accelerators.functional.findings import Findings
from dlcompiler.simulate.accelerators.program import InstructionProgram
from dlcompiler.simulate.accelerators.work import Work


class Interleaving:
    """The engines of a program, which run their instructions in order, one engine at a time.

    Parameters
    ----------
    program : InstructionProgram
        The program.
    works : sequence of Work
        Its instructions.
    findings : Findings
        Where tokens that are left are reported.
    seed : int or None
        Chooses an order at random; None runs the instruction first that was fetched first.
    """

    def __init__(
        self,
        program: InstructionProgram,
        works: Sequence[Work],
        findings: Findings,
        seed: int | None,
    ) -> None:
        accelerator = program.accelerator
        assert accelerator.queues is not None
        self._engines = [engine.name for engine in accelerator.engines]
        self._queues = list(accelerator.queues)
        self._works = works
        self._findings = findings
        self._chooser = None if seed is None else random.Random(seed)
        self._held = [0] * len(self._queues)
        self._last_push: dict[int, int] = {}
        self._lanes: list[list[int]] = [[] for _ in self._engines]
        for step in range(len(works) - 1, -1, -1):
            self._lanes[works[step].engine].append(step)  # the next one is the last

    def steps(self) -> Iterator[int]:
        """Yield the instructions in the order in which they run.

        Raises
        ------
        InstructionError
            A deadlock, or a token for which a queue has no place.
        """
        held = self._held
        for _ in self._works:
            step = self._next()
            work = self._works[step]
            for queue in work.pops:
                held[queue] -= 1
            yield step
            for queue in work.pushes:
                held[queue] += 1
                self._last_push[queue] = step
                if held[queue] > self._queues[queue].depth:
                    raise self._findings.error(
                        "token overflow", f"too many tokens in {self._queues[queue].name}", step,
                        got=str(held[queue]), expected=f"at most {self._queues[queue].depth}",
                    )  # fmt: skip
        self._check_left()

    def _next(self) -> int:
        """Take the next instruction of an engine that can run one."""
        possible = [lane for lane in self._lanes if lane and self._is_ready(lane[-1])]
        if not possible:
            raise self._deadlock()
        if len(possible) > 1:
            # A full queue makes its source wait, as long as another engine can run.
            roomy = [lane for lane in possible if self._has_room(lane[-1])]
            possible = roomy or possible
        if self._chooser is not None:
            return self._chooser.choice(possible).pop()
        return min(possible, key=lambda lane: lane[-1]).pop()

    def _is_ready(self, step: int) -> bool:
        return all(self._held[queue] for queue in self._works[step].pops)

    def _has_room(self, step: int) -> bool:
        pushes = self._works[step].pushes
        return all(self._held[queue] < self._queues[queue].depth for queue in pushes)

    def _check_left(self) -> None:
        for queue, count in enumerate(self._held):
            if count:
                name = self._queues[queue].name
                self._findings.report(
                    "leftover tokens", "tokens are left when the program ends",
                    self._last_push[queue], got=f"{count} in {name}",
                    expected="each token is popped", hint="the excerpt pushed the last of them",
                )  # fmt: skip

    def _deadlock(self) -> Exception:
        texts = []
        waiting = [lane[-1] for lane in self._lanes if lane]
        for step in waiting:
            work = self._works[step]
            missing = [self._queues[q].name for q in work.pops if not self._held[q]]
            name = self._engines[work.engine]
            texts.append(f"{name} at instruction {step} for {', '.join(missing)}")
        return self._findings.error(
            "deadlock", "deadlock: every engine that has instructions waits for a token",
            waiting[0], got="; ".join(texts),
            because="no instruction that can still run pushes one of these tokens",
        )  # fmt: skip
