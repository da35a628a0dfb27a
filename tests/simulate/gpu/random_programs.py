"""Compare counters with an enumeration on random programs of threads.

``python -m tests.simulate.gpu.random_programs --cases 1000`` tries the schedules of random
expressions, one for each seed, and prints those whose counters are wrong.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from dlcompiler.errors import ScheduleError, TargetError, UserError
from dlcompiler.ir import Buffer, Var
from dlcompiler.ir.program import Launch, Program
from dlcompiler.passes.merge_thread_loops import merge_thread_loops
from dlcompiler.pipeline import lower_program
from dlcompiler.schedule.inference.thread_loops import uses_threads
from dlcompiler.simulate.gpu import Given, KernelCounters, count_launch
from dlcompiler.simulate.gpu.populations import astuple
from tests.fuzz.checks import Oracle, case_of, stored
from tests.fuzz.threads import ThreadWalk
from tests.simulate.gpu.enumeration import DataDecidesError, Enumeration

MOST_STATEMENTS = 150_000
"""Most statements, each executed by one thread, that an enumeration runs through; [1]."""
Numbers = dict[Any, list[int]]


def both(counters: KernelCounters, *, most: bool) -> tuple[Numbers, Numbers]:
    """Return the least or the greatest counts in the form of an `Enumeration`."""
    kinds = {
        kind: [found[most].requests, found[most].lanes]
        for kind, found in counters.instructions.items()
    }
    accesses = {
        (a.site.buffer, a.site.is_write, a.site.origin, a.site.number, a.bytes): list(
            astuple(a.most if most else a.least)
        )
        for a in counters.accesses
    }
    return ({kind: n for kind, n in kinds.items() if any(n)},
            {key: n for key, n in accesses.items() if any(n)})  # fmt: skip


def differences(launch: Launch, given: Given) -> list[str]:
    """Return how the counters of a launch differ from an enumeration."""
    thread = merge_thread_loops(launch)
    counters = count_launch(thread, launch.kernel.name, loops=launch.loops, given=given)
    if sum(most.lanes for _, most in counters.instructions.values()) > MOST_STATEMENTS:
        return ["large"]
    try:
        enumeration = Enumeration(thread, launch.loops, given.numbers, given.arrays)
    except DataDecidesError:
        return ["data"]
    wanted = dict(enumeration.instructions), dict(enumeration.accesses)
    wrong = []
    if counters.is_exact:
        pairs = zip(both(counters, most=False), wanted, strict=True)
        wrong = [_difference(found, want) for found, want in pairs if found != want]
    else:
        wrong = _not_bounded(counters, wanted)
    if given.arrays:
        with contextlib.suppress(UserError):  # data decides how often a loop runs
            blind = Given(given.numbers)
            wrong += _not_bounded(count_launch(thread, loops=launch.loops, given=blind), wanted)
    return wrong


def _not_bounded(counters: KernelCounters, wanted: tuple[Numbers, Numbers]) -> list[str]:
    return [
        text
        for most in (False, True)
        for found, want in zip(both(counters, most=most), wanted, strict=True)
        for text in _outside(found, want, most=most)
    ]


def _difference(found: Numbers, wanted: Numbers) -> str:
    keys = [key for key in {**found, **wanted} if found.get(key) != wanted.get(key)]
    return "\n".join(f"{key}: {found.get(key)} instead of {wanted.get(key)}" for key in keys)


def _outside(found: Numbers, wanted: Numbers, *, most: bool) -> list[str]:
    return [
        f"{key}: {found.get(key)} is no bound of {wanted.get(key)}"
        for key in {**found, **wanted}
        for bound, true in zip(found.get(key, [0] * 6), wanted.get(key, [0] * 6), strict=False)
        if (bound < true if most else bound > true)
    ]


def given_of(program: Program, arrays: Mapping[Any, np.ndarray], sizes: Mapping[Var, int]) -> Given:
    """Return the arguments of a program: arrays in the order of its parameters."""
    read_only = [b for b in program.func.buffers if b not in program.func.outputs]
    known: dict[Buffer, np.ndarray] = dict(zip(read_only, arrays.values(), strict=True))
    return Given(dict(sizes), known)


def try_seed(seed: int) -> tuple[str, str]:
    """Return what became of a case (``exact``, ``wrong`` …), and the text of what is wrong."""
    case = case_of(seed, walk=ThreadWalk)
    schedule = case.schedule()
    if not uses_threads(schedule.state):
        return "no threads", ""
    results = stored(case, schedule)
    try:
        program = lower_program(schedule, [*case.expression.inputs, *results], "gpu")
    except (ScheduleError, TargetError):
        return "refused", ""
    outcome = "exact"
    for values in case.expression.sizes(case.seed)[:1]:
        oracle = Oracle(case, results, values)
        given = given_of(program, oracle.arrays, values or {})
        for launch in program.launches:
            found = differences(launch, given)
            if found in (["large"], ["data"]):
                outcome = found[0]
            elif found:
                return "wrong", f"seed {seed}: {case}\n{launch.kernel}\n" + "\n".join(found)
    return outcome, ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    outcomes: collections.Counter[str] = collections.Counter()
    for seed in range(options.first, options.first + options.cases):
        try:
            outcome, text = try_seed(seed)
        except Exception as error:
            outcome, text = "failed", f"seed {seed}: {type(error).__name__}: {error}"
        outcomes[outcome] += 1
        if text:
            print(text, flush=True)
    print(dict(outcomes))
    return int(bool(outcomes["wrong"] or outcomes["failed"]))


if __name__ == "__main__":
    sys.exit(main())
