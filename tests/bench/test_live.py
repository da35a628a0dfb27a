"""Live runs are judged by what they are to reach."""

from dlcompiler.bench.intervals import Ratio
from dlcompiler.bench.live import LiveRun, judge_live


def run(name, **changed):
    values = {
        "tuner": "xgb", "seed": 0, "trials": 200, "best_s": 1e-3, "best_at": 7,
        "default_s": 2e-3, "elapsed_s": 20.0, "trials_per_s": 10.0, "own_share": 0.1,
        "outcomes": {"ok": 200}, "overlaps": True, "hit_s": 1.05e-3, "peer": "numpy",
        "ratio": Ratio(1.1, 1.05, 1.2),
    } | changed  # fmt: skip
    return LiveRun(name, **values)


def holding(runs):
    return [verdict.holds for verdict in judge_live(runs)]


def test_all_goals_are_reached():
    assert holding([run("gemm-512x512x512"), run("softmax-64x1000", ratio=None)]) == [True] * 4


def test_each_goal_is_missed_by_its_own_number():
    good = run("C2")
    assert holding([good, run("C6", ratio=Ratio(0.99, 0.9, 1.0))]) == [False, True, True, True]
    assert holding([good, run("C6", best_s=1.2e-3)]) == [True, False, True, True]
    assert holding([good, run("C6", own_share=0.16)]) == [True, True, False, True]
    assert holding([good, run("C6", trials_per_s=7.9)]) == [True, True, True, False]
    assert holding([good, run("C6", trials_per_s=7.9, overlaps=False)]) == [True] * 4
    assert holding([good, run("C6", trials_per_s=1.0, best_s=6e-3, hit_s=7e-3)]) == [True] * 4


def test_what_was_not_measured_is_not_reached():
    verdicts = judge_live([run("C2", ratio=None)])
    assert not verdicts[0].holds
    assert verdicts[0].note == "not measured"


def test_a_run_says_what_it_found():
    text = str(run("C2"))
    assert "best 1 ms (analytic 2 ms) at trial 7 of 200" in text
    assert "1.10 [1.05, 1.20] × numpy" in text
