"""Replay tables: measured times of many points of one space, and the pool that reads them.

Replaying a table takes the place of measuring: tuners are compared on it within seconds, and every
run sees the same times. `dlcompiler bench --measure-table` makes a table.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dlcompiler.autotune.candidate import Tried
from dlcompiler.autotune.pools.measure_pool import Device, Report
from dlcompiler.autotune.trial import OUTCOMES, OutcomeName, Result
from dlcompiler.errors import TuningError
from dlcompiler.input_files import open_regular
from dlcompiler.json_text import JsonError, parse
from dlcompiler.output_files import make_folder, write_file
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.space import Config, Filter, Knob, Space, Workload
from dlcompiler.space.knob import as_value

SCHEMA = 1
"""Version of the files."""
SUFFIX = ".json.gz"

_DIGITS = 6
_LARGEST_FILE = 64 << 20
_COLUMNS = ("point", "outcome", "median_s", "low_s", "high_s")


@dataclass(frozen=True, slots=True)
class TableRow:
    """The result of one point."""

    point: int
    """Index in the space."""
    outcome: OutcomeName
    """How it ended."""
    median_s: float | None = None
    """Seconds of a call; None unless ``ok`` [s]."""
    low_s: float | None = None
    """Lower end of the interval that holds the median [s]."""
    high_s: float | None = None
    """Its upper end [s]."""

    @property
    def rate(self) -> float | None:
        """Calls per second [1/s]; None unless ``ok``."""
        return None if self.median_s is None else 1 / self.median_s

    @property
    def result(self) -> Result:
        """The result to report; its samples are the median and both ends of its interval."""
        if self.low_s is None or self.median_s is None or self.high_s is None:
            return Result(self.outcome, message="failed when the table was measured")
        return Result(self.outcome, (self.low_s, self.median_s, self.high_s))


@dataclass(frozen=True)
class ReplayTable:
    """Measured points of one space."""

    name: str
    """Its name in the suite: ``C2``, ``gemm 512×512×512``."""
    workload: Workload
    """What was measured."""
    target: str
    """The machine, as `dlcompiler.autotune.records.record.target_key` names it."""
    machine: Mapping[str, str]
    """Properties of the machine, for readers."""
    date: str
    """When it was measured, ISO 8601."""
    knobs: tuple[Knob, ...]
    """Knobs of the space when it was measured."""
    rules: tuple[str, ...]
    """Descriptions of the filters of the space."""
    rows: tuple[TableRow, ...]
    """Each point once, in ascending order."""

    @cached_property
    def space(self) -> Space:
        """The space as it was measured. Its filters allow every point; see `points`."""
        return Space(self.workload, self.knobs, [Filter(rule, _anything) for rule in self.rules])

    @cached_property
    def points(self) -> tuple[int, ...]:
        """The points that were measured, in ascending order."""
        return tuple(row.point for row in self.rows)

    @cached_property
    def by_point(self) -> Mapping[int, TableRow]:
        """The rows by their points."""
        return {row.point: row for row in self.rows}

    @property
    def best(self) -> TableRow:
        """The row of the shortest time."""
        return min(
            (row for row in self.rows if row.median_s is not None),
            key=lambda row: (row.median_s, row.point),
        )

    @property
    def provenance(self) -> Provenance:
        """Provenance of the times: measured on the table's machine, and replayed."""
        machine = self.machine.get("cpu", self.target)
        return Provenance("measured", f"{machine}, replayed from the table {self.name}")

    def hits(self, fraction: float = 0.95) -> frozenset[int]:
        """Return the points whose rate is at least this fraction of the best one's."""
        limit = (self.best.median_s or 0.0) / fraction
        return frozenset(
            row.point for row in self.rows if row.median_s is not None and row.median_s <= limit
        )

    def __repr__(self) -> str:
        return f"ReplayTable({self.name!r}: {len(self.rows):,} of {self.space.size:,} points)"

    # -- files -------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return a value that ``json`` can write."""
        return {
            "schema": SCHEMA,
            "kind": "replay table",
            "name": self.name,
            "workload": self.workload.to_json(),
            "target": self.target,
            "machine": dict(self.machine),
            "date": self.date,
            "fingerprint": self.space.fingerprint,
            "knobs": [[knob.name, list(knob.values)] for knob in self.knobs],
            "rules": list(self.rules),
            "outcomes": list(OUTCOMES),
            "rows": {
                "point": [row.point for row in self.rows],
                "outcome": [OUTCOMES.index(row.outcome) for row in self.rows],
                "median_s": [_rounded(row.median_s) for row in self.rows],
                "low_s": [_rounded(row.low_s) for row in self.rows],
                "high_s": [_rounded(row.high_s) for row in self.rows],
            },
        }

    def save(self, path: str | Path) -> None:
        """Write the table to a file atomically; equal tables give equal bytes."""
        text = json.dumps(self.to_json(), separators=(",", ":"), ensure_ascii=False)
        make_folder(Path(path).parent)
        write_file(path, gzip.compress(text.encode(), mtime=0))

    @classmethod
    def load(cls, path: str | Path) -> ReplayTable:
        """Read a table from a file that `save` wrote.

        Raises
        ------
        TuningError
            If the file is something else, damaged, or written by a newer version.
        """
        try:
            with open_regular(path) as stream, gzip.open(stream) as file:
                text = file.read(_LARGEST_FILE + 1)
            if len(text) > _LARGEST_FILE:
                raise _bad(f"longer than {_LARGEST_FILE} bytes", path)
            data = parse(text)
        except (OSError, EOFError, JsonError, zlib.error) as error:
            raise _bad(f"not a compressed JSON file: {error}", path) from error
        return cls.from_json(data, str(path))

    @classmethod
    def from_json(cls, data: Any, source: str = "a replay table") -> ReplayTable:
        """Read what `to_json` wrote; `source` names it in errors."""
        if not isinstance(data, dict) or data.get("kind") != "replay table":
            raise _bad("not a replay table", source)
        if isinstance(data.get("schema"), int) and data["schema"] > SCHEMA:
            raise _bad(f"schema {data['schema']} is of a newer version", source, f"schema {SCHEMA}")
        try:
            table = cls(
                str(data["name"]),
                Workload.from_json(data["workload"]),
                str(data["target"]),
                {str(key): str(value) for key, value in data["machine"].items()},
                str(data["date"]),
                tuple(_knob(name, values) for name, values in data["knobs"]),
                tuple(str(rule) for rule in data["rules"]),
                tuple(_rows(data["rows"], data["outcomes"])),
            )
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise _bad(f"damaged: {type(error).__name__}: {error}", source) from error
        _check(table, data.get("fingerprint"), source)
        return table


