"""Logs of classic AutoTVM: JSON lines of version 0.2, read and written.

::

    {"input": ["llvm", "tutorial/matmul", [512, 512, 512, "float32"], {}],
     "config": {"index": 17, "code_hash": null,
                "entity": [["tile_y", "sp", [-1, 8]], ["unroll", "ot", true]]},
     "result": [[0.0013], 0, 0.81, 1600000000.0], "version": 0.2, "tvm_version": "0.8.0"}

Values are taken by the names of the knobs; ``index`` is never read as a position. Lines of version
0.1 are refused: they were pickled, and unpickling runs code that a file chooses.

**Source:** the format is that of ``tvm.autotvm.record`` in TVM 0.7 to 0.19.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dlcompiler.autotune.records.jsonl import LONGEST_LINE, BadLine, refuse_if_all_bad
from dlcompiler.autotune.trial import OutcomeName, Result
from dlcompiler.errors import TuningError
from dlcompiler.input_files import lines, open_regular
from dlcompiler.json_text import JsonError, parse
from dlcompiler.output_files import Rules, append_lines
from dlcompiler.space import Config, Space
from dlcompiler.space.knob import Kind, is_value

VERSION = 0.2
"""The version that is written."""
NO_TIME_S = 1e9
"""The seconds that are written for a failed measurement."""
TAGS: dict[Kind, str] = {"split": "sp", "reorder": "re", "annotate": "an", "option": "ot"}
"""Kind of a knob -> its tag in a line."""
KINDS: dict[str, Kind] = {tag: kind for kind, tag in TAGS.items()}
"""Tag in a line -> kind of a knob."""
ERRORS: dict[OutcomeName, int] = {
    "ok": 0,
    "refused": 1,
    "build error": 2,
    "crashed": 4,
    "out of memory": 4,
    "wrong answer": 5,
    "build timeout": 6,
    "run timeout": 7,
}
"""Outcome -> AutoTVM's number of it (``MeasureErrorNo``)."""
OUTCOMES: dict[int, OutcomeName] = {
    0: "ok", 1: "refused", 2: "build error", 3: "build error", 4: "crashed", 5: "wrong answer",
    6: "build timeout", 7: "run timeout", 8: "crashed",
}  # fmt: skip
"""AutoTVM's number of an error -> outcome."""
_WHERE = "read a line of an AutoTVM log"
_PICKLED = re.compile(r"[^\t{]+\t[A-Za-z0-9+/=]+\t[A-Za-z0-9+/=]+\t[A-Za-z0-9+/=]+")
_TORN = "torn"
_LAST_MOMENT_S = 253402300800
"""The end of the year 9999, the last that a date can have [s since 1970]."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One measurement."""

    target: str
    """The target as TVM writes it."""
    task: str
    """Name of the template."""
    args: tuple[Any, ...]
    """Its arguments; lists are tuples."""
    entities: tuple[tuple[str, str, Any], ...]
    """Name, tag (`TAGS`) and value of each knob; lists are tuples."""
    costs_s: tuple[float, ...] = ()
    """Seconds per call, in the order measured; none unless `error` is 0 [s]."""
    error: int = 0
    """A key of `OUTCOMES`."""
    all_cost_s: float = 0.0
    """Time of building and running [s]."""
    timestamp: float = 0.0
    """Time of the measurement [s since 1970]."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Named arguments."""
    index: int = 0
    """Of the config in the space of whoever wrote it; it is not read as a position here."""
    tvm_version: str = ""
    """Version of TVM that wrote it."""

    @property
    def result(self) -> Result:
        """The measurement as the `Result` of a trial."""
        outcome = OUTCOMES[self.error]
        message = "" if outcome == "ok" else f"AutoTVM's error {self.error}"
        return Result(outcome, self.costs_s if outcome == "ok" else (), message)


def write_log_line(line: LogLine) -> str:
    """Return a measurement as a line of JSON."""
    entities = [[name, tag, value] for name, tag, value in line.entities]
    costs = list(line.costs_s) if line.error == 0 else [NO_TIME_S]
    return json.dumps(
        {
            "input": [line.target, line.task, list(line.args), dict(line.kwargs)],
            "config": {"index": line.index, "code_hash": None, "entity": entities},
            "result": [costs, line.error, line.all_cost_s, line.timestamp],
            "version": VERSION,
            "tvm_version": line.tvm_version,
        }
    )


