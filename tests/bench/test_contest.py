"""A contest verifies, measures all who take part, and says why others do not."""

import dataclasses
import json

import numpy as np
import pytest

from dlcompiler.bench import contest, worker
from dlcompiler.bench.contest import Bench, Settings
from dlcompiler.bench.document import has_wrong_results, measure_tables, measure_works
from dlcompiler.bench.goals import MeanRatio, WorstRatio
from dlcompiler.bench.implementations import implementation_of
from dlcompiler.bench.memory import BOUND, EXPECTED
from dlcompiler.bench.peers import Absent, Offer
from dlcompiler.bench.suites import Table
from dlcompiler.bench.works import parse_work
from dlcompiler.cli import main
from dlcompiler.errors import InternalError, ScheduleError, TuningError, UserError
from dlcompiler.ops import Operator
from dlcompiler.runtime.workers import Outcome

QUICK = {"budget_s": 0.0, "sample_s": 1e-5, "rounds": (6, 6)}
GEMM = parse_work("gemm:8x16x4")


@pytest.fixture(scope="module")
def bench():
    with Bench(Settings(peers=("numpy",), limits=QUICK)) as bench:
        yield bench


def test_a_row_has_what_the_document_promises(bench):
    (row,) = [r.to_json() for r in bench.measure(GEMM) if r.row == "plain"]
    json.dumps(row)
    assert (row["work"], row["row"], row["verified"]) == ("gemm:8x16x4", "plain", True)
    assert row["ours_seconds"] > 0
    assert row["peers"].keys() == {"numpy"}
    assert row["best_peer"] == "numpy"
    low, high = row["interval"]
    assert 0 < low <= row["ratio"] <= high
    assert row["rounds"] == 6
    assert 0 < row["worst_of_bound"] <= 1
    assert row["of_fma_peak"] > 0


def test_weights_may_be_packed_within_the_call(bench):
    rows = {result.row: result for result in bench.measure(parse_work("conv2d:1x5x6x7,19,3,1,1"))}
    assert {row: (r.verified, r.reason) for row, r in rows.items()} == {
        "plain": (True, ""),
        "prepacked": (True, ""),
    }


def test_a_wrong_result_is_no_measurement(bench, monkeypatch):
    right = implementation_of(GEMM, "plain")

    def reference(workload, seed):
        found = right.operator.reference(workload, seed)
        return dataclasses.replace(found, expected={"C": found.expected["C"] + 1})

    operator = dataclasses.replace(right.operator, reference=reference)
    wrong = dataclasses.replace(right, operator=operator)
    monkeypatch.setattr(contest, "implementation_of", lambda work, row, **how: wrong)
    result = bench.measure_row(GEMM, "plain")
    assert result.verified is False
    assert "128 of 128 elements are wrong" in result.reason
    assert result.to_json()["ours_seconds"] is None


def test_a_work_without_an_operator_says_so(bench, monkeypatch):
    monkeypatch.setattr("dlcompiler.ops.REGISTRY", {})
    result = bench.measure_row(GEMM, "plain")
    assert result.verified is None
    assert "no operator" in result.reason


OTHER = parse_work("gemm:4x4x4")


