"""Records as JSON lines: written whole, read line by line."""

import json
import os

import pytest

from dlcompiler.autotune import (
    RecordStore,
    export_records,
    import_records,
    read_records,
    write_records,
)
from dlcompiler.errors import TuningError


def test_out_and_in_again(tmp_path, record):
    path = tmp_path / "records.jsonl"
    records = [record(trial=n, outcome="ok" if n else "refused") for n in range(4)]
    with RecordStore() as store, RecordStore() as other:
        store.add(records)
        assert export_records(store, path) == 4
        assert str(import_records(other, path)) == "4 records added, 0 known already, 0 bad lines"
        assert list(other.records()) == records
        assert str(import_records(other, path)) == "0 records added, 4 known already, 0 bad lines"


def test_bad_lines_are_left_out_and_told_by_their_number(tmp_path, record):
    good = json.dumps(record().to_json())
    path = tmp_path / "records.jsonl"
    lines = [
        good.encode(),
        b"",
        b"{",
        b'{"schema": 1}',
        b"\xff\xfe",
        json.dumps({**record(trial=5).to_json(), "samples_s": [1e300, -1]}).encode(),
        json.dumps({**record(trial=5).to_json(), "schema": 3}).encode(),
        b"x" * (2 << 20),
        json.dumps(record(trial=6).to_json()).encode(),
        good.encode()[:50],  # torn: the last line of a killed writer
    ]
    path.write_bytes(b"\n".join(lines))
    with RecordStore() as store:
        report = import_records(store, path)
        assert report.added == 2
        assert [item.number for item in report.bad] == [3, 4, 5, 6, 7, 8, 10]
        reasons = [str(item) for item in report.bad]
        assert reasons[1].startswith("line 4: not a workload")
        assert reasons[2] == "line 5: not UTF-8"
        assert reasons[3] == "line 6: a sample is not a positive number of seconds: 1e+300"
        assert "newer version" in reasons[4]
        assert all(len(reason) < 400 for reason in reasons)


def test_a_failed_write_leaves_the_old_file(tmp_path, record):
    path = tmp_path / "records.jsonl"
    write_records([record()], path)

    def broken():
        yield record(trial=1)
        raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        write_records(broken(), path)
    assert read_records(path)[0] == [record()]
    assert [item.name for item in tmp_path.iterdir()] == ["records.jsonl"]


def test_files_that_cannot_be_used(tmp_path, record):
    with pytest.raises(TuningError, match="cannot read"):
        read_records(tmp_path / "none.jsonl")
    with pytest.raises(TuningError, match="no such folder"):
        write_records([record()], tmp_path / "no" / "such" / "folder.jsonl")


def test_texts_that_cannot_be_encoded_are_problems_of_their_lines(tmp_path, record):
    path = tmp_path / "records.jsonl"
    good, half = (json.dumps(record(trial=n).to_json()).encode() for n in range(2))
    lines = [
        good,
        half.replace(b"x86:zen", b"x86:\\ud800"),
        half.replace(b"x86:zen", b"x86:\xff"),
        half.replace(b'"trial": 1', b'"trial": ' + b"1" * 400),
        b"x" * (3 << 20),
        good,
    ]
    path.write_bytes(b"\n".join(lines) + b"\n")
    with RecordStore(tmp_path / "records.db") as store:
        found = import_records(store, path)
        assert list(store.records()) == [record()]
    assert str(found).splitlines() == [
        "1 records added, 1 known already, 4 bad lines",
        "line 2: not JSON: half of a surrogate pair in the text 'x86:\\ud800'",
        "line 3: not UTF-8",
        "line 4: not JSON: an integer of 400 digits",
        "line 5: longer than 1 MiB",
    ]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "records.jsonl")
    with pytest.raises(TuningError, match="not a regular file"):
        read_records(tmp_path / "records.jsonl")


def test_a_long_file_without_records_is_refused_once(tmp_path, record):
    path = tmp_path / "records.jsonl"
    path.write_bytes(b"\xff\n" * 5000)
    with pytest.raises(TuningError) as error:
        read_records(path)
    assert str(error.value) == (
        f"read records from {path}: not a file of records\n"
        "  got       line 1: not UTF-8\n"
        "  because   none of its first 1000 lines is a record"
    )
    with path.open("rb+") as file:
        file.write(json.dumps(record().to_json()).encode() + b"\n")
    found, bad = read_records(path)
    assert len(found) == 1
    assert len(bad) > 4000
