"""Candidates that are no configs: measured, stored, read back and shown like configs."""

import json
from dataclasses import dataclass

import pytest

from dlcompiler.autotune import (
    Candidate,
    LocalPool,
    Record,
    RecordStore,
    StoredCandidate,
    TemplateCandidate,
    Trial,
    best,
    best_choice,
    export_autotvm,
    target_key,
)
from dlcompiler.autotune.candidate import stored_form
from dlcompiler.autotune.pools.replay import ReplayPool, ReplayTable
from dlcompiler.autotune.records.record import read_line, write_line
from dlcompiler.autotune.table import trials_table
from dlcompiler.cli import main
from dlcompiler.errors import TuningError
from dlcompiler.ops import operator
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.schedule import create_schedule
from dlcompiler.space import Config, Knob, Space
from dlcompiler.target import resolve
from dlcompiler.target.detect import cpu_model
from dlcompiler.views.tuning.trials_table import Order
from dlcompiler.views.tuning.trials_table import trials_table as shown_trials
from dlcompiler.views.tuning.watched import Watched, row_of

MATMUL = operator("matmul")
WORK = MATMUL.workload(m=32, n=32, k=32)
CPU = resolve("cpu")
KEY = target_key(CPU, 1)


@dataclass(frozen=True)
class HandMade:
    """Loops of a product in an order that somebody wrote down: no knobs, no space."""

    order: str
    kind = "loop order"

    def describe(self):
        return f"loops {self.order}"

    def to_json(self):
        return {"order": self.order}

    def schedule(self, target):
        args = MATMUL.define(WORK)
        s = create_schedule(args[-1].op)
        (sums,) = args[-1].op.input_tensors
        axes = dict(zip("ijk", (*sums.op.axis, *sums.op.reduce_axis), strict=True))
        s[sums].reorder(*(axes[name] for name in self.order))
        return s, args


def measured(tried):
    """Measure in the pool of this machine; returns trials."""
    results = {}
    pool = LocalPool(MATMUL, WORK, CPU, threads=1)
    try:
        pool.measure(tried, None, results.__setitem__)
    finally:
        pool.close()
    return [
        Trial(n, n, config, results[n], 0.1, 2.0 * 32**3, origin="user", candidate=stored)
        for n, (config, stored) in enumerate(map(stored_form, tried))
    ]


@pytest.mark.campaign
def test_schedules_that_are_no_configs_are_measured_stored_and_shown(tmp_path, capsys):
    tried = [HandMade("ikj"), HandMade("ijk"), HandMade("jki"), HandMade("iij")]
    assert all(isinstance(each, Candidate) for each in tried)
    trials = measured(tried)
    assert [trial.outcome for trial in trials] == ["ok", "ok", "ok", "refused"]
    assert trials[0].provenance == Provenance("measured", cpu_model())

    path = tmp_path / "records.db"
    records = [Record.of(t, WORK, KEY, "by hand", "2026-01-02T03:04:05.678+00:00") for t in trials]
    with RecordStore(path) as store:
        assert store.add(records) == 4
        assert list(store.records(WORK, KEY)) == records
        fastest = best(WORK, CPU, store, threads=1)
        # A template cannot make the schedule of a candidate again.
        assert best_choice(WORK, CPU, store, threads=1).source == "default"
    assert read_line(write_line(records[0])) == records[0]
    again = HandMade(**fastest.candidate.data)
    assert again in tried
    assert fastest.describe() == again.describe()

    frame = trials_table(trials)
    assert list(frame["candidate"]) == ["loops ikj", "loops ijk", "loops jki", "loops iij"]
    assert not [name for name in frame.columns if name.startswith("cfg.")]
    space = Space(WORK, [Knob("none", (0,))])
    seen = Watched("by hand", "finished", space, rows=tuple(map(row_of, trials)))
    page = shown_trials(seen, Order(is_descending=False))
    assert [row["config"] for row in page["rows"]] == list(frame["candidate"])
    assert main(["db", "best", str(path)]) == 0
    assert f" measured on {cpu_model()}: loops " in capsys.readouterr().out


