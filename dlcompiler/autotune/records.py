"""Records: trials as they are stored, one JSON value each."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dlcompiler.autotune.trial import OUTCOMES, OutcomeName, Result
from dlcompiler.errors import TuningError
from dlcompiler.space import Config, Workload
from dlcompiler.target import Target

SCHEMA = 1
"""Version of what `Record.to_json` writes, and of the tables of a database."""

_LONGEST_TEXT = 100_000
_RENAMED = {"timeout": "run timeout"}


@dataclass(frozen=True, slots=True)
class Record:
    """A trial with what is needed to use it again: workload, machine, config, times."""

    workload: Workload
    """What was tuned."""
    target: str
    """The machine, as `target_key` names it."""
    config: Config
    """What was tried, by the names of its knobs, with the fingerprint of its space."""
    result: Result
    """What came of it."""
    run: str
    """Name of the run."""
    trial: int
    """Number of the trial in its run."""
    measured_at: str
    """Date and time, ISO 8601, UTC."""

    def to_json(self) -> dict[str, Any]:
        """Return a value that ``json`` can write."""
        return {
            "schema": SCHEMA,
            "workload": self.workload.to_json(),
            "target": self.target,
            "config": self.config.to_json(),
            "outcome": self.result.outcome,
            "samples_s": list(self.result.samples_s),
            "message": self.result.message,
            "run": self.run,
            "trial": self.trial,
            "measured_at": self.measured_at,
        }

    @classmethod
    def from_json(cls, data: object) -> Record:
        """Read what `to_json` wrote.

        Raises
        ------
        TuningError
            If it is something else, or written by a newer version.
        """
        if not isinstance(data, Mapping):
            raise _bad("not an object", data)
        schema = data.get("schema")
        if isinstance(schema, int) and schema > SCHEMA:
            raise TuningError(
                "read a record", "written by a newer version of dlcompiler",
                got=f"schema {schema}", expected=f"schema {SCHEMA} or older",
            )  # fmt: skip
        if schema != SCHEMA or isinstance(schema, bool):
            raise _bad("not a record: no known schema", schema)
        return cls(
            Workload.from_json(data.get("workload")),
            _text(data, "target"),
            Config.from_json(data.get("config")),
            Result(_outcome(data), _samples(data), _text(data, "message")),
            _text(data, "run"),
            _number(data, "trial"),
            _text(data, "measured_at"),
        )

    def key(self) -> str:
        """Return a name of this record's content: two equal ones are the same record."""
        text = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def target_key(target: Target, threads: int) -> str:
    """Return the name under which a machine's records are kept.

    Times belong together when the processor, its features and the number of threads are the same.
    """
    features = hashlib.sha256(",".join(target.features).encode()).hexdigest()[:8]
    caches = "/".join(str(cache.bytes >> 10) for cache in target.caches)
    return f"{target.triple}:{target.cpu}:{features}:{caches}K:threads={threads}"


def read_line(line: str) -> Record:
    """Read a record from a line of JSON.

    Raises
    ------
    TuningError
        If it is not one.
    """
    try:
        data = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise TuningError("read a record", "not JSON", got=str(error)) from error
    return Record.from_json(data)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


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
        if not is_number or not 0 < value < math.inf or value > 1e9:
            raise _bad("a sample is not a positive number of seconds", value)
    if bool(values) != (data.get("outcome") == "ok"):
        raise _bad("samples stand with the outcome 'ok', and with no other", values)
    return tuple(float(value) for value in values)


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise _bad(f"{name} is missing or not a text", value)
    return value


def _number(data: Mapping[str, Any], name: str) -> int:
    value = data.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 62:
        raise _bad(f"{name} is missing or not a number", value)
    return value


def _bad(problem: str, got: object) -> TuningError:
    shown = repr(got)
    return TuningError("read a record", problem, got=shown if len(shown) <= 200 else shown[:200])
