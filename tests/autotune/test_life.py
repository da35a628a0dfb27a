"""The life of a run: rounds, pauses, ends of every kind, first points, going on after a kill."""

import threading
import time
from functools import partial

import pytest

from dlcompiler.autotune import Compared, Device, RecordStore, Result, tune
from dlcompiler.autotune.proposal import Proposal
from dlcompiler.autotune.records.owners import is_gone, this_process
from dlcompiler.autotune.tuners import tuner
from dlcompiler.errors import InternalError, MeasurementError, TuningError
from dlcompiler.space import Workload

WORKLOAD = Workload.of("matmul", m=64, n=64, k=64)


def start(measurer=None, trials=24, **options):
    options = {"tuner": "random", **options}
    return tune(WORKLOAD, "x86-64-avx2", trials=trials, measurer=measurer, **options)


# -- rounds and time ----------------------------------------------------------------------------


def test_rounds_say_when_they_began_and_what_they_did(fake):
    run = start(fake(), 20, batch=8).wait()
    assert [(r.number, r.first, r.count) for r in run.rounds] == [
        (0, 0, 1), (1, 1, 8), (2, 9, 8), (3, 17, 3)
    ]  # fmt: skip
    assert all(item.is_complete for item in run.rounds)
    assert [trial.round for trial in run.trials] == [0] + [1] * 8 + [2] * 8 + [3] * 3
    assert run.rounds[0].searching_s == 0.0
    assert all(item.searching_s > 0 for item in run.rounds[1:])


def test_the_phases_of_a_run_add_up(fake):
    run = start(fake(seconds=0.01), 10).wait()
    assert run.clock.total_s == pytest.approx(run.elapsed_s)
    assert run.clock.running_s >= 0.09
    assert 0 < run.clock.own_share < 1
    assert run.remaining_s == 0.0


def test_what_remains_is_estimated_from_the_pace(fake, wait_for):
    run = start(fake(seconds=0.05), 100)
    assert run.remaining_s is None
    wait_for(lambda: len(run.trials) >= 8)
    assert 1.0 < run.remaining_s < 600.0
    run.stop()
    run.wait(60)
    run = start(fake(seconds=0.05), None, seconds=0.5)
    assert run.remaining_s <= 0.5
    run.wait(60)


class Predicting:
    """A tuner whose model knows everything, or the opposite."""

    note = ""
    model = None
    walkers = ()

    def __init__(self, space, sign):
        self.points = iter(list(space.allowed())[:40])
        self.sign = sign

    def propose(self, count):
        found = [next(self.points) for _ in range(count)]
        return [Proposal(p, "model", 10.0 ** (self.sign * n)) for n, p in enumerate(found)]

    def observe(self, point, rate):
        pass


@pytest.mark.parametrize("sign", [1, -1])
def test_predictions_are_kept_and_judged(fake, sign):

    class Slower(fake):
        def measure(self, config, best_s):
            self.configs.append(config)
            return Result("ok", (1.0 + len(self.configs),))

    run = start(Slower(), 17, batch=16, tuner=lambda space, _: Predicting(space, sign)).wait()
    assert run.trials[1].predicted_s == 1.0
    assert run.rounds[0].correlation is None
    assert run.rounds[1].correlation == pytest.approx(sign)
    assert run.rounds[1].recall == (1.0 if sign == 1 else 0.0)
    assert run.rank_correlation() == pytest.approx(sign)
    assert run.recall(4) == run.rounds[1].recall
    assert run.recall(16) is None


# -- pause and stop -----------------------------------------------------------------------------


