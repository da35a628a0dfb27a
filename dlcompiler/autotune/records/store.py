"""Stores of records: SQLite databases that stay consistent if a process is killed.

Every `RecordStore.add` is one transaction that is on the disk when the call returns (write-ahead
log, ``synchronous=FULL``). Each thread of each process has a connection of its own.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from dlcompiler.autotune.records.database import (
    FAILURES,
    INSERT,
    KIND,
    MEMORY,
    ROWS,
    failure,
    open_database,
    prefix_of,
    reopen,
    row_of,
    transaction,
    workload_key,
)
from dlcompiler.autotune.records.owners import is_gone, this_process
from dlcompiler.autotune.records.record import Record, read_row
from dlcompiler.errors import TuningError
from dlcompiler.runtime.provenance import Kind
from dlcompiler.space import Workload

__all__ = ["MEMORY", "Claim", "RecordStore"]

_MOST_KEPT = 2**63 - 1  # SQLite's largest integer
_SLOWER = (
    "id NOT IN (SELECT id FROM (SELECT id, seconds, row_number() OVER"
    f" (PARTITION BY workload, target, {KIND} ORDER BY seconds, id) AS place"
    " FROM records WHERE seconds IS NOT NULL) WHERE place <= ?)"
)
"""Condition of all rows but the fastest of each workload, machine and kind of time."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The result of `RecordStore.claim`: the run to store records under."""

    run: str
    """The name under which it stores its records."""
    goes_on: bool
    """Whether it continues an equal run that did not finish."""
    began_at: str
    """Date and time of its beginning, ISO 8601, UTC."""


