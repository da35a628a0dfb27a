"""Count the candidates that a search for a simulated GPU verifies in a second: ``gpu-search``.

Random configs of the library's operators go through the pool that `dlcompiler.autotune.tune` uses:
each is scheduled, lowered, its time predicted, compiled for this CPU, run on all test inputs, and
its results compared. Nothing is searched, so that each run measures the same candidates.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dlcompiler.autotune.pools.simulated import SimulatedPool
from dlcompiler.autotune.trial import Result
from dlcompiler.ops import operator
from dlcompiler.target import resolve

SCHEMA_VERSION = 1
TARGET = "rtx-3090"
COUNT, FIRST = 120, 16
"""Configs that are timed, and those before them, whose time includes starting processes; [1]."""
WORKS: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "matmul 256": ("matmul", {"m": 256, "n": 256, "k": 256}),
    "batch_matmul 8 of 128": ("batch_matmul", {"batch": 8, "m": 128, "n": 128, "k": 64}),
    "conv2d_direct 32x28x28": (
        "conv2d_direct", {"c": 32, "h": 28, "w": 28, "o": 64, "kernel": 3, "padding": 1}
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """How fast candidates of a work are verified."""

    work: str
    outcomes: Mapping[str, int]
    """How many candidates had each outcome; ``ok`` are the verified ones."""
    seconds: float
    """Time of all of them [s]."""
    workers: int
    """Processes that work at once [1]."""

    @property
    def rate_per_s(self) -> float:
        """Verified candidates in a second [1/s]."""
        return self.outcomes.get("ok", 0) / self.seconds

    def __str__(self) -> str:
        found = ", ".join(f"{count} {outcome}" for outcome, count in self.outcomes.items())
        return (
            f"{self.work:<24} {self.rate_per_s:6.1f} verified candidates a second, by "
            f"{self.workers} workers ({found})"
        )


def run_suite(
    say: Callable[[str], None], works: Mapping[str, tuple[str, Mapping[str, int]]] = WORKS, *,
    count: int = COUNT, first: int = FIRST,
) -> dict[str, Any]:  # fmt: skip
    """Verify random candidates of each work; return the document.

    Parameters
    ----------
    say
        Called with each row as soon as it is measured.
    works
        Name -> operator and parameters of the workload.
    count, first
        As `COUNT` and `FIRST`.
    """
    rows = []
    for name, (op, parameters) in works.items():
        rows.append(measure(name, op, parameters, count=count, first=first))
        say(str(rows[-1]))
    document = [{**asdict(row), "rate_per_s": row.rate_per_s} for row in rows]
    return {"version": SCHEMA_VERSION, "target": TARGET, "gpu search": document, "failed": {}}


def measure(name: str, op: str, parameters: Mapping[str, int], *, count: int, first: int) -> Row:
    """Verify random candidates of one work."""
    item, target = operator(op), resolve(TARGET)
    workload = item.workload(**parameters)
    space = item.space(workload, target)
    configs = [space.at(point) for point in space.sample(min(first + count, space.size), 0)]
    pool = SimulatedPool(item, workload, target)
    found: list[Result] = []

    def report(_: int, result: Result) -> None:
        found.append(result)

    try:
        pool.measure(configs[:first], None, report)
        best_s = min((s for result in found for s in result.samples_s), default=None)
        found.clear()
        start = time.perf_counter()
        pool.measure(configs[first:], best_s, report)
        seconds = time.perf_counter() - start
    finally:
        pool.close()
    outcomes: Counter[str] = Counter(result.outcome for result in found)
    return Row(name, dict(outcomes), seconds, pool.workers)
