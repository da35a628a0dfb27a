"""`tune`: start a search for the fastest config of a workload."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from dlcompiler.analysis import work_of
from dlcompiler.autotune.pools.cycles import CyclesMeasurer
from dlcompiler.autotune.pools.local import LocalPool
from dlcompiler.autotune.pools.measure import Measurer
from dlcompiler.autotune.pools.measure_pool import Device, MeasurePool, kind_of_pool
from dlcompiler.autotune.pools.serial import SerialPool
from dlcompiler.autotune.pools.simulated import SimulatedPool
from dlcompiler.autotune.proposal import Proposal, Tuner
from dlcompiler.autotune.records.record import target_key
from dlcompiler.autotune.records.store import MEMORY, RecordStore
from dlcompiler.autotune.run.events import Listener
from dlcompiler.autotune.run.plan import Plan
from dlcompiler.autotune.run.searcher import Searched, searcher
from dlcompiler.autotune.run.tuning_run import TuningRun
from dlcompiler.autotune.workloads import completed, operator_of
from dlcompiler.errors import TuningError
from dlcompiler.measurement.candidates import Ceiling
from dlcompiler.measurement.loading import check_loadable
from dlcompiler.measurement.provenance import kind_of_times, provenance_of_times
from dlcompiler.ops import Operator
from dlcompiler.space import Config, Space, Value, Workload
from dlcompiler.target import Target, resolve
from dlcompiler.te import PlaceholderOp

MakeTuner: TypeAlias = Callable[[Space, int], Tuner]


def tune(
    workload: Workload,
    target: str | Target = "cpu",
    *,
    template: Operator | None = None,
    trials: int | None = 128,
    seconds: float | None = None,
    tuner: str | MakeTuner = "xgb",
    seed: int = 0,
    db: str | Path | RecordStore | None = None,
    batch: int = 16,
    first: Sequence[Config | Mapping[str, Value]] = (),
    early_stopping: int | None = None,
    threads: int | None = None,
    timeout_s: float = 10.0,
    block: bool = False,
    listeners: Sequence[Listener] = (),
    measurer: Measurer | None = None,
    pool: MeasurePool | None = None,
) -> TuningRun:
    """Search for the fastest config of a workload, in the background.

    The operator's default config is tried first. Every candidate is checked against NumPy before it
    is timed, in a worker process; one that is refused, wrong, too slow or crashes is a trial with
    that outcome.

    Parameters
    ----------
    workload : Workload
        What to tune: ``Workload.of("matmul", m=1024, n=1024, k=1024)``.
    target : str or Target
        This machine; or a simulated GPU, for which times are predicted.
    template : Operator, optional
        The operator of the workload, as `autotune.template` makes it; by default, the library's
        operator of that name.
    trials : int, optional
        Most trials; None: as many as `seconds` allow.
    seconds : float, optional
        No trial begins later than this, pauses not counted [s].
    tuner : str or callable
        A key of `dlcompiler.autotune.tuners.TUNERS`, as ``"random"`` or ``"genetic"``.
        ``"xgb"`` ranks by a cost model that learns from the trials; where xgboost is missing it
        uses a ridge model, and `TuningRun.note` says so. A callable makes a tuner from a space and
        a seed.
    seed : int
        Seed of the search, its model and the data that candidates are checked with. Equal seeds and
        equal measurements give equal trials.
    db : path or RecordStore, optional
        Where to keep the records; in memory by default. Configs that it has for this workload and
        machine are learned from and not measured again, and `TuningRun.note` says so. If it has
        a run with the same arguments that was killed or failed, this one goes on with it.
    batch : int
        How many trials are chosen at once; the model learns after each batch.
    first : sequence of Config or mapping, optional
        Configs to try after the default one, before the search begins; a mapping has a value for
        each knob.
    early_stopping : int, optional
        End after so many trials without a faster one.
    threads : int, optional
        Number of threads of parallel loops; by default, the target's cores.
    timeout_s : float
        Limit of one candidate [s].
    block : bool
        Return only when the search has ended; Ctrl-C then ends it, and keeps its trials.
    listeners : sequence of callable
        Called with each `Event`.
    measurer : Measurer, optional
        Measures one config after the other; by default, a worker process of this machine.
    pool : MeasurePool, optional
        Measures batches, in place of a `measurer`.

    Returns
    -------
    TuningRun
        Trials appear in it while the search goes on.

    Raises
    ------
    TuningError
        If an argument makes no sense, or the database cannot be used.
    TargetError
        If this machine cannot run the target's code.
    MeasurementError
        If programs for the target have no times.

    Examples
    --------
    >>> run = tune(Workload.of("matmul", m=512, n=512, k=512), trials=64)      # doctest: +SKIP
    >>> run.wait().best                                                        # doctest: +SKIP
    Trial(41: 92.1 GFLOP/s measured on AMD EPYC, Config(tile_m=6, tile_n=16, …))
    """
    _check("batch", batch, int)
    _check("timeout_s", timeout_s, int, float)
    _check_if_given("trials", trials, int)
    _check_if_given("seconds", seconds, int, float)
    _check_if_given("early_stopping", early_stopping, int)
    _check_if_given("threads", threads, int)
    if trials is None and seconds is None:
        raise TuningError("tune", "no end: neither trials nor seconds are given")
    if type(seed) is not int or seed < 0:
        raise TuningError("tune", "seed is not a whole number from 0 on", got=repr(seed))
    item = operator_of(workload, template)
    workload = completed(item, workload)
    machine = resolve(target)
    space = item.space(workload, machine)
    count = threads or machine.cores
    outputs = [t for t in item.define(workload) if not isinstance(t.op, PlaceholderOp)]
    work = work_of(outputs)
    flops = float(work.flops) if work else 0.0
    name = tuner if isinstance(tuner, str) else getattr(tuner, "__qualname__", repr(tuner))
    if pool is None and measurer is not None:
        pool = SerialPool(measurer, _device(machine, count))
    elif pool is None:
        ceiling = Ceiling(build_s=timeout_s, run_s=timeout_s)
        if kind_of_times(machine) == "predicted":
            pool = SimulatedPool(item, workload, machine, ceiling=ceiling, seed=seed)
        elif machine.accelerator is not None:
            cycles = CyclesMeasurer(item, workload, machine, seed)
            pool = SerialPool(cycles, _device(machine, count))
        else:
            check_loadable(machine)
            pool = LocalPool(item, workload, machine, threads=count, ceiling=ceiling, seed=seed)
    plan = Plan(
        item, workload, machine, space, count, trials, seconds, batch, flops, name, seed,
        early_stopping, _first(item.default_config(workload, machine), space, first),
        kind_of_pool(pool),
    )  # fmt: skip
    store = db if isinstance(db, RecordStore) else RecordStore(MEMORY if db is None else db)
    searched = Searched(item, workload, machine, count, space, plan.kind)
    made = searcher(tuner, searched, seed, store) if isinstance(tuner, str) else tuner(space, seed)
    run = TuningRun(plan, made, pool, store, listeners)
    run.start()
    if block:
        try:
            run.wait()
        except KeyboardInterrupt:
            run.stop()
            run.wait()
    return run


def _device(machine: Target, threads: int) -> Device:
    """Return the device that a measurer of a target runs on; it may be another machine.

    Raises
    ------
    MeasurementError
        If programs for the target have no times.
    """
    times = provenance_of_times(machine, f"tune for {machine.name}")
    key = target_key(machine, threads)
    return Device(key, provenance=None if times.kind == "measured" else times)


def _first(
    default: Config, space: Space, asked: Sequence[Config | Mapping[str, Value]]
) -> tuple[Proposal, ...]:
    """Return the points to try before the search: the default config, then the user's configs."""
    proposals = {space.index_of(default): Proposal(space.index_of(default), "default")}
    for item in asked:
        config = space.adopt(item, remap=True) if isinstance(item, Config) else space.config(**item)
        if rule := space.forbidden_by(config):
            raise TuningError(
                "tune", "a config of `first` is not allowed", got=str(config), expected=rule
            )
        point = space.index_of(config)
        proposals.setdefault(point, Proposal(point, "user"))
    return tuple(proposals.values())


def _check_if_given(name: str, value: object, *kinds: type) -> None:
    if value is not None:
        _check(name, value, *kinds)


def _check(name: str, value: object, *kinds: type) -> None:
    """Refuse a value that is not a positive number of one of `kinds`; this excludes True."""
    if type(value) not in kinds or not 0 < float(str(value)) < math.inf:
        raise TuningError("tune", f"{name} is not a positive number", got=repr(value))
