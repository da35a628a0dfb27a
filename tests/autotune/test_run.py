"""Runs with a measurer that needs no machine: progress, ends of every kind, records, repeats."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from dlcompiler.autotune import RecordStore, Result, tune
from dlcompiler.errors import TuningError
from dlcompiler.ops import operator
from dlcompiler.space import Workload
from tests.static_pictures import pictures_in

WORKLOAD = Workload.of("matmul", m=64, n=64, k=64)
FAULTS = {
    3: Result("refused", message="split C.i: the factor must be positive"),
    5: Result("build error", message="LLVM says no"),
    6: Result("run timeout", message="no answer within 10 s"),
    7: Result("crashed", message="ended by SIGSEGV"),
    9: Result("wrong answer", message="C[0, 0] is nan, expected 3"),
}

FASTEST = Result("ok", (1e-6,) * 3)


def start(measurer, trials=24, **options):
    options = {"tuner": "random", **options}
    return tune(WORKLOAD, "x86-64-avx2", trials=trials, measurer=measurer, **options)


# -- progress -----------------------------------------------------------------------------------


def test_a_run_tries_the_default_first_and_then_searches(fake):
    measurer = fake()
    run = start(measurer).wait()
    default = run.plan.operator.default_config(run.plan.workload, run.plan.target)
    assert run.state == "finished"
    assert [trial.index for trial in run.trials] == list(range(24))
    assert run.trials[0].config == default
    assert len({trial.point for trial in run.trials}) == 24
    assert run.best.seconds == min(trial.seconds for trial in run.trials)
    assert measurer.is_closed
    assert not run.is_running


def test_a_workload_whose_parameters_are_named_one_by_one_is_taken_as_it_is(fake):
    workload = operator("depthwise_conv2d").workload(c=8, h=9, w=9, kernel=3, padding=1)
    run = tune(workload, "x86-64-avx2", trials=1, measurer=fake(faults={0: FASTEST})).wait()
    assert run.plan.workload == workload
    assert len(run.trials) == 1


def test_it_returns_at_once_and_trials_come_while_it_goes_on(fake, wait_for):
    run = start(fake(seconds=0.05))
    assert run.state == "running"
    wait_for(lambda: len(run.trials) >= 2)
    assert run.is_running
    assert run.trials_per_second > 0
    run.stop()
    run.wait(60)


def test_every_failure_is_a_trial_with_its_reason(fake):
    run = start(fake(faults=FAULTS)).wait()
    assert len(run.trials) == 24
    assert dict(run.counts) == {
        "ok": 19, "refused": 1, "build error": 1, "run timeout": 1, "crashed": 1, "wrong answer": 1
    }  # fmt: skip
    assert run.trials[7].result.message == "ended by SIGSEGV"
    assert run.trials[7].seconds is None
    assert run.best.outcome == "ok"
    assert [item.result for item in run.store.records()] == [t.result for t in run.trials]


def test_the_best_so_far_only_rises(fake):
    series = start(fake(faults=FAULTS)).wait().best_so_far()
    assert series[0][0] == 0
    assert series == sorted(series)
    assert [rate for _, rate in series] == sorted(rate for _, rate in series)


def test_when_everything_fails_there_is_no_best(fake):
    faults = {n: Result("crashed", message="ended by SIGILL") for n in range(24)}
    run = start(fake(faults=faults)).wait()
    assert run.best is None
    with pytest.raises(TuningError) as error:
        run.best_schedule()
    assert "got       24 trials: {'crashed': 24}" in str(error.value)


def test_the_best_schedule_is_the_templates(fake):
    run = start(fake(), trials=4).wait()
    schedule, args = run.best_schedule()
    assert [tensor.name for tensor in args] == ["A", "B", "C"]
    assert len(schedule.trace) > 10


def test_what_it_says_of_itself(fake):
    run = start(fake(faults=FAULTS), trials=12).wait()
    text = repr(run)
    assert text.startswith("TuningRun(matmul(m=64, n=64, k=64, dtype=float32): finished, 12/12")
    assert text.endswith("1 refused, 1 build error, 1 run timeout, 1 crashed, 1 wrong answer)")
    assert "GFLOP/s" in repr(run.best)
    assert pictures_in(run._repr_html_())


# -- repeats ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tuner", ["random", "xgb"])
def test_equal_seeds_and_measurements_give_equal_trials(fake, tuner):
    runs = [start(fake(faults=FAULTS), 40, tuner=tuner, seed=seed).wait() for seed in (7, 7, 8)]
    first, second, other = ([trial.config for trial in run.trials] for run in runs)
    assert first == second
    assert first != other


@pytest.mark.campaign
def test_the_model_beats_chance(fake):
    best = {
        tuner: sum(start(fake(), 100, tuner=tuner, seed=n).wait().best.seconds for n in range(3))
        for tuner in ("xgb", "random")
    }
    assert best["xgb"] <= best["random"]


# -- ends ---------------------------------------------------------------------------------------


def test_stop_ends_a_run_without_its_last_trial(fake, wait_for):
    stuck = fake(seconds=0.1)
    run = start(stuck)
    wait_for(lambda: len(run.trials) == 2)
    stuck.seconds = 60.0
    time.sleep(0.15)
    asked = time.perf_counter()
    run.stop()
    assert run.state in ("stopping", "stopped")
    run.wait(60)
    assert time.perf_counter() - asked < 30  # the trial would take 60
    assert run.state == "stopped"
    assert {trial.outcome for trial in run.trials} == {"ok"}
    assert len(run.store.records()) == len(run.trials)
    run.stop()  # once more does nothing
    assert run.state == "stopped"


def test_an_interrupt_stops_a_run_and_is_raised_again(fake, monkeypatch):
    run = start(fake(seconds=0.05), trials=1000)
    waits = iter([KeyboardInterrupt()])
    wait = run.wait

    def interrupted(timeout_s=None):
        for error in waits:
            raise error
        return wait(timeout_s)

    monkeypatch.setattr(type(run), "wait", lambda self, timeout_s=None: interrupted(timeout_s))
    with pytest.raises(KeyboardInterrupt):
        run.wait_or_stop()
    assert run.state == "stopped"


def test_the_seconds_end_a_run(fake):
    run = start(fake(seconds=0.05), trials=1000, seconds=0.3, tuner="random").wait(60)
    assert run.state == "finished"
    assert 1 <= len(run.trials) <= 8
    assert run.elapsed_s < 30  # all trials would take 50


def test_a_space_may_be_exhausted(fake):
    run = tune(Workload.of("matmul", m=1, n=8, k=1), "x86-64-avx2", trials=1000, measurer=fake())
    run.wait(60)
    assert run.state == "finished"
    assert len(run.trials) == len(list(run.plan.space.allowed()))


def test_ctrl_c_ends_a_blocking_run_and_keeps_its_trials(fake, ctrl_c):
    timer = threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    begun = time.perf_counter()
    run = start(fake(seconds=0.05), trials=1000, tuner="random", block=True)
    timer.join()
    assert time.perf_counter() - begun < 20.0  # all trials would take 50
    assert run.state == "stopped"
    assert len(run.trials) >= 3
    assert len(run.store.records()) == len(run.trials)


def test_a_measurer_that_breaks_fails_the_run_and_keeps_its_trials(fake):
    run = start(fake(faults={5: RuntimeError("no worker")}))
    with pytest.raises(TuningError) as error:
        run.wait()
    assert str(error.value) == (
        "tune matmul(m=64, n=64, k=64, dtype=float32): the run failed after 5 trials\n"
        "  because   no worker\n"
        "  hint      its trials are in run.trials"
    )
    assert run.state == "failed"
    assert len(run.store.records()) == 5
    assert "RuntimeError: no worker" in run.note


def test_a_database_that_breaks_fails_the_run_and_keeps_its_trials(fake, tmp_path):
    store = RecordStore(tmp_path / "records.db")
    measurer = fake(faults={4: Result("ok", (1.0,))})
    run = start(measurer, db=store, listeners=[lambda e: e.run.trials[3:] and store.close()])
    with pytest.raises(TuningError, match="the run failed after 4 trials"):
        run.wait()
    assert len(run.trials) == 4


# -- listeners ----------------------------------------------------------------------------------


def test_listeners_are_told_of_trials_and_of_the_end(fake):
    heard = []
    run = start(fake(), trials=5, listeners=[heard.append]).wait()
    assert [event.kind for event in heard] == [
        "round", "trial", "round", "round", *["trial"] * 4, "round", "ended"
    ]  # fmt: skip
    assert [event.trial for event in heard if event.trial] == list(run.trials)


def test_a_listener_that_fails_is_left_out(fake):
    heard = []

    def broken(event):
        raise ValueError("oops")

    run = start(fake(), trials=5, listeners=[broken, heard.append]).wait()
    assert len(run.trials) == 5
    assert len(heard) == 10
    assert run.note == "a listener failed: ValueError: oops"


def test_without_xgboost_the_run_says_so(fake, monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    run = start(fake(), trials=5, tuner="xgb").wait()
    assert run.note.startswith("a ridge model is used: xgboost is not installed")
    assert len(run.trials) == 5


# -- records ------------------------------------------------------------------------------------


def test_a_second_run_learns_from_the_records_of_the_first(fake, tmp_path):
    path = tmp_path / "records.db"
    first = start(fake(faults=FAULTS), trials=20, db=path).wait()
    second = start(fake(), trials=20, db=path, seed=1).wait()
    assert [trial.config for trial in second.prior] == [trial.config for trial in first.trials]
    assert not {t.point for t in first.trials} & {t.point for t in second.trials}
    assert second.best.seconds <= first.best.seconds
    assert len(second.store.records()) == 40


def test_records_of_another_machine_or_thread_count_are_not_used(fake, tmp_path):
    path = tmp_path / "records.db"
    start(fake(), trials=5, db=path).wait()
    other = start(fake(), trials=5, db=path, threads=2).wait()
    assert other.prior == ()


KILLED = textwrap.dedent(
    """
    import sys, time
    from dlcompiler.autotune import Result, tune
    from dlcompiler.space import Workload

    class Measurer:
        def measure(self, config, best_s):
            time.sleep(0.003)
            return Result("ok", (1e-4 * config.tile_m,))
        def interrupt(self): pass
        def close(self): pass

    tune(Workload.of("matmul", m=64, n=64, k=64), "x86-64-avx2", trials=100000, db=sys.argv[1],
         measurer=Measurer(), tuner="random", block=True,
         listeners=[lambda event: event.trial and print(event.trial.point, flush=True)])
    """
)


def test_a_killed_tuner_loses_no_acknowledged_trial_and_goes_on(fake, tmp_path):
    path = tmp_path / "records.db"
    acknowledged = []
    for count in (3, 20):
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE, text=True
        )
        acknowledged += [int(child.stdout.readline()) for _ in range(count)]
        child.send_signal(signal.SIGKILL)
        acknowledged += [int(line) for line in child.stdout.read().split()]
        child.wait()
        child.stdout.close()
    run = start(fake(), trials=5, db=path, seed=3).wait()
    stored = [trial.point for trial in run.prior]
    assert set(acknowledged) <= set(stored)
    assert len(stored) == len(set(stored)) <= len(acknowledged) + 2
    assert not set(stored) & {trial.point for trial in run.trials}


# -- refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"trials": 0}, "trials is not a positive number"),
        ({"trials": True}, "trials is not a positive number"),
        ({"trials": 2.5}, "trials is not a positive number"),
        ({"batch": -1}, "batch is not a positive number"),
        ({"threads": 0}, "threads is not a positive number"),
        ({"seconds": float("nan")}, "seconds is not a positive number"),
        ({"seconds": "3"}, "seconds is not a positive number"),
        ({"timeout_s": float("inf")}, "timeout_s is not a positive number"),
        ({"tuner": "ga"}, "no tuner has this name"),
    ],
)
def test_arguments_that_make_no_sense(fake, options, problem):
    with pytest.raises(TuningError, match=problem):
        start(fake(), **options)


def test_an_unknown_operator_and_a_damaged_database_are_refused_at_once(fake, tmp_path):
    with pytest.raises(TuningError, match="no operator has this name"):
        tune(Workload.of("conv9d", n=1), measurer=fake())
    path = tmp_path / "records.db"
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(TuningError, match="damaged"):
        start(fake(), db=path)
    assert threading.active_count() < 20
