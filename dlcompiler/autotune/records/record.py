"""Records: trials as they are stored, one JSON value each."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args

from dlcompiler.autotune.candidate import LONGEST_TEXT, StoredCandidate, config_text, is_storable
from dlcompiler.autotune.proposal import Origin
from dlcompiler.autotune.trial import OUTCOMES, OutcomeName, Result, Trial
from dlcompiler.errors import TuningError
from dlcompiler.json_text import JsonError, parse
from dlcompiler.measurement.loading import DRIVERS
from dlcompiler.pipeline import device_of
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.space import Config, Workload
from dlcompiler.target import Target
from dlcompiler.target.accelerators.facts import facts_of

SCHEMA = 2
"""Version of what `Record.to_json` writes, and of the tables of a database. Version 1 had
neither origins nor predictions nor the times of building and running."""

_LONGEST_S = 1e9
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3,6})?(\+00:00|Z)", re.ASCII)
_RENAMED = {"timeout": "run timeout"}
_KEY, _KEY_LENGTH = "key", 16
_ADDED: dict[str, Any] = {
    "build_s": 0.0, "run_s": 0.0, "is_noisy": False, "round": 0, "origin": "random",
    "predicted_s": None, "spread": None, "elapsed_s": 0.0,
}  # fmt: skip
"""Values of the fields that version 2 added, for records of version 1."""


@dataclass(frozen=True, slots=True)
class Record:
    """A stored trial: workload, machine, config, times."""

    workload: Workload
    """What was tuned."""
    target: str
    """The machine, as `target_key` names it."""
    config: Config
    """What was tried, by the names of its knobs, with the fingerprint of its space; without values
    if `candidate` is given."""
    result: Result
    """Its result."""
    run: str
    """Name of the run."""
    trial: int
    """Number of the trial in its run."""
    measured_at: str
    """Date and time, ISO 8601, UTC; empty where they are not known."""
    round: int = 0
    """Number of the round that it was proposed in."""
    origin: Origin = "random"
    """Why it was tried."""
    predicted_s: float | None = None
    """Seconds per call that the model expected [s]; None: there was no prediction."""
    spread: float | None = None
    """Standard deviation of the prediction among the models of an ensemble [log2]."""
    elapsed_s: float = 0.0
    """Time from the start of the run to the end of the trial [s]."""
    candidate: StoredCandidate | None = None
    """What was tried, if it is no config of a template."""

    @classmethod
    def of(
        cls, trial: Trial, workload: Workload, target: str, run: str, measured_at: str
    ) -> Record:
        """Convert a trial to a record.

        Parameters
        ----------
        trial : Trial
            What was tried, and its result.
        workload : Workload
            What was tuned.
        target : str
            The machine, as `target_key` names it.
        run : str
            Name of the run.
        measured_at : str
            Date and time, ISO 8601, UTC.
        """
        return cls(
            workload, target, trial.config, trial.result, run, trial.index, measured_at,
            trial.round, trial.origin, trial.predicted_s, trial.spread, trial.elapsed_s,
            trial.candidate,
        )  # fmt: skip

    def describe(self) -> str:
        """Return a one-line description of the config or candidate."""
        return self.candidate.text if self.candidate else config_text(self.config.values)

    @property
    def provenance(self) -> Provenance:
        """Whether its time is measured or simulated, and on what.

        Records of versions that did not store this are measured, on their target.
        """
        return self.result.provenance or Provenance("measured", self.target)

    def to_json(self) -> dict[str, Any]:
        """Return a value that ``json`` can write."""
        found = self.result.provenance
        tried = {} if self.candidate is None else {"candidate": self.candidate.to_json()}
        # Without it, a record of an older version has the key that it was stored with.
        provenance = {} if found is None else {"provenance": found.to_json()}
        return {
            "schema": SCHEMA,
            "workload": self.workload.to_json(),
            "target": self.target,
            "config": self.config.to_json(),
            "outcome": self.result.outcome,
            "samples_s": list(self.result.samples_s),
            "message": _storable(self.result.message),
            "build_s": self.result.build_s,
            "run_s": self.result.run_s,
            "is_noisy": self.result.is_noisy,
            "run": self.run,
            "trial": self.trial,
            "measured_at": self.measured_at,
            "round": self.round,
            "origin": self.origin,
            "predicted_s": self.predicted_s,
            "spread": self.spread,
            "elapsed_s": self.elapsed_s,
            **provenance,
            **tried,
        }

    @classmethod
    def from_json(cls, data: object) -> Record:
        """Read a record from the value of `to_json`.

        Raises
        ------
        TuningError
            If it is something else, or written by a newer version.
        """
        if not isinstance(data, Mapping):
            raise _bad("not an object", data)
        if "schema" not in data and {"input", "result", "config"} <= data.keys():
            raise _bad(
                "a line of AutoTVM, which `dlcompiler db import --autotvm` reads",
                data["input"],
            )
        schema = data.get("schema")
        if isinstance(schema, int) and schema > SCHEMA:
            raise TuningError(
                "read a record", "written by a newer version of dlcompiler",
                got=f"schema {schema}", expected=f"schema {SCHEMA} or older",
            )  # fmt: skip
        if schema not in (1, SCHEMA) or isinstance(schema, bool):
            raise _bad("not a record: no known schema", schema)
        if schema == 1:
            data = {**_ADDED, **data}
        workload, target = Workload.from_json(data.get("workload")), _text(data, "target")
        config = Config.from_json(data.get("config"))
        return cls(
            workload,
            target,
            config,
            _result(data),
            _text(data, "run"),
            _number(data, "trial"),
            _moment(data),
            _number(data, "round"),
            _origin(data),
            _seconds(data, "predicted_s") if data.get("predicted_s", 0) is not None else None,
            _seconds(data, "spread") if data.get("spread", 0) is not None else None,
            _seconds(data, "elapsed_s"),
            _candidate(data, config),
        )

    def key(self) -> str:
        """Return a hash of the content; records with equal keys are the same record."""
        text = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def target_key(target: Target, threads: int) -> str:
    """Return the name under which a machine's records are kept.

    Times belong together when the processor, its features and the number of threads are the same.
    A device that is no CPU may have no triple, or one that others have: the name of its target is
    in the key, and that of a device that a driver has found here, or a digest of an accelerator's
    parts.

    Parameters
    ----------
    target : Target
        The machine.
    threads : int
        Number of threads of parallel loops.
    """
    device = "" if target.device == "cpu" else f"{target.device} {target.name}:"
    if target.language in DRIVERS and (times := device_of(target).times(target)):
        device += f"{times.on}:"
    if target.accelerator is not None:
        parts = repr(facts_of(target.accelerator))
        device += f"{hashlib.sha256(parts.encode()).hexdigest()[:8]}:"
    features = hashlib.sha256(",".join(target.features).encode()).hexdigest()[:8]
    caches = "/".join(str(cache.bytes >> 10) for cache in target.caches)
    return f"{device}{target.triple}:{target.cpu}:{features}:{caches}K:threads={threads}"


def read_line(line: str) -> Record:
    """Read a record from a line of JSON, as `write_line` wrote it or by hand.

    Raises
    ------
    TuningError
        If it is not one, or is not as it was written.
    """
    try:
        data = parse(line)
    except JsonError as error:
        raise TuningError("read a record", "not JSON", got=str(error)) from error
    record = Record.from_json(data)
    if data.get(_KEY, record.key()[:_KEY_LENGTH]) != record.key()[:_KEY_LENGTH]:
        raise TuningError(
            "read a record", "not as it was written", got=f"{_KEY} {data[_KEY]!r}",
            expected=record.key()[:_KEY_LENGTH],
            hint=f"it is damaged, or was changed by hand: then delete its {_KEY!r}",
        )  # fmt: skip
    return record


def write_line(record: Record) -> str:
    """Return a record as a line of JSON, with a key by which damage is noticed.

    Parameters
    ----------
    record : Record
        The record.
    """
    return json.dumps({**record.to_json(), _KEY: record.key()[:_KEY_LENGTH]})


def read_row(key: object, data: object) -> Record:
    """Read a record from a row of a database, both columns as bytes.

    Raises
    ------
    TuningError
        If it is not one, or is not as it was stored.
    """
    if not isinstance(data, bytes):
        raise _bad("not a text", data)
    try:
        fields = parse(data)
    except JsonError as error:
        raise TuningError("read a record", "not JSON", got=str(error)) from error
    record = Record.from_json(fields)
    # As `Record.key` of the version that wrote it, which may have known other fields.
    stored = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
    if stored.encode() != key:
        raise TuningError("read a record", "changed since it was stored")
    return record


def _result(data: Mapping[str, Any]) -> Result:
    is_noisy = data.get("is_noisy")
    if not isinstance(is_noisy, bool):
        raise _bad("is_noisy is neither true nor false", is_noisy)
    return Result(
        _outcome(data),
        _samples(data),
        _text(data, "message"),
        _seconds(data, "build_s"),
        _seconds(data, "run_s"),
        is_noisy,
        _provenance(data),
    )


def _provenance(data: Mapping[str, Any]) -> Provenance | None:
    """Read the provenance of a time; None for older records, which do not store it."""
    if "provenance" not in data:
        return None
    given = data["provenance"]
    try:
        found = Provenance.from_json(given)
    except ValueError as error:
        raise _bad(f"provenance is damaged: {error}", given) from error
    _text(given, "on")
    return found


def _candidate(data: Mapping[str, Any], config: Config) -> StoredCandidate | None:
    """Read the stored candidate, if there is one; check that `config` is its placeholder config."""
    if "candidate" not in data:
        return None
    found = StoredCandidate.from_json(data["candidate"])
    if found.config != config:
        raise _bad("its config is not that of its candidate", config)
    return found


def _origin(data: Mapping[str, Any]) -> Origin:
    names: tuple[Origin, ...] = get_args(Origin)
    for name in names:
        if data.get("origin") == name:
            return name
    raise _bad(f"not an origin; they are: {', '.join(names)}", data.get("origin"))


def _outcome(data: Mapping[str, Any]) -> OutcomeName:
    found = _RENAMED.get(str(data.get("outcome")), data.get("outcome"))
    for name in OUTCOMES:
        if found == name:
            return name
    raise _bad(f"not an outcome; they are: {', '.join(OUTCOMES)}", data.get("outcome"))


def _samples(data: Mapping[str, Any]) -> tuple[float, ...]:
    values = data.get("samples_s")
    if not isinstance(values, list):
        raise _bad("samples_s is not a list", values)
    for value in values:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 < value <= _LONGEST_S:
            raise _bad("a sample is not a positive number of seconds", value)
    if bool(values) != (data.get("outcome") == "ok"):
        raise _bad("samples stand with the outcome 'ok', and with no other", values)
    return tuple(float(value) for value in values)


def _seconds(data: Mapping[str, Any], name: str) -> float:
    value: Any = data.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= _LONGEST_S:
        raise _bad(f"{name} is missing or not a number of seconds", value)
    return float(value)


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    if not is_storable(value):
        raise _bad(f"{name} is missing or not a text", value)
    return value


def _moment(data: Mapping[str, Any]) -> str:
    value = _text(data, "measured_at")
    if value and not (_MOMENT.fullmatch(value) and _is_moment(value)):
        raise _bad("measured_at is not a date and time of UTC, as ISO 8601 writes it", value)
    return value


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _storable(message: str) -> str:
    """Cut a message, and replace invalid characters: compilers and kernels may print any bytes."""
    return message[:LONGEST_TEXT].encode("utf-8", "replace").decode()


def _number(data: Mapping[str, Any], name: str) -> int:
    value = data.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 62:
        raise _bad(f"{name} is missing or not a number", value)
    return value


def _bad(problem: str, got: object) -> TuningError:
    shown = repr(got)
    return TuningError("read a record", problem, got=shown if len(shown) <= 200 else shown[:200])
