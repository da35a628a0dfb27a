"""The database: nothing acknowledged is lost, and what is not ours is left alone."""

import hashlib
import json
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path

import pytest

from dlcompiler.autotune import RecordStore
from dlcompiler.autotune.records.database import APPLICATION
from dlcompiler.errors import TuningError
from dlcompiler.space import Workload

ENDS = ("", "-wal", "-shm")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "records.db"


def integrity(path):
    with sqlite3.connect(path) as connection:
        return connection.execute("PRAGMA integrity_check").fetchone()[0]


# -- keeping ------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["file", "memory"])
def test_records_come_back_in_order(where, path, record):
    with RecordStore(path if where == "file" else ":memory:") as store:
        records = [record(trial=n) for n in range(5)]
        assert store.add(records) == 5
        assert store.add(records[2:]) == 0
        assert list(store.records()) == records
        assert len(store) == 5


def test_a_file_is_opened_again(path, record):
    with RecordStore(path) as store:
        store.add([record()])
    with RecordStore(path) as store:
        assert list(store.records()) == [record()]
        store.add([record(trial=1)])
        assert len(store) == 2


def test_the_best_of_a_workload_on_a_machine(path, record):
    slow, fast = record(trial=1), record(trial=2)
    object.__setattr__(fast, "result", type(fast.result)("ok", (0.1,)))
    other = record(trial=3, workload=Workload.of("matmul", m=1))
    with RecordStore(path) as store:
        store.add([slow, fast, other, record(trial=4, outcome="run timeout"), record(target="arm")])
        assert store.best(slow.workload, "x86:zen") == fast
        assert store.best(slow.workload, "riscv") is None
        assert len(store.records(workload=slow.workload)) == 4
        assert len(store.records(target="arm")) == 1


def test_all_or_none(path, record):
    with RecordStore(path) as store:
        broken = record(trial=1)
        object.__setattr__(broken, "target", None)
        with pytest.raises(TuningError):
            store.add([record(), broken])
        assert len(store) == 0
        store.add([record()])