def _failing_for(work, error):
    """Return `implementation_of`, which fails for one work."""

    def failing(asked, row, **how):
        if asked == work:
            raise error
        return implementation_of(asked, row, **how)

    return failing


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TuningError("make a config", "the values do not go together"), "make a config: the val"),
        *(
            pytest.param(error, text, marks=pytest.mark.campaign)
            for error, text in (
                (InternalError("lower main", "no value"), "lower main: no value"),
                (ValueError("min() arg is an empty sequence"), "ValueError: min() arg is an empty"),
                (MemoryError("no 8 TiB"), "MemoryError: no 8 TiB"),
            )
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_work_that_fails_does_not_end_the_bench(error, reason, monkeypatch):
    monkeypatch.setattr(contest, "implementation_of", _failing_for(OTHER, error))
    settings = Settings(peers=("numpy",), judged_only=True, limits=QUICK)
    said = []
    found = measure_works([OTHER, GEMM, OTHER, GEMM], settings, said.append)
    rows = found["results"]
    assert [row["verified"] for row in rows] == [False, True, False, True]
    assert rows[0]["reason"].startswith(reason)
    assert reason in said[1]
    assert has_wrong_results(found)
    json.dumps(found)


def test_a_kernel_that_cannot_be_built_is_a_row_that_says_so(bench, monkeypatch):
    def template(self, workload, target, config):
        raise ScheduleError("split of i", "the factor is no number")

    monkeypatch.setattr(Operator, "template", template)
    result = bench.measure_row(GEMM, "plain")
    assert result.verified is False
    assert result.reason.startswith("split of i: the factor is no number")


@pytest.mark.campaign
def test_a_table_with_a_work_that_fails_is_judged(monkeypatch):
    monkeypatch.setattr(contest, "implementation_of", _failing_for(OTHER, ValueError("no")))
    table = Table("two", "Two", {"good": GEMM, "bad": OTHER}, (MeanRatio(0.1), WorstRatio(0.1)))
    settings = Settings(peers=("numpy",), judged_only=True, limits=QUICK)
    found = measure_tables([table], settings, lambda text: None)
    assert [row["verified"] for row in found["results"]] == [True, False]
    (judged,) = found["tables"]
    assert [goal["holds"] for goal in judged["goals"]] == [False, False]
    assert [goal["note"] for goal in judged["goals"]] == ["1 of 2 have no ratio: bad"] * 2


def test_a_peer_that_is_not_installed_is_absent(monkeypatch):
    monkeypatch.setattr(contest, "missing", lambda name: "not installed")
    with Bench(Settings(peers=("torch",), limits=QUICK)) as bench:
        row = bench.measure_row(GEMM, "plain").to_json()
    assert row["verified"] is True
    assert row["absent"] == {"torch": "not installed"}
    assert row["peers"] == {}
    assert row["ratio"] is None


def test_an_unknown_peer_is_refused():
    with pytest.raises(UserError, match="no such peer"):
        Bench(Settings(peers=("blas",)))


def test_a_peer_that_crashes_costs_only_itself(bench, monkeypatch):
    call = bench._worker.call

    def crashing(entry, params=None, **options):
        if entry == "contest" and params["peers"]:
            return Outcome("crashed", 0.0, message="ended by SIGSEGV")
        return call(entry, params, **options)

    monkeypatch.setattr(bench._worker, "call", crashing)
    result = bench.measure_row(GEMM, "plain")
    assert result.verified is True
    assert result.absent == {"numpy": "in a process that was lost: ended by SIGSEGV"}


@pytest.mark.campaign
def test_one_thread_may_be_another_operators_work(monkeypatch):
    made = {1: implementation_of(GEMM, "plain"), 2: implementation_of(GEMM, "prepacked")}
    monkeypatch.setattr(
        contest, "implementation_of", lambda work, row, threads, **how: made[threads]
    )
    with Bench(Settings(peers=("numpy",), threads=2, limits=QUICK)) as bench:
        row = bench.measure_row(GEMM, "prepacked").to_json()
    assert row["verified"] is True, row["reason"]
    assert row["speedup"] > 0
    assert row["fma_peak_speedup"] > 0


def test_works_that_move_memory_meet_baselines(bench):
    for text in ("elementwise:relu:4096", "elementwise:add:4096"):
        row = bench.measure_row(parse_work(text), "plain").to_json()
        assert row["verified"] is True, row["reason"]
        assert {"numpy", "stream"} <= row["peers"].keys()
        assert ("memcpy" in row["peers"]) == (text != "elementwise:add:4096")
        assert row["peers"].keys() | row["absent"].keys() == {"numpy", "stream", "memcpy"}


ARRAYS = {EXPECTED + "C": np.ones(4), BOUND + "C": np.full(4, 1e-6)}


def offer(value, way="fake"):
    out = np.zeros(4, np.float32)
    return Offer(way, lambda: out.fill(value), lambda: out)


def test_a_peer_that_computes_something_else_does_not_count():
    with pytest.raises(Absent, match="computes something else"):
        worker._fastest([offer(2.0)], ARRAYS, 1)
    chosen = worker._fastest([offer(2.0, "wrong"), offer(1.00001, "right")], ARRAYS, 1)
    assert chosen.way == "right"
    assert 1 < chosen.difference < 20


def test_of_two_ways_one_is_measured():
    assert worker._fastest([offer(1.0, "a"), offer(1.0, "b")], ARRAYS, 1).way in "ab"


def test_nan_is_wrong_where_it_is_not_expected():
    with pytest.raises(Absent, match="something else"):
        worker._fastest([offer(np.nan)], ARRAYS, 1)


@pytest.mark.campaign
def test_the_command_measures_the_other_works_and_fails(monkeypatch, capsys):
    monkeypatch.setattr(
        contest, "implementation_of", _failing_for(OTHER, TuningError("select", "none"))
    )
    options = ["--peers", "numpy", "--threads", "1", "--seconds", "0.01", "--rows", "judged"]
    assert main(["bench", OTHER.text, GEMM.text, *options]) == 1
    printed = capsys.readouterr()
    assert f"{OTHER.text} ({OTHER.judged}): select: none" in printed.err
    assert any(line.startswith(GEMM.text) and "numpy" in line for line in printed.out.splitlines())
