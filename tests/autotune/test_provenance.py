"""Records, trials and tables say whether a time is measured or simulated, and on what."""

import dataclasses
import json

import pytest

from dlcompiler.autotune import (
    Device,
    LocalPool,
    Record,
    RecordStore,
    Result,
    SerialPool,
    apply_best,
    best,
    best_choice,
    export_autotvm,
    target_key,
    tune,
    write_line,
)
from dlcompiler.autotune.pools.replay import ReplayPool, ReplayTable, TableRow
from dlcompiler.autotune.records.record import read_line
from dlcompiler.autotune.records.summary import groups
from dlcompiler.errors import MeasurementError, TuningError
from dlcompiler.ops import operator
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.space import Config, Knob, Workload
from dlcompiler.target import resolve
from dlcompiler.target.detect import cpu_model
from dlcompiler.views.tuning import best_so_far, predicted_measured, watched

CPU = "x86-64-avx2"
KEY = target_key(resolve(CPU), 1)
WORK = Workload.of("matmul", m=64, n=64, k=64)
SIMULATED = Provenance("simulated", "v100")
NULL = dataclasses.replace(resolve(CPU), name="nothing", runs_on="null")


class Simulating:
    """A pool whose times are those of a GPU that is simulated."""

    note = ""
    devices = (Device(KEY, provenance=SIMULATED),)

    def __init__(self, seconds=1e-9, said=None):
        self.seconds, self.said = seconds, said

    def measure(self, configs, best_s, report):
        for number, _ in enumerate(configs):
            report(number, Result("ok", (self.seconds,), provenance=self.said))

    def interrupt(self):
        pass

    def close(self):
        pass


def run(db, **options):
    return tune(WORK, CPU, trials=4, tuner="random", threads=1, db=db, **options).wait()


# -- records ---------------------------------------------------------------------------------------


def test_it_is_stored_and_read_back(record):
    given = record(result=Result("ok", (0.5,), provenance=SIMULATED))
    assert read_line(write_line(given)) == given
    assert given.to_json()["provenance"] == {"kind": "simulated", "on": "v100"}


def test_an_older_record_is_measured_on_its_target_and_keeps_its_key(record):
    older = record()
    assert "provenance" not in older.to_json()
    read = Record.from_json(older.to_json())
    assert (read, read.key()) == (older, older.key())
    assert read.provenance == Provenance("measured", "x86:zen")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("measured", "not an object"),
        (None, "not an object"),
        ({"kind": "certain", "on": ""}, "the kind is not one of"),
        ({"kind": "measured", "on": 1}, "on is not a text"),
        ({"kind": "measured", "on": "x" * 200_000}, "on is missing or not a text"),
        ({"kind": "measured", "on": "\udc80"}, "on is missing or not a text"),
    ],
)
def test_a_hostile_provenance_is_refused(record, given, reason):
    with pytest.raises(TuningError, match=f"read a record: .*{reason}"):
        Record.from_json({**record().to_json(), "provenance": given})


def test_records_of_both_kinds_are_grouped_and_pruned_apart(record):
    with RecordStore() as store:
        for number in range(3):
            faster = Result("ok", (1e-3 * (1 + number),), provenance=SIMULATED)
            store.add([record(number), record(number, result=faster)])
        assert [group.kind for group in groups(store.records())] == ["measured", "simulated"]
        assert store.prune(1) == 4
        assert {kept.provenance.kind for kept in store.records()} == {"measured", "simulated"}


def test_a_row_that_is_no_json_does_not_stop_prune(record):
    with RecordStore() as store:
        store.add([record(0), record(1)])
        store._memory.execute("UPDATE records SET record = '{' WHERE id = 1")
        assert store.prune(1) == 0
        assert len(store.records()) == 1


def test_an_autotvm_log_takes_measured_times_only(record, tmp_path):
    given = record(result=Result("ok", (0.5,), provenance=SIMULATED))
    with pytest.raises(TuningError) as caught:
        export_autotvm([given], tmp_path / "log")
    assert str(caught.value) == (
        "write an AutoTVM log: its readers would take the time for a measured one\n"
        "  got       matmul(m=64, n=64, k=64, dtype=float32): simulated on v100\n"
        "  expected  measured records only"
    )
    assert not (tmp_path / "log").exists()


# -- the best --------------------------------------------------------------------------------------


def test_a_simulated_time_is_not_the_best_of_measured_ones(fake):
    with RecordStore() as store:
        measured = run(store, measurer=fake())
        run(store, pool=Simulating())
        found = best(WORK, CPU, store, threads=1)
        assert found.provenance.kind == "measured"
        assert found.result.seconds == measured.best.seconds
        choice = best_choice(WORK, CPU, store, threads=1)
        assert choice.record == found
        assert choice.note.startswith(f"measured on {KEY}")