@pytest.mark.campaign
def test_configs_and_others_are_measured_and_compared_together():
    default = MATMUL.default_config(WORK, CPU)
    tried = [default, TemplateCandidate(MATMUL, WORK, default), HandMade("ikj")]
    trials = measured(tried)
    assert [trial.outcome for trial in trials] == ["ok"] * 3
    assert trials[0].config == trials[1].config == default
    assert trials[1].candidate is None
    assert trials[0].describe() == TemplateCandidate(MATMUL, WORK, default).describe()
    pool = LocalPool(MATMUL, WORK, CPU, threads=1)
    try:
        compared = pool.compare(tried, budget_s=0.05)
    finally:
        pool.close()
    assert [each.config for each in compared] == tried
    assert all(each.result.provenance.kind == "measured" for each in compared)


@dataclass(frozen=True)
class Alike(HandMade):
    """Breaks the contract: all loop orders have one stored form."""

    def to_json(self):
        return {"order": "any"}


@pytest.mark.campaign
def test_two_schedules_with_one_key_do_not_share_a_kernel():
    pool = LocalPool(MATMUL, WORK, CPU, threads=1)
    results = {}
    try:
        pool.measure([Alike("ikj"), Alike("jki")], None, results.__setitem__)
        first, second = pool.compare([Alike("ikj"), Alike("jki")], budget_s=0.05)
    finally:
        pool.close()
    outcomes = sorted(result.outcome for result in results.values())
    assert outcomes == ["ok", "refused"]  # which one comes first is up to the threads
    refused = next(result for result in results.values() if result.outcome == "refused")
    assert "equal values must mean equal schedules" in refused.message
    assert [first.result.outcome, second.result.outcome] == [results[n].outcome for n in (0, 1)]


@pytest.mark.campaign
def test_equal_configs_of_two_templates_do_not_share_a_kernel():
    """The operators have the same knobs, and so the same configs, but other schedules."""
    config = MATMUL.default_config(WORK, CPU)
    made = []

    def other(workload, target, chosen):
        made.append(chosen)
        return HandMade("ikj").schedule(target)

    foreign = TemplateCandidate(OtherTemplate(other), WORK, config)
    pool = LocalPool(MATMUL, WORK, CPU, threads=1)
    try:
        results = {}
        pool.measure([config, foreign], None, results.__setitem__)
        assert [results[n].outcome for n in range(2)] == ["ok", "ok"]
        compared = pool.compare([config, foreign], budget_s=0.05)
    finally:
        pool.close()
    assert [each.result.outcome for each in compared] == ["ok", "ok"]
    assert made == [config, config]


class OtherTemplate:
    """An operator of which only the template is used."""

    def __init__(self, template):
        self.template = template


def test_equal_candidates_have_equal_stored_forms():
    assert stored_form(HandMade("ikj")) == stored_form(HandMade("ikj"))
    assert stored_form(HandMade("ikj"))[0] != stored_form(HandMade("ijk"))[0]
    assert stored_form(Config({"a": 1}, "x")) == (Config({"a": 1}, "x"), None)


@pytest.mark.parametrize(
    "damage",
    [
        {"candidate": None},
        {"candidate": {"kind": "loop order", "text": "t"}},
        {"candidate": {"kind": "config", "text": "t", "data": 1}},
        {"candidate": {"kind": "", "text": "t", "data": 1}},
        {"candidate": {"kind": "loop order", "text": "t", "data": 1, "more": 2}},
        {"candidate": {"kind": "loop order", "text": "x" * 200_000, "data": {"order": "ikj"}}},
        {"candidate": {"kind": "loop order", "text": "\udc80", "data": {"order": "ikj"}}},
        {"candidate": {"kind": "loop order", "text": "t", "data": {"order": "jik"}}},
        {"config": {"values": {"a": 1}, "fingerprint": "x"}},
    ],
)
def test_a_damaged_candidate_is_refused(record, damage):
    config, stored = stored_form(HandMade("ikj"))
    data = record(config=config, candidate=stored).to_json()
    assert Record.from_json(json.loads(json.dumps(data))).candidate == stored
    with pytest.raises(TuningError, match=r"read a (record|candidate): "):
        Record.from_json({**data, **damage})


