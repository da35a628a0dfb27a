"""Measure whole models beside other libraries: import, build, compare the results, and time.

Our model and the peers run in a worker process. Results are compared before anything is timed. The
tolerance is relative to the largest magnitude of a result: sums in another order and minimal
filtering differ less than `dlcompiler.graph.execution.comparison.TOLERANCES`; whole numbers must be
equal. If a peer differs, NumPy decides who is right: some functions of libraries have absolute
errors of 1e-7, which is much for a result that is small everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dlcompiler import graph
from dlcompiler.autotune import RecordStore
from dlcompiler.bench.graphs import flat
from dlcompiler.bench.implementations import target_of
from dlcompiler.bench.intervals import Ratio, paired_ratio
from dlcompiler.bench.memory import EXPECTED, INPUT
from dlcompiler.bench.model_files import format_of
from dlcompiler.bench.model_inputs import (
    OPERATION,
    Array,
    Input,
    constants_of,
    inputs_of,
    known_shapes,
)
from dlcompiler.bench.model_worker import COMMAND, EVALUATED, decisive
from dlcompiler.bench.peers import MODEL_PEERS, check_names, missing
from dlcompiler.bench.results import PeerResult
from dlcompiler.errors import DLCompilerError, UserError
from dlcompiler.graph.execution.build import Progress
from dlcompiler.graph.execution.profiles import Profile
from dlcompiler.graph.execution.remote import RemoteModel
from dlcompiler.graph.frontends.onnx import onnx_inputs
from dlcompiler.graph.ir import Module
from dlcompiler.measurement.known_ceilings import ceilings_here
from dlcompiler.runtime.timing import Timing, measured_here
from dlcompiler.runtime.workers import Outcome, Worker

SCHEMA_VERSION = 1
CONTEST_LIMIT_S = 600.0
REPEATS = 10
"""Runs of which the shortest time of each kernel is taken; [1]."""
MOST_EVALUATED = 1e10
"""Most operations of a model that NumPy computes for comparison: 20 s or so; [1]."""


@dataclass(frozen=True)
class Settings:
    """Settings of the measurement of models."""

    peers: tuple[str, ...] = ("onnxruntime",)
    """Names of peers; those that are not installed are reported as absent."""
    threads: int = 1
    """Number of threads of our model and of every peer."""
    tolerance: float | None = None
    """Largest relative error of results that are floats; None: that of their dtype; [1]."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `dlcompiler.runtime.timing.alternate`."""


@dataclass(frozen=True)
class ImportedModel:
    """A model from a file, with the arrays that it runs on."""

    path: str
    module: Module
    inputs: tuple[Input, ...]
    """Arrays for its parameters."""
    constants: Mapping[str, Array]
    """Inputs of the file that are constants of the module."""
    import_s: float
    """Time to import it [s]."""


def imported(
    path: str | Path,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, Any] | None = None,
    values: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> ImportedModel:
    """Import a model from a file, of a kind that its ending says; ONNX if it says none.

    Parameters
    ----------
    path : path
        The file.
    shapes, constants : mapping, optional
        As of `graph.from_onnx`; where only the first extent of an input is open, it is 1. Models
        of other kinds have no `constants`.
    values : mapping, optional
        Arrays by the names of inputs; the others are random.
    seed : int
        Seed of the random ones.

    Raises
    ------
    GraphError
        As of `graph.from_onnx` and the other importers.
    UserError
        A shape or a value does not fit, or an extent is open.
    """
    begin = time.perf_counter()
    kind = format_of(path)
    if kind is None:
        declared = onnx_inputs(path)
        fixed = constants_of(declared, constants or {})
        open_inputs = {name: kind for name, kind in declared.items() if name not in fixed}
        known = known_shapes(open_inputs, shapes or {})
        module = graph.from_onnx(path, shapes=known, constants=fixed)
    else:
        if constants:
            raise UserError(OPERATION, "only inputs of ONNX models become constants",
                            got=", ".join(constants))  # fmt: skip
        fixed = {}
        module = kind.read(Path(path), shapes or {})
    import_s = time.perf_counter() - begin
    inputs = tuple(inputs_of(module, values or {}, seed))
    return ImportedModel(str(Path(path).absolute()), module, inputs, fixed, import_s)