@pytest.mark.campaign
def test_threads_and_processes_share_a_file(path, record):
    program = textwrap.dedent(
        """
        import sys
        from dlcompiler.autotune import RecordStore, read_records
        records, _ = read_records(sys.argv[2])
        with RecordStore(sys.argv[1]) as store:
            for number in range(100):
                store.add([type(r)(r.workload, r.target, r.config, r.result, sys.argv[3], number,
                                   r.measured_at) for r in records])
        """
    )
    from dlcompiler.autotune import write_records

    seed = path.with_suffix(".jsonl")
    write_records([record()], seed)
    store = RecordStore(path)
    children = [
        subprocess.Popen([sys.executable, "-c", program, path, seed, f"process{n}"])
        for n in range(2)
    ]

    def write(name):
        for number in range(100):
            store.add([record(trial=number, run=name)])
        store.close_thread()

    threads = [threading.Thread(target=write, args=(f"thread{n}",)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [child.wait(60) for child in children] == [0, 0]
    found = {(item.run, item.trial) for item in store.records()}
    assert len(found) == len(store) == 400
    store.close()


# -- killed -------------------------------------------------------------------------------------

WRITER = """
import sys
from dlcompiler.autotune import RecordStore, read_records

(record,), _ = read_records(sys.argv[2])
store = RecordStore(sys.argv[1])
first = len(store)
for number in range(first, 100000):
    store.add([type(record)(record.workload, record.target, record.config, record.result, "run",
                            number, record.measured_at)])
    print(number, flush=True)
"""


def test_a_killed_process_loses_no_acknowledged_record(path, record):
    from dlcompiler.autotune import write_records

    seed = path.with_suffix(".jsonl")
    write_records([record()], seed)
    generator = random.Random(0)
    acknowledged = -1
    for _ in range(5):
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, path, seed], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout.readline().strip() == str(acknowledged + 1)
        time.sleep(generator.uniform(0.0, 0.1))
        child.send_signal(signal.SIGKILL)
        lines = child.stdout.read().split()
        child.wait()
        child.stdout.close()
        acknowledged = max(acknowledged + 1, *(int(line) for line in lines), 0)
        with RecordStore(path) as store:
            trials = [item.trial for item in store.records()]
        assert trials == list(range(len(trials)))
        assert len(trials) in (acknowledged + 1, acknowledged + 2)
        assert integrity(path) == "ok"
        acknowledged = len(trials) - 1


# -- refused ------------------------------------------------------------------------------------


def refused(path):
    before = path.read_bytes()
    with pytest.raises(TuningError) as error:
        RecordStore(path).records()
    assert path.read_bytes() == before
    return str(error.value)


def test_a_file_of_something_else_is_refused_and_left_alone(path):
    path.write_bytes(random.Random(1).randbytes(5000))
    assert refused(path) == (
        f"use the records in {path}: the file is damaged or not a database\n"
        "  got       file is not a database\n"
        "  hint      the file was left as it is; choose another one, or restore a copy"
    )


def test_a_truncated_file_is_refused_and_left_alone(path, record):
    with RecordStore(path) as store:
        store.add([record(trial=n) for n in range(200)])
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path.write_bytes(path.read_bytes()[: 3 * 4096])
    assert "the file is damaged or not a database" in refused(path)


def test_a_file_of_a_newer_version_is_refused(path):
    RecordStore(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 9")
    with pytest.raises(TuningError) as error:
        RecordStore(path)
    assert str(error.value) == (
        f"open the records in {path}: written by a newer version of dlcompiler\n"
        "  got       schema 9\n"
        "  expected  schema 2 or older\n"
        "  hint      install that version, or choose another file; this one was left as it is"
    )


def test_a_database_of_another_program_is_refused(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE birds (name TEXT)")
    assert "a database of another program" in refused(path)


def test_an_empty_file_is_refused_and_left_alone(path):
    path.touch()
    assert refused(path) == (
        f"open the records in {path}: the file is empty\n"
        "  because   no database of records is, not even a new one\n"
        "  hint      restore a copy; or delete the file, and a new one is made in its place"
    )


def test_a_new_file_is_marked_as_ours(path):
    RecordStore(path).close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION,)
    assert {item.name for item in path.parent.iterdir()} <= {f"{path.name}{end}" for end in ENDS}


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(TuningError, match="not a file"):
        RecordStore(tmp_path)
    with pytest.raises(TuningError, match="there is no such folder"):
        RecordStore(tmp_path / "no" / "records.db")


def test_a_closed_store_says_so(path):
    store = RecordStore(path)
    store.close()
    with pytest.raises(TuningError, match="the store is closed"):
        len(store)


FULL = """
import resource, signal, sys
from dlcompiler.autotune import RecordStore, read_records
from dlcompiler.errors import TuningError

(record,), _ = read_records(sys.argv[2])
store = RecordStore(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
stored = 0
try:
    for number in range(100000):
        stored += store.add([type(record)(record.workload, record.target, record.config,
                                          record.result, "run", number, record.measured_at)])
except TuningError as error:
    print(stored, error.problem)
"""


def test_a_full_disk_is_an_error_and_loses_nothing(path, record):
    from dlcompiler.autotune import write_records

    seed = path.with_suffix(".jsonl")
    write_records([record()], seed)
    done = subprocess.run(
        [sys.executable, "-c", FULL, path, seed], capture_output=True, text=True, check=True
    )
    stored, _, problem = done.stdout.strip().partition(" ")
    assert problem == "the disk cannot be written, or is full"
    with RecordStore(path) as store:
        assert len(store) == int(stored) > 10
    assert integrity(path) == "ok"


# -- older, read-only, and rows that are no records ---------------------------------------------

VERSION_1 = """
CREATE TABLE records (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, workload TEXT NOT NULL, target TEXT NOT NULL,
    seconds REAL, record TEXT NOT NULL
);
CREATE INDEX records_of ON records (workload, target, seconds);
PRAGMA user_version = 1;
PRAGMA journal_mode = WAL;
"""
ADDED = (
    "build_s", "run_s", "is_noisy", "round", "origin", "predicted_s", "spread", "elapsed_s"
)  # fmt: skip


def as_version_1(item):
    """Return what version 1 wrote of a record."""
    data = {name: value for name, value in item.to_json().items() if name not in ADDED}
    return {**data, "schema": 1}


def write_version_1(path, records):
    with sqlite3.connect(path) as connection:
        connection.executescript(VERSION_1 + f"PRAGMA application_id = {APPLICATION};")
        for data in records:
            workload = json.dumps(data["workload"], sort_keys=True)
            key = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
            row = (key, workload, data["target"], 0.5, json.dumps(data))
            connection.execute(
                "INSERT INTO records (key, workload, target, seconds, record)"
                " VALUES (?, ?, ?, ?, ?)", row,
            )  # fmt: skip
    connection.close()


def test_a_file_of_version_1_is_brought_up_to_date(path, record):
    records = [record(trial=n) for n in range(3)]
    strange = {**as_version_1(record(trial=9)), "samples_s": [-1.0]}
    write_version_1(path, [*map(as_version_1, records), strange])
    with RecordStore(path, is_read_only=True) as store:
        assert list(store.records(op="matmul")) == records  # before: only looked at
    with RecordStore(path) as store:
        assert list(store.records()) == records
        assert store.unreadable[0].startswith("row 4: read a record: a sample is not a positive")
        assert store.add(records) == 0
        assert store.claim("run", "{}").run == "run"
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    assert integrity(path) == "ok"


def test_rows_that_are_no_records_are_left_out_and_told(path, record):
    with RecordStore(path) as store:
        store.add([record(trial=n) for n in range(4)])
        with sqlite3.connect(path) as connection:
            for number, text in ((1, "{"), (2, "[1e400]"), (3, "[" * 100_000)):
                connection.execute("UPDATE records SET record = ? WHERE id = ?", (text, number))
        assert list(store.records()) == [record(trial=3)]
        assert store.best(record().workload, "x86:zen") == record(trial=3)
        assert [text.split(":")[0] for text in store.unreadable] == ["row 1", "row 2", "row 3"]
        assert len(store.check()) == 3


def test_records_of_an_operator(path, record):
    other = record(trial=1, workload=Workload.of("matmul2", m=1))
    with RecordStore(path) as store:
        store.add([record(), other, record(trial=2, target="arm")])
        assert list(store.records(op="matmul")) == [record(), record(trial=2, target="arm")]
        assert list(store.records(op="matmul", target="arm")) == [record(trial=2, target="arm")]
        assert list(store.records(op="mat")) == []


READ_ONLY = """
import os, sys
from dlcompiler.autotune import RecordStore
from dlcompiler.errors import TuningError

if os.geteuid() == 0:
    os.setuid(65534)
with RecordStore(sys.argv[1], is_read_only=True) as store:
    print(len(store.records()))
try:
    RecordStore(sys.argv[1])
except TuningError as error:
    print(error)
"""


def test_a_file_that_may_not_be_written_is_read_and_otherwise_refused(record):
    # Not in pytest's folder, which only its owner may enter.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "records.db")
        with RecordStore(path) as store:
            store.add([record()])
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        before = path.read_bytes()
        done = subprocess.run(
            [sys.executable, "-c", READ_ONLY, path], capture_output=True, text=True, check=True
        )
        Path(folder).chmod(0o755)
        assert path.read_bytes() == before
    assert done.stdout.splitlines() == [
        "1",
        f"use the records in {path}: the file is read-only",
        "  got       attempt to write a readonly database",
        "  hint      choose another file, or a copy of this one that may be written",
    ]


def test_a_file_that_another_program_keeps_locked_is_told(path, record, monkeypatch):
    monkeypatch.setattr("dlcompiler.autotune.records.database._BUSY_LIMIT_S", 0.05)
    with RecordStore(path) as store, sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TuningError) as error:
            store.add([record()])
        with pytest.raises(TuningError, match="another program keeps the file locked"):
            RecordStore(path)
        other.execute("ROLLBACK")
        assert store.add([record()]) == 1
    assert str(error.value) == (
        f"use the records in {path}: another program keeps the file locked\n"
        "  got       database is locked\n"
        "  hint      end it, or wait until it is done"
    )


@pytest.mark.campaign
def test_many_processes_may_make_one_file(path):
    program = "import sys; from dlcompiler.autotune import RecordStore; RecordStore(sys.argv[1])"
    children = [subprocess.Popen([sys.executable, "-c", program, path]) for _ in range(4)]
    assert [child.wait(60) for child in children] == [0] * 4


# -- runs ---------------------------------------------------------------------------------------


def test_a_run_is_claimed_by_one_process_until_that_has_ended(path):
    with RecordStore(path) as store:
        first = store.claim("first", "plan")
        assert (first.run, first.goes_on) == ("first", False)
        assert store.claim("second", "plan").run == "second"  # this process is still there
        assert store.claim("other", "another plan").run == "other"
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE runs SET owner = owner || '9' WHERE name = 'first'")
        again = store.claim("third", "plan")
        assert (again.run, again.goes_on, again.began_at) == ("first", True, first.began_at)
        assert store.claim("third", "plan").run == "third"
        store.leave("third", "finished")
        store.leave("first", "failed")
        assert store.claim("fourth", "plan").run == "first"