def test_a_pause_interrupts_and_what_was_interrupted_is_measured_again(fake, wait_for):
    measurer = fake(seconds=0.05)
    heard = []
    run = start(measurer, 12, batch=4, listeners=[heard.append])
    wait_for(lambda: len(run.trials) == 3)
    measurer.seconds = 30.0
    time.sleep(0.1)
    run.pause()
    assert run.state == "paused"
    done = len(run.trials)
    wait_for(lambda: run.clock.paused_s > 0.2)
    assert len(run.trials) == done
    elapsed = run.elapsed_s
    time.sleep(0.1)
    assert run.elapsed_s == elapsed
    run.pause()  # once more does nothing
    measurer.seconds = 0.0
    run.resume()
    assert run.state == "running"
    run.wait(60)
    assert run.state == "finished"
    assert {trial.outcome for trial in run.trials} == {"ok"}
    points = [trial.point for trial in run.trials]
    assert points == [trial.point for trial in start(fake(), 12, batch=4).wait().trials]
    assert [event.kind for event in heard].count("state") == 2
    run.resume()
    assert run.state == "finished"


def test_a_pool_that_complains_of_a_pause_is_asked_again(fake, wait_for):
    class Complaining(fake):
        def measure(self, config, best_s):
            result = super().measure(config, best_s)
            if result.outcome == "crashed":
                raise MeasurementError("measure candidates", "the worker did not start")
            return result

    measurer = Complaining(seconds=0.02)
    run = start(measurer, 12)
    for count in (2, 5, 8):
        wait_for(lambda count=count: len(run.trials) >= count)
        measurer.seconds = 30.0
        time.sleep(0.05)
        run.pause()
        measurer.seconds = 0.02
        time.sleep(0.05)
        run.resume()
    run.wait(60)
    assert run.state == "finished"
    assert {trial.outcome for trial in run.trials} == {"ok"}


def test_pauses_at_random_moments_lose_and_repeat_nothing(fake):
    measurer = fake(seconds=0.002)
    run = start(measurer, 150, batch=8)
    for _ in range(30):
        time.sleep(0.004)
        run.pause()
        run.resume()
    run.wait(60)
    assert run.state == "finished"
    assert {trial.outcome for trial in run.trials} == {"ok"}
    assert len({trial.point for trial in run.trials}) == 150
    assert [trial.index for trial in run.trials] == list(range(150))


def test_a_paused_run_can_be_stopped(fake, wait_for):
    run = start(fake(seconds=0.02), 100)
    wait_for(lambda: run.trials)
    run.pause()
    time.sleep(0.05)
    run.stop()
    run.wait(60)
    assert run.state == "stopped"


def test_a_tuner_that_takes_its_time_does_not_keep_a_run_from_stopping(fake):
    release = threading.Event()

    class Slow(Predicting):
        def propose(self, count):
            release.wait(20)
            return super().propose(count)

    measurer = fake()
    heard = []
    listeners = [lambda event: heard.append(event.kind)]
    run = start(measurer, listeners=listeners, tuner=lambda space, _: Slow(space, 1))
    time.sleep(0.1)
    asked = time.perf_counter()
    run.stop()
    run.wait(60)
    assert time.perf_counter() - asked < 15  # the tuner would wait for 20
    assert run.state == "stopped"
    count = len(run.trials)
    release.set()
    run._thread.join(60)
    assert measurer.is_closed
    assert len(run.trials) == count
    assert heard.count("ended") == 1


def test_a_run_that_finds_nothing_better_ends_early(fake):
    same = {n: Result("ok", (1.0,)) for n in range(100)}
    run = start(fake(faults=same), 100, early_stopping=10).wait()
    assert run.state == "finished"
    assert len(run.trials) == 11
    assert run.note == "ended early: no faster config in 10 trials"
    faults = {**same, 8: Result("ok", (0.5,)), 9: Result("crashed")}
    assert len(start(fake(faults=faults), 100, early_stopping=10).wait().trials) == 19


def test_seconds_alone_are_a_budget(fake):
    run = start(fake(seconds=0.02), None, seconds=0.3).wait(60)
    assert run.state == "finished"
    assert 0 < len(run.trials) < 20
    assert "None" not in repr(run)


