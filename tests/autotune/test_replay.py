"""Replay tables: what they keep, what they refuse, and the pool that reads them."""

import gzip
import json
import os
from dataclasses import replace

import pytest

from dlcompiler.autotune.pools.replay import ReplayPool, ReplayTable, TableRow
from dlcompiler.errors import TuningError
from dlcompiler.space import Filter, Knob, Space, Workload

KNOBS = (Knob("tile", (1, 2, 4)), Knob("pack", (False, True)), Knob("order", ("ij", "ji")))
SPACE = Space(Workload.of("x", n=8), KNOBS, [Filter("a rule", lambda v: v["tile"] < 4)])
ROWS = (
    TableRow(0, "ok", 2e-3, 1.5e-3, 2.5e-3),
    TableRow(1, "ok", 1e-3, 0.9e-3, 1.1e-3),
    TableRow(4, "wrong answer"),
    TableRow(7, "ok", 1.05e-3, 1.01e-3, 1.2e-3),
    TableRow(10, "crashed"),
)
TABLE = ReplayTable(
    "small", SPACE.workload, "cpu:x", {"cpu": "one"}, "2026-01-02", KNOBS, ("a rule",), ROWS
)


def test_a_file_gives_the_table_back(tmp_path):
    path = tmp_path / "small.json.gz"
    TABLE.save(path)
    assert ReplayTable.load(path) == TABLE
    assert list(tmp_path.iterdir()) == [path]


def test_equal_tables_give_equal_bytes(tmp_path):
    for name in "ab":
        TABLE.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_space_is_the_measured_one_without_its_template():
    assert TABLE.space.fingerprint == SPACE.fingerprint
    assert TABLE.space.at(7) == SPACE.at(7)
    assert TABLE.points == (0, 1, 4, 7, 10)


def test_the_best_and_what_comes_near():
    assert TABLE.best.point == 1
    assert TABLE.hits() == {1, 7}
    assert TABLE.hits(0.96) == {1}
    assert ROWS[0].rate == 500.0
    assert ROWS[2].rate is None


def test_the_pool_reports_what_the_table_has():
    pool, got = ReplayPool(TABLE), {}
    pool.measure([SPACE.at(7), SPACE.at(4)], None, got.__setitem__)
    assert got[0].seconds == 1.05e-3
    assert got[1].outcome == "wrong answer"
    assert pool.devices[0].kind == "cpu:x"
    assert "nothing is measured" in pool.note


def test_a_point_outside_the_table_is_refused():
    with pytest.raises(TuningError) as error:
        ReplayPool(TABLE).measure([SPACE.at(2)], None, print)
    assert str(error.value) == (
        "replay Config(tile=4, pack=False, order='ij'): the table does not have this point\n"
        "  got       point 2\n  expected  one of 5 points\n"
        "  hint      give the tuner the table's points: tuner(…, points=table.points)"
    )


def test_what_is_no_table_is_refused(tmp_path):
    path = tmp_path / "text.json.gz"
    path.write_text("hello")
    with pytest.raises(TuningError) as error:
        ReplayTable.load(path)
    assert str(error.value).startswith("read a replay table: not a compressed JSON file: ")
    assert f"\n  got       {path}\n  hint      dlcompiler bench --measure-table" in str(error.value)
    path.write_bytes(gzip.compress(json.dumps(TABLE.to_json()).encode())[:-20])
    with pytest.raises(TuningError, match="not a compressed JSON file"):
        ReplayTable.load(path)


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "small.json.gz"
    TABLE.save(path)
    data = path.read_bytes()
    for at in range(len(data)):
        for changed in (data[:at], data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]):
            path.write_bytes(changed)
            try:
                assert ReplayTable.load(path) == TABLE, "a header of gzip holds more than data"
            except TuningError:
                continue
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TuningError, match="not a regular file"):
        ReplayTable.load(tmp_path / "pipe")


@pytest.mark.parametrize(
    ("column", "value", "problem"),
    [
        ("median_s", 10**400, "damaged: OverflowError"),
        ("median_s", float("inf"), "damaged: ValueError"),
        ("median_s", True, "damaged: TypeError"),
        ("median_s", "1e-3", "damaged: TypeError"),
        ("point", 10**400, "a point is outside the space"),
        ("point", 1.0, "damaged: ValueError"),
        ("point", None, "damaged: ValueError"),
        ("outcome", -1, "damaged: ValueError"),
        ("outcome", 10**400, "damaged: IndexError"),
        ("outcome", 99, "damaged: IndexError"),
    ],
)
def test_values_that_make_no_sense_are_refused(column, value, problem):
    data = TABLE.to_json()
    data["rows"][column][1] = value
    with pytest.raises(TuningError) as error:
        ReplayTable.from_json(data)
    assert error.value.problem.startswith(problem)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"kind": "something"}, "not a replay table"),
        ({"schema": 2}, "schema 2 is of a newer version"),
        ({"rows": {"point": [1]}}, "damaged: KeyError: 'outcome'"),
        ({"fingerprint": "0"}, "the knobs are not those that were measured"),
        ({"rules": ["another"]}, "the knobs are not those that were measured"),
    ],
)
def test_a_changed_table_is_refused(change, problem):
    with pytest.raises(TuningError) as error:
        ReplayTable.from_json({**TABLE.to_json(), **change})
    assert error.value.problem == problem


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ((ROWS[1], ROWS[0]), "a point is outside the space, or not in order"),
        ((ROWS[0], ROWS[0]), "a point is outside the space, or not in order"),
        ((replace(ROWS[0], point=12),), "a point is outside the space, or not in order"),
        ((ROWS[2],), "no point has a time"),
        ((replace(ROWS[2], median_s=1.0),), "damaged: ValueError: point 4 is wrong answer"),
        ((replace(ROWS[0], low_s=3e-3),), "damaged: ValueError: point 0 has the times 0.003"),
    ],
)
def test_rows_that_make_no_sense_are_refused(rows, problem):
    with pytest.raises(TuningError) as error:
        ReplayTable.from_json(replace(TABLE, rows=rows).to_json())
    assert error.value.problem.startswith(problem)