@dataclass(frozen=True)
class BuiltModel:
    """A compiled model with what its steps compute."""

    model: graph.CompiledModel
    build_s: float
    """Time to build it [s]."""


def built(
    given: ImportedModel,
    threads: int,
    db: RecordStore | None = None,
    progress: Progress | None = None,
) -> BuiltModel:
    """Build a model for this machine, with one core for each thread.

    Parameters
    ----------
    given : ImportedModel
        The model.
    threads : int
        Number of threads that run it.
    db : RecordStore, optional
        Records of tuning runs.
    progress : callable, optional
        As of `graph.build`.
    """
    begin = time.perf_counter()
    model = graph.build(given.module, target_of(threads), db=db, progress=progress)
    build_s = time.perf_counter() - begin
    assert isinstance(model, graph.CompiledModel)
    return BuiltModel(model, build_s)


@dataclass(frozen=True)
class ModelResult:
    """The result of a contest of whole models."""

    verified: bool | None
    """Whether our results were right; None if there was nothing to compare with."""
    reason: str = ""
    """Why it is not verified, what was wrong, or how a peer differs although ours is right."""
    references: tuple[str, ...] = ()
    """Whose results ours were compared with."""
    error: float | None = None
    """Largest error, relative to the largest magnitude of the result; [1]."""
    tolerance: float | None = None
    """Largest error that counts as none; [1]."""
    ours: Timing | None = None
    """Times of our calls; None if a result was wrong."""
    peers: Mapping[str, PeerResult] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    """Peers that did not take part, and why."""
    kernels: Profile = field(default_factory=Profile)
    """The steps of our model, each timed by itself."""

    @property
    def best_peer(self) -> str | None:
        """Name of the fastest peer."""
        return min(self.peers, key=lambda name: self.peers[name].timing.median_s, default=None)

    @property
    def ratio(self) -> Ratio | None:
        """The best peer's time divided by ours."""
        return None if self.best_peer is None else self.peers[self.best_peer].ratio

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values; times in seconds."""
        ratio = self.ratio
        return {
            "verified": self.verified,
            "reason": self.reason,
            "compared_with": list(self.references),
            "error": self.error,
            "tolerance": self.tolerance,
            "ours_seconds": None if self.ours is None else self.ours.median_s,
            "ours_spread_seconds": None if self.ours is None else self.ours.spread_s,
            "rounds": 0 if self.ours is None else self.ours.n,
            "peers": {name: peer.timing.median_s for name, peer in self.peers.items()},
            "ratio": None if ratio is None else ratio.median,
            "interval": None if ratio is None else [ratio.low, ratio.high],
            "best_peer": self.best_peer,
            "peer_details": {
                name: {
                    "spread_seconds": peer.timing.spread_s, "way": peer.way,
                    "ratio": peer.ratio.median, "interval": [peer.ratio.low, peer.ratio.high],
                }
                for name, peer in self.peers.items()
            },
            "absent": dict(self.absent),
            "kernels": [each.to_json() for each in self.kernels],
        }  # fmt: skip


class ModelBench:
    """Measures models and peers in alternation, in a worker process of its own.

    Parameters
    ----------
    settings : Settings
        How they are measured.
    worker : Worker, optional
        The worker process; ``with`` ends it.

    Raises
    ------
    UserError
        A peer is unknown.
    """

    def __init__(self, settings: Settings, worker: Worker | None = None) -> None:
        self.settings = settings
        names = check_names(settings.peers, MODEL_PEERS)
        self._absent = {name: why for name in names if (why := missing(name))}
        self._present = tuple(name for name in names if name not in self._absent)
        # Large libraries map more addresses than they use, so there is no limit of memory.
        self._worker = worker or Worker(COMMAND, memory_limit_bytes=None)

    def __enter__(self) -> ModelBench:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()

    def _peers_of(self, given: ImportedModel) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return the peers that read a model, and why others do not."""
        kind = format_of(given.path)
        if kind is None:
            return self._present, dict(self._absent)
        return (), self._absent | dict.fromkeys(self._present, f"it reads no {kind.library} files")

    def measure(self, given: ImportedModel, made: BuiltModel) -> ModelResult:
        """Compare and time a model.

        Raises
        ------
        MeasurementError
            Our model crashed, failed, or did not end in time.
        """
        present, absent = self._peers_of(given)
        remote = self._load(given, made)
        expected, why = ([], "") if present else _evaluated(given, made)
        outcome = self._contest(given, present, expected)
        if outcome.kind in ("crashed", "timeout") and present:
            # Our model or a peer crashed: try again without peers to find out which.
            absent |= dict.fromkeys(present, f"in a process that was lost: {outcome.message}")
            remote = self._load(given, made)
            expected, why = _evaluated(given, made)
            outcome = self._contest(given, (), expected)
        value = outcome.unwrap(f"measure {given.path}")
        is_open = (
            not value["samples_s"] or not value["agreements"]
        )  # a peer differs, or none runs it
        if is_open and not expected:
            absent |= value["absent"]
            expected, why = _evaluated(given, made)
            if expected:
                names = tuple(value["ways"])
                value = self._contest(given, names, expected).unwrap(f"measure {given.path}")
        result = _result(value, {**absent, **value["absent"]}, why)
        if result.ours is None:
            return result
        times = remote.profile(CONTEST_LIMIT_S, REPEATS)
        return replace(result, kernels=times)

    def under_roofline(self, result: ModelResult, made: BuiltModel) -> ModelResult:
        """Return a result whose kernels have their least times, by the ceilings of this machine.

        Raises
        ------
        MeasurementError
            The ceilings could not be measured.
        """
        ceilings = ceilings_here(self.settings.threads, self._worker)
        return replace(result, kernels=made.model.under_roofline(result.kernels, ceilings))

    def _load(self, given: ImportedModel, made: BuiltModel) -> RemoteModel:
        arrays = [each.array for each in given.inputs]
        return RemoteModel(made.model, arrays, self._worker, self.settings.threads)

    def _contest(
        self, given: ImportedModel, peers: Sequence[str], expected: Sequence[Array]
    ) -> Outcome:
        arrays = {INPUT + name: array for name, array in given.constants.items()}
        arrays |= {INPUT + each.name: each.array for each in given.inputs}
        arrays |= {f"{EXPECTED}{n}": array for n, array in enumerate(expected)}
        params = {
            "path": given.path, "peers": peers, "threads": self.settings.threads,
            "tolerance": self.settings.tolerance, "limits": dict(self.settings.limits),
        }  # fmt: skip
        return self._worker.call("contest", params, arrays=arrays, timeout_s=CONTEST_LIMIT_S)


