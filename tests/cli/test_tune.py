"""``dlcompiler tune`` as a user calls it: what it prints, what it keeps, how it is interrupted."""

import json
import signal
import subprocess
import sys
import time

import pytest

from dlcompiler.autotune import RecordStore, Result
from dlcompiler.autotune.near_ties import NEAR_RATIO
from dlcompiler.cli import main
from dlcompiler.cli.progress import Progress, header, stage, status
from dlcompiler.views.tuning.headline import sentence
from dlcompiler.views.tuning.watched import watched
from tests.processes import take_signals

WORK = "gemm:8x16x8"


@pytest.mark.campaign
def test_json_has_what_was_measured(capsys, tmp_path):
    db = str(tmp_path / "records.db")
    options = ["--trials", "3", "--tuner", "random", "--seed", "1", "--json", "--db", db]
    assert main(["tune", WORK, *options]) == 0
    printed = capsys.readouterr()
    data = json.loads(printed.out)
    trials = data["trials"]
    assert [trial["outcome"] for trial in trials] == ["ok"] * 3
    times = [trial["seconds"] for trial in trials]
    assert data["best_seconds"] in times
    # Near ties are measured again in turn, so the best may be one of them.
    assert data["best_seconds"] <= NEAR_RATIO * min(times)
    assert data["default_seconds"] == trials[0]["seconds"]
    assert data["best_config"] == trials[times.index(data["best_seconds"])]["config"]
    assert data["space_size"] > 1000
    assert data["state"] == "finished"
    assert [trial["elapsed"] for trial in trials] == sorted(trial["elapsed"] for trial in trials)
    assert trials[-1]["elapsed"] <= data["elapsed"]
    assert data["phases"]["running_s"] > 0
    lines = printed.err.splitlines()
    assert lines[0].startswith("space ")
    assert lines[0].endswith("% illegal before measuring")
    assert lines[-1].startswith("finished: trial 3/3 · best ")
    with RecordStore(db) as store:
        assert [item.result.seconds for item in store.records()] == times

    assert main(["tune", WORK, *options[:-3], "--json", "--db", db, "--trials", "1"]) == 0
    printed = capsys.readouterr()
    assert f"starts warm: 3 records of {db} are known and not measured again" in printed.err
    again = json.loads(printed.out)
    assert again["known_before"] == 3
    assert again["default_seconds"] == data["default_seconds"]
    times.append(again["trials"][0]["seconds"])
    assert again["best_seconds"] in times
    assert again["best_seconds"] <= NEAR_RATIO * min(times)


@pytest.mark.campaign
def test_other_families_and_several_works(capsys):
    works = ["softmax:4x8", "elementwise:relu:64"]
    options = ["--trials", "1", "--tuner", "random", "--json", "--db", ":memory:"]
    assert main(["tune", *works, *options]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [item["work"] for item in data] == works
    assert all(item["best_seconds"] == item["default_seconds"] for item in data)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["gemm:1x2"], "expected  gemm:MxNxK"),
        (["gem:1x2x3"], "did you mean 'gemm'?"),
        ([WORK, "--trials", "0"], "trials is not a positive number"),
        ([WORK, "--seconds", "nan"], "seconds is not a positive number"),
        ([WORK, "--tuner", "xbg"], "did you mean 'xgb'?"),
        ([WORK, "--threads", "0"], "not a number of threads"),
        ([WORK, "--seed", "-1"], "seed is not a whole number"),
        ([WORK, "--target", "cpuu"], "no target has this name"),
        ([WORK, "--target", "wasm32"], "cannot be loaded here"),
        ([WORK, "--db", "/no/such/folder/x.db"], "there is no such folder"),
        ([WORK, "--threads", "2", "--into", "x.json"], "only configs found on one thread are kept"),
        ([WORK, "--early-stopping", "0"], "early_stopping is not a positive number"),
    ],
)
def test_nonsense_is_refused_before_anything_is_measured(arguments, problem, capsys):
    assert main(["tune", *arguments]) == 2
    printed = capsys.readouterr()
    assert problem in printed.err
    assert printed.out == ""


