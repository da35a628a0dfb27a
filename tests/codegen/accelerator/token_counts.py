"""How many tokens the queues of a program hold at most, in any order of its engines."""

from bisect import bisect

import numpy as np


def most_tokens(program):
    """Return the most tokens in each queue: those whose pop the instruction that pushes knows of
    are gone; {name of a queue: tokens}."""
    accelerator = program.accelerator
    engines = [engine.name for engine in accelerator.engines]
    queues = {queue.name: queue for queue in accelerator.queues}
    known = {name: np.zeros(len(engines), int) for name in engines}
    pushed = {name: [] for name in queues}
    """Queue -> what is known when each of its tokens is pushed."""
    pops = {name: [] for name in queues}
    """Queue -> the number of the instruction of its sink that pops each of its tokens."""
    for step in program.steps:
        engine = step.instruction.engine
        own = engines.index(engine)
        for queue in step.pops:
            known[engine] = np.maximum(known[engine], pushed[queue][len(pops[queue])])
            pops[queue].append(known[engine][own] + 1)
        known[engine][own] += 1
        for queue in step.pushes:
            pushed[queue].append(known[engine].copy())
    return {
        name: max(
            (
                number - bisect(pops[name], clock[engines.index(queue.sink)])
                for number, clock in enumerate(pushed[name], 1)
            ),
            default=0,
        )
        for name, queue in queues.items()
    }
