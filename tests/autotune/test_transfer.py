"""Records of other shapes teach a tuner, and the run says so."""

import pytest

from dlcompiler.autotune import RecordStore, tune
from dlcompiler.autotune.models import KnobFeatures
from dlcompiler.autotune.transfer import lesson_of
from dlcompiler.errors import TuningError
from dlcompiler.ops import operator
from dlcompiler.space import Config, Workload
from dlcompiler.target import resolve

CPU = "x86-64-avx2"


def matmul(m):
    return Workload.of("matmul", m=m, n=64, k=64)


def start(measurer, m=64, trials=30, **options):
    options = {"tuner": "ridge", **options}
    return tune(matmul(m), CPU, trials=trials, measurer=measurer, threads=1, **options).wait()


@pytest.fixture
def store(fake):
    made = RecordStore()
    for m in (32, 128):
        start(fake(), m, tuner="random", db=made)
    return made


def test_a_run_learns_from_other_shapes_and_says_so(fake, store):
    run = start(fake(), db=store)
    assert run.prior == ()
    note = (
        "learns from 60 records of other shapes: matmul(m=128, n=64, k=64, dtype=float32), matmul"
    )
    assert run.note.startswith(note)
    cold = start(fake())
    assert cold.note == ""
    assert run.trials[1].origin == "model"
    first, other = (sorted(t.seconds for t in item.trials[1:9])[0] for item in (run, cold))
    assert first <= other


def test_a_tuner_without_a_model_is_taught_nothing(fake, store):
    assert start(fake(), db=store, tuner="random").note == ""


def test_equal_seeds_and_records_give_equal_trials(fake, store):
    runs = []
    for _ in range(2):
        copy = RecordStore()
        copy.add(store.records())
        runs.append([trial.config for trial in start(fake(), db=copy).trials])
    assert runs[0] == runs[1]


def test_what_cannot_be_compared_is_left_out(record):
    item, target = operator("matmul"), resolve(CPU)
    here, other = item.workload(m=64, n=64, k=64), item.workload(m=32, n=64, k=64)

    def space_of(workload):
        if workload["m"] == 7:
            raise TuningError("space", "it was different then")
        return item.space(workload, target)

    def lesson(*records):
        columns = KnobFeatures(space_of(here)).columns
        return lesson_of(records, here, columns, space_of, lambda _, space: KnobFeatures(space))

    config = item.default_config(other, target)
    good = record(workload=other, config=config)
    strange = record(workload=other, config=Config({"tile": 1}, "abc"))
    gone = record(workload=item.workload(m=7, n=64, k=64), config=config)
    failed = record(workload=other, config=config, outcome="crashed")
    own = record(workload=here, config=item.default_config(here, target))
    assert lesson(strange, gone, own, failed).experience is None
    found = lesson(strange, good, gone, own)
    assert found.note == f"learns from 1 records of other shapes: {other}"
    assert len(found.experience) == 1


def test_an_unknown_tuner_is_refused_at_once(fake):
    with pytest.raises(TuningError, match="no tuner has this name"):
        tune(matmul(8), CPU, tuner="rigde", measurer=fake())
