"""The order in which a functional simulation runs instructions: any that the tokens allow."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from dlcompiler.simulate.accelerators.functional.findings import Findings
from dlcompiler.simulate.accelerators.program import InstructionProgram
from dlcompiler.simulate.accelerators.work import Work


def interleaving(
    program: InstructionProgram, works: Sequence[Work], findings: Findings, seed: int | None
) -> Iterator[int]:
    """Yield the instructions in an order in which the engines may run them.

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

    Raises
    ------
    InstructionError
        A deadlock, or a token for which a queue has no place.
    """
    accelerator = program.accelerator
    assert accelerator.queues is not None
    depths = [queue.depth for queue in accelerator.queues]
    held = [0] * len(depths)
    lanes: list[list[int]] = [[] for _ in accelerator.engines]
    for step, work in enumerate(works):
        lanes[work.engine].append(step)
    position = [0] * len(lanes)
    chooser = random.Random(seed) if seed is not None else None
    last_push: dict[int, int] = {}

    def ready(*, may_overflow: bool) -> list[int]:
        found = []
        for engine, lane in enumerate(lanes):
            if position[engine] == len(lane):
                continue
            work = works[lane[position[engine]]]
            if all([held[q] for q in work.pops]) and (
                may_overflow or all([held[q] < depths[q] for q in work.pushes])
            ):
                found.append(engine)
        return found

    for _ in works:
        possible = ready(may_overflow=False) or ready(may_overflow=True)
        if not possible:
            raise _deadlock(program, works, lanes, position, held, findings)
        if chooser is None:
            engine = min(possible, key=lambda each: lanes[each][position[each]])
        else:
            engine = chooser.choice(possible)
        step = lanes[engine][position[engine]]
        position[engine] += 1
        work = works[step]
        for queue in work.pops:
            held[queue] -= 1
        yield step
        for queue in work.pushes:
            held[queue] += 1
            last_push[queue] = step
            if held[queue] > depths[queue]:
                raise findings.error(
                    "token overflow", f"too many tokens in {accelerator.queues[queue].name}", step,
                    got=str(held[queue]), expected=f"at most {depths[queue]}",
                )  # fmt: skip
    for queue, count in enumerate(held):
        if count:
            findings.report(
                "leftover tokens", "tokens are left when the program ends", last_push[queue],
                got=f"{count} in {accelerator.queues[queue].name}", expected="each token is popped",
                hint="the excerpt pushed the last of them",
            )  # fmt: skip


def _deadlock(
    program: InstructionProgram,
    works: Sequence[Work],
    lanes: list[list[int]],
    position: list[int],
    held: list[int],
    findings: Findings,
) -> Exception:
    accelerator = program.accelerator
    assert accelerator.queues is not None
    texts, first = [], -1
    for engine, lane in enumerate(lanes):
        if position[engine] == len(lane):
            continue
        step = lane[position[engine]]
        first = step if first < 0 else first
        missing = [accelerator.queues[q].name for q in works[step].pops if not held[q]]
        texts.append(f"{accelerator.engines[engine].name} at instruction {step} for"
                     f" {', '.join(missing)}")  # fmt: skip
    return findings.error(
        "deadlock", "deadlock: every engine that has instructions waits for a token", first,
        got="; ".join(texts),
        because="no instruction that can still run pushes one of these tokens",
    )  # fmt: skip