class RecordStore:
    """Records on disk or in memory.

    Parameters
    ----------
    path : str or Path
        The file, created when it does not exist; ``":memory:"`` keeps the records in this object
        only.
    is_read_only : bool
        Only read: the file must exist, and is neither changed nor upgraded.

    Raises
    ------
    TuningError
        If the file is empty, damaged, of another program, not writable, or written by a newer
        version. It is not changed.

    Notes
    -----
    Threads and processes may use one file together.
    """

    def __init__(self, path: str | Path = MEMORY, *, is_read_only: bool = False) -> None:
        self.path = str(path)
        self.is_read_only = is_read_only
        self._local = threading.local()
        self._all: list[sqlite3.Connection] = []
        self._lock = threading.RLock()
        self._memory: sqlite3.Connection | None = None
        self._is_closed = False
        self._unreadable: dict[int, str] = {}
        first = open_database(self.path, is_read_only=is_read_only)
        self._all.append(first)
        if self.path == MEMORY:
            self._memory = first
        else:
            self._local.connection, self._local.process = first, os.getpid()

    # -- writing -----------------------------------------------------------------------------

    def add(self, records: Iterable[Record]) -> int:
        """Store records, all or none; they are on the disk when this returns.

        Returns
        -------
        int
            How many were new: a record that is there already is not stored twice.
        """
        rows = [row_of(record) for record in records]
        with self._using() as connection, transaction(connection):
            before = connection.total_changes
            connection.executemany(INSERT, rows)
            return connection.total_changes - before

    def prune(self, keep: int) -> int:
        """Keep only the fastest records of each workload on each machine; delete all others.

        Measured and simulated times are ranked separately.

        Parameters
        ----------
        keep : int
            Number of records to keep for each workload and machine.

        Returns
        -------
        int
            How many were deleted.
        """
        with self._using() as connection:
            with transaction(connection):
                deleted = connection.execute(
                    f"DELETE FROM records WHERE {_SLOWER}", (min(keep, _MOST_KEPT),)
                ).rowcount
            connection.execute("VACUUM")
        return int(deleted)

    def prunable(self, keep: int) -> Sequence[Record]:
        """Return the records that `prune` would delete; it also deletes rows that are no records.

        Parameters
        ----------
        keep : int
            Number of records to keep for each workload and machine.
        """
        return list(self._read(f"{ROWS} WHERE {_SLOWER} ORDER BY id", (min(keep, _MOST_KEPT),)))

    # -- reading -----------------------------------------------------------------------------

    def records(
        self, workload: Workload | None = None, target: str | None = None, *, op: str | None = None
    ) -> Sequence[Record]:
        """Return records in the order in which they were stored.

        Rows that are no records are left out, and listed in `unreadable`.

        Parameters
        ----------
        workload, target
            Return those of this workload, of this machine (see `target_key`), only.
        op
            Return those of this operator, of whatever shape, only.
        """
        return list(self._found(workload, target, op, "id"))

    def best(self, workload: Workload, target: str, kind: Kind = "measured") -> Record | None:
        """Return the record of the shortest time of a kind, or None.

        Times of other kinds are not compared with these: a simulated one may be shorter than any
        that can be measured.
        """
        found = self._found(workload, target, None, "seconds", is_timed=True)
        return next((record for record in found if record.provenance.kind == kind), None)

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Rows of the database that are no records, with their numbers and reasons."""
        return tuple(f"row {number}: {reason}" for number, reason in self._unreadable.items())

    def __len__(self) -> int:
        with self._using() as connection:
            (count,) = connection.execute("SELECT count(*) FROM records").fetchone()
            return int(count)

    def _found(
        self,
        workload: Workload | None,
        target: str | None,
        op: str | None,
        order: str,
        *,
        is_timed: bool = False,
    ) -> Iterator[Record]:
        where: list[str] = ["seconds IS NOT NULL"] * is_timed
        values: list[str] = []
        if workload is not None:
            where.append("workload = ?")
            values.append(workload_key(workload))
        if op is not None:
            where.append("workload BETWEEN ? AND ?")
            values += prefix_of(op)
        if target is not None:
            where.append("target = ?")
            values.append(target)
        query = ROWS
        if where:
            query += f" WHERE {' AND '.join(where)}"
        return self._read(f"{query} ORDER BY {order}, id", values)

    def _read(self, query: str, values: Sequence[str | int]) -> Iterator[Record]:
        """Yield the records among the rows that a query finds."""
        with self._using() as connection:
            found = connection.execute(query, values).fetchall()
        for number, key, data in found:
            try:
                yield read_row(key, data)
            except TuningError as error:
                self._unreadable[number] = str(error).splitlines()[0]

    def check(self) -> list[str]:
        """Return the problems of the database, row by row; an empty list if there are none."""
        with self._using() as connection:
            found = [text for (text,) in connection.execute("PRAGMA integrity_check")]
            rows = connection.execute(f"{ROWS} ORDER BY id").fetchall()
            told = "SELECT workload = ? AND target = ? AND seconds IS ? FROM records WHERE id = ?"
            problems = [text for text in found if text != "ok"]
            for number, key, data in rows:
                try:
                    _, *columns, _ = row_of(read_row(key, data))
                except TuningError as error:
                    problems.append(f"row {number}: {str(error).splitlines()[0]}")
                    continue
                if not connection.execute(told, (*columns, number)).fetchone()[0]:
                    problems.append(f"row {number}: its columns are not those of its record")
        return problems

    # -- runs --------------------------------------------------------------------------------

    def claim(self, run: str, identity: str) -> Claim:
        """Begin a run, or continue an equal run whose process was killed or failed.

        Parameters
        ----------
        run : str
            Name of the new run.
        identity : str
            A text that is the same for equal runs: `dlcompiler.autotune.run.plan.Plan.identity`.

        Returns
        -------
        Claim
            A continued run was killed, or failed. No other run can claim it now.
        """
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        ours = this_process()
        query = (
            "SELECT CAST(name AS BLOB), state, CAST(owner AS BLOB), CAST(began_at AS BLOB)"
            " FROM runs WHERE identity = ? AND state IN ('running', 'failed')"
            " ORDER BY began_at DESC"
        )
        with self._using() as connection, transaction(connection):
            for row in connection.execute(query, (identity,)).fetchall():
                name, state, owner, began_at = map(_as_text, row)
                if state == "failed" or is_gone(owner):
                    connection.execute(
                        "UPDATE runs SET state = 'running', owner = ? WHERE name = ?", (ours, name)
                    )
                    return Claim(name, True, began_at)
            connection.execute(
                "INSERT INTO runs VALUES (?, ?, 'running', ?, ?)", (run, identity, ours, now)
            )
        return Claim(run, False, now)

    def leave(self, run: str, state: str) -> None:
        """Store the final state of a run."""
        with self._using() as connection, transaction(connection):
            connection.execute("UPDATE runs SET state = ? WHERE name = ?", (state, run))

    # -- connections -------------------------------------------------------------------------

    def close_thread(self) -> None:
        """Close the connection of this thread to a file; its next use opens another one."""
        connection = self._local.__dict__.pop("connection", None)
        self._local.__dict__.pop("process", None)
        if connection is not None:
            with self._lock, contextlib.suppress(ValueError):  # `close` may have removed it
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
        """Yield a connection; errors of the database become a TuningError."""
        lock = self._lock if self.path == MEMORY else contextlib.nullcontext()
        try:
            with lock:
                yield self._connection()
        except FAILURES as error:
            raise failure(self.path, error) from error
        except UnicodeEncodeError as error:
            raise TuningError(
                f"use the records in {self.path}", "half of a surrogate pair in a text",
                got=ascii(error.object)[:200],
            ) from error  # fmt: skip

    def _connection(self) -> sqlite3.Connection:
        if self._is_closed:
            raise TuningError(f"use the records in {self.path}", "the store is closed")
        if self._memory is not None:
            return self._memory
        # A connection must not be used across a fork.
        if getattr(self._local, "process", None) != os.getpid():
            made = reopen(self.path, is_read_only=self.is_read_only)
            with self._lock:
                self._all.append(made)
            self._local.connection, self._local.process = made, os.getpid()
        connection: sqlite3.Connection = self._local.connection
        return connection


def _as_text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
