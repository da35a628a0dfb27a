"""AutoTVM's logs: lines of version 0.2 are read and written, all others told by their number."""

import base64
import dataclasses
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlcompiler.autotune import Record, RecordStore, Result, export_autotvm, import_autotvm
from dlcompiler.autotune.records.autotvm_log import (
    LogLine,
    append_to_log,
    config_of,
    entities_of,
    read_log,
    read_log_line,
    write_log_line,
)
from dlcompiler.cli import main
from dlcompiler.errors import TuningError
from dlcompiler.space import Knob, Space, Workload

CLASSIC = (
    '{"input": ["llvm -keys=cpu", "tutorial/matmul", [512, 512, 512, "float32"], {}], '
    '"config": {"index": 17, "code_hash": null, "entity": [["tile_y", "sp", [-1, 8]], '
    '["order", "re", [1, 0]], ["ann", "an", ["unroll", "vec"]], ["unroll", "ot", 512]]}, '
    '"result": [[0.0013, 0.0012], 0, 0.81, 1600000000.5], "version": 0.2, "tvm_version": "0.8.0"}'
)
SPACE = Space(
    Workload.of("x"),
    [
        Knob("tile_y", ((-1, 4), (-1, 8)), kind="split"),
        Knob("order", ((0, 1), (1, 0)), kind="reorder"),
        Knob("ann", (("none", "vec"), ("unroll", "vec")), kind="annotate"),
        Knob("unroll", (0, 512)),
    ],
)


def test_a_line_is_read():
    line = read_log_line(CLASSIC)
    assert (line.target, line.task) == ("llvm -keys=cpu", "tutorial/matmul")
    assert line.args == (512, 512, 512, "float32")
    assert line.entities[0] == ("tile_y", "sp", (-1, 8))
    assert line.costs_s == (0.0013, 0.0012)
    assert (line.index, line.timestamp, line.tvm_version) == (17, 1600000000.5, "0.8.0")
    assert line.result.outcome == "ok"
    assert line.result.seconds == pytest.approx(0.00125)


def test_what_is_written_is_what_was_read():
    assert json.loads(write_log_line(read_log_line(CLASSIC))) == json.loads(CLASSIC)


def test_values_are_taken_by_name():
    config = config_of(read_log_line(CLASSIC), SPACE)
    assert config == SPACE.config(tile_y=(-1, 8), order=(1, 0), ann=("unroll", "vec"), unroll=512)
    assert entities_of(config, SPACE) == read_log_line(CLASSIC).entities
    with pytest.raises(TuningError, match="not a value for each knob"):
        config_of(read_log_line(CLASSIC), Space(Workload.of("x"), SPACE.knobs[:2]))


def test_a_failed_measurement_has_no_time():
    line = LogLine("llvm", "task", (1,), (("k", "ot", 1),), error=7)
    text = write_log_line(line)
    assert json.loads(text)["result"] == [[1e9], 7, 0.0, 0.0]
    assert read_log_line(text) == line
    assert read_log_line(text).result.outcome == "run timeout"


@given(st.text(max_size=200))
def test_no_text_does_anything_but_be_refused(text):
    with pytest.raises(TuningError):
        read_log_line(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda below: st.lists(below) | st.dictionaries(st.text(), below),
    ),
    st.sampled_from(["input", "config", "result", "version"]),
)
def test_no_other_json_does_either(value, key):
    data = {**json.loads(CLASSIC), key: value}
    if data != json.loads(CLASSIC):
        with pytest.raises(TuningError, match="AutoTVM log"):
            read_log_line(json.dumps(data))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not JSON"),
        ("[]", "not a line of a version"),
        ('{"i": ["llvm"], "r": [], "v": 0.1}', "not a line of a version"),
        (CLASSIC.replace("0.2,", "0.3,"), "not a line of a version"),
        (CLASSIC.replace('"sp"', '"xx"'), "not a value of a knob"),
        (CLASSIC.replace("0.0013", "-1"), "not seconds"),
        (CLASSIC.replace("0.0013", "NaN"), "not JSON"),
        (CLASSIC.replace("], 0, 0.81", "], 9, 0.81"), "not as they should be"),
    ],
)
def test_other_lines_are_refused(text, problem):
    with pytest.raises(TuningError, match=problem):
        read_log_line(text)


def test_pickled_lines_are_refused_with_the_reason():
    parts = [base64.b64encode(pickle.dumps(value)).decode() for value in ("task", {}, (1.0,))]
    with pytest.raises(TuningError) as error:
        read_log_line("\t".join(["llvm", *parts]))
    assert str(error.value) == (
        "read a line of an AutoTVM log: a pickled line of version 0.1 is not read\n"
        "  because   unpickling runs code that the file chooses\n"
        "  hint      TVM 0.6 can read it, and write it as JSON"
    )


def test_bad_lines_of_a_file_are_told_by_number(tmp_path):
    path = tmp_path / "matmul.log"
    path.write_bytes(f"# comment\n{CLASSIC}\nnonsense\n\n{CLASSIC}\n\xff\n".encode("latin-1"))
    append_to_log(path, [read_log_line(CLASSIC)])
    with path.open("a") as stream:
        stream.write(CLASSIC[:50])
    lines, bad = read_log(path)
    assert len(lines) == 3
    assert [item.number for item in bad] == [3, 6, 8]
    assert str(bad[-1]) == "line 8: torn: the file ends in the middle of it"


