"""A model that is asked while its tuner works: never by two threads at once."""

import threading
import time

import numpy as np
import pytest

from dlcompiler.autotune.run.guarded import GuardedTuner
from tests.watched_runs import Tuner, ended, space


class Busy:
    """Notes how many threads are inside at once."""

    name = "busy"
    columns = ("a",)

    def __init__(self):
        self.inside = 0
        self.most = 0

    def work(self, *_):
        self.inside += 1
        self.most = max(self.most, self.inside)
        time.sleep(0.002)
        self.inside -= 1
        return np.zeros((1, 2))

    fit = predict = spread = contributions = work

    def importance(self):
        self.work()
        return {"a": 1.0}


class Guided:
    """A tuner that uses its model whenever it is asked."""

    walkers = ()

    def __init__(self):
        self.model = Busy()
        self.note = "guided"

    def propose(self, count):
        self.model.work()
        return ()

    def observe(self, point, rate):
        self.model.work()


def test_a_model_is_asked_by_one_thread_at_a_time():
    inner = Guided()
    tuner = GuardedTuner(inner)
    points = np.array([0])
    asks = [
        lambda: tuner.propose(1), lambda: tuner.observe(0, 1.0),
        lambda: tuner.model.fit([0], [1.0]), lambda: tuner.model.predict(points),
        lambda: tuner.model.spread(points), lambda: tuner.model.importance(),
        lambda: tuner.model.contributions(points),
    ]  # fmt: skip

    def often(ask):
        for _ in range(10):
            ask()

    threads = [threading.Thread(target=often, args=(ask,)) for ask in asks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert inner.model.most == 1


def test_it_is_the_tuner_in_all_else():
    inner = Tuner(space())
    tuner = GuardedTuner(inner)
    assert [p.point for p in tuner.propose(3)] == [p.point for p in Tuner(space()).propose(3)]
    assert tuner.walkers == inner.walkers
    tuner.observe(5, 1.0)
    assert inner.seen == [5]
    tuner.note = "words"
    assert inner.note == tuner.note == "words"
    assert (tuner.model.name, tuner.model.columns) == ("linear", inner.model.columns)


def test_a_run_has_the_model_of_its_tuner():
    run = ended(16)
    parts = run.model.contributions(np.array([3]))
    assert parts.sum() == pytest.approx(float(run.tuner.model.predict([3])[0]))
    assert ended(16, has_model=False).model is None
