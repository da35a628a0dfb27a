"""Simulated caches in the workbench, without a browser: pending, cancelled, ready."""

import threading

import pytest

from dlcompiler import te
from dlcompiler.pipeline.cache_simulation import Cancelled
from dlcompiler.schedule import create_schedule
from tests.pipeline.test_cache_simulation import gather
from tests.static_pictures import pictures_in
from tests.thread_programs import tiled_matmul
from tests.widgets.test_panes import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import CacheMisses, Explorer
from dlcompiler_widgets.explorer import background, caches


@pytest.fixture
def explore():
    """Open an Explorer, which is closed in the end."""
    made = []

    def explore_(*args, **options):
        made.append(Explorer(*args, **options))
        return made[-1]

    yield explore_
    for widget in made:
        widget.close()


@pytest.fixture
def patient(monkeypatch):
    monkeypatch.setattr(background, "PATIENCE_S", 60.0)


def ask(widget, op, **args):
    widget.intent = {"id": object().__hash__(), "op": op, "args": args}


def names(widget):
    return [tab["name"] for tab in widget.picture["tabs"]]


def test_the_tab_shows_a_simulation(explore, patient):
    widget = explore(*matmul(), target="x86-64-avx2")
    ask(widget, "picture", tab="cache")
    assert widget.picture["model"]["summary"].startswith("Simulated: of 1.05 M accesses, ")
    before = widget.picture["model"]
    ask(widget, "apply", step={"primitive": "parallel", "stage": "C", "args": {"axis": "i.outer"}})
    assert widget.picture["error"] is None
    assert widget.picture["model"]["table"] == before["table"], "one core, in order"


def test_there_is_no_tab_for_a_gpu(explore):
    assert "cache" not in names(explore(*tiled_matmul(), target="v100"))
    assert "cache" not in names(explore(*tiled_matmul()))
    assert "cache" in names(explore(*matmul()))


def test_a_gather_is_simulated_with_random_indices(explore, patient):
    widget = explore(*gather())
    ask(widget, "picture", tab="cache")
    text = widget.picture["model"]["summary"]
    assert text.startswith("Simulated: of 128 accesses, ")
    assert "What is accessed depends on N: simulated for one choice of values." in text


def test_what_cannot_be_simulated_says_why(explore, patient):
    N = te.placeholder((8,), "int32", name="N")
    P = te.compute((8,), lambda i: N[i] * 2 % 8, name="P")
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[P[i]], name="B")
    widget = explore(create_schedule(B.op), [N, A, B])
    ask(widget, "picture", tab="cache")
    text = widget.picture["error"]["text"]
    assert text == "simulate the caches of main: an index of A depends on data"


class Slow:
    """Stands for `simulate_program`: waits until it is let go, or cancelled."""

    def __init__(self):
        self.real = caches.simulate_program
        self.go, self.begun, self.calls = threading.Event(), threading.Event(), []

    def __call__(self, func, target, most, cancellation, inputs):
        self.calls.append(cancellation)
        self.begun.set()
        while not self.go.wait(0.005):
            if cancellation.is_set:
                raise Cancelled("simulate", "it was cancelled")
        return self.real(func, target, most, cancellation, inputs)


@pytest.fixture
def slow(monkeypatch):
    made = Slow()
    monkeypatch.setattr(caches, "simulate_program", made)
    monkeypatch.setattr(background, "PATIENCE_S", 0.0)
    yield made
    made.go.set()


def test_a_long_simulation_is_shown_when_it_is_ready(explore, slow):
    widget = explore(*matmul())
    ask(widget, "picture", tab="cache")
    assert widget.picture["model"]["is_pending"]
    shown = threading.Event()
    widget.observe(lambda change: shown.set(), names="picture")
    slow.go.set()
    assert shown.wait(60)
    assert widget.picture["model"]["summary"].startswith("Simulated: ")


def test_another_state_cancels_a_simulation_and_coming_back_begins_again(explore, slow):
    widget = explore(*matmul())
    ask(widget, "picture", tab="cache")
    assert slow.begun.wait(60)
    ask(widget, "undo")
    first, second = slow.calls[0], widget._session.caches
    assert first.is_set
    ask(widget, "redo")
    assert widget.picture["model"]["is_pending"]
    slow.go.set()
    second.wait()
    with widget._locked():
        widget._push(None)
    assert widget.picture["model"]["summary"].startswith("Simulated: ")


def test_a_step_cancels_also_while_another_tab_is_open(explore, slow):
    widget = explore(*matmul())
    ask(widget, "picture", tab="cache")
    assert slow.begun.wait(60)
    ask(widget, "picture", tab="nest")
    assert not slow.calls[0].is_set
    ask(widget, "undo")
    assert slow.calls[0].is_set


def test_closing_cancels(explore, slow):
    widget = explore(*matmul())
    ask(widget, "picture", tab="cache")
    widget.close()
    assert slow.calls[0].is_set


def test_the_pane_on_its_own_is_a_picture(patient):
    widget = CacheMisses(*matmul(), target="x86-64-avx2")
    assert "Simulated: of 1.05 M accesses" in widget.static_text()
    (picture,) = pictures_in(widget.static_html())
    assert picture.find("title").text.startswith("Cache")
    widget.close()