def test_a_file_that_cannot_be_used(tmp_path):
    with pytest.raises(TuningError, match="cannot read"):
        read_log(tmp_path / "none.log")
    with pytest.raises(TuningError, match="no such folder"):
        append_to_log(tmp_path / "no" / "folder.log", [])


# -- records ------------------------------------------------------------------------------------


def records():
    work = Workload.of("matmul", m=8, n=8, k=8, dtype="float32")
    config = Space(work, [Knob("tile", (1, 2)), Knob("form", ("rows",))]).at(1)
    at = "2026-01-02T03:04:05+00:00"
    return [
        Record(work, "here", config, Result("ok", (1e-3, 2e-3), "", 0.5, 0.25), "run", 0, at),
        Record(work, "here", config, Result("run timeout", (), "too long"), "run", 1, at),
    ]


def test_records_are_written_and_come_back(tmp_path):
    path = tmp_path / "records.log"
    assert export_autotvm(records(), path) == 2
    store = RecordStore()
    assert str(import_autotvm(store, path)) == "2 records added, 0 known already, 0 bad lines"
    for before, after in zip(records(), store.records(), strict=True):
        assert after.workload == before.workload
        assert after.config.values == before.config.values
        assert after.result.outcome == before.result.outcome
        assert after.result.samples_s == before.result.samples_s
        assert (after.target, after.measured_at) == ("here", before.measured_at)


def test_what_is_no_record_is_told_by_its_line(tmp_path):
    path = tmp_path / "classic.log"
    path.write_text(f"# log\n{CLASSIC}\n{CLASSIC.replace('512, 512, 512', '[1, 2]')}\nno\n")
    store = RecordStore()
    report = import_autotvm(store, path)
    assert (report.added, [item.number for item in report.bad]) == (1, [3, 4])
    (record,) = store.records()
    assert record.workload["arg3"] == "float32"
    assert record.config.tile_y == (-1, 8)


def test_the_kind_of_a_tuple_must_be_known(tmp_path):
    config = SPACE.at(0)
    (record, _) = records()
    tuples = dataclasses.replace(record, config=config)
    with pytest.raises(TuningError, match="the kind of the knob tile_y is not known"):
        export_autotvm([tuples], tmp_path / "x.log")
    kinds = {knob.name: knob.kind for knob in SPACE.knobs}
    export_autotvm([tuples], tmp_path / "x.log", kinds)
    (line,), _ = read_log(tmp_path / "x.log")
    assert line.entities == entities_of(config, SPACE)


def test_the_shell_reads_and_writes_them(tmp_path, capsys):
    log, db = str(tmp_path / "records.log"), str(tmp_path / "records.db")
    export_autotvm(records(), log)
    assert main(["db", "import", db, log, "--autotvm"]) == 0
    assert main(["db", "export", db, str(tmp_path / "again.log"), "--autotvm"]) == 0
    assert "2 records written" in capsys.readouterr().out
    again, before = (read_log(tmp_path / name)[0] for name in ("again.log", "records.log"))
    assert [line.entities for line in again] == [line.entities for line in before]
    assert [line.costs_s for line in again] == [line.costs_s for line in before]


def test_numbers_and_texts_of_a_line_are_problems_of_that_line(tmp_path):
    path = tmp_path / "log.json"
    changes = [
        ("0.81", "9" * 400),
        ("0.81", "1e400"),
        ("0.81", "-1"),
        ("1600000000.5", "1e18"),
        ("1600000000.5", "9" * 99),
        ("tutorial/matmul", "\\ud800"),
        ("[-1, 8]", "8"),
        ("512]]}", "1.5]]}"),
        ("{}]", '{"arg0": 3}]'),
    ]
    lines = [CLASSIC, *(CLASSIC.replace(old, new, 1) for old, new in changes), CLASSIC]
    path.write_text("\n".join(lines) + "\n")
    with RecordStore(tmp_path / "records.db") as store:
        found = import_autotvm(store, path)
        assert len(store.records()) == 2
    malformed = "input, config or result are not as they should be"
    told = [(bad.number, bad.reason.partition(": ")[::2]) for bad in found.bad]
    assert [(number, problem) for number, (problem, _) in told] == [
        (2, "not JSON"),
        (3, "not JSON"),
        (4, malformed),
        (5, malformed),
        (6, malformed),
        (7, "not JSON"),
        (8, "not a value of a knob"),
        (9, "the value of the knob unroll is not kept"),
        (10, "the argument arg0 stands twice"),
    ]


def test_a_long_file_without_measurements_is_refused_once(tmp_path):
    path = tmp_path / "log.json"
    path.write_text("# a comment\n" + "x\n" * 5000)
    with pytest.raises(TuningError) as error:
        read_log(path)
    assert str(error.value) == (
        f"read the log {path}: not a file of records\n"
        "  got       line 2: not JSON: Expecting value: line 1 column 1 (char 0)\n"
        "  because   none of its first 1000 lines is a record"
    )
    path.write_text(CLASSIC + "\n" + "x\n" * 2000)
    assert len(read_log(path)[1]) == 2000
