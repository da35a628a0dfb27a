"""SQLite files of records: create, check, open and upgrade them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import uuid
from collections.abc import Iterator
from pathlib import Path

from dlcompiler.autotune.records.record import SCHEMA, Record, read_row
from dlcompiler.errors import TuningError
from dlcompiler.space import Workload

APPLICATION = 0x444C4354  # "DLCT": tells a database of this project from another one
MEMORY = ":memory:"
ENDS = ("-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite keeps beside a database."""

_BUSY_LIMIT_S = 30.0
_RECORDS = """
CREATE TABLE records (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    workload TEXT NOT NULL,
    target TEXT NOT NULL,
    seconds REAL,
    record TEXT NOT NULL
);
CREATE INDEX records_of ON records (workload, target, seconds);
"""
_RUNS = """
CREATE TABLE runs (
    name TEXT PRIMARY KEY,
    identity TEXT NOT NULL,
    state TEXT NOT NULL,
    owner TEXT NOT NULL,
    began_at TEXT NOT NULL
);
"""
INSERT = (
    "INSERT INTO records (key, workload, target, seconds, record)"
    " VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING"
)


ROWS = "SELECT id, CAST(key AS BLOB), CAST(record AS BLOB) FROM records"
"""Bytes, for `read_row`: a text that is not UTF-8 is an error of its row, not of the query."""


KIND = (
    "CASE WHEN json_valid(CAST(record AS TEXT)) THEN"
    " coalesce(json_extract(CAST(record AS TEXT), '$.provenance.kind'), 'measured') END"
)
"""Whether the time of a row is measured or simulated. Rows without it were written by versions that
only measured. A damaged row is NULL: json_extract would end the query with an error."""


def row_of(record: Record) -> tuple[str, str, str, float | None, str]:
    """Return the database row of a record, in the order of `INSERT`."""
    return (
        record.key(),
        workload_key(record.workload),
        record.target,
        record.result.seconds,
        json.dumps(record.to_json()),
    )


def workload_key(workload: Workload) -> str:
    """Return the text that the database stores for a workload."""
    return json.dumps(workload.to_json(), sort_keys=True)


def prefix_of(op: str) -> tuple[str, str]:
    """Return the bounds of the text range that contains exactly the workloads of an operator."""
    start = f'{{"op": {json.dumps(op)}, '
    return start, f"{start}\U0010ffff"


def open_database(path: str, *, is_read_only: bool = False) -> sqlite3.Connection:
    """Open a database; create it if there is none. A file of another kind is not changed.

    Raises
    ------
    TuningError
        If it cannot be used, with what to do.
    """
    try:
        if path == MEMORY:
            connection = _connect(path)
            _make_tables(connection)
            return connection
        _check_place(path, is_read_only)
        connection = _connect_to_read(path) if is_read_only else _connect(path)
        try:
            _check(connection, path, is_read_only)
        except BaseException:
            connection.close()
            raise
        return connection
    except FAILURES as error:
        raise failure(path, error) from error
    except OSError as error:
        raise TuningError(
            f"open the records in {path}", "the file cannot be used", got=str(error)
        ) from error


def reopen(path: str, *, is_read_only: bool = False) -> sqlite3.Connection:
    """Open a database that `open_database` has checked."""
    return _connect_to_read(path) if is_read_only else _connect(path)