def test_without_a_measured_record_the_default_is_chosen():
    with RecordStore() as store:
        run(store, pool=Simulating())
        assert best(WORK, CPU, store, threads=1) is None
        assert best_choice(WORK, CPU, store, threads=1).source == "default"
        with pytest.warns(UserWarning, match="default config"):
            apply_best(WORK, CPU, store, threads=1)


def test_a_run_learns_from_records_of_its_kind_only(fake):
    with RecordStore() as store:
        run(store, pool=Simulating())
        found = run(store, measurer=fake())
        assert not found.prior
        assert "4 records left out: their times are not measured" in found.note
        assert found.best.provenance == Provenance("measured", KEY)
        assert f"measured on {KEY}" in repr(found)
        again = run(store, pool=Simulating(), seed=1)
        assert {trial.provenance for trial in again.prior} == {SIMULATED}
        assert again.best.provenance == SIMULATED
        assert "simulated on v100" in repr(again.best)


def test_a_pool_that_mixes_kinds_is_refused():
    with RecordStore() as store, pytest.raises(TuningError) as caught:
        run(store, pool=Simulating(said=Provenance("measured", "x")))
    assert "the pool reported a time of another kind" in str(caught.value)
    both = Simulating()
    both.devices = (*Simulating.devices, Device("x"))
    with pytest.raises(TuningError) as caught:
        run(None, pool=both)
    assert str(caught.value) == (
        "tune: the devices of the pool do not give times of one kind\n"
        "  got       simulated on v100, measured on x\n"
        "  expected  all measured, or all simulated"
    )


# -- pools -----------------------------------------------------------------------------------------


def test_the_pool_of_this_machine_names_its_processor():
    pool = LocalPool(operator("matmul"), WORK, resolve(CPU), threads=1)
    assert pool.devices[0].times == Provenance("measured", cpu_model())


@pytest.mark.parametrize("target", [NULL, resolve("v100")])
def test_the_pool_of_this_machine_refuses_what_does_not_run_on_it(target):
    with pytest.raises(MeasurementError, match=r"have no times|only machine code"):
        LocalPool(operator("matmul"), WORK, target)


def test_nothing_is_measured_on_a_null_device(fake):
    for options in ({}, {"measurer": fake()}):
        with pytest.raises(MeasurementError, match="programs for nothing have no times"):
            tune(WORK, NULL, trials=2, **options)


def test_a_measurer_of_a_simulated_target_predicts(fake, monkeypatch):
    schedules = operator("matmul").schedules
    monkeypatch.setitem(schedules, "gpu", schedules["cpu"])
    found = tune(WORK, "v100", trials=2, tuner="random", measurer=fake()).wait()
    assert {trial.provenance for trial in found.trials} == {
        Provenance("predicted", "the time model of v100")
    }


def test_a_measurer_may_say_where_its_times_come_from(fake):
    said = Result("ok", (1.0,), provenance=Provenance("measured", "board 3"))
    pool, reported = SerialPool(fake(faults={0: said}), Device("arm")), []
    pool.measure([Config({"tile_m": 1}, "x")], None, lambda _, result: reported.append(result))
    assert reported[0].provenance == said.provenance


def test_a_replayed_time_names_its_machine_and_its_table():
    table = ReplayTable(
        "C2", Workload.of("x"), "key", {"cpu": "AMD EPYC"}, "2026-01-02", (Knob("k", (1, 2)),), (),
        (TableRow(0, "ok", 1.0, 1.0, 1.0),),
    )  # fmt: skip
    reported = []
    ReplayPool(table).measure([table.space.at(0)], None, lambda _, found: reported.append(found))
    assert str(reported[0].provenance) == "measured on AMD EPYC, replayed from the table C2"


# -- what is shown ---------------------------------------------------------------------------------


def test_the_table_of_trials_has_both(fake):
    pytest.importorskip("pandas")
    frame = run(None, pool=Simulating()).to_pandas()
    assert set(frame["kind"]) == {"simulated"}
    assert set(frame["on"]) == {"v100"}


def test_the_lines_of_a_run_are_json(record):
    assert json.loads(write_line(record(result=Result("ok", (1.0,), provenance=SIMULATED))))[
        "provenance"
    ] == {"kind": "simulated", "on": "v100"}


def test_axes_say_simulated(fake):
    seen = watched(run(None, pool=Simulating()))
    texts = [mark.get("text", "") for mark in best_so_far(seen)["marks"]]
    assert "simulated rate [GFLOP/s]" in texts
    assert not any("measured" in text for text in texts)
    assert "simulated on v100" in best_so_far(seen)["summary"]
    assert "simulated time" in [m.get("text") for m in predicted_measured(seen)["marks"]]
