"""Write records to files of JSON lines, and read them back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlcompiler.autotune.records.record import Record, read_line, write_line
from dlcompiler.autotune.records.store import RecordStore
from dlcompiler.errors import TuningError
from dlcompiler.input_files import lines, open_regular
from dlcompiler.output_files import Rules, replacing
from dlcompiler.terminal import escaped

LONGEST_LINE = 1 << 20
"""Largest file of records that is read [byte]."""
MOST_BAD_LINES = 1000
"""Lines that are no records after which a file without any record is read no further."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is not a record."""

    number: int
    """Counted from 1."""
    reason: str
    """What is wrong with it."""

    def __str__(self) -> str:
        return f"line {self.number}: {escaped(self.reason)}"


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of importing a file."""

    added: int
    """Records that were new."""
    known: int
    """Records that were there already."""
    bad: tuple[BadLine, ...]
    """Lines that were left out."""

    def __str__(self) -> str:
        text = f"{self.added} records added, {self.known} known already, {len(self.bad)} bad lines"
        return "\n".join([text, *map(str, self.bad)])


def write_records(
    records: Iterable[Record], path: str | Path, *, overwrite: bool = True, source: str = ""
) -> int:
    """Write records to a file atomically, one JSON line each.

    Parameters
    ----------
    records : iterable of Record
        What to write.
    path : str or Path
        The file.
    overwrite : bool
        Whether a file that is there is replaced. What is no regular file, and a database of SQLite,
        never is.
    source : str, optional
        The file that the records come from, which is never replaced.

    Returns
    -------
    int
        How many.

    Raises
    ------
    TuningError
        If the file cannot be written, or would replace what must not be replaced.
    """
    count = 0
    rules = Rules(overwrite, (source,) if source else (), TuningError)
    with replacing(path, rules) as new, new.open("w", encoding="utf-8") as stream:
        for record in records:
            stream.write(write_line(record) + "\n")
            count += 1
    return count


def read_records(path: str | Path) -> tuple[list[Record], list[BadLine]]:
    """Read records from a file of JSON lines; return them and the bad lines.

    Parameters
    ----------
    path : str or Path
        The file.

    Raises
    ------
    TuningError
        If the file cannot be read at all.
    """
    records: list[Record] = []
    bad: list[BadLine] = []
    try:
        with open_regular(path) as stream:
            for number, line in lines(stream, LONGEST_LINE):
                if not records:
                    refuse_if_all_bad(f"read records from {path}", bad)
                if line is None:
                    bad.append(BadLine(number, "longer than 1 MiB"))
                elif line.strip():
                    try:
                        records.append(read_line(line.decode("utf-8")))
                    except (TuningError, UnicodeDecodeError) as error:
                        bad.append(BadLine(number, _reason(error, line)))
    except OSError as error:
        raise TuningError(f"read records from {path}", "cannot read", got=str(error)) from error
    return records, bad


def refuse_if_all_bad(operation: str, bad: Sequence[BadLine]) -> None:
    """Refuse a file if `MOST_BAD_LINES` lines were read and none of them is a record.

    Raises
    ------
    TuningError
        `bad` has at least `MOST_BAD_LINES` lines.
    """
    if len(bad) >= MOST_BAD_LINES:
        raise TuningError(
            operation, "not a file of records", got=str(bad[0]),
            because=f"none of its first {len(bad)} lines is a record",
        )  # fmt: skip


def import_records(store: RecordStore, path: str | Path) -> Imported:
    """Add the records of a file of JSON lines to a store; bad lines are reported, not added.

    Parameters
    ----------
    store : RecordStore
        Where they are added.
    path : str or Path
        The file.

    Returns
    -------
    Imported
        How many were added and how many were known already, and the bad lines with their reasons.

    Raises
    ------
    TuningError
        If the file cannot be read at all.

    Examples
    --------
    >>> print(import_records(store, "matmul.jsonl"))                           # doctest: +SKIP
    128 records added, 0 known already, 1 bad lines
    line 17: not JSON: Expecting value: line 1 column 1 (char 0)
    """
    records, bad = read_records(path)
    added = store.add(records)
    return Imported(added, len(records) - added, tuple(bad))


def export_records(store: RecordStore, path: str | Path, *, overwrite: bool = True) -> int:
    """Write all records of a store to a file of JSON lines.

    Parameters
    ----------
    store : RecordStore
        The records.
    path : str or Path
        The file; it is written completely, or not at all.
    overwrite : bool
        Whether a file that is there is replaced. What is no regular file, and a database of SQLite,
        never is.

    Returns
    -------
    int
        How many.

    Raises
    ------
    TuningError
        If the file cannot be written, or would replace what must not be replaced.
    """
    return write_records(store.records(), path, overwrite=overwrite, source=store.path)


def _reason(error: TuningError | UnicodeDecodeError, line: bytes) -> str:
    if not line.endswith(b"\n") and isinstance(error.__cause__, ValueError):
        return "torn: the file ends in the middle of it"  # its writer was killed
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    return error.problem if error.got is None else f"{error.problem}: {error.got}"
