"""Write measurements to an AutoTVM log, and read them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from io import TextIOBase
from pathlib import Path
from typing import Any

from dlcompiler.autotune.records.autotvm_log import (
    LogLine,
    append_to_log,
    log_lines,
    read_log_line,
    write_log_line,
)
from dlcompiler.autotune.records.jsonl import BadLine
from dlcompiler.compat.autotvm.configs import ConfigEntity
from dlcompiler.compat.autotvm.measuring import MeasureInput, MeasureResult
from dlcompiler.compat.autotvm.tasks import Task
from dlcompiler.compat.notes import note
from dlcompiler.compat.targets import Target
from dlcompiler.errors import TuningError, UserError
from dlcompiler.output_files import Rules, write_file

AUTOTVM_LOG_VERSION = 0.2
"""Version of the format that `encode` writes and `decode` reads."""
_WRITER = "0.8.0"
"""Version of TVM whose logs these are."""


def encode(inp: MeasureInput, result: MeasureResult, protocol: str = "json") -> str:
    """Return a measurement as a line of JSON.

    Raises
    ------
    TuningError
        If `protocol` is not JSON: pickling is not supported.
    """
    _check(protocol)
    return write_log_line(_line(inp, result))


def decode(row: str, protocol: str = "json") -> tuple[MeasureInput, MeasureResult]:
    """Read a line of JSON.

    Raises
    ------
    TuningError
        If the line is not of version 0.2.
    """
    _check(protocol)
    return _pair(read_log_line(row))


def load_from_file(filepath: str | Path) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """Yield the measurements of a file; a note lists the numbers of invalid lines.

    Warns
    -----
    CompatNote
        For lines that are left out.
    """
    found: list[tuple[MeasureInput, MeasureResult]] = []
    bad: list[BadLine] = []
    for number, line in log_lines(filepath):
        try:
            if isinstance(line, LogLine):
                found.append(_pair(line))
            else:
                bad.append(line)
        except UserError as error:  # For example, an unknown target.
            bad.append(BadLine(number, str(error).partition("\n")[0]))
    if bad:
        more = f", and {len(bad) - 3} more" if len(bad) > 3 else ""
        note(f"{filepath}: left out: {'; '.join(map(str, bad[:3]))}{more}", 4)
    yield from found


def append(path: str | Path, pairs: Iterator[tuple[MeasureInput, MeasureResult]]) -> None:
    """Add measurements to the end of a file."""
    append_to_log(path, [_line(inp, result) for inp, result in pairs])


def pick_best(in_file: str | Path, out_file: str | Path | TextIOBase) -> None:
    """Write the fastest measurement of each workload of a file to another.

    Parameters
    ----------
    in_file : path
        A log.
    out_file : path or file
        Output; an existing file is replaced. It cannot be the log itself.
    """
    best: dict[tuple[Any, ...], tuple[MeasureInput, MeasureResult]] = {}
    for inp, result in load_from_file(in_file):
        key = (str(inp.target), inp.task.workload)
        known = best.get(key)
        if result.error_no == 0 and (known is None or median(result) < median(known[1])):
            best[key] = (inp, result)
    text = "".join(encode(*pair) + "\n" for pair in best.values())
    if isinstance(out_file, str | Path):
        write_file(out_file, text, Rules(sources=(in_file,)))
    else:
        out_file.write(text)


def median(result: MeasureResult) -> float:
    """Return the median time of a measurement without an error [s]."""
    return float(statistics.median(result.costs))


def _line(inp: MeasureInput, result: MeasureResult) -> LogLine:
    costs = tuple(map(float, result.costs)) if result.error_no == 0 else ()
    return LogLine(
        str(inp.target), inp.task.name, tuple(inp.task.args), inp.config.values(), costs,
        int(result.error_no), float(result.all_cost), float(result.timestamp),
        index=inp.config.index, tvm_version=_WRITER,
    )  # fmt: skip


def _pair(line: LogLine) -> tuple[MeasureInput, MeasureResult]:
    target = Target(line.target)
    config = ConfigEntity.of_values(line.index, line.entities)
    costs = line.costs_s if line.error == 0 else (1e9,)
    result = MeasureResult(costs, line.error, line.all_cost_s, line.timestamp)
    return MeasureInput(target, Task(line.task, line.args), config), result


def _check(protocol: str) -> None:
    if protocol != "json":
        raise TuningError(
            "autotvm.record", "only the JSON format is supported", got=repr(protocol),
            because="unpickling would run code from the file",
        )  # fmt: skip
