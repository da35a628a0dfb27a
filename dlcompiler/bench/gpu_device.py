"""Time kernels on a GPU of this machine beside PyTorch: ``--suite gpu-device``.

For each work, the default config of our operator and random ones of its space are verified and
timed, by the device's own clock. The fastest counts. PyTorch computes the same on the same device,
with the libraries of its vendor, and without TF32. The times of all our configs are also compared
with those that the model predicts for the device, if the model knows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np

from dlcompiler import ops
from dlcompiler.autotune.candidate import TemplateCandidate
from dlcompiler.autotune.pools.local import LocalPool
from dlcompiler.autotune.pools.simulation import Made, make
from dlcompiler.autotune.trial import Result
from dlcompiler.bench.contest import COMMAND, CONTEST_LIMIT_S, job_fields
from dlcompiler.bench.gpu_model import spearman
from dlcompiler.bench.implementations import NotThere, operator_call
from dlcompiler.bench.suites import TABLES
from dlcompiler.bench.works import Work, parse_work
from dlcompiler.errors import DLCompilerError, TargetError, UserError
from dlcompiler.ops.base import Selection
from dlcompiler.pipeline.devices import check_available, device_of
from dlcompiler.runtime.timing import format_ratio, format_seconds
from dlcompiler.runtime.workers import Worker
from dlcompiler.space import Config
from dlcompiler.target import GPUS, SEVERAL, Target, resolve

SCHEMA_VERSION = 1
CONFIGS = 24
"""Random configs of each work that are measured beside the default one; [1]."""
Say: TypeAlias = Callable[[str], None]


@dataclass(frozen=True)
class Subject:
    """A work in a type of numbers, and the ratio to PyTorch's time that is aimed at."""

    work: Work
    dtype: str = "float32"
    goal: float = 1.0
    """PyTorch's time over ours; [1]."""


@dataclass(frozen=True)
class Row:
    """Times of a work on the device: ours, and PyTorch's."""

    work: str
    config: dict[str, Any]
    """The fastest config that was measured."""
    seconds: float
    """Its median time [s]."""
    measured: int
    """Configs with a right result; [1]."""
    failed: dict[str, int]
    """Outcome -> how many of the other configs had it; [1]."""
    peer_s: float | None
    """Median time of PyTorch [s]; None if it was not measured."""
    peer_note: str
    """Why PyTorch was not measured."""
    goal: float
    """Ratio of PyTorch's time to ours that is aimed at; [1]."""
    rank_correlation: float | None
    """Rank correlation of predicted and measured times of all configs; None without a model."""

    def __str__(self) -> str:
        peer = self.peer_note
        if self.peer_s is not None:
            peer = f"{format_ratio(self.peer_s / self.seconds)} of PyTorch's speed"
        rank = self.rank_correlation
        predicted = "" if rank is None else f"; predicted: rank correlation {rank:.3f}"
        return (
            f"{self.work:<22} {format_seconds(self.seconds):>9}, the best of {self.measured} "
            f"configs; {peer}{predicted}"
        )


def _subjects() -> dict[str, Subject]:
    tables = {table.name: table.works for table in TABLES}
    rows = {
        label: Subject(parse_work(label)) for label in ("softmax:64x1000", "layer_norm:512x768")
    }
    return {
        **{f"sgemm {n}": Subject(parse_work(f"gemm:{n}x{n}x{n}"), goal=0.9) for n in (2048, 4096)},
        "hgemm 4096": Subject(parse_work("gemm:4096x4096x4096"), "float16", 0.7),
        **{label: Subject(work) for label, work in tables["conv2d"].items()},
        **{label: Subject(work, goal=1.3) for label, work in tables["depthwise"].items()},
        **rows,
    }  # fmt: skip


WORKS = _subjects()
"""Name -> what is measured."""


def run_suite(
    say: Say,
    works: Mapping[str, Subject] | None = None,
    *,
    target: str | Target = "cuda",
    configs: int = CONFIGS,
) -> dict[str, Any]:
    """Measure works on a device; return the document.

    A work that fails is listed under ``failed`` with its reason; the others are measured.

    Parameters
    ----------
    say
        Called with each row as soon as it is measured.
    works
        Name -> what is measured; by default `WORKS`.
    target
        The device: ``"cuda"`` or ``"opencl"``.
    configs
        Random configs of each work beside the default one.

    Raises
    ------
    TargetError
        The target is not a device.
    DeviceUnavailable
        This machine has no such device.
    """
    machine = resolve(target)
    if machine.name.partition(":")[0] not in SEVERAL:
        raise TargetError(
            "bench --suite gpu-device", "not a GPU of this machine", got=machine.name,
            expected="cuda, opencl, or one of several such as cuda:1",
        )  # fmt: skip
    check_available(machine, "bench --suite gpu-device")
    device = device_of(machine).times(machine)
    model = model_of(str(device))
    say(f"{device}; predicted for {model.name if model else 'no model'}")
    rows, failed = [], {}
    for name, subject in (WORKS if works is None else works).items():
        try:
            row = measure(name, subject, machine, model, configs=configs)
        except (DLCompilerError, NotThere) as error:
            failed[name] = str(error)
            say(f"{name}: {error}")
            continue
        say(str(row))
        rows.append(asdict(row))
    return {
        "version": SCHEMA_VERSION, "target": machine.name, "device": str(device),
        "model": model.name if model else None, "rows": rows, "failed": failed,
    }  # fmt: skip


