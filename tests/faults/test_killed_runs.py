"""A run killed at a hundred random moments loses no acknowledged record and ends the same.

D1 of the list of faults. Costs about 20 s; a share of it as `tests/share.py` says.
"""

import runpy
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from dlcompiler.autotune import RecordStore
from tests.share import cases_of, share_of

PROGRAM = Path(__file__).with_name("killed_runs.py")
LIVES = share_of(100)
TRIALS = 20 * LIVES + 40
"""More than the lives come to: in 0.05 s a run measures at most three batches of eight."""
TRIALS_OF_ONE = 96


@pytest.fixture(scope="module")
def program():
    return runpy.run_path(str(PROGRAM))


@pytest.mark.campaign
def test_a_run_killed_again_and_again_comes_to_the_same_end(folder, program):
    db, journal = folder / "records.db", folder / "journal"
    command = [sys.executable, PROGRAM, db, journal, LIVES, 1, TRIALS]
    subprocess.run(list(map(str, command)), check=True, timeout=100)
    with sqlite3.connect(db) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with RecordStore(db) as store:
        stored = [str(sorted(item.config.values.items())) for item in store.records()]
        assert store.check() == []
    lines = [line.split(" ", 1) for line in journal.read_text().splitlines()]
    heard = {text for kind, text in lines if kind == "h"}
    measured = Counter(text for kind, text in lines if kind == "m")

    assert heard <= set(stored)
    assert len(stored) == len(set(stored))
    # What a kill can cost: the batch that was being measured.
    assert sum(measured.values()) - len(measured) <= LIVES * program["BATCH"]
    assert max(measured.values()) <= LIVES

    resumed = program["start"](db, TRIALS).wait()
    whole = program["start"](folder / "whole.db", TRIALS).wait()
    assert resumed.state == "finished"
    assert resumed.prior == ()
    assert [trial.config for trial in resumed.trials] == [trial.config for trial in whole.trials]
    assert resumed.best.config == whole.best.config
    assert len(resumed.store) == len(whole.store) == TRIALS


def test_one_kill_repeats_at_most_one_batch(folder, program):
    for seed in cases_of(range(3)):
        db, journal = folder / f"{seed}.db", folder / f"{seed}.journal"
        command = [sys.executable, PROGRAM, db, journal, 1, seed, TRIALS_OF_ONE]
        subprocess.run(list(map(str, command)), check=True)
        written = journal.read_text().splitlines() if journal.exists() else []
        measured = {line for line in written if line.startswith("m")}
        with RecordStore(db) as store:
            known = len(store)
        again = []
        run = program["start"](
            db, TRIALS_OF_ONE, lambda kind, text, log=again: log.append(f"{kind} {text}")
        )
        run.wait()
        repeated = measured & {line for line in again if line.startswith("m")}
        assert len(repeated) <= program["BATCH"]
        assert len(run.store) == TRIALS_OF_ONE
        assert known <= TRIALS_OF_ONE