def _connect(path: str) -> sqlite3.Connection:
    # Autocommit: transactions are begun by `transaction`, and never by a read. Another thread may
    # close a connection.
    connection = sqlite3.connect(
        path, timeout=_BUSY_LIMIT_S, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA synchronous = FULL")
        _distrust(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect_to_read(path: str) -> sqlite3.Connection:
    """Open a database read-only; in a read-only folder, open it as immutable."""
    place = Path(path).resolve().as_uri()
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        connection = sqlite3.connect(
            f"{place}?{mode}", uri=True, timeout=_BUSY_LIMIT_S, check_same_thread=False
        )
        try:
            _distrust(connection)
            connection.execute("SELECT count(*) FROM sqlite_master")
        except sqlite3.OperationalError:
            connection.close()
            wal = Path(f"{path}-wal")
            if "immutable" in mode or (wal.exists() and wal.stat().st_size):
                raise
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise AssertionError("one of the two returns or raises")


def _distrust(connection: sqlite3.Connection) -> None:
    """Make SQLite treat the file as untrusted input."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")


def _check_place(path: str, is_read_only: bool) -> None:
    """Create the file if it is missing; refuse a path that cannot be a database."""
    place = Path(os.path.realpath(path))
    where = f"open the records in {path}"
    if not place.exists():
        if is_read_only:
            raise TuningError(where, "there is no such file")
        if not place.parent.is_dir():
            raise TuningError(
                where, "there is no such folder", got=str(place.parent), hint="make it first"
            )
        _make(place)
    elif not place.is_file():
        raise TuningError(where, "not a file", hint="name a file; it is made if there is none")
    elif strange := [end for end in ENDS if _is_irregular(Path(f"{place}{end}"))]:
        raise TuningError(where, "a file beside it is no regular one", got=f"{place}{strange[0]}")
    elif place.stat().st_size == 0:
        raise TuningError(
            where, "the file is empty", because="no database of records is, not even a new one",
            hint="restore a copy; or delete the file, and a new one is made in its place",
        )  # fmt: skip


def _is_irregular(path: Path) -> bool:
    return path.is_symlink() or (path.exists() and not path.is_file())


def _make(place: Path) -> None:
    """Create a database atomically: other processes never see it without its tables."""
    temporary = place.with_name(f".{place.name}-{uuid.uuid4().hex[:8]}")
    try:
        connection = _connect(str(temporary))
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            _make_tables(connection)
        finally:
            connection.close()
        try:
            os.link(temporary, place)
        except FileExistsError:
            pass  # another process was faster
        except OSError:  # a file system without links
            if not place.exists():
                temporary.rename(place)
        _sync_folder(place.parent)
    finally:
        for suffix in ("", *ENDS):
            Path(f"{temporary}{suffix}").unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Write the entries of a folder to the disk, if the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _make_tables(connection: sqlite3.Connection) -> None:
    with transaction(connection):
        for statement in filter(str.strip, (_RECORDS + _RUNS).split(";")):
            connection.execute(statement)
        _stamp(connection)


def _stamp(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA user_version = {SCHEMA}")
    connection.execute(f"PRAGMA application_id = {APPLICATION}")


def _check(connection: sqlite3.Connection, path: str, is_read_only: bool) -> None:
    """Refuse a foreign, damaged or newer file; upgrade an older one."""
    where = f"open the records in {path}"
    version = _pragma(connection, "user_version")
    if _pragma(connection, "application_id") != APPLICATION:
        raise TuningError(where, "a database of another program", hint="choose another file")
    if version > SCHEMA:
        raise TuningError(
            where, "written by a newer version of dlcompiler", got=f"schema {version}",
            expected=f"schema {SCHEMA} or older",
            hint="install that version, or choose another file; this one was left as it is",
        )  # fmt: skip
    _check_schema(connection, where, version)
    # Unlike `quick_check`, it also holds the index against the rows, and so finds a damaged column.
    (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise sqlite3.DatabaseError(found)
    if is_read_only:
        return
    with transaction(connection):  # fails at once if the file may not be written
        if _pragma(connection, "user_version") == 1:
            _upgrade_from_1(connection)


def _check_schema(connection: sqlite3.Connection, where: str, version: int) -> None:
    """Refuse a database with triggers, views or changed tables."""
    found = {
        str(name): (str(kind), re.sub(r"\s", "", str(sql)))  # a damaged one may be of any type
        for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_master")
    }
    ours = _RECORDS + (_RUNS if version > 1 else "")
    for statement in filter(str.strip, ours.split(";")):
        _, kind, name, *_ = statement.split()
        if found.get(name) != (kind.lower(), re.sub(r"\s", "", statement)):
            raise TuningError(
                where, f"the {kind.lower()} {name} is not as it was made", hint=_LEFT_ALONE
            )
    for name, (kind, _) in found.items():
        if kind not in ("table", "index"):
            raise TuningError(
                where, f"it has a {kind}, {name}", hint=_LEFT_ALONE,
                because="its statements would run whenever records are read or written",
            )  # fmt: skip


def _upgrade_from_1(connection: sqlite3.Connection) -> None:
    """Rewrite records of version 1 as records of this version; leave damaged rows unchanged."""
    for number, stored, text in connection.execute(ROWS).fetchall():
        with contextlib.suppress(TuningError):
            key, *_, record = row_of(read_row(stored, text))
            connection.execute(
                "UPDATE OR REPLACE records SET key = ?, record = ? WHERE id = ?",
                (key, record, number),
            )
    connection.execute(_RUNS)
    _stamp(connection)


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a block as a write transaction: commit everything, or roll back on an error.

    It takes the write lock first. If it took the lock only after reading, it would fail whenever
    another process writes in between.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)


_LEFT_ALONE = "the file was left as it is; choose another one, or restore a copy"
_KNOWN = {
    "SQLITE_FULL": (
        "the disk is full",
        "what was stored is not lost: make room and start again, and the run goes on",
    ),
    "SQLITE_IOERR": (
        "the disk cannot be written, or is full",
        "what was stored is not lost: make room and start again, and the run goes on",
    ),
    "SQLITE_READONLY": (
        "the file is read-only",
        "choose another file, or a copy of this one that may be written",
    ),
    "SQLITE_BUSY": (
        "another program keeps the file locked",
        "end it, or wait until it is done",
    ),
    "SQLITE_CORRUPT": ("the file is damaged or not a database", _LEFT_ALONE),
    "SQLITE_NOTADB": ("the file is damaged or not a database", _LEFT_ALONE),
}


FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""Errors of SQLite; the second one is raised if a message quotes a name that is not UTF-8."""


def failure(path: str, error: sqlite3.Error | UnicodeDecodeError) -> TuningError:
    """Convert an error of SQLite to a `TuningError`."""
    name = getattr(error, "sqlite_errorname", "")
    for prefix, (problem, hint) in _KNOWN.items():
        if name.startswith(prefix):
            return TuningError(f"use the records in {path}", problem, got=str(error), hint=hint)
    is_damaged = type(error) in (sqlite3.DatabaseError, UnicodeDecodeError)
    return TuningError(
        f"use the records in {path}",
        "the file is damaged or not a database" if is_damaged else "the database cannot be used",
        got=str(error),
        hint=_LEFT_ALONE if is_damaged else None,
    )