def _evaluated(given: ImportedModel, made: BuiltModel) -> tuple[list[Array], str]:
    """Return the results by NumPy if they are cheap; else none, and why."""
    work = sum(each.flops or 0 for each in made.model.works)
    if work > MOST_EVALUATED:
        return [], f"NumPy would take long, with {work / 1e9:.3g} G operations"
    try:
        found = graph.evaluate(given.module, *(each.array for each in given.inputs))
    except DLCompilerError as error:
        return [], f"NumPy cannot evaluate it: {error.problem}"
    return flat(found), ""


def _result(value: Mapping[str, Any], absent: Mapping[str, str], why: str) -> ModelResult:
    """Return what the worker found."""
    found: Mapping[str, dict[str, Any]] = value["agreements"]
    deciding = decisive(found)
    worst = max(deciding.values(), key=lambda each: each["error"] or 0.0, default=None)
    names = tuple("NumPy" if name == EVALUATED else name for name in deciding)
    reason = "; ".join(
        f"compared with {'NumPy' if name == EVALUATED else name}: {each['problem']}"
        for name, each in found.items()
        if each["problem"]
    )
    if why:
        reason = f"{reason}; {why}" if reason else f"no peer ran it, and {why}"
    error, tolerance = (None, None) if worst is None else (worst["error"], worst["tolerance"])
    if any(each["problem"] for each in deciding.values()):
        return ModelResult(False, reason, names, error, tolerance, absent=absent)
    samples = {name: tuple(seconds) for name, seconds in value["samples_s"].items()}
    ours = samples["ours"]
    peers = {
        name: PeerResult(_timing(samples[name]), way, paired_ratio(samples[name], ours))
        for name, way in value["ways"].items()
    }
    return ModelResult(
        True if found else None, reason, names, error, tolerance, _timing(ours),
        peers, absent,
    )  # fmt: skip


def _timing(samples_s: tuple[float, ...]) -> Timing:
    """Return samples of a worker, which runs on this machine."""
    return Timing(samples_s, provenance=measured_here())
