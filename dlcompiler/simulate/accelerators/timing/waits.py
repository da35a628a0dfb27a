"""What the engines waited for, in sum, and which push each pop took its token from."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from dlcompiler.simulate.accelerators.program import InstructionProgram
from dlcompiler.simulate.accelerators.timing.machine import FETCH
from dlcompiler.simulate.accelerators.timing.run import TimedRun


class Token(NamedTuple):
    """A token: the instruction that pushed it, and the one that popped it."""

    queue: str
    pushed_by: int
    popped_by: int


def tokens_of(program: InstructionProgram) -> list[Token]:
    """Return the tokens of a program, in the order of their pops.

    A queue has one source and one sink, and both run their instructions in order: the nth pop takes
    the token of the nth push.
    """
    pushes: dict[str, list[int]] = defaultdict(list)
    pops: dict[str, list[int]] = defaultdict(list)
    for number, step in enumerate(program.steps):
        for queue in step.pushes:
            pushes[queue].append(number)
        for queue in step.pops:
            pops[queue].append(number)
    tokens = (
        Token(queue, source, sink)
        for queue, sinks in pops.items()
        for source, sink in zip(pushes[queue], sinks, strict=False)
    )
    return sorted(tokens, key=lambda token: token.popped_by)


def waits_of(run: TimedRun) -> dict[str, dict[str, int]]:
    """Return how long each engine was idle, by what it waited for; [clock].

    Returns
    -------
    dict
        Engine -> reason -> cycles. A reason is ``"fetch"`` or the name of a token queue.
    """
    accelerator = run.program.accelerator
    assert accelerator.queues is not None
    names = {FETCH: "fetch"} | {n: queue.name for n, queue in enumerate(accelerator.queues)}
    idle = run.start - 1 - run.idle_since
    return {
        engine.name: {
            name: cycles
            for code, name in names.items()
            if (cycles := int(idle[(run.engine == number) & (run.reason == code)].sum()))
        }
        for number, engine in enumerate(accelerator.engines)
    }
