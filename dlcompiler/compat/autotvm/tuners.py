"""AutoTVM's tuner classes, implemented by the tuners of `dlcompiler.autotune`."""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, TypeAlias

from dlcompiler import autotune
from dlcompiler.autotune import Event, Record, RecordStore, Trial, TuningRun, target_key
from dlcompiler.autotune.records.autotvm_log import ERRORS, NO_TIME_S, OUTCOMES
from dlcompiler.autotune.trial import Result
from dlcompiler.compat.autotvm.configs import ConfigEntity
from dlcompiler.compat.autotvm.measuring import MeasureInput, MeasureOption, MeasureResult
from dlcompiler.compat.autotvm.tasks import Task
from dlcompiler.compat.missing import Named
from dlcompiler.compat.notes import note
from dlcompiler.compat.targets import resolve
from dlcompiler.errors import TuningError

Callback: TypeAlias = Callable[["Tuner", Sequence[MeasureInput], Sequence[MeasureResult]], Any]

logger = logging.getLogger("autotvm")


class Tuner(Named):
    """Searches the space of a task.

    Parameters
    ----------
    task : Task
        The task to tune.
    **options
        Options of the classic tuner, ignored with a note: the tuners here have their own.
    """

    classic = "tvm.autotvm.tuner.Tuner"
    name: ClassVar[str] = "random"
    """Name of the tuner of `dlcompiler.autotune`."""
    known: ClassVar[frozenset[str]] = frozenset()
    """Options of the classic tuner."""

    def __init__(self, task: Task, **options: Any) -> None:
        unknown = set(options) - self.known
        if unknown:
            raise TuningError(
                type(self).__name__, "no such option", got=", ".join(sorted(unknown)),
                expected=", ".join(sorted(self.known)) or "a task only",
            )  # fmt: skip
        if options:
            names = ", ".join(sorted(options))
            note(f"{type(self).__name__}: {names}: ignored; this search has settings of its own", 3)
        self.task = task
        """The task that is tuned."""
        self.best_config: ConfigEntity | None = None
        """The fastest config so far."""
        self.best_flops = 0.0
        """Its operations per second."""
        self.best_measure_pair: tuple[MeasureInput, MeasureResult] | None = None
        """Its measurement."""
        self.best_iter = 0
        """Number of its trial."""
        self.run: TuningRun | None = None
        """The run of `dlcompiler.autotune` that searches."""
        self._history: list[tuple[MeasureInput, MeasureResult]] = []

    def tune(
        self,
        n_trial: int,
        measure_option: MeasureOption,
        early_stopping: int | None = None,
        callbacks: Iterable[Callback] = (),
        si_prefix: str = "G",
    ) -> None:
        """Run the search.

        Parameters
        ----------
        n_trial : int
            Largest number of trials.
        measure_option : MeasureOption
            What `measure_option` returned.
        early_stopping : int, optional
            End after so many trials without a faster one.
        callbacks : iterable of callable
            Called with this tuner, inputs and results of each trial.
        si_prefix : str
            Accepted.

        Raises
        ------
        TuningError
            If the search failed.
        """
        del si_prefix
        events: queue.Queue[Event] = queue.Queue()
        self.run = autotune.tune(
            self.task.work,
            resolve(self.task.target),
            template=self.task.operator,
            trials=n_trial,
            tuner=self.name,
            early_stopping=early_stopping,
            timeout_s=float(max(measure_option.builder.timeout, measure_option.runner.timeout)),
            db=self._store(),
            listeners=[events.put],
        )
        if self.run.note:
            logger.info(self.run.note)
        try:
            while (event := events.get()).kind != "ended":
                if event.trial is not None:
                    self._observe(event.trial, list(callbacks))
        except BaseException:
            self.run.stop()
            raise
        self.run.wait()
        if self.run.best is not None:  # Measuring near ties again may change it.
            self._take_as_best(self.run.best, *self._pair_of(self.run.best))

    def load_history(self, data_set: Iterable[tuple[MeasureInput, MeasureResult]]) -> None:
        """Start the search with earlier measurements of this task; others are ignored."""
        self._history += [pair for pair in data_set if pair[0].task.workload == self.task.workload]

    def reset(self) -> None:
        """Clear the loaded measurements and the results."""
        self.best_config, self.best_flops, self.best_measure_pair = None, 0.0, None
        self._history.clear()

    def _observe(self, trial: Trial, callbacks: Sequence[Callback]) -> None:
        inp, result = self._pair_of(trial)
        if self._flops_of(trial) > self.best_flops:
            self._take_as_best(trial, inp, result)
        logger.debug(
            "No: %d\tGFLOPS: %.2f/%.2f\tresult: %s\t%s",
            trial.index + 1, self._flops_of(trial) / 1e9, self.best_flops / 1e9, result, inp.config,
        )  # fmt: skip
        for callback in callbacks:
            callback(self, [inp], [result])

    def _pair_of(self, trial: Trial) -> tuple[MeasureInput, MeasureResult]:
        """Convert a trial to AutoTVM's input and result."""
        space = self.task.operator.space(self.task.work, resolve(self.task.target))
        assert self.task.target is not None
        entity = ConfigEntity.of(space, trial.config, trial.point)
        return MeasureInput(self.task.target, self.task, entity), measured(trial)

    def _flops_of(self, trial: Trial) -> float:
        return self.task.flop / trial.seconds if trial.seconds else 0.0

    def _take_as_best(self, trial: Trial, inp: MeasureInput, result: MeasureResult) -> None:
        self.best_flops, self.best_iter = self._flops_of(trial), trial.index
        self.best_config, self.best_measure_pair = inp.config, (inp, result)

    def _store(self) -> RecordStore | None:
        """Return a store with the loaded measurements."""
        if not self._history:
            return None
        machine = resolve(self.task.target)
        space = self.task.operator.space(self.task.work, machine)
        store = RecordStore(":memory:")
        key = target_key(machine, machine.cores)
        for number, (inp, result) in enumerate(self._history):
            values = {name: value for name, _, value in inp.config.values()}
            config = space.config(**values)
            kept = Result(OUTCOMES[int(result.error_no)], _samples(result), _message(result))
            store.add([Record(self.task.work, key, config, kept, "history", number, "")])
        return store


