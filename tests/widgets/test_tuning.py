"""The tuning view without a front end: what is sent while a run goes on, and the stop button."""

import json
import threading
import time
import xml.etree.ElementTree as ET

import pytest

from dlcompiler.autotune import Result, tune
from dlcompiler.space import Workload

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import TuningView
from dlcompiler_widgets.tuning import throttle

HOSTILE = "<img src=x onerror=alert(1)>"


class Measurer:
    """A trial for each permit; every fourth fails."""

    def __init__(self, permits=0):
        self.permits = threading.Semaphore(permits)
        self.number = 0
        self.is_interrupted = False

    def measure(self, config, best_s):
        while not self.permits.acquire(timeout=0.01):
            if self.is_interrupted:
                return Result("crashed", message="ended by SIGKILL")
        self.number += 1
        if self.number % 4 == 0:
            return Result("wrong answer", message=HOSTILE)
        return Result("ok", (1e-3 / self.number,) * 3)

    def interrupt(self):
        self.is_interrupted = True

    def close(self):
        pass


def start(measurer, trials=12):
    workload = Workload.of("matmul", m=64, n=64, k=64)
    return tune(workload, trials=trials, measurer=measurer, tuner="random")


def shown(view):
    """Return the points that a page would draw."""
    curve = view.curve
    assert curve.delta["from"] == len(curve.base)
    return [*curve.base, *curve.delta["points"]]


def eventually(condition, limit_s=5.0):
    end = time.perf_counter() + limit_s
    while not condition():
        assert time.perf_counter() < end, "it never came"
        time.sleep(0.005)


@pytest.fixture
def going():
    """A run that waits for permits, and its view."""
    measurer = Measurer()
    run = start(measurer)
    view = TuningView(run)
    yield measurer, run, view
    run.stop()
    run.wait(5)
    view.close()


def test_points_arrive_while_the_run_goes_on(going):
    measurer, _, view = going
    assert shown(view) == []
    assert view.curve.model["state"] == "running"
    measurer.permits.release(5)
    eventually(lambda: len(shown(view)) == 5)
    assert shown(view)[3] is None
    assert view.curve.model["counts"] == [("ok", 4), ("wrong answer", 1)]
    assert view.curve.model["top"] >= view.curve.model["best"]["gflops"]
    measurer.permits.release(7)
    eventually(lambda: view.curve.model["state"] == "finished")
    assert len(shown(view)) == 12
    assert view.curve.model["trials"] == 12
    assert view.stop.state == "finished"


def test_what_is_sent_is_json_and_small(going):
    measurer, run, view = going
    measurer.permits.release(12)
    run.wait(5)
    sent = json.dumps([view.curve.model, view.curve.base, view.curve.delta])
    assert len(sent) < 2000
    assert HOSTILE not in sent


def test_pushes_are_throttled():
    measurer = Measurer(permits=400)
    run = start(measurer, trials=400)
    view = TuningView(run)
    pushes = []
    view.curve.observe(lambda change: pushes.append(change["new"]), names="delta")
    begun = time.perf_counter()
    run.wait(30)
    seconds = time.perf_counter() - begun
    eventually(lambda: len(shown(view)) == 400)
    assert len(pushes) <= seconds / 0.2 + 3
    assert all(len(delta["points"]) <= 64 for delta in pushes)
    view.close()


def test_the_button_stops_the_run(going):
    measurer, run, view = going
    measurer.permits.release(2)
    eventually(lambda: len(run.trials) == 2)
    view.stop.asked = 1
    assert view.stop.state in ("stopping", "stopped")
    run.wait(2)
    eventually(lambda: view.stop.state == "stopped")
    eventually(lambda: view.curve.model["state"] == "stopped")
    assert len(run.trials) == 2


def test_a_hello_is_answered(going):
    _, _, view = going
    view.stop.hello = 3
    assert view.stop.reply == 3


def test_a_run_that_has_ended_is_shown():
    run = start(Measurer(permits=12)).wait(5)
    view = TuningView(run)
    assert len(shown(view)) == 12
    assert view.stop.state == "finished"
    view.close()


def test_closing_leaves_the_run_alone(going):
    measurer, run, view = going
    view.close()
    assert run.listeners == []
    measurer.permits.release(12)
    run.wait(5)
    assert len(run.trials) == 12


def test_without_a_front_end_there_is_a_picture_and_a_text():
    run = start(Measurer(permits=12)).wait(5)
    view = TuningView(run)
    bundle = view._repr_mimebundle_()
    assert bundle["text/plain"].startswith("TuningView(TuningRun(matmul(m=64")
    html = bundle["text/html"]
    ET.fromstring(html)
    assert "<script" not in html
    assert HOSTILE not in html
    assert "application/vnd.jupyter.widget-view+json" in bundle
    view.close()


# -- the throttle -------------------------------------------------------------------------------


def test_a_throttle_calls_at_once_and_once_more_at_the_end():
    calls = []
    made = throttle.Throttle(lambda: calls.append(time.monotonic()), 0.05)
    for _ in range(20):
        made.poke()
    assert len(calls) == 1
    eventually(lambda: len(calls) == 2)
    assert calls[1] - calls[0] >= 0.05
    time.sleep(0.1)
    assert len(calls) == 2


def test_a_throttle_flushes_and_forgets():
    calls = []
    made = throttle.Throttle(lambda: calls.append(None), 10.0)
    made.poke()
    made.poke()
    made.flush()
    assert len(calls) == 2
    made.poke()
    made.cancel()
    assert len(calls) == 2
