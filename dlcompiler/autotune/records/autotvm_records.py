"""Convert records to lines of an AutoTVM log, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from dlcompiler.autotune.records.autotvm_log import (
    ERRORS,
    KINDS,
    TAGS,
    LogLine,
    append_to_log,
    log_lines,
)
from dlcompiler.autotune.records.jsonl import BadLine, Imported
from dlcompiler.autotune.records.record import Record
from dlcompiler.autotune.records.store import RecordStore
from dlcompiler.errors import TuningError
from dlcompiler.space import Config, Value, Workload
from dlcompiler.space.knob import Kind, is_value

FOREIGN = "autotvm"
"""The fingerprint of imported configs, whose values are taken by name."""


def export_autotvm(
    records: Iterable[Record], path: str | Path, kinds: Mapping[str, Kind] | None = None
) -> int:
    """Add records to the end of an AutoTVM log; returns how many.

    Parameters
    ----------
    records : iterable of Record
        What is written; the parameters of a workload are named arguments of its task.
    path : path
        The log.
    kinds : mapping, optional
        Kinds of the knobs whose values are tuples (`Knob.kind`).

    Raises
    ------
    TuningError
        The kind of a knob is not known, or the file cannot be written.
    """
    lines = [line_of(record, kinds or {}) for record in records]
    append_to_log(path, lines)
    return len(lines)


def import_autotvm(store: RecordStore, path: str | Path) -> Imported:
    """Add the measurements of an AutoTVM log to a store; bad lines are reported, not added.

    The times belong to the target that the log names, and not to this machine.

    Parameters
    ----------
    store : RecordStore
        Where they are added.
    path : str or Path
        The log.

    Returns
    -------
    Imported
        How many were added and how many were known already, and the bad lines with their reasons.
    """
    records: list[Record] = []
    bad: list[BadLine] = []
    for number, line in log_lines(path):
        if isinstance(line, BadLine):
            bad.append(line)
            continue
        try:
            records.append(record_of(line, Path(path).name, number))
        except TuningError as error:
            bad.append(BadLine(number, error.problem))
    added = store.add(records)
    return Imported(added, len(records) - added, tuple(bad))


def line_of(record: Record, kinds: Mapping[str, Kind]) -> LogLine:
    """Return a record as a line of a log.

    Raises
    ------
    TuningError
        Its time was not measured, which a log cannot say; or the kind of a knob is not known.
    """
    if record.provenance.kind != "measured":
        raise TuningError(
            "write an AutoTVM log", "its readers would take the time for a measured one",
            got=f"{record.workload}: {record.provenance}", expected="measured records only",
        )  # fmt: skip
    if record.candidate is not None:
        raise TuningError(
            "write an AutoTVM log", "what was tried is no config of a template",
            got=record.candidate.text, expected="records of configs only",
        )  # fmt: skip
    entities = tuple(
        (name, _tag(name, value, kinds), value) for name, value in record.config.values.items()
    )
    moment = datetime.fromisoformat(record.measured_at).timestamp() if record.measured_at else 0.0
    return LogLine(
        record.target, record.workload.op, (), entities, record.result.samples_s,
        ERRORS[record.result.outcome], record.result.build_s + record.result.run_s, moment,
        record.workload.as_dict(),
    )  # fmt: skip


def record_of(line: LogLine, run: str, number: int) -> Record:
    """Return a line of a log as a record.

    Parameters
    ----------
    line : LogLine
        A measurement; its task's arguments are the workload's parameters, by name or as ``arg0``.
    run : str
        Used as the name of the run.
    number : int
        Used as the number of the trial.

    Raises
    ------
    TuningError
        An argument is neither a number nor a name, or the kinds of values differ from the tags.
    """
    named = {f"arg{n}": value for n, value in enumerate(line.args)}
    if twice := sorted(named.keys() & line.kwargs.keys()):
        raise TuningError("read a line of an AutoTVM log", f"the argument {twice[0]} stands twice")
    for name, _, value in line.entities:
        if not is_value(value):
            raise TuningError(
                "read a line of an AutoTVM log", f"the value of the knob {name} is not kept",
                got=repr(value), expected="bool, int, str, or a tuple of int or of str",
            )  # fmt: skip
    moment = datetime.fromtimestamp(line.timestamp, UTC).isoformat(timespec="seconds")
    values: dict[str, Value] = {name: value for name, _, value in line.entities}
    workload = Workload(line.task, (*named.items(), *line.kwargs.items()))
    return Record(
        workload, line.target, Config(values, FOREIGN), line.result, run, number, moment,
        origin="history",
    )  # fmt: skip


def _tag(name: str, value: Value, kinds: Mapping[str, Kind]) -> str:
    if name in kinds:
        return TAGS[kinds[name]]
    if not isinstance(value, tuple):
        return TAGS["option"]
    raise TuningError(
        "write an AutoTVM log", f"the kind of the knob {name} is not known", got=repr(value),
        expected=", ".join(KINDS.values()), hint="export_autotvm(…, kinds={knob: kind})",
    )  # fmt: skip
