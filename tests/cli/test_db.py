"""The command that looks after databases of records."""

import json
import sqlite3
from pathlib import Path

import pytest

from dlcompiler.autotune import Record, RecordStore, Result, write_records
from dlcompiler.cli import main
from dlcompiler.space import Config, Workload

WORKLOAD = Workload.of("matmul", m=64, n=64, k=64, dtype="float32")


def record(trial=0, seconds=0.5, run="run", **changes):
    fields = {
        "workload": WORKLOAD,
        "target": "x86:zen",
        "config": Config({"tile": trial}, "abc"),
        "result": Result("ok", (seconds,)) if seconds else Result("crashed", (), "SIGSEGV"),
        "run": run,
        "trial": trial,
        "measured_at": "2026-01-02T03:04:05.678+00:00",
    }
    return Record(**{**fields, **changes})


@pytest.fixture
def db(tmp_path):
    path = tmp_path / "records.db"
    with RecordStore(path) as store:
        store.add([record(0, 0.5), record(1, 0.25), record(2, None), record(3, 0.75, "other")])
        store.add([record(0, 0.1, target="arm")])
    return str(path)


def db_command(capsys, *arguments):
    status = main(["db", *arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_list(db, capsys):
    status, text, _ = db_command(capsys, "list", db)
    assert status == 0
    assert text == (
        "matmul(m=64, n=64, k=64, dtype=float32)\n  x86:zen\n"
        "  best 250 ms measured; 3 ok, 1 crashed; 2 runs\n"
        "matmul(m=64, n=64, k=64, dtype=float32)\n  arm\n  best 100 ms measured; 1 ok; 1 runs\n"
        "5 records\n"
    )
    data = json.loads(db_command(capsys, "list", db, "--json")[1])
    assert data[0]["best_seconds"] == 0.25
    assert data[0]["counts"] == {"ok": 3, "crashed": 1}


def test_best(db, capsys):
    status, text, _ = db_command(capsys, "best", db, "--only", "matmul")
    assert status == 0
    assert "  x86:zen\n  250 ms measured: tile=1\n" in text
    found = json.loads(db_command(capsys, "best", db, "--json")[1])
    assert Record.from_json(found[0]) == record(1, 0.25)
    status, _, error = db_command(capsys, "best", db, "--only", "conv")
    assert (status, error) == (
        2, f"UserError: db best: no config of 'conv' was measured\n  got       {db}\n"
    )  # fmt: skip


def test_out_and_in(db, tmp_path, capsys):
    lines, copy = str(tmp_path / "records.jsonl"), str(tmp_path / "copy.db")
    assert db_command(capsys, "export", db, lines)[1] == f"5 records written to {lines}\n"
    assert db_command(capsys, "export", db, "-")[1] == (tmp_path / "records.jsonl").read_text()
    status, text, _ = db_command(capsys, "import", copy, lines)
    assert (status, text) == (0, f"{lines}: 5 records added, 0 known already, 0 bad lines\n")
    with RecordStore(db) as first, RecordStore(copy) as second:
        assert first.records() == second.records()


@pytest.mark.parametrize("form", [[], ["--autotvm"]])
@pytest.mark.parametrize("leave", [[], ["--overwrite"]])
def test_export_never_destroys_a_database(db, form, leave, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "soft").symlink_to(db)
    (tmp_path / "hard").hardlink_to(db)
    with RecordStore(tmp_path / "other.db"):
        pass
    for target in (db, "records.db", f"{tmp_path}/../{tmp_path.name}/records.db", "soft", "hard"):
        status, out, error = db_command(capsys, "export", db, target, *form, *leave)
        assert (status, out) == (2, "")
        assert "the data is read from this file" in error
    for target in ("other.db", f"{db}-wal"):
        status, out, error = db_command(capsys, "export", db, target, *form, *leave)
        assert (status, out) == (2, "")
        assert "a database of SQLite" in error
    assert db_command(capsys, "check", db)[:2] == (0, f"{db}: 5 records, all is well\n")
    assert db_command(capsys, "check", "other.db")[0] == 0


@pytest.mark.parametrize("form", [[], ["--autotvm"]])
@pytest.mark.parametrize("leave", [[], ["--overwrite"]])
def test_export_replaces_no_device_and_no_folder(db, form, leave, tmp_path, capsys):
    for target, kind in (("/dev/null", "a device"), (str(tmp_path), "a folder")):
        status, out, error = db_command(capsys, "export", db, target, *form, *leave)
        assert (status, out) == (2, "")
        assert f"{kind} is there, which is never replaced" in error


def test_export_asks_before_it_replaces_a_file(db, tmp_path, capsys):
    path = tmp_path / "notes.txt"
    path.write_text("mine\n")
    status, out, error = db_command(capsys, "export", db, str(path))
    assert (status, out) == (2, "")
    assert "the file is there already\n  hint      choose another file, or say --over" in error
    status, out, error = db_command(capsys, "export", db, str(path), "--autotvm")
    assert (status, out) == (2, "")
    assert "not a log of AutoTVM" in error
    assert path.read_text() == "mine\n"
    assert db_command(capsys, "export", db, str(path), "--overwrite")[0] == 0
    assert len(path.read_text().splitlines()) == 5


def test_export_adds_to_a_log_of_autotvm(db, tmp_path, capsys):
    path = tmp_path / "log.json"
    for count in (5, 10):
        assert db_command(capsys, "export", db, str(path), "--autotvm")[0] == 0
        assert len(path.read_text().splitlines()) == count


def test_a_database_merged_with_itself_stays_as_it_is(db, capsys):
    assert db_command(capsys, "merge", db, db)[0] == 0
    assert db_command(capsys, "check", db)[:2] == (0, f"{db}: 5 records, all is well\n")


def test_import_tells_the_lines_that_it_leaves_out(db, tmp_path, capsys):
    path = tmp_path / "records.jsonl"
    write_records([record(7), record(8)], path)
    lines = path.read_text().splitlines()
    changed = lines[1].replace("0.5", "0.4")
    path.write_text("\n".join([lines[0], changed, lines[1], lines[0][:70]]))
    status, text, error = db_command(capsys, "import", db, str(path))
    assert (status, text) == (1, f"{path}: 2 records added, 0 known already, 2 bad lines\n")
    told = error.splitlines()
    assert told[0].startswith(f"{path}: line 2: not as it was written: key '")
    assert told[1] == f"{path}: line 4: torn: the file ends in the middle of it"


def test_merge_takes_databases_and_lines(db, tmp_path, capsys):
    other, lines = tmp_path / "other.db", tmp_path / "records.jsonl"
    with RecordStore(other) as store:
        store.add([record(0, 0.5), record(9, 0.2)])
    write_records([record(10)], lines)
    status, text, _ = db_command(capsys, "merge", db, str(other), str(lines))
    assert status == 0
    assert text == (
        f"{other}: 1 records added, 1 known already\n"
        f"{lines}: 1 records added, 0 known already, 0 bad lines\n"
    )
    with RecordStore(db) as store:
        assert len(store) == 7


def test_prune_keeps_the_fastest_of_each(db, capsys):
    listed = "matmul(m=64, n=64, k=64, dtype=float32)\n  x86:zen\n  1 ok, 1 crashed\n"
    before = Path(db).read_bytes()
    assert db_command(capsys, "prune", db, "--keep", "2")[:2] == (
        0,
        f"{listed}2 records would be deleted, 3 kept: --yes deletes them\n",
    )
    assert Path(db).read_bytes() == before
    assert db_command(capsys, "prune", db, "--keep", "2", "--yes")[:2] == (
        0,
        f"{listed}2 records deleted, 3 kept\n",
    )
    assert db_command(capsys, "prune", db, "--keep", "2", "--yes")[1] == (
        "0 records deleted, 3 kept\n"
    )
    with RecordStore(db) as store:
        assert [item.result.seconds for item in store.records()] == [0.5, 0.25, 0.1]
    assert "not a positive number" in db_command(capsys, "prune", db, "--keep", "0")[2]


def test_check_finds_what_was_changed(db, capsys):
    assert db_command(capsys, "check", db)[:2] == (0, f"{db}: 5 records, all is well\n")
    with sqlite3.connect(db) as connection:
        connection.execute(
            "UPDATE records SET record = replace(record, '0.25', '0.02') WHERE id = 2"
        )
        connection.execute("UPDATE records SET record = '{' WHERE id = 3")
    status, text, _ = db_command(capsys, "check", db)
    assert status == 1
    assert text.splitlines()[0] == f"{db}: row 2: read a record: changed since it was stored"
    assert text.splitlines()[1].startswith(f"{db}: row 3: ")
    status, _, error = db_command(capsys, "list", db)
    assert status == 0
    told = [line.removeprefix(f"{db}: ")[:6] for line in error.splitlines()]
    assert told == ["row 2:", "row 3:"]


@pytest.mark.parametrize("action", ["list", "best", "prune", "check", "export"])
def test_a_file_that_is_not_there_is_told_and_not_made(action, tmp_path, capsys):
    path = tmp_path / "none.db"
    arguments = [str(path), "-"] if action == "export" else [str(path)]
    status, _, error = db_command(capsys, action, *arguments)
    assert status == 2
    assert "there is no such file" in error
    assert list(tmp_path.iterdir()) == []


def test_merge_of_a_file_that_is_not_there_changes_nothing(tmp_path, capsys):
    status, _, error = db_command(capsys, "merge", str(tmp_path / "new.db"), "nowhere.db")
    assert (status, error) == (2, "UserError: db: there is no such file\n  got       nowhere.db\n")
    assert list(tmp_path.iterdir()) == []


def test_control_characters_are_shown_and_not_obeyed(tmp_path, capsys):
    hostile = "\x1b[2J\x1b]0;title\x07\n\u202e"
    path = tmp_path / "hostile.db"
    with RecordStore(path) as store:
        workload = Workload.of(f"op{hostile}", n=hostile)
        knobs = Config({f"k{hostile}": hostile}, "abc")
        store.add([record(target=f"cpu{hostile}", workload=workload), record(config=knobs)])
    lines = tmp_path / "lines.jsonl"
    lines.write_text(json.dumps({**record().to_json(), "origin": hostile}) + "\n")
    texts = []
    for action, *rest in (["list"], ["best"], ["check"], ["export", "-"], ["import", str(lines)]):
        _, out, error = db_command(capsys, action, str(path), *rest)
        texts += [out, error]
    together = "".join(texts)
    assert r"\x1b[2J" in together
    assert not {c for c in together if c != "\n" and (ord(c) < 32 or c in "\u202e\x7f\x9b")}
    assert len(db_command(capsys, "list", str(path))[1].splitlines()) == 7
