"""Tune works for the shipped configs: keep a config that beats the one used so far."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dlcompiler.autotune import TuningRun, tune
from dlcompiler.bench.implementations import (
    Implementation,
    implementation_of,
    remote_kernel,
    target_of,
)
from dlcompiler.bench.works import Work
from dlcompiler.errors import TuningError, UserError
from dlcompiler.input_files import read_regular
from dlcompiler.json_text import JsonError, parse
from dlcompiler.ops import tuned
from dlcompiler.output_files import make_folder, write_file
from dlcompiler.space import Config, Workload
from dlcompiler.target import resolve

WORTH_KEEPING = 1.02
"""How much faster a config must be than the one used so far."""
ROUNDS = 21
PAIR_LIMIT_S = 120.0


@dataclass(frozen=True)
class Found:
    """The best config of a search for one work."""

    work: Work
    workload: Workload
    values: Mapping[str, Any]
    """Values of the knobs that one core may choose."""
    ratio: float
    """Time with the config used so far, divided by that with these values: measured in pairs."""

    @property
    def is_worth_keeping(self) -> bool:
        """Whether it is faster by more than noise."""
        return self.ratio >= WORTH_KEEPING


def find_config(work: Work, **options: Any) -> Found:
    """Search for the fastest config of a work, on one thread.

    Parameters
    ----------
    work : Work
        The work to tune.
    **options
        Arguments of `dlcompiler.autotune.run.tune`.

    Raises
    ------
    TuningError
        If nothing could be measured.
    """
    return judge(work, start(work, **options).wait_or_stop())


def start(work: Work, *, threads: int = 1, target: str = "cpu", **options: Any) -> TuningRun:
    """Begin to search for the fastest config of a work.

    Parameters
    ----------
    work : Work
        The work to tune.
    threads : int
        Number of threads of parallel loops, and of cores of the target.
    target : str
        Name of a target whose code this machine runs.
    **options
        Other arguments of `dlcompiler.autotune.run.tune`.

    Raises
    ------
    NotThere
        If no operator computes it.
    TuningError
        If an argument makes no sense.
    """
    if threads < 1:
        raise TuningError(f"tune {work.text}", "not a number of threads", got=threads)
    implementation = implementation_of(work, work.judged, threads=threads)
    machine = replace(resolve(target), cores=threads)
    return tune(implementation.workload, machine, **options)


def judge(work: Work, run: TuningRun) -> Found:
    """Compare the best config of a run with the one used so far, on one thread.

    Raises
    ------
    TuningError
        If nothing could be measured.
    """
    implementation = implementation_of(work, work.judged)
    target = target_of(1)
    best = run.best
    if best is None:
        raise TuningError(f"tune {work.text}", "no config could be measured")
    used = implementation.config(target, is_tuned=True)
    ratio = 1.0 if best.config == used else _ratio(implementation, used, best.config)
    choices = implementation.operator.space(implementation.workload, target).knobs
    values = {knob.name: best.config[knob.name] for knob in choices if len(knob.values) > 1}
    return Found(work, tuned.anchor(implementation.workload), values, ratio)


def _ratio(implementation: Implementation, used: Config, best: Config) -> float:
    """Return the time of one config divided by that of another, measured in alternation."""
    workload = implementation.workload
    first, second = (
        remote_kernel(
            implementation.operator.template(workload, target_of(1), config), workload.op, threads=1
        )
        for config in (used, best)
    )
    return second.pair(first, limits={"rounds": ROUNDS}, timeout_s=PAIR_LIMIT_S).ratio


def known_configs(path: Path) -> tuned.Tuned:
    """Return the configs in a file of tuned configs; none if the file does not exist.

    Raises
    ------
    UserError
        If the file is something else.
    """
    try:
        document = parse(read_regular(path)) if path.exists() else tuned.write({})
        return tuned.read(document)
    except (OSError, JsonError, TuningError) as error:
        raise UserError("tune --into", "not a file of tuned configs", got=str(error)) from None


def keep(path: Path, found: Found) -> None:
    """Add a config to a file of tuned configs.

    Raises
    ------
    UserError
        If the file is something else.
    """
    known = known_configs(path)
    merged = tuned.write({**known, found.workload: found.values})
    make_folder(path.parent)
    write_file(path, json.dumps(merged, indent=1) + "\n")