class RandomTuner(Tuner):
    """Draws configs at random."""

    classic = "tvm.autotvm.tuner.RandomTuner"
    known = frozenset({"range_idx"})


class GridSearchTuner(Tuner):
    """Tries the configs of the space in order."""

    classic = "tvm.autotvm.tuner.GridSearchTuner"
    name = "grid"
    known = frozenset({"range_idx"})


class GATuner(Tuner):
    """Genetic algorithm: recombines and mutates good configs."""

    classic = "tvm.autotvm.tuner.GATuner"
    name = "genetic"
    known = frozenset({"pop_size", "elite_num", "mutation_prob"})


class XGBTuner(Tuner):
    """Ranks configs by a cost model fitted to the trials."""

    classic = "tvm.autotvm.tuner.XGBTuner"
    name = "xgb"
    known = frozenset(
        {
            *("plan_size", "feature_type", "loss_type", "num_threads", "optimizer"),
            *("diversity_filter_ratio", "log_interval"),
        }
    )


def measured(trial: Trial) -> MeasureResult:
    """Convert the result of a trial to AutoTVM's."""
    costs: tuple[Any, ...] = trial.result.samples_s
    if trial.outcome != "ok":
        costs = (trial.result.message,)
    all_cost = trial.result.build_s + trial.result.run_s
    return MeasureResult(costs, ERRORS[trial.outcome], all_cost, time.time())


def _samples(result: MeasureResult) -> tuple[float, ...]:
    if result.error_no != 0:
        return ()
    return tuple(float(cost) for cost in result.costs if cost < NO_TIME_S)


def _message(result: MeasureResult) -> str:
    return "" if result.error_no == 0 else f"AutoTVM's error {int(result.error_no)}"