def test_a_file_that_configs_cannot_be_kept_in_is_refused_before_tuning(tmp_path, capsys):
    mine, new = tmp_path / "mine.json", tmp_path / "new.json"
    for text in ("[]", "notes", '{"version": 1, "configs": [5]}'):
        mine.write_text(text)
        assert main(["tune", WORK, "--into", str(mine)]) == 2
        assert "tune --into: not a file of tuned configs" in capsys.readouterr().err
        assert mine.read_text() == text
    assert main(["tune", WORK, "--into", "/dev/null"]) == 2
    assert "a device is there, which is never replaced" in capsys.readouterr().err
    assert main(["tune", WORK, "--into", str(new), "--db", f"{tmp_path}/./new.json"]) == 2
    assert "the data is read from this file" in capsys.readouterr().err
    assert not new.exists()


def test_a_damaged_database_is_refused_and_left_alone(tmp_path, capsys):
    path = tmp_path / "records.db"
    path.write_bytes(b"no database" * 100)
    assert main(["tune", WORK, "--db", str(path)]) == 2
    assert "the file is damaged or not a database" in capsys.readouterr().err
    assert path.read_bytes() == b"no database" * 100


def test_ctrl_c_stops_it_and_prints_what_it_has(tmp_path):
    db = tmp_path / "records.db"
    command = [sys.executable, "-m", "dlcompiler", "tune", "gemm:64x64x64", "--trials", "5000"]
    child = subprocess.Popen(
        [*command, "--tuner", "random", "--json", "--db", str(db)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=take_signals,
    )
    end = time.perf_counter() + 60
    while time.perf_counter() < end:
        if db.exists():
            with RecordStore(db, is_read_only=True) as store:
                if len(store) >= 2:
                    break
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert child.returncode == 130
    data = json.loads(out)
    assert data["state"] == "stopped"
    assert len(data["trials"]) >= 2
    assert data["best_seconds"] > 0
    assert err.splitlines()[-1].startswith("stopped: trial ")
    with RecordStore(db) as store:
        assert len(store) == len(data["trials"])
        assert store.check() == []


# -- progress -----------------------------------------------------------------------------------


class Measurer:
    def __init__(self, results):
        self.results = results

    def measure(self, config, best_s):
        return self.results.pop(0)

    def interrupt(self):
        pass

    def close(self):
        pass


@pytest.fixture
def run():
    from dlcompiler.autotune import tune
    from dlcompiler.space import Workload

    results = [
        Result("ok", (2e-3,)),
        Result("wrong answer"),
        Result("ok", (1e-3,)),
        Result("crashed"),
        Result("wrong answer"),
    ]
    workload = Workload.of("matmul", m=100, n=100, k=100)
    measurer = Measurer(results)
    return tune(workload, "x86-64-avx2", trials=5, tuner="random", measurer=measurer, block=True)


def test_the_state_of_a_run_in_a_line(run):
    text = status(run)
    assert text.startswith("trial 5/5 · best 1 ms (2 GFLOP/s) measured at 2 · ")
    assert text.endswith(" trials/s · 3 failed (1 crashed, 2 wrong answer)")
    assert header(run).startswith(f"space {run.plan.space.size:,} points, ")


@pytest.mark.parametrize(
    ("left", "text"), [(None, "estimating the time left"), (3.25, "about 3.25 s to go")]
)
def test_the_time_left_is_worded_as_in_the_dashboard(run, monkeypatch, left, text):
    monkeypatch.setattr(type(run), "is_running", True)
    monkeypatch.setattr(type(run), "state", "running")
    monkeypatch.setattr(type(run), "remaining_s", left)
    assert status(run).endswith(f" · {text}")
    assert sentence(watched(run)).endswith(f"; {text}")


def test_a_terminal_gets_a_bar(run, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with Progress(run) as shown:
        shown._said_at = 0.0
        shown._on_event(type("Event", (), {"kind": "trial", "run": run}))
    text = capsys.readouterr().err
    assert "█" in text or "#" in text
    assert text.splitlines()[-1].startswith("finished: trial 5/5")


def test_a_stage_is_a_line_or_a_bar(monkeypatch, capsys):
    with stage("build\x1b[2J") as progress:
        progress(1, 3)
    assert capsys.readouterr().err == "build\\x1b[2J\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with stage("build") as progress:
        progress(1, 3)
    assert "build: 1 of 3" in capsys.readouterr().err