def test_a_tuner_that_breaks_fails_the_run_and_keeps_its_trials(fake):
    class Broken(Predicting):
        def observe(self, point, rate):
            self.count = getattr(self, "count", 0) + 1
            if self.count == 6:
                raise ZeroDivisionError("in the model")

    run = start(fake(), tuner=lambda space, _: Broken(space, 1))
    with pytest.raises(TuningError, match="the run failed after 6 trials"):
        run.wait()
    assert run.state == "failed"
    assert len(run.store.records()) == 6
    assert run.note == "ZeroDivisionError: in the model"


class Lazy:
    """A pool that forgets the last config of a batch."""

    note = "the machine is busy"
    devices = (Device("x"),)

    def measure(self, configs, best_s, report):
        for number in range(len(configs) - 1):
            report(number, Result("ok", (1.0,)))

    def interrupt(self):
        pass

    def close(self):
        pass


def test_a_pool_that_forgets_is_a_bug():
    run = start(pool=Lazy())
    with pytest.raises(TuningError) as error:
        run.wait()
    assert isinstance(error.value.__cause__, InternalError)
    assert "the pool did not report the result of each config" in str(error.value)


# -- near ties ----------------------------------------------------------------------------------


class Comparing(Lazy):
    """Trial by trial a little slower; measured in turn, the third one is the fastest."""

    note = ""

    def __init__(self, ratios, fault=None):
        self.ratios = ratios
        self.fault = fault
        self.count = 0
        self.compared = []

    def measure(self, configs, best_s, report):
        for number in range(len(configs)):
            self.count += 1
            report(number, Result("ok", (1.0 + 0.01 * self.count,)))

    def compare(self, configs, *, budget_s, seed):
        self.compared.append((len(configs), seed))
        if self.fault:
            raise self.fault
        times = [1.0, 1.1, 0.9, 1.2]
        return [
            Compared(config, Result("ok", (seconds,)), None, ratio)
            for config, seconds, ratio in zip(configs, times, self.ratios, strict=False)
        ]


def test_near_ties_are_measured_in_turn(fake):
    pool = Comparing([(1.02, 1.2), (1.1, 1.3), (1.0, 1.0), (1.1, 1.3)])
    run = start(pool=pool, trials=30, seed=9).wait()
    assert pool.compared == [(4, 9)]  # 1.01 to 1.04, within 3 %
    assert run.best.index == 2
    assert run.note == ("of 4 near ties, trial 2 was the fastest when they were measured in turn")
    assert min(trial.seconds for trial in run.trials) == run.trials[0].seconds


def test_the_best_stays_the_best_where_nothing_is_faster_for_certain():
    run = start(pool=Comparing([(0.97, 1.2), (1.1, 1.3), (1.0, 1.0), (1.1, 1.3)])).wait()
    assert run.best.index == 0
    assert run.note == ""


def test_near_ties_that_cannot_be_measured_are_told():
    fault = MeasurementError("measure candidates in turn", "the worker crashed")
    run = start(pool=Comparing([], fault)).wait()
    assert run.state == "finished"
    assert run.best.index == 0
    assert run.note == "near ties could not be measured again: the worker crashed"


# -- first points -------------------------------------------------------------------------------


def test_a_user_says_what_is_tried_first(fake):
    space = start(fake(), 1).wait().plan.space
    mine, other = (space.at(point) for point in list(space.allowed())[5:7])
    run = start(fake(), 8, first=[mine, dict(other.values), mine]).wait()
    assert [trial.origin for trial in run.trials[:4]] == ["default", "user", "user", "random"]
    assert [trial.config for trial in run.trials[1:3]] == [mine, other]
    assert [trial.round for trial in run.trials[:4]] == [0, 0, 0, 1]
    assert [record.origin for record in run.store.records()][:3] == ["default", "user", "user"]


def test_first_points_that_are_none_are_refused_at_once(fake):
    with pytest.raises(TuningError, match="not a value for each knob"):
        start(fake(), first=[{"tile_m": 4}])


def test_more_first_points_than_trials(fake):
    space = start(fake(), 1).wait().plan.space
    first = [space.at(point) for point in list(space.allowed())[:20]]
    assert len(start(fake(), 7, first=first).wait().trials) == 7