class ReplayPool:
    """A pool that reports the results of a table instead of measuring.

    Parameters
    ----------
    table : ReplayTable
        The table; tuners may propose its `points` only.
    """

    def __init__(self, table: ReplayTable) -> None:
        self.note = f"replayed from the table {table.name} of {table.date}; nothing is measured"
        """A note for the user about the times."""
        self.table = table
        """The table that it reads."""
        self._device = Device(table.target, ("replay",), table.provenance)

    @property
    def devices(self) -> tuple[Device, ...]:
        """The machine that the table was measured on."""
        return (self._device,)

    def measure(self, configs: Sequence[Tried], best_s: float | None, report: Report) -> None:
        """Report the result that the table has for each config.

        Raises
        ------
        TuningError
            If it has none.
        """
        del best_s
        for number, config in enumerate(configs):
            if not isinstance(config, Config):
                raise TuningError(
                    f"replay {config.describe()}", "a table has configs only",
                    got=f"a candidate of kind {config.kind!r}", expected="a config of its space",
                )  # fmt: skip
            point = self.table.space.index_of(config)
            row = self.table.by_point.get(point)
            if row is None:
                raise TuningError(
                    f"replay {config}", "the table does not have this point",
                    got=f"point {point}", expected=f"one of {len(self.table.rows):,} points",
                    hint="give the tuner the table's points: tuner(…, points=table.points)",
                )  # fmt: skip
            report(number, self._device.labelled(row.result))

    def interrupt(self) -> None:
        """Do nothing: a batch takes no time."""

    def close(self) -> None:
        """Do nothing: there are no resources."""


def _anything(values: Mapping[str, Any]) -> bool:
    del values
    return True


def _knob(name: object, values: object) -> Knob:
    if not isinstance(name, str) or not isinstance(values, list):
        raise TypeError(f"the knob {name!r:.80} has no list of values")
    return Knob(name, tuple(map(as_value, values)))


def _rows(columns: Mapping[str, Sequence[Any]], outcomes: Sequence[str]) -> Iterator[TableRow]:
    lists = [columns[name] for name in _COLUMNS]
    for point, outcome, *times in zip(*lists, strict=True):
        if type(point) is not int or type(outcome) is not int or outcome < 0:
            raise ValueError(f"the point {point!r} or its outcome {outcome!r} is no number")
        name = outcomes[outcome]
        known = OUTCOMES[OUTCOMES.index(name)]
        median, low, high = map(_seconds, times)
        if (known == "ok") != (median is not None):
            raise ValueError(f"point {point} is {known} with the time {median}")
        if median is not None and not 0 < (low or 0) <= median <= (high or 0) < math.inf:
            raise ValueError(f"point {point} has the times {low}, {median}, {high}")
        yield TableRow(point, known, median, low, high)


def _seconds(value: object) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a time")
    return float(value)


def _check(table: ReplayTable, fingerprint: object, source: str) -> None:
    """Refuse a table with invalid points, or whose knobs have changed since it was measured."""
    if table.space.fingerprint != fingerprint:
        raise _bad(
            "the knobs are not those that were measured", source, f"fingerprint {fingerprint}"
        )
    points = table.points
    if list(points) != sorted(set(points)) or not all(0 <= p < table.space.size for p in points):
        raise _bad("a point is outside the space, or not in order", source)
    if all(row.median_s is None for row in table.rows):
        raise _bad("no point has a time", source)


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def _bad(problem: str, source: object, expected: str | None = None) -> TuningError:
    return TuningError(
        "read a replay table", problem, got=str(source), expected=expected,
        hint="dlcompiler bench --measure-table WORK --into FOLDER makes one",
    )  # fmt: skip
