"""Which workloads of a model to tune, and with how many trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlcompiler import graph
from dlcompiler.bench.implementations import target_of
from dlcompiler.bench.models import ImportedModel
from dlcompiler.graph import Profile
from dlcompiler.space import Workload

LEAST_TRIALS = 16
"""Fewest trials of a workload, unless less is left: the cost model learns from so many; [1]."""


@dataclass(frozen=True, slots=True)
class TaskTime:
    """A workload of a model, and the time of its kernels."""

    workload: Workload
    calls: tuple[str, ...]
    """Names of the kernels that compute it."""
    seconds: float
    """Time of these kernels in a run of the model; [s]."""


def task_times(given: ImportedModel, threads: int, kernels: Profile) -> list[TaskTime]:
    """Return the workloads of a model that can be tuned, slowest first.

    Parameters
    ----------
    given : ImportedModel
        The model.
    threads : int
        Number of threads that run it.
    kernels : Profile
        The steps of the built model.
    """
    found = [
        TaskTime(
            task.workload,
            task.calls,
            sum(each.seconds for each in kernels if each.name in task.calls),
        )
        for task in graph.tasks(given.module, target_of(threads))
    ]
    return sorted(found, key=lambda task: -task.seconds)


def chosen(tasks: Sequence[TaskTime], trials: int) -> list[TaskTime]:
    """Return the slowest tasks: as many as get `LEAST_TRIALS` each, and one at least."""
    return list(tasks[: max(trials // LEAST_TRIALS, 1)])


def share_of_first(tasks: Sequence[TaskTime], trials: int) -> int:
    """Return how many of the trials that are left the first of the tasks gets.

    The shares are as the times of the tasks; `LEAST_TRIALS` stay for each of the others. Trials
    that a task leaves, because its space is small, go to the next ones.

    Examples
    --------
    >>> tasks = [TaskTime(Workload.of("dense", n=n), (), n / 1e3) for n in (6, 2)]
    >>> share_of_first(tasks, 100), share_of_first(tasks[1:], 25)
    (75, 25)
    """
    total = sum(task.seconds for task in tasks)
    wanted = round(trials * tasks[0].seconds / total) if total else trials // len(tasks)
    most = trials - LEAST_TRIALS * (len(tasks) - 1)
    return max(min(wanted, most), min(LEAST_TRIALS, trials))
