"""Candidates: sources of schedules that a pool measures, a record stores and a table shows.

A candidate is a config of a template, or anything else that makes a schedule, such as the trace of
a search. Pools, records and tables depend on this module only, not on who proposed a candidate.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeGuard, runtime_checkable

from dlcompiler.errors import TuningError
from dlcompiler.json_text import is_encodable, parse
from dlcompiler.ops import Operator
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Value, Workload
from dlcompiler.target import Target
from dlcompiler.te import Tensor

CONFIG = "config"
"""The kind of a candidate that is a config of a template."""

LONGEST_TEXT = 100_000
"""Most characters of a text in a record; [1]."""
_KEY_LENGTH = 16


@runtime_checkable
class Candidate(Protocol):
    """A source of one schedule of a workload."""

    @property
    def kind(self) -> str:
        """Name of the format that `to_json` returns, such as ``"trace"``; records store it."""

    def describe(self) -> str:
        """Return a one-line description for tables."""

    def to_json(self) -> Any:
        """Return a value that ``json`` can write; equal values mean equal schedules."""

    def schedule(self, target: Target) -> tuple[Schedule, tuple[Tensor, ...]]:
        """Return the schedule, and the kernel's parameters.

        Raises
        ------
        UserError
            If there is no such schedule for the target: the outcome is then ``refused``.
        """


Tried: TypeAlias = Config | Candidate
"""What a pool measures. A bare config means the config of the template that the pool was made for.
"""


@dataclass(frozen=True, slots=True)
class TemplateCandidate:
    """A config of an operator's template, as a candidate."""

    operator: Operator
    """Whose template it is."""
    workload: Workload
    """What is scheduled."""
    config: Config
    """The values of the knobs."""

    @property
    def kind(self) -> str:
        """``"config"``."""
        return CONFIG

    def describe(self) -> str:
        """Return the values of the knobs."""
        return config_text(self.config.values)

    def to_json(self) -> Any:
        """Return the config as a value that ``json`` can write."""
        return self.config.to_json()

    def schedule(self, target: Target) -> tuple[Schedule, tuple[Tensor, ...]]:
        """Return the template's schedule for the config, and the kernel's parameters."""
        return self.operator.template(self.workload, target, self.config)


@dataclass(frozen=True, slots=True)
class StoredCandidate:
    """Stored form of a candidate that is not a config: a description without the schedule."""

    kind: str
    """Format of `document`: `Candidate.kind`."""
    text: str
    """The description by `Candidate.describe`."""
    document: str
    """What `Candidate.to_json` returned, as JSON with sorted keys."""

    @classmethod
    def of(cls, candidate: Candidate) -> StoredCandidate:
        """Convert a candidate to its stored form.

        Raises
        ------
        TuningError
            If `from_json` could not read it: the record would then be lost.
        """
        kind, text, document = candidate.kind, candidate.describe(), _stored(candidate.to_json())
        if _is_kind(kind) and is_storable(text):
            return cls(kind, text, document)
        raise TuningError(
            "store a candidate", "its kind or its description cannot be stored",
            got=f"{kind!r:.100}, {text!r:.100}",
            expected=f"texts in UTF-8 of at most {LONGEST_TEXT:,} characters; "
            'the kind is neither empty nor "config"',
        )  # fmt: skip

    @property
    def data(self) -> Any:
        """The value of `Candidate.to_json`, from which the schedule can be made again."""
        return json.loads(self.document)

    @property
    def config(self) -> Config:
        """A config without values, for code that handles only configs.

        Its fingerprint is unique to the candidate, so it belongs to no space.
        """
        key = hashlib.sha256(f"{self.kind}\n{self.document}".encode()).hexdigest()
        return Config({}, f"{self.kind}:{key[:_KEY_LENGTH]}")

    def to_json(self) -> dict[str, Any]:
        """Return a value that ``json`` can write."""
        return {"kind": self.kind, "text": self.text, "data": self.data}

    @classmethod
    def from_json(cls, data: object) -> StoredCandidate:
        """Read what `to_json` wrote.

        Raises
        ------
        TuningError
            If it is something else.
        """
        match data:
            case {"kind": kind, "text": text, "data": document, **rest} if (
                not rest and _is_kind(kind) and is_storable(text)
            ):
                return cls(kind, text, _stored(document))
        raise TuningError(
            "read a candidate", "not a candidate", got=f"{data!r:.200}",
            expected='{"kind": …, "text": …, "data": …}, of a kind other than "config"',
        )  # fmt: skip


def bound(tried: Tried, operator: Operator, workload: Workload) -> Candidate:
    """Convert a config to a candidate of the operator's template; keep other candidates."""
    return TemplateCandidate(operator, workload, tried) if isinstance(tried, Config) else tried


def stored_form(tried: Tried) -> tuple[Config, StoredCandidate | None]:
    """Return the config and the `StoredCandidate` that trials and records store for a candidate.

    The second value is None for a config of a template.
    """
    if isinstance(tried, Config):
        return tried, None
    if isinstance(tried, TemplateCandidate):
        return tried.config, None
    stored = StoredCandidate.of(tried)
    return stored.config, stored


def config_text(values: Mapping[str, Value]) -> str:
    """Return the values of knobs in one line.

    Examples
    --------
    >>> config_text({"tile_m": 4, "pack": True})
    'tile_m=4, pack=True'
    """
    return ", ".join(f"{name}={value}" for name, value in values.items())


def is_storable(text: object) -> TypeGuard[str]:
    """Tell whether a value is a text that a record can hold."""
    return isinstance(text, str) and len(text) <= LONGEST_TEXT and is_encodable(text)


def _is_kind(name: object) -> TypeGuard[str]:
    return is_storable(name) and name not in ("", CONFIG)


def _stored(data: Any) -> str:
    """Return a value of `Candidate.to_json` as text; refuse what `parse` would not read back."""
    try:
        inside = {"candidate": {"data": data}}  # a record nests it so deep
        read = parse(json.dumps(inside, allow_nan=False))["candidate"]["data"]
        return json.dumps(read, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise TuningError(
            "store a candidate", "its to_json returned a value that json cannot write",
            got=f"{type(error).__name__}: {error}",
            expected="dict, list, str, int, float, bool or None",
        ) from error  # fmt: skip
