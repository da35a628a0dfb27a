"""Measure lowering, one step, and listing all moves, each from a fresh schedule."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from dlcompiler.bench.programs import Program, chain, six_step_gemm
from dlcompiler.pipeline import Change, lower

ROUNDS = 21
LATE = ("unroll", "simplify unrolled")
"""Passes whose time grows with the copies of bodies that a schedule requests."""


@dataclass(frozen=True)
class Lowered:
    """Medians of lowering a program."""

    whole_s: float
    """All passes, with the checks between them; [s]."""
    early_s: float
    """Without the passes from unrolling on; [s]."""


def time_lowering(make: Callable[[], Program], rounds: int = ROUNDS) -> Lowered:
    """Lower a program repeatedly, each time from a new schedule."""
    whole, early = [], []
    for _ in range(rounds):
        schedule, args = make()
        changes: list[Change] = []
        start = time.perf_counter()
        lower(schedule, args, observers=[changes.append])
        seconds = time.perf_counter() - start
        late = sum(change.seconds for change in changes if change.name in LATE)
        whole.append(seconds)
        early.append(seconds - late)
    return Lowered(statistics.median(whole), statistics.median(early))


def lowering_slope(stages: Sequence[int] = (10, 20, 40, 80, 160), rounds: int = 5) -> float:
    """Return the exponent of lowering time over the length of a chain, by least squares; [1]."""
    seconds = [time_lowering(partial(chain, n), rounds).whole_s for n in stages]
    xs, ys = [math.log(n) for n in stages], [math.log(value) for value in seconds]
    slope, _ = statistics.linear_regression(xs, ys)
    return slope


def step_cost(rounds: int = ROUNDS) -> float:
    """Return the median time of one checked split and of listing all moves after it; [s]."""
    seconds = []
    for _ in range(rounds):
        schedule, args = six_step_gemm()
        stage = schedule[args[-1]]
        inner = stage.leaf_iter_vars[-1]
        start = time.perf_counter()
        stage.split(inner, factor=8)
        moves = schedule.moves(stage)
        seconds.append(time.perf_counter() - start)
        assert moves
    return statistics.median(seconds)
