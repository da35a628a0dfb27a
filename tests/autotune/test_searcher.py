"""What a run searches with: features of programs, experience of other shapes, made when needed."""

import numpy as np
import pytest

from dlcompiler.autotune import Record, RecordStore, Result, target_key, tune
from dlcompiler.autotune.models import KnobFeatures
from dlcompiler.autotune.models.joined import JoinedFeatures
from dlcompiler.autotune.run.searcher import (
    DeferredTuner,
    Programs,
    Searched,
    experience_in,
    searcher,
)
from dlcompiler.autotune.tuners import RandomTuner
from dlcompiler.errors import ScheduleError, TuningError
from dlcompiler.ops import operator
from dlcompiler.target import resolve

MATMUL = operator("matmul")
CPU = resolve("cpu")


def searched(**sizes):
    workload = MATMUL.workload(**{"m": 64, "n": 64, "k": 64, **sizes})
    return Searched(MATMUL, workload, CPU, 1, MATMUL.space(workload, CPU))


def keep(store, of, seconds, count=30):
    """Store trials of a shape; packed ones are the faster ones."""
    for number, point in enumerate(of.space.sample(count, 0)):
        config = of.space.at(point)
        result = Result("ok", (seconds * (1 + 4 * (not config.pack) + abs(config.tile_m - 4)),))
        store.add(
            [
                Record(
                    of.workload, target_key(CPU, 1), config, result, "earlier", number,
                    "2026-01-02T03:04:05.678+00:00",
                )
            ]
        )  # fmt: skip


def described(of):
    return JoinedFeatures([KnobFeatures(of.space), Programs(of)])


def test_a_model_sees_knobs_and_programs():
    features = described(searched())
    assert {"tile_m", "pack", "program.compute cycles"} <= set(features.columns)
    assert features.rows(np.array([0, 1])).shape == (2, len(features.columns))


class Untraceable:
    """Features of a template that raises."""

    def __init__(self, *made):
        pass

    @property
    def columns(self):
        raise ScheduleError("split", "this one never works")


def test_a_template_that_cannot_be_traced_leaves_the_knobs(monkeypatch):
    monkeypatch.setattr("dlcompiler.autotune.run.searcher.SpaceFeatures", Untraceable)
    of = searched()
    made = searcher("ridge", of, 0, RecordStore())
    for proposal in made.propose(8):
        made.observe(proposal.point, 1.0 + proposal.point % 5)
    assert len(made.propose(8)) == 8
    assert made.note == "the model sees the knobs only: this one never works"
    assert made.model.columns == KnobFeatures(of.space).columns


def test_a_program_that_cannot_be_described_has_no_features(monkeypatch):
    class Partly(Untraceable):
        columns = ("a", "b")

        def rows(self, points):
            raise ValueError("what a template raises")

    monkeypatch.setattr("dlcompiler.autotune.run.searcher.SpaceFeatures", Partly)
    programs = Programs(searched())
    assert np.isnan(programs.rows(np.arange(3))).all()
    assert programs.lack == "the model sees the knobs only: ValueError"


@pytest.fixture
def plain(monkeypatch):
    """Programs of which nothing is known: their features take a while."""

    class Nothing(Untraceable):
        columns = ()

    monkeypatch.setattr("dlcompiler.autotune.run.searcher.SpaceFeatures", Nothing)


@pytest.mark.usefixtures("plain")
def test_records_of_other_shapes_teach():
    store, of = RecordStore(), searched()
    assert experience_in(store, of, described(of)) == (None, "")
    keep(store, searched(m=128), 2e-5)
    keep(store, searched(k=128), 1e-5)
    keep(store, of, 1e-5)  # its own, which the run learns from itself
    found, note = experience_in(store, of, described(of))
    assert len(found) == 60
    assert note == "learns from 60 records of 2 other shapes, too"


@pytest.mark.usefixtures("plain")
def test_a_search_with_experience_begins_with_what_was_good_elsewhere():
    store = RecordStore()
    keep(store, searched(m=128), 2e-5, 200)
    made = searcher("xgb", searched(), 0, store)
    configs = [searched().space.at(proposal.point) for proposal in made.propose(8)]
    assert sum(config.pack for config in configs) >= 6
    assert made.note == "learns from 200 records of another shape, too"


@pytest.mark.usefixtures("plain")
def test_a_run_says_what_it_learned_from(fake):
    store = RecordStore()
    of = searched(m=128, n=128)
    keep(store, of, 1e-5, 20)
    run = tune(
        searched().workload, trials=12, batch=4, threads=1, db=store, measurer=fake(), block=True
    )
    assert "learns from 20 records of another shape, too" in run.note
    assert run.model.columns[:1] == ("tile_m",)


def test_a_tuner_is_made_when_it_is_asked_first():
    made = []

    def make():
        made.append(searcher("random", searched(), 0, RecordStore()))
        return made[-1]

    deferred = DeferredTuner(make)
    assert (deferred.note, deferred.model, deferred.walkers) == ("", None, ())
    assert made == []
    assert len(deferred.propose(3)) == 3
    deferred.observe(0, 1.0)
    assert len(made) == 1
    assert isinstance(made[0]._tuner(), RandomTuner)
    deferred.note = "changed"
    assert deferred.note == "changed"


def test_an_unknown_name_is_refused_at_once():
    with pytest.raises(TuningError, match="no tuner has this name"):
        searcher("xgboost", searched(), 0, RecordStore())
