"""Where records are kept: an SQLite database, which a killed process leaves whole.

Every `RecordStore.add` is one transaction that is on the disk when the call returns (write-ahead
log, ``synchronous=FULL``), and begins as a writer: a transaction that reads first and writes later
fails at once when another process writes in between. Each thread of each process has a connection
of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

from dlcompiler.autotune.records import SCHEMA, Record
from dlcompiler.errors import TuningError
from dlcompiler.space import Workload

MEMORY = ":memory:"

_APPLICATION = 0x444C4354  # "DLCT": tells a database of this project from another one
_BUSY_LIMIT_S = 30.0
_TABLES = """
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


class RecordStore:
    """Records on disk or in memory.

    Parameters
    ----------
    path : str or Path
        The file, created when it does not exist; ``":memory:"`` keeps the records in this object
        only.

    Raises
    ------
    TuningError
        If the file is damaged, belongs to something else, or was written by a newer version. It is
        left as it is.

    Notes
    -----
    Threads and processes may use one file together.
    """

    def __init__(self, path: str | Path = MEMORY) -> None:
        self.path = str(path)
        self._local = threading.local()
        self._all: list[sqlite3.Connection] = []
        self._lock = threading.RLock()
        self._memory: sqlite3.Connection | None = None
        self._is_closed = False
        with self._using() as connection:
            self._prepare(connection)

    # -- writing and reading -----------------------------------------------------------------

    def add(self, records: Iterable[Record]) -> int:
        """Store records, all or none; they are on the disk when this returns.

        Returns
        -------
        int
            How many were new: a record that is there already is not stored twice.
        """
        rows = [
            (
                record.key(),
                _workload_key(record.workload),
                record.target,
                record.result.seconds,
                json.dumps(record.to_json()),
            )
            for record in records
        ]
        insert = (
            "INSERT INTO records (key, workload, target, seconds, record)"
            " VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING"
        )
        with self._using() as connection, _transaction(connection):
            before = connection.total_changes
            connection.executemany(insert, rows)
            return connection.total_changes - before

    def records(
        self, workload: Workload | None = None, target: str | None = None
    ) -> Sequence[Record]:
        """Return records in the order in which they were stored.

        Parameters
        ----------
        workload, target
            Return those of this workload, of this machine (see `target_key`), only.
        """
        return [Record.from_json(json.loads(row)) for row in self._rows(workload, target, "id")]

    def best(self, workload: Workload, target: str) -> Record | None:
        """Return the record of the shortest time, or None."""
        rows = self._rows(workload, target, "seconds", "seconds IS NOT NULL", limit=1)
        return Record.from_json(json.loads(rows[0])) if rows else None

    def __len__(self) -> int:
        with self._using() as connection:
            (count,) = connection.execute("SELECT count(*) FROM records").fetchone()
            return int(count)

    def _rows(
        self,
        workload: Workload | None,
        target: str | None,
        order: str,
        *conditions: str,
        limit: int = -1,
    ) -> list[str]:
        where, values = list(conditions), list[str]()
        for column, value in (
            ("workload", None if workload is None else _workload_key(workload)),
            ("target", target),
        ):
            if value is not None:
                where.append(f"{column} = ?")
                values.append(value)
        query = "SELECT record FROM records"
        if where:
            query += f" WHERE {' AND '.join(where)}"
        query += f" ORDER BY {order}, id LIMIT {limit}"
        with self._using() as connection:
            return [text for (text,) in connection.execute(query, values)]

    # -- connections -------------------------------------------------------------------------

    def close_thread(self) -> None:
        """Close the connection of this thread to a file; its next use opens another one."""
        connection = self._local.__dict__.pop("connection", None)
        self._local.__dict__.pop("process", None)
        if connection is not None:
            with self._lock, contextlib.suppress(ValueError):  # `close` may have been here
                self._all.remove(connection)
            connection.close()

    def close(self) -> None:
        """Close the connections of this process; the store cannot be used afterwards."""
        with self._lock:
            self._is_closed = True
            for connection in self._all:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
            self._all.clear()

    def __enter__(self) -> RecordStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @contextlib.contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """Give a connection; what goes wrong with the database becomes a TuningError."""
        lock = self._lock if self.path == MEMORY else contextlib.nullcontext()
        try:
            with lock:
                yield self._connection()
        except sqlite3.Error as error:
            raise _failure(self.path, error) from error

    def _connection(self) -> sqlite3.Connection:
        if self._is_closed:
            raise TuningError(f"use the records in {self.path}", "the store is closed")
        if self.path == MEMORY:
            if self._memory is None:
                self._memory = self._open()
            return self._memory
        # A connection must not be used across a fork.
        if getattr(self._local, "process", None) != os.getpid():
            self._local.connection, self._local.process = self._open(), os.getpid()
        connection: sqlite3.Connection = self._local.connection
        return connection

    def _open(self) -> sqlite3.Connection:
        # Autocommit: transactions are begun by `_transaction`, and never by a read. Another thread
        # may close a connection.
        connection = sqlite3.connect(
            self.path, timeout=_BUSY_LIMIT_S, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA trusted_schema = OFF")
        except sqlite3.Error:
            connection.close()
            raise
        with self._lock:
            self._all.append(connection)
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Make the tables of a new file; one that is not ours is refused before it is changed."""
        version = _pragma(connection, "user_version")
        application = _pragma(connection, "application_id")
        if version > SCHEMA and application == _APPLICATION:
            raise TuningError(
                f"open the records in {self.path}", "written by a newer version of dlcompiler",
                got=f"schema {version}", expected=f"schema {SCHEMA} or older",
            )  # fmt: skip
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != _APPLICATION and (tables or version or application):
            raise TuningError(
                f"open the records in {self.path}", "a database of another program",
                hint="choose another file",
            )  # fmt: skip
        if application == _APPLICATION:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise sqlite3.DatabaseError(found)
            return
        connection.execute("PRAGMA journal_mode = WAL")
        with _transaction(connection):
            if _pragma(connection, "application_id") != _APPLICATION:  # nobody else was faster
                for statement in filter(str.strip, _TABLES.split(";")):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {SCHEMA}")
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)


def _workload_key(workload: Workload) -> str:
    return json.dumps(workload.to_json(), sort_keys=True)


def _failure(path: str, error: sqlite3.Error) -> TuningError:
    damaged = isinstance(error, sqlite3.DatabaseError) and not isinstance(
        error, sqlite3.OperationalError | sqlite3.IntegrityError | sqlite3.ProgrammingError
    )
    return TuningError(
        f"use the records in {path}",
        "the file is damaged or not a database" if damaged else "the database cannot be used",
        got=str(error),
        hint="the file was left as it is; choose another one, or restore a copy"
        if damaged
        else None,
    )