# -- records ------------------------------------------------------------------------------------


def test_a_run_starts_warm_from_the_records_of_its_file_only_and_says_so(fake, tmp_path):
    path, other = tmp_path / "records.db", tmp_path / "other.db"
    start(fake(), 6, db=path).wait()
    assert start(fake(), 2, db=other).wait().prior == ()
    warm = start(fake(), 5, db=path, seed=1).wait()
    assert len(warm.prior) == 6
    assert warm.note == (f"starts warm: 6 records of {path} are known and not measured again")


def test_records_of_another_space_are_left_out_and_told(fake, record):
    store = RecordStore()
    known = start(fake(), 3, db=store).wait()
    store.add([record(workload=known.plan.workload, target=known.plan.machine)])
    run = start(fake(), 3, db=store, seed=1).wait()
    assert len(run.prior) == 3
    assert run.note.endswith("1 record left out: they are of another space of configs")


@pytest.mark.campaign
def test_a_run_that_failed_goes_on_and_comes_to_the_same_end(fake):
    whole = start(fake(), 60, tuner="xgb").wait()
    store = RecordStore()
    for fault in (3, 20, 1):
        broken = start(fake(faults={fault: RuntimeError("no worker")}), 60, tuner="xgb", db=store)
        with pytest.raises(TuningError):
            broken.wait()
    heard = []
    run = start(fake(), 60, tuner="xgb", db=store, listeners=[heard.append]).wait()
    assert run.name == broken.name
    assert run.note == f"goes on with run {run.name}, which ended without its end after 24 trials"
    assert [trial.config for trial in run.trials] == [trial.config for trial in whole.trials]
    assert [(t.index, t.round, t.origin) for t in run.trials] == [
        (t.index, t.round, t.origin) for t in whole.trials
    ]
    assert len(store) == 60
    assert [event.trial for event in heard if event.trial] == list(run.trials)
    again = start(fake(), 5, tuner="xgb", db=store).wait()  # that run has come to its end
    assert len(again.prior) == 60


def test_a_run_with_another_seed_does_not_go_on(fake):
    store = RecordStore()
    with pytest.raises(TuningError):
        start(fake(faults={5: RuntimeError("no worker")}), db=store).wait()
    run = start(fake(), 10, db=store, seed=4).wait()
    assert len(run.prior) == 5
    assert len(run.trials) == 10


def test_a_tuner_that_goes_another_way_keeps_what_is_known(fake):
    store = RecordStore()
    versions = [partial(tuner, "random"), lambda space, _: Predicting(space, 1)]

    def maker(space, seed):
        return versions.pop(0)(space, seed)

    faults = {9: RuntimeError("no worker")}
    with pytest.raises(TuningError):
        start(fake(faults=faults), db=store, batch=4, tuner=maker).wait()
    run = start(fake(), 12, db=store, batch=4, tuner=maker).wait()
    assert run.trials[0].origin == "default"
    assert len(run.prior) + len(run.trials) == len(store) == 20


def test_a_process_is_known_by_its_name():
    ours = this_process()
    assert not is_gone(ours)
    host, number, started = ours.split(":")
    assert is_gone(f"{host}:{number}:{int(started) + 1}")
    assert not is_gone(f"elsewhere:{number}:1")
    assert not is_gone("what is this")


# -- as a table ---------------------------------------------------------------------------------


def test_the_trials_as_a_table(fake):
    run = start(fake(faults={1: Result("crashed", message="ended by SIGSEGV")}), 3).wait()
    frame = run.to_pandas()
    assert list(frame.trial) == [0, 1, 2]
    assert list(frame.outcome) == ["ok", "crashed", "ok"]
    assert frame.seconds.isna().tolist() == [False, True, False]
    assert frame["cfg.tile_m"].tolist() == [trial.config.tile_m for trial in run.trials]
    assert start(fake(), 1).plan.space.size > 1
    from dlcompiler.autotune.table import trials_table

    assert "gflops" in trials_table([]).columns
