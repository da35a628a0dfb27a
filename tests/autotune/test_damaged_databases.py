"""Databases that somebody damaged or made hostile: rows are left out, files are refused."""

import os
import sqlite3

import pytest

from dlcompiler.autotune import RecordStore
from dlcompiler.errors import TuningError
from tests.autotune.test_store import as_version_1, refused, write_version_1


@pytest.fixture
def path(tmp_path):
    return tmp_path / "records.db"


def change(path, *statements):
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(*statement)
    connection.close()


def test_a_text_that_cannot_be_decoded_is_a_problem_of_its_row(path, record):
    with RecordStore(path) as store:
        store.add([record(trial=n) for n in range(5)])
    change(
        path,
        ("UPDATE records SET record = CAST(? AS TEXT) WHERE id = 1", (b"\xff\xfe",)),
        ("UPDATE records SET record = '\"\\ud800\"' WHERE id = 2",),
        ("UPDATE records SET key = CAST(? AS TEXT) WHERE id = 3", (b"\xff",)),
        ("UPDATE records SET record = 7 WHERE id = 4",),
    )
    with RecordStore(path) as store:
        assert list(store.records()) == [record(trial=4)]
        assert store.best(record().workload, "x86:zen") == record(trial=4)
        assert [text.partition(" read a record: ")[2] for text in store.unreadable] == [
            "not JSON", "not JSON", "changed since it was stored", "not an object",
        ]  # fmt: skip
        assert len(store.check()) == 4


def test_a_changed_row_is_not_used(path, record):
    with RecordStore(path) as store:
        store.add([record(trial=n) for n in range(2)])
    change(path, ("UPDATE records SET record = replace(record, '0.25', '0.01') WHERE id = 1",))
    with RecordStore(path) as store:
        assert list(store.records()) == [record(trial=1)]
        assert store.unreadable == ("row 1: read a record: changed since it was stored",)


def test_a_changed_column_is_told(path, record):
    with RecordStore(path) as store:
        store.add([record(trial=n) for n in range(2)])
    change(path, ("UPDATE records SET seconds = 0.001 WHERE id = 2",))
    with RecordStore(path) as store:
        assert store.check() == ["row 2: its columns are not those of its record"]


def test_a_damaged_column_is_found_by_its_index(path, record):
    with RecordStore(path) as store:
        store.add([record(trial=n, target="arm:one") for n in range(3)])
    change(path, ("PRAGMA wal_checkpoint(TRUNCATE)",))
    data = path.read_bytes()
    path.write_bytes(data.replace(b"arm:one", b"arm:two", 1))
    assert "the file is damaged or not a database" in refused(path)


@pytest.mark.parametrize(
    ("statements", "problem"),
    [
        (
            ["CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM records; END"],
            "it has a trigger, t",
        ),
        (["CREATE VIEW v AS SELECT 1"], "it has a view, v"),
        (
            ["ALTER TABLE records RENAME TO r", "CREATE VIEW records AS SELECT * FROM r"],
            "the table records is not as it was made",
        ),
        (
            [
                "PRAGMA writable_schema = ON",
                "UPDATE sqlite_master SET sql = CAST(sql AS BLOB) WHERE name = 'records_of'",
            ],
            "the index records_of is not as it was made",
        ),
        (["DROP TABLE runs"], "the table runs is not as it was made"),
        (["DROP INDEX records_of"], "the index records_of is not as it was made"),
        (
            ["ALTER TABLE records ADD COLUMN more TEXT AS (upper(record))"],
            "the table records is not as it was made",
        ),
        (
            ["DROP TABLE records", "CREATE TABLE records (id INTEGER PRIMARY KEY, record TEXT)"],
            "the table records is not as it was made",
        ),
    ],
)
@pytest.mark.parametrize("is_read_only", [False, True])
def test_a_database_whose_tables_are_not_ours_is_refused(
    path, record, statements, problem, is_read_only
):
    with RecordStore(path) as store:
        store.add([record()])
    change(path, *((statement,) for statement in statements))
    before = path.read_bytes()
    with pytest.raises(TuningError) as error:
        RecordStore(path, is_read_only=is_read_only)
    assert str(error.value).startswith(f"open the records in {path}: {problem}\n")
    assert path.read_bytes() == before


def test_tables_beside_ours_are_left_alone(path, record):
    with RecordStore(path) as store:
        store.add([record()])
    change(path, ("CREATE TABLE notes (text TEXT)",), ("CREATE INDEX mine ON records (target)",))
    with RecordStore(path) as store:
        assert list(store.records()) == [record()]


def test_a_pipe_beside_a_database_is_not_opened(path, record):
    with RecordStore(path) as store:
        store.add([record()])
    os.mkfifo(f"{path}-journal")
    with pytest.raises(TuningError, match="a file beside it is no regular one"):
        RecordStore(path)


def test_a_text_that_cannot_be_encoded_is_refused_and_stores_nothing(path, record):
    with RecordStore(path) as store:
        with pytest.raises(TuningError, match="half of a surrogate pair"):
            store.add([record(), record(trial=1, target="\ud800")])
        with pytest.raises(TuningError, match="half of a surrogate pair"):
            store.best(record().workload, "\ud800")
        assert len(store) == 0


def test_a_changed_record_of_version_1_is_not_brought_up_to_date(path, record):
    write_version_1(path, [as_version_1(record(trial=n)) for n in range(2)])
    change(path, ("UPDATE records SET record = replace(record, '0.25', '0.01') WHERE id = 1",))
    with RecordStore(path) as store:
        assert list(store.records()) == [record(trial=1)]
        assert store.unreadable == ("row 1: read a record: changed since it was stored",)


def test_a_damaged_name_of_a_table_is_refused(path, record):
    with RecordStore(path) as store:
        store.add([record()])
    change(path, ("PRAGMA wal_checkpoint(TRUNCATE)",))
    path.write_bytes(path.read_bytes().replace(b"ON records (workload", b"ON re\xffords (workload"))
    for is_read_only in (True, False):
        with pytest.raises(TuningError, match="the file is damaged or not a database"):
            RecordStore(path, is_read_only=is_read_only)


def test_any_number_of_records_may_be_kept(path, record):
    with RecordStore(path) as store:
        store.add([record()])
        assert store.prune(10**30) == 0


def test_a_run_whose_row_is_damaged(path):
    with RecordStore(path) as store:
        store.claim("first", "plan")
        change(
            path,
            ("UPDATE runs SET owner = CAST(? AS TEXT), began_at = CAST(? AS TEXT)",
             (b"host:99999999999999999999:\xff", b"\xff")),
        )  # fmt: skip
        assert store.claim("second", "plan").run == "second"
        change(path, ("UPDATE runs SET name = NULL, state = 'failed' WHERE name = 'first'",))
        assert store.claim("third", "plan").goes_on
