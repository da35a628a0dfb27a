"""The suite tuning: counting trials to a hit, what the goals say, and the command."""

import json
from dataclasses import replace

import pytest

from dlcompiler.autotune.pools.replay import ReplayTable, TableRow
from dlcompiler.autotune.tuners import tuner
from dlcompiler.bench.tables import path_of, subject_of
from dlcompiler.bench.tuning import Replayed, features_of_table, judge, load_tables, trials_to_hit
from dlcompiler.cli import main
from dlcompiler.errors import UserError


def made(name="gemm:48x48x48", step=40):
    """Return a table whose times follow from the knobs."""
    subject = subject_of(name)
    space = subject.space
    rows = []
    for point in list(space.allowed())[::step]:
        far = sum(abs(digit - 2) for digit in space.digits([point])[0].tolist())
        seconds = 1e-3 * (1 + 0.3 * far)
        rows.append(TableRow(point, "ok", seconds, seconds * 0.99, seconds * 1.01))
    rules = tuple(rule.rule for rule in space.filters)
    return ReplayTable(
        subject.name, subject.workload, subject.key, {"cpu": "x"}, "2026-01-02",
        space.knobs, rules, tuple(rows),
    )  # fmt: skip


TABLE = made()


def test_trials_are_counted_to_the_first_hit():
    hits = TABLE.hits()
    count, seconds = trials_to_hit(TABLE, tuner("grid", TABLE.space, 0, points=TABLE.points))
    assert count == 1 + min(TABLE.points.index(point) for point in hits)
    assert seconds > 0


def test_a_tuner_that_ends_without_a_hit_counts_as_the_whole_table():
    class Idle:
        def propose(self, count):
            return ()

    assert trials_to_hit(TABLE, Idle())[0] == len(TABLE.rows)


@pytest.mark.campaign
def test_the_features_are_knobs_and_programs_while_the_space_is_the_same():
    features, note = features_of_table(TABLE)
    assert note == ""
    assert {"tile_m", "program.compute cycles"} <= set(features.columns)
    changed = replace(TABLE, rules=(*TABLE.rules, "another"))
    features, note = features_of_table(changed)
    assert "program.compute cycles" not in features.columns
    assert "the operator's space has changed since" in note


def found(**medians):
    """Return results by table and tuner: ``T_random=200``."""
    return [Replayed(*key.split("_"), (median,) * 3, 0.0) for key, median in medians.items()]


def test_the_goals_of_hard_tables():
    one, worst, genetic, elsewhere, _ = judge(
        found(A_random=300, A_xgb=60, A_genetic=100, B_random=200, B_xgb=80, B_genetic=79)
    )
    assert one.holds
    assert one.got == pytest.approx((0.2 * 0.4) ** 0.5)
    assert worst.holds
    assert worst.note == "B"
    assert not genetic.holds
    assert genetic.note == "B"
    assert elsewhere.note == "no such table"
    assert not elsewhere.holds


def test_the_goal_of_easy_tables():
    *_, elsewhere, _ = judge(found(A_random=30, A_xgb=31, B_random=10, B_xgb=5))
    assert not elsewhere.holds
    assert (elsewhere.got, elsewhere.note) == (pytest.approx(31 / 30), "A")


def test_the_goal_of_experience():
    cold = found(C9_random=200, C9_xgb=80)
    warm = Replayed("C9", "xgb after C2, C6", (40,), 0.0)
    assert judge([*cold, warm])[-1].holds
    assert not judge([*cold, replace(warm, trials=(41,))])[-1].holds
    assert judge(cold)[-1].note == "not measured: tables are missing"


def test_a_start_that_hits_at_once_cannot_be_halved():
    cold = found(C9_random=200, C9_xgb=1)
    warm = Replayed("C9", "xgb after C2, C6", (1,), 0.0)
    assert judge([*cold, warm])[-1].holds
    assert not judge([*cold, replace(warm, trials=(2,))])[-1].holds


def test_the_command_replays_prints_and_keeps(tmp_path, capsys):
    TABLE.save(path_of(tmp_path, TABLE.name))
    command = ["bench", "--suite", "tuning", "--tables", str(tmp_path), "--seeds", "3"]
    assert main([*command, "--tuners", "random,xgb", "--save", str(tmp_path / "found.json")]) == 0
    text = capsys.readouterr().out
    assert "gemm-48x48x48: " in text
    assert "elsewhere: no more trials than random" in text
    document = json.loads((tmp_path / "found.json").read_text())
    assert [row["tuner"] for row in document["results"]] == ["random", "xgb"]
    assert all(len(row["trials"]) == 3 for row in document["results"])
    assert document["tables"][0]["points"] == len(TABLE.rows)
    assert len(document["goals"]) == 5


def test_equal_seeds_give_equal_trials():
    features, _ = features_of_table(TABLE)
    counts = {
        trials_to_hit(TABLE, tuner("xgb", TABLE.space, 1, points=TABLE.points, features=features))[
            0
        ]
        for _ in range(2)
    }
    assert len(counts) == 1


@pytest.mark.campaign
def test_experience_is_replayed_where_the_tables_are_there(tmp_path, capsys):
    for name in ("C2", "C6", "C9"):
        made(name, 300).save(path_of(tmp_path, name))
    command = ["bench", "--suite", "tuning", "--tables", str(tmp_path), "--seeds", "1", "--json"]
    assert main([*command, "--tuners", "xgb"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["results"][-1]["tuner"] == "xgb after C2, C6"
    assert document["goals"][-1]["got"] is not None


def test_a_folder_without_tables_is_refused(tmp_path):
    with pytest.raises(UserError) as error:
        load_tables(tmp_path)
    assert str(error.value) == (
        f"bench --suite tuning: there are no replay tables\n  got       {tmp_path}\n"
        f"  hint      dlcompiler bench --measure-table all --into {tmp_path}"
    )
