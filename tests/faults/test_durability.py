"""Records under writers that compete, disks that are full, and lines that are damaged (D2, D3)."""

import json
import sqlite3
import subprocess
import sys
import textwrap

import pytest

from dlcompiler.autotune import (
    Record,
    RecordStore,
    Result,
    import_records,
    tune,
    write_line,
    write_records,
)
from dlcompiler.errors import TuningError
from dlcompiler.space import Config, Workload
from tests.share import share_of

WORKLOAD = Workload.of("matmul", m=64, n=64, k=64, dtype="float32")
EACH = share_of(1000)


def record(trial=0, run="run"):
    return Record(
        WORKLOAD, "x86:test", Config({"tile": 4}, "abc"), Result("ok", (0.5, 0.25)), run, trial,
        "2026-01-02T03:04:05.678+00:00",
    )  # fmt: skip


WRITER = textwrap.dedent(
    """
    import sys
    from dataclasses import replace
    from dlcompiler.autotune import RecordStore, read_records
    (record,), _ = read_records(sys.argv[2])
    with RecordStore(sys.argv[1]) as store:
        for number in range(int(sys.argv[4])):
            assert store.add([replace(record, run=sys.argv[3], trial=number)]) == 1
    """
)
READER = textwrap.dedent(
    """
    import sys, time
    from dlcompiler.autotune import RecordStore
    seen = 0
    with RecordStore(sys.argv[1], is_read_only=True) as store:
        while seen < int(sys.argv[2]):
            found = len(store.records())
            assert found >= seen and not store.unreadable
            seen = found
            time.sleep(0.05)
    """
)


@pytest.mark.campaign
def test_four_writers_and_a_reader_share_a_file(folder):
    db, seed = folder / "records.db", folder / "seed.jsonl"
    write_records([record()], seed)
    RecordStore(db).close()
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, db, seed, f"writer{n}", str(EACH)])
        for n in range(4)
    ]
    reader = subprocess.Popen([sys.executable, "-c", READER, db, str(4 * EACH)])
    assert [child.wait(100) for child in (*writers, reader)] == [0] * 5
    with RecordStore(db) as store:
        found = [(item.run, item.trial) for item in store.records()]
        assert store.check() == []
    assert len(found) == len(set(found)) == 4 * EACH
    for n in range(4):  # each writer's in its own order
        own = [trial for run, trial in found if run == f"writer{n}"]
        assert own == list(range(EACH))


# -- a full disk --------------------------------------------------------------------------------

FULL = textwrap.dedent(
    """
    import resource, signal, sys
    from dlcompiler.autotune import Result, tune
    from dlcompiler.errors import TuningError
    from dlcompiler.space import Workload

    class Measurer:
        def measure(self, config, best_s):
            return Result("ok", (1e-4 * config.tile_m,) * 3)
        def interrupt(self): pass
        def close(self): pass

    def start(db):
        return tune(Workload.of("matmul", m=64, n=64, k=64), "x86-64-avx2", trials=300, db=db,
                    tuner="random", measurer=Measurer())

    if __name__ == "__main__":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, limit[1]))
        run = start(sys.argv[1])
        try:
            run.wait()
        except TuningError as error:
            print(error)
        print(run.state, len(run.trials))
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        again = start(sys.argv[1]).wait()
        print(again.note)
        print(again.state, len(again.trials))
    """
)


def test_a_full_disk_fails_a_run_clearly_and_it_goes_on_when_there_is_room(folder):
    db, program = folder / "records.db", folder / "full.py"
    program.write_text(FULL)
    done = subprocess.run(
        [sys.executable, program, db], capture_output=True, text=True, check=True, timeout=100
    )
    lines = done.stdout.splitlines()
    assert "the run failed after" in lines[0]
    assert "the disk cannot be written, or is full" in done.stdout
    assert "what was stored is not lost: make room and start again" in done.stdout
    state, count = lines[-3].split()
    assert state == "failed"
    assert 5 < int(count) < 300
    # The last trial may be on the disk although it was not acknowledged: a later step failed.
    assert "goes on with run" in lines[-2]
    known = int(lines[-2].split(" after ")[1].split()[0])
    assert known in (int(count), int(count) + 1)
    assert lines[-1] == "finished 300"
    with RecordStore(db) as store:
        assert len(store) == 300
        assert store.check() == []


# -- damage -------------------------------------------------------------------------------------


def changed(line, **values):
    return json.dumps({**json.loads(line), **values})


DAMAGED = {
    "not a number": lambda line: line.replace("0.25", "NaN"),
    "infinite": lambda line: line.replace("0.25", "1e400"),
    "huge": lambda line: line.replace('"trial": 7', f'"trial": {10**400}'),
    "missing": lambda line: json.dumps(
        {name: value for name, value in json.loads(line).items() if name != "target"}
    ),
    "another workload": lambda line: line.replace('"m": 64', '"m": 65'),
    "another fingerprint": lambda line: line.replace('"abc"', '"abd"'),
    "a digit changed": lambda line: line.replace("0.25", "0.24"),
    "newer": lambda line: changed(line, schema=99),
    "cut": lambda line: line[:-20],
    "nothing": lambda line: "null",
    "long": lambda line: "[" * 2_000_000,
}


@pytest.mark.parametrize("how", DAMAGED, ids=str)
def test_a_damaged_line_is_left_out_and_told_and_the_rest_loads(folder, how):
    path = folder / "records.jsonl"
    bad = DAMAGED[how](write_line(record(7)))
    assert bad != write_line(record(7))
    path.write_text("\n".join([write_line(record(1)), bad, write_line(record(2)), ""]))
    with RecordStore() as store:
        report = import_records(store, path)
        assert [item.trial for item in store.records()] == [1, 2]
    assert [item.number for item in report.bad] == [2]
    assert 5 < len(report.bad[0].reason) < 400


def test_a_torn_last_line_is_told_by_its_number(folder):
    path = folder / "records.jsonl"
    path.write_text(write_line(record(1)) + "\n" + write_line(record(2))[:60])
    with RecordStore() as store:
        report = import_records(store, path)
        assert [str(item) for item in report.bad] == [
            "line 2: torn: the file ends in the middle of it"
        ]
        assert len(store) == 1


@pytest.mark.parametrize("cut", [0, 1, 100, 4096, 5000, 20_000])
def test_a_truncated_database_is_refused_by_a_run_and_never_overwritten(folder, cut):
    path = folder / "records.db"
    with RecordStore(path) as store:
        store.add([record(n) for n in range(200)])
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    whole = path.read_bytes()
    assert len(whole) > 30_000
    path.write_bytes(whole[:cut])
    with pytest.raises(TuningError) as error:
        tune(WORKLOAD, "x86-64-avx2", trials=1, db=path)
    assert error.value.hint
    assert path.read_bytes() == whole[:cut]


def test_flipped_bytes_are_refused_or_told_and_never_believed(folder):
    path = folder / "records.db"
    originals = [record(n) for n in range(50)]
    with RecordStore(path) as store:
        store.add(originals)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    whole = path.read_bytes()
    told = 0
    for place in range(600, len(whole), 997):
        damaged = bytearray(whole)
        damaged[place] ^= 0x15
        path.write_bytes(damaged)
        try:
            with RecordStore(path, is_read_only=True) as store:
                problems = store.check()
                right = list(store.records()) == originals
        except TuningError:
            told += 1
        else:
            assert right or problems
            told += bool(problems)
    assert told > 10