def read_log_line(text: str) -> LogLine:
    """Read a line of JSON.

    Raises
    ------
    TuningError
        It is not one of version 0.2, with the reason.
    """
    if _PICKLED.fullmatch(text.strip()):
        raise TuningError(
            _WHERE, "a pickled line of version 0.1 is not read",
            because="unpickling runs code that the file chooses",
            hint="TVM 0.6 can read it, and write it as JSON",
        )  # fmt: skip
    try:
        data = parse(text)
    except JsonError as error:
        raise TuningError(_WHERE, "not JSON", got=str(error)) from error
    version = data.get("version", data.get("v")) if isinstance(data, dict) else None
    if version != VERSION:
        raise TuningError(
            _WHERE, "not a line of a version that is read here", got=repr(version),
            expected=f'"version": {VERSION}',
        )  # fmt: skip
    match _tuples(data.get("input")), data.get("config"), _tuples(data.get("result")):
        case (
            (str(target), str(task), tuple(args), dict(kwargs)),
            {"entity": list(entities), "index": int(index)},
            (tuple(costs), int(number), int() | float() as all_cost, int() | float() as timestamp),
        ) if number in OUTCOMES and 0 <= timestamp < _LAST_MOMENT_S and 0 <= all_cost <= NO_TIME_S:
            return LogLine(
                target, task, args, tuple(_entity(_tuples(item)) for item in entities),
                _costs(costs) if number == 0 else (), number, float(all_cost), float(timestamp),
                kwargs, index, str(data.get("tvm_version", "")),
            )  # fmt: skip
    raise TuningError(
        _WHERE, "input, config or result are not as they should be", got=text[:80],
        expected='"input": [target, task, args, kwargs], "config": {"index": …, "entity": […]}, '
        '"result": [[seconds], error, seconds, timestamp]',
    )  # fmt: skip


def read_log(path: str | Path) -> tuple[list[LogLine], list[BadLine]]:
    """Read a log; return its measurements and its bad lines. ``#`` begins a comment.

    Raises
    ------
    TuningError
        The file cannot be read at all.
    """
    found = list(log_lines(path))
    good = [line for _, line in found if isinstance(line, LogLine)]
    return good, [line for _, line in found if isinstance(line, BadLine)]


def log_lines(path: str | Path) -> Iterator[tuple[int, LogLine | BadLine]]:
    """Yield (line number, measurement or bad line) for the lines of a log; see `read_log`."""
    bad: list[BadLine] = []
    has_good = False
    try:
        with open_regular(path) as stream:
            for number, raw in lines(stream, LONGEST_LINE):
                line = _numbered(number, raw)
                if isinstance(line, LogLine):
                    has_good = True
                elif line is not None and not has_good:
                    bad.append(line)
                    refuse_if_all_bad(f"read the log {path}", bad)
                if line is not None:
                    yield number, line
    except OSError as error:
        raise TuningError(f"read the log {path}", "cannot read", got=str(error)) from error


def _numbered(number: int, raw: bytes | None) -> LogLine | BadLine | None:
    """Parse a line to a measurement or a bad line; None for an empty line or a comment."""
    if raw is None:
        return BadLine(number, "longer than 1 MiB")
    try:
        text = raw.decode("utf-8").strip()
        return read_log_line(text) if text and not text.startswith("#") else None
    except UnicodeDecodeError:
        return BadLine(number, "not UTF-8")
    except TuningError as error:
        return BadLine(number, _reason(error, raw))


def append_to_log(path: str | Path, lines: Iterable[LogLine]) -> None:
    """Add measurements to the end of a file, which is made if there is none.

    Raises
    ------
    TuningError
        It cannot be written, or is something else: another file, a device, a database.
    """
    if Path(path).is_file():
        _, first = next(log_lines(path), (0, None))
        if isinstance(first, BadLine) and not first.reason.startswith(_TORN):
            raise TuningError(
                f"write the log {path}", "not a log of AutoTVM", got=str(first),
                hint="choose another file",
            )  # fmt: skip
    append_lines(path, [write_log_line(line) for line in lines], Rules(error=TuningError))


def entities_of(config: Config, space: Space) -> tuple[tuple[str, str, Any], ...]:
    """Return the values of a config in the form of a log line: (name, tag, value)."""
    return tuple((knob.name, TAGS[knob.kind], config[knob.name]) for knob in space.knobs)


def config_of(line: LogLine, space: Space) -> Config:
    """Return the config of a log line in a space; values are matched by name.

    Raises
    ------
    TuningError
        The space has other knobs, or not these values.
    """
    return space.config(**{name: value for name, _, value in line.entities})


def _entity(data: Any) -> tuple[str, str, Any]:
    match data:
        case (str(name), str(tag), value) if tag == TAGS["option"] or (
            tag in KINDS and isinstance(value, tuple) and is_value(value)
        ):
            return name, tag, value
    raise TuningError(
        _WHERE, "not a value of a knob", got=repr(data),
        expected=f"[name, {' or '.join(TAGS.values())}, value]",
    )  # fmt: skip


def _costs(costs: tuple[Any, ...]) -> tuple[float, ...]:
    if not costs or not all(type(c) in (int, float) and 0 < c < NO_TIME_S for c in costs):
        raise TuningError(_WHERE, "not seconds", got=repr(costs))
    return tuple(float(cost) for cost in costs)


def _tuples(data: Any) -> Any:
    return tuple(map(_tuples, data)) if isinstance(data, list) else data


def _reason(error: TuningError, raw: bytes) -> str:
    if not raw.endswith(b"\n") and isinstance(error.__cause__, ValueError):
        return f"{_TORN}: the file ends in the middle of it"
    return error.problem if error.got is None else f"{error.problem}: {error.got}"
