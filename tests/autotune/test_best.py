"""The best known config: measured, taken from the nearest shape, or the default; and it says so."""

import warnings

import numpy as np
import pytest

from dlcompiler.autotune import RecordStore, apply_best, best, best_choice, tune
from dlcompiler.autotune.records.best import distance
from dlcompiler.autotune.records.remap import remapped
from dlcompiler.errors import TuningError
from dlcompiler.ops import operator
from dlcompiler.pipeline import build
from dlcompiler.space import Config, Filter, Knob, Space, Workload
from dlcompiler.target import resolve

CPU = "x86-64-avx2"


def matmul(m, n=64, k=64):
    return Workload.of("matmul", m=m, n=n, k=k)


@pytest.fixture
def store(fake):
    """Records of three shapes; the wide one is nearest to m=96."""
    made = RecordStore()
    for m in (16, 64, 128):
        tune(matmul(m), CPU, trials=6, tuner="random", measurer=fake(), db=made, threads=1).wait()
    return made


def test_a_measured_config_is_taken_as_it_is(store):
    record = best(matmul(64), CPU, store, threads=1)
    choice = best_choice(matmul(64), CPU, store, threads=1)
    assert record.result.seconds == min(
        item.result.seconds for item in store.records(record.workload)
    )
    assert (choice.source, choice.record, choice.config) == ("record", record, record.config)
    assert choice.note.startswith(
        f"measured on {record.target}: {record.result.seconds:.3g} s, run {record.run}"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule, args = apply_best(matmul(64), CPU, store, threads=1)
    assert [tensor.name for tensor in args] == ["A", "B", "C"]
    assert len(schedule.trace) > 3


def test_an_unseen_shape_takes_the_nearest_ones(store):
    choice = best_choice(matmul(96), CPU, store, threads=1)
    assert choice.source == "neighbour"
    assert choice.record.workload["m"] == 128
    assert "from a record of matmul(m=128, n=64, k=64, dtype=float32)" in choice.note
    space = operator("matmul").space(choice.workload, resolve(CPU))
    assert space.forbidden_by(choice.config) is None
    assert choice.config.fingerprint == space.fingerprint


def test_what_is_built_from_a_neighbour_is_right_and_was_told(fake, tmp_path):
    path = tmp_path / "records.db"
    tune(matmul(64), trials=4, tuner="random", measurer=fake(), db=path, threads=1).wait()
    with pytest.warns(UserWarning, match="not measured for this workload: from a record of matmul"):
        schedule, args = apply_best(matmul(37, 19, 23), "cpu", path, threads=1)
    a, b = np.ones((37, 23), np.float32), np.full((23, 19), 2.0, np.float32)
    c = np.empty((37, 19), np.float32)
    build(schedule, args)(a, b, c)
    assert (c == 46).all()


@pytest.mark.parametrize(
    "workload", [Workload.of("softmax", rows=4, columns=4), matmul(64)], ids=str
)
def test_without_records_it_is_the_default(workload):
    if workload.op == "softmax":
        workload = operator("softmax").workload(shape=(4, 4))
    choice = best_choice(workload, CPU)
    assert (choice.source, choice.record) == ("default", None)
    assert (
        choice.note
        == f"the default config, because no record of {workload.op} on this machine can be used"
    )
    assert best(workload, CPU) is None
    with pytest.warns(UserWarning, match="the default config"):
        apply_best(workload, CPU)


def test_records_of_other_machines_failures_and_strange_configs_do_not_count(store, record):
    other = best_choice(matmul(64), CPU, store, threads=2)
    assert other.source == "default"
    fresh = RecordStore()
    known = store.records()[0]
    config = Config({"unknown": 3}, "abc")
    fresh.add([
        record(workload=known.workload, target=known.target, outcome="crashed"),
        record(workload=known.workload, target=known.target, config=config),
    ])  # fmt: skip
    choice = best_choice(known.workload, CPU, fresh, threads=1)
    assert choice.source == "neighbour"
    assert "another version of its space" in choice.note
    assert "which was not named" in choice.note


def test_a_file_is_only_read(tmp_path):
    with pytest.raises(TuningError, match="there is no such file"):
        best(matmul(64), CPU, tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []


def test_distances_are_those_of_factors():
    assert distance(matmul(64), matmul(64)) == 0
    assert distance(matmul(64, 64), matmul(128, 32)) == pytest.approx(2**0.5)
    one, other = (Workload.of("x", n=0, dtype=d) for d in ("float32", "float16"))
    assert distance(one, one) == 0
    assert distance(one, other) == float("inf")
    assert distance(one, Workload.of("y", n=0, dtype="float32")) == float("inf")


# -- from space to space ------------------------------------------------------------------------

SPACE = Space(
    Workload.of("x"),
    [
        Knob("tile", (1, 2, 4, 8)),
        Knob("pack", (False, True)),
        Knob("order", ("ij", "ji")),
        Knob("split", ((4, 2), (8, 1))),
    ],
    [Filter("packed tiles are small", lambda v: not v["pack"] or v["tile"] <= 2)],
)
DEFAULT = SPACE.config(tile=1, pack=False, order="ij", split=(8, 1))


def moved(**values):
    found = remapped(values, SPACE, DEFAULT)
    return found.config.values, found.changes


def test_values_are_taken_by_name():
    values, changes = moved(tile=8, pack=False, order="ji", split=(4, 2), gone=3)
    assert values == {"tile": 8, "pack": False, "order": "ji", "split": (4, 2)}
    assert changes == ()


def test_values_that_are_not_there_move_to_the_nearest():
    values, changes = moved(tile=24, pack=True, order="kk", split=(4, 4))
    assert values == {"tile": 1, "pack": True, "order": "ij", "split": (4, 2)}
    assert changes[0] == "tile=1, the default, as the values did not go together"
    assert changes[1:] == ("order='ij' in place of 'kk'", "split=(4, 2) in place of (4, 4)")
    assert moved(tile=3)[0]["tile"] == 4
    assert moved(tile=True)[0]["tile"] == 1


def test_what_is_not_named_is_the_defaults():
    values, changes = moved()
    assert values == DEFAULT.values
    assert changes[0] == "tile=1, which was not named"


def test_values_that_do_not_go_together_give_way():
    values, changes = moved(tile=8, pack=True, order="ji", split=(8, 1))
    assert values == {"tile": 1, "pack": True, "order": "ji", "split": (8, 1)}
    assert changes == ("tile=1, the default, as the values did not go together",)