def model_of(device: str) -> Target | None:
    """Return the simulated GPU that is the model of a device; None if there is none.

    Examples
    --------
    >>> model_of("NVIDIA H100 80GB HBM3").name, model_of("a CPU")
    ('h100', None)
    """
    words = device.lower().replace(" ", "-")
    known = [name for name in GPUS if f"-{name}-" in f"-{words}-"]
    return resolve(max(known, key=len)) if known else None


def measure(
    name: str, subject: Subject, target: Target, model: Target | None, *, configs: int
) -> Row:
    """Measure a work.

    Raises
    ------
    UserError
        No operator computes it, or no config has a right result.
    """
    operator_name, parameters, roles = operator_call(subject.work)
    parameters = {**parameters, "dtype": subject.dtype}
    chosen = ops.select(operator_name, parameters, target, {})
    candidates = _configs(chosen, target, configs)
    results = _measured(chosen, candidates, target)
    outcomes: dict[str, int] = {}
    for result in results.values():
        if result.outcome != "ok":
            outcomes[result.outcome] = outcomes.get(result.outcome, 0) + 1
    times = {n: each.seconds for n, each in results.items() if each.seconds is not None}
    if not times:
        found = next(iter(results.values()))
        raise UserError(
            f"measure {name}", f"no config has a time: {found.outcome}", got=found.message
        )
    best = min(times, key=lambda n: times[n])
    peer_s, note = _peer(subject, chosen, roles)
    return Row(
        name, candidates[best].to_json(), times[best], len(times), outcomes, peer_s, note,
        subject.goal, _rank_correlation(chosen, candidates, times, model),
    )  # fmt: skip


def _configs(chosen: Selection, target: Target, count: int) -> list[Config]:
    """Return the default config, and random ones."""
    operator, workload = chosen.operator, chosen.workload
    space = operator.space(workload, target)
    first = operator.default_config(workload, target)
    drawn = [space.at(point) for point in space.sample(min(count, space.size), 0)]
    return [first, *(each for each in drawn if each != first)]


def _measured(chosen: Selection, configs: Sequence[Config], target: Target) -> dict[int, Result]:
    """Verify and time configs in a worker process; return their results by number."""
    found: dict[int, Result] = {}
    pool = LocalPool(chosen.operator, chosen.workload, target)
    try:
        pool.measure(configs, None, found.__setitem__)
    finally:
        pool.close()
    return found


def _peer(
    subject: Subject, chosen: Selection, roles: Mapping[str, str]
) -> tuple[float | None, str]:
    """Return the median time of PyTorch on the device, or why there is none."""
    arrays = chosen.operator.reference(chosen.workload, 0).inputs
    params = {"job": job_fields(subject.work, "plain"), "roles": dict(roles), "threads": 1}
    # Large libraries map more addresses than they use, so there is no limit of memory.
    worker = Worker(COMMAND, memory_limit_bytes=None)
    try:
        outcome = worker.call("gpu_peer", params, arrays=arrays, timeout_s=CONTEST_LIMIT_S)
    finally:
        worker.close()
    if not outcome.ok:
        return None, f"PyTorch: {outcome.kind}, {outcome.message}"
    return outcome.value["seconds"], outcome.value["absent"]


def _rank_correlation(
    chosen: Selection, configs: Sequence[Config], times: Mapping[int, float], model: Target | None
) -> float | None:
    """Return how well the predicted times rank the measured ones."""
    if model is None:
        return None
    pairs = []
    for number, seconds in times.items():
        item = TemplateCandidate(chosen.operator, chosen.workload, configs[number])
        made = make(item, "main", model, best_s=0.0)
        if isinstance(made, Made):  # else it exceeds a limit of the model
            pairs.append((made.seconds, seconds))
    return spearman(*np.array(pairs).T) if len(pairs) > 2 else None