def test_what_only_knows_configs_refuses_others(record, tmp_path):
    config, stored = stored_form(HandMade("ikj"))
    with pytest.raises(TuningError) as caught:
        export_autotvm([record(config=config, candidate=stored)], tmp_path / "log")
    assert str(caught.value) == (
        "write an AutoTVM log: what was tried is no config of a template\n"
        "  got       loops ikj\n"
        "  expected  records of configs only"
    )
    table = ReplayTable("t", WORK, "x", {}, "2026-01-02", (Knob("a", (1,)),), (), ())
    with pytest.raises(TuningError) as caught:
        ReplayPool(table).measure([HandMade("ikj")], None, lambda *_: None)
    assert str(caught.value) == (
        "replay loops ikj: a table has configs only\n"
        "  got       a candidate of kind 'loop order'\n"
        "  expected  a config of its space"
    )


@pytest.mark.parametrize("data", [object(), float("nan"), {"a": {1, 2}}])
def test_what_json_cannot_write_is_refused(data, monkeypatch):
    monkeypatch.setattr(HandMade, "to_json", lambda self: data)
    with pytest.raises(TuningError) as caught:
        stored_form(HandMade("ikj"))
    assert str(caught.value).startswith(
        "store a candidate: its to_json returned a value that json cannot write\n  got       "
    )
    assert "expected  dict, list, str, int, float, bool or None" in str(caught.value)


def test_a_stored_candidate_is_read_back():
    stored = StoredCandidate.of(HandMade("ikj"))
    assert StoredCandidate.from_json(json.loads(json.dumps(stored.to_json()))) == stored


UNREADABLE = {
    "a number beyond JSON's readers": {"to_json": lambda self: 10**200},
    "too deep": {"to_json": lambda self: json.loads("[" * 64 + "]" * 64)},
    "half of a surrogate pair": {"to_json": lambda self: "\udc80"},
    "two equal keys": {"to_json": lambda self: {1: 2, "1": 3}},
    "a description that is no text": {"describe": lambda self: None},
    "a description that UTF-8 cannot encode": {"describe": lambda self: "\udc80"},
    "a long description": {"describe": lambda self: "x" * 100_001},
    "the kind of configs": {"kind": "config"},
    "no kind": {"kind": ""},
    "a kind that is no text": {"kind": 3},
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_what_could_not_be_read_back_is_not_stored(what):
    """Such a record would be in the database, and missing from every answer."""
    odd = type("Odd", (HandMade,), UNREADABLE[what])("ikj")
    with pytest.raises(TuningError, match=r"^store a candidate: "):
        stored_form(odd)


def test_the_deepest_candidate_is_read_back(record):
    deep = type("Deep", (HandMade,), {"to_json": lambda self: json.loads("[" * 63 + "]" * 63)})
    config, stored = stored_form(deep("ikj"))
    stored_record = record(config=config, candidate=stored)
    assert read_line(write_line(stored_record)) == stored_record


@pytest.mark.campaign
def test_a_candidate_that_cannot_be_stored_is_refused_and_the_others_are_measured():
    odd = type("Odd", (HandMade,), {"to_json": lambda self: float("nan")})
    results = {}
    pool = LocalPool(MATMUL, WORK, CPU, threads=1)
    try:
        pool.measure([odd("ikj"), HandMade("ikj")], None, results.__setitem__)
    finally:
        pool.close()
    assert [results[n].outcome for n in range(2)] == ["refused", "ok"]
    assert results[0].message.startswith("store a candidate: its to_json returned a value")
