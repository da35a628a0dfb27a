"""The tables hold the works of the targets, and are judged by what was measured."""

import pytest

from dlcompiler.bench.document import check_mergeable, merged
from dlcompiler.bench.goals import MeanRatio, PeakFraction, Speedup, WorstRatio, judge
from dlcompiler.bench.intervals import Ratio
from dlcompiler.bench.page import cells, page, verdict_text
from dlcompiler.bench.peers import versions
from dlcompiler.bench.results import Contest, PeerResult, Result
from dlcompiler.bench.suites import TABLES, tables_of
from dlcompiler.bench.works import parse_work
from dlcompiler.errors import UserError
from dlcompiler.runtime.timing import Timing

WORK = parse_work("gemm:8x8x8")


def result(ratio, of_peak=0.5, speedup=None, verified=True):
    peers = {
        "numpy": PeerResult(Timing((ratio,)), "", Ratio(ratio, ratio, ratio)),
        "torch": PeerResult(Timing((2 * ratio,)), "", Ratio(2 * ratio, ratio, ratio)),
    }
    alone = None if speedup is None else Timing((speedup,))
    measured = Contest(
        Timing((1.0,)), peers, Ratio(of_peak, of_peak, of_peak), 100.0, 0.1, "matmul", alone=alone,
        peak_speedup=None if speedup is None else 2.0,
    )  # fmt: skip
    return Result(WORK, "plain", 1, verified, "", measured if verified else None)


def verdict(goal, **rows):
    (found,) = judge([goal], rows)
    return found


def test_means_and_worst_rows():
    rows = {"a": result(0.5), "b": result(2.0)}
    assert verdict(MeanRatio(1.0), **rows).got == pytest.approx(1.0)
    assert not verdict(MeanRatio(1.1), **rows).holds
    assert verdict(MeanRatio(1.1, ("b",)), **rows).holds
    worst = verdict(WorstRatio(0.95), **rows)
    assert (worst.holds, worst.got, worst.note) == (False, 0.5, "a")
    assert verdict(WorstRatio(0.95, ("torch",)), **rows).holds


def test_a_row_without_a_number_is_no_success():
    rows = {"a": result(2.0), "b": result(0.0, verified=False)}
    for goal in (MeanRatio(1.0), WorstRatio(0.5), Speedup(0.85)):
        assert not verdict(goal, **rows).holds
    assert "1 of 2 have no ratio: b" in verdict(MeanRatio(1.0), **rows).note
    assert not verdict(PeakFraction(0.9, "b"), **rows).holds


def test_the_fraction_of_the_peak_may_be_the_best_peers():
    assert verdict(PeakFraction(0.9, "a"), a=result(0.9, of_peak=0.95)).holds
    assert verdict(PeakFraction(0.9, "a"), a=result(1.01, of_peak=0.8)).holds
    assert not verdict(PeakFraction(0.9, "a"), a=result(0.9, of_peak=0.8)).holds


def test_the_speed_up_is_compared_with_the_peaks():
    assert verdict(Speedup(0.85), a=result(1.0, speedup=1.8)).got == pytest.approx(0.9)
    assert not verdict(Speedup(0.85), a=result(1.0, speedup=1.2)).holds


def test_the_suites():
    by_name = {table.name: table for table in TABLES}
    assert len(by_name["gemm"].works) == 7
    assert list(by_name["conv2d"].works) == [f"C{n}" for n in range(1, 13)]
    assert by_name["conv2d"].works["C4"].text == "conv2d:1x64x56x56,128,3,2,1"
    assert by_name["depthwise"].works["D9"].text == "depthwise:1x1024x7x7,3,1,1"
    assert len(by_name["cores"].works) == 19
    heldout = tables_of("heldout", seed=3, count=2)
    assert [len(table.works) for table in heldout] == [2] * 5
    assert {table.name for table in tables_of("paper")} > set(by_name)
    with pytest.raises(UserError, match="no such suite"):
        tables_of("heldout", count=0)


def table(name, goals=()):
    return {"name": name, "title": name, "threads": 1, "date": "2026-01-01", "goals": goals}


def document(*names, value=1):
    return {
        "version": 1,
        "peer_versions": {"numpy": "2.0"},
        "tables": [table(name) for name in names],
        "results": [{"table": name, "value": value} for name in names],
    }


def test_tables_that_were_not_measured_again_stay():
    both = merged(document("fused", "gemm"), document("gemm", value=2))
    assert [t["name"] for t in both["tables"]] == ["gemm", "fused"]
    assert {row["table"]: row["value"] for row in both["results"]} == {"gemm": 2, "fused": 1}


def test_tables_that_stay_must_belong_to_the_new_ones():
    saved = {**document("fused", "gemm"), "peer_versions": versions(["numpy"])}
    saved["machine"] = {"cpu": "some; 2 cores"}
    gemm, everything = tables_of("gemm"), tables_of("paper")
    check_mergeable(saved, gemm, ["numpy"], "some; 1 core")
    check_mergeable({**saved, "peer_versions": {}}, everything, ["numpy"], "another")
    with pytest.raises(UserError, match="another peer_versions"):
        check_mergeable({**saved, "peer_versions": {}}, gemm, ["numpy"], "some")
    with pytest.raises(UserError, match="another cpu"):
        check_mergeable(saved, gemm, ["numpy"], "another")


def test_a_page_shows_rows_goals_and_what_was_not_measured():
    rows = [
        {"table": "gemm", "label": "good", **result(1.25).to_json()},
        {"table": "gemm", "label": "bad", **result(1.0, verified=False).to_json()},
    ]
    goals = [{"text": "none < 0.95", "got": 1.25, "holds": True, "note": ""}]
    document = {
        "date": "2026-01-02",
        "machine": {"cpu": "some"},
        "peer_versions": {"numpy": "2.0"},
        "results": rows,
        "tables": [table("gemm", goals)],
    }
    text = page(document)
    assert (
        "| good | **plain** | 1 s | 0 s | numpy | 1.25 s | 1.25 [1.25, 1.25] | 0.50 | matmul |"
        in text
    )
    assert "WRONG" in text
    assert "- yes none < 0.95: 1.25" in text
    assert "peers: numpy 2.0" in text
    assert verdict_text({**goals[0], "holds": False}).startswith("NO ")
    assert len(cells(rows[0])) == 8
