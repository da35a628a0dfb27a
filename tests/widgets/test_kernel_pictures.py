"""The pictures of a kernel on a GPU in the workbench, without a browser."""

from __future__ import annotations

import threading
import time

import pytest

from dlcompiler import te
from dlcompiler.bench import gpu_ladders
from dlcompiler.schedule import create_schedule
from tests.static_pictures import pictures_in
from tests.widgets.test_panes import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Banks, Coalescing, Explorer, Occupancy, Waves
from dlcompiler_widgets.explorer import background, kernels

TABS = ("coalescing", "banks", "occupancy", "waves")
PANES = {Coalescing: "Coalescing", Banks: "Banks", Occupancy: "Occupancy", Waves: "Waves"}


@pytest.fixture
def explore():
    """Open a widget, which is closed in the end."""
    made = []

    def explore_(*args, widget=Explorer, **options):
        made.append(widget(*args, **options))
        return made[-1]

    yield explore_
    for widget in made:
        widget.close()


@pytest.fixture
def patient(monkeypatch):
    monkeypatch.setattr(background, "PATIENCE_S", 60.0)


def ask(widget, op, **args):
    widget.intent = {"id": object().__hash__(), "op": op, "args": args}


def test_a_gpu_has_the_tabs_and_a_cpu_has_not(explore):
    names = [tab["name"] for tab in explore(*gpu_ladders.naive(64), target="v100").picture["tabs"]]
    assert [name for name in names if name in TABS] == list(TABS)
    names = [tab["name"] for tab in explore(*matmul()).picture["tabs"]]
    assert not set(names) & set(TABS)


@pytest.mark.parametrize("tab", TABS)
def test_a_tab_shows_the_kernel(explore, patient, tab):
    widget = explore(*gpu_ladders.naive(64), target="rtx-a6000", name="matmul")
    ask(widget, "picture", tab=tab)
    assert widget.picture["error"] is None
    model = widget.picture["model"]
    assert model["summary"].startswith("Simulated on rtx-a6000: matmul_kernel0, 4 blocks of 1,024")


def test_the_picture_is_of_the_kernel_with_the_chosen_loop(explore, patient):
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((64,), lambda i: B[i] * 2.0, name="C")
    s = create_schedule(C.op)
    for tensor, threads in ((B, 16), (C, 32)):
        block, thread = s[tensor].split(tensor.op.axis[0], threads)
        s[tensor].bind(block, te.thread_axis("blockIdx.x"))
        s[tensor].bind(thread, te.thread_axis("threadIdx.x"))
    widget = explore(s, [A, C], target="v100")
    ask(widget, "picture", tab="coalescing")
    for stage, text in (
        ("B", "main_kernel0, 4 blocks of 16"),
        ("C", "main_kernel1, 2 blocks of 32"),
    ):
        ask(widget, "choose", key=f"{stage}/i.outer")
        assert text in widget.picture["model"]["summary"]


def test_what_is_not_counted_yet_is_pending(explore, monkeypatch):
    may_go_on, real = threading.Event(), kernels.kernels_of
    monkeypatch.setattr(kernels, "kernels_of", lambda *args: may_go_on.wait(60) and real(*args))
    monkeypatch.setattr(background, "PATIENCE_S", 0.01)
    widget = explore(*gpu_ladders.naive(64), target="v100")
    ask(widget, "picture", tab="waves")
    assert widget.picture["model"]["is_pending"]
    may_go_on.set()
    assert widget._session.wait_for_pictures(60)
    for _ in range(1000):
        if "is_pending" not in widget.picture["model"]:
            break
        time.sleep(0.01)
    assert "Only 4 of 80 multiprocessors" in widget.picture["model"]["summary"]


def test_a_state_without_kernels_says_why(explore, patient):
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    widget = explore(create_schedule(B.op), [A, B], target="v100")
    ask(widget, "picture", tab="waves")
    assert "is computed outside any thread" in widget.picture["error"]["text"]


@pytest.mark.parametrize("pane", PANES)
def test_each_pane_on_its_own_is_a_picture_with_its_table(explore, pane):
    widget = explore(*gpu_ladders.shared(64), widget=pane, target="rtx-a6000")
    assert "Simulated on rtx-a6000: main_kernel0" in widget.static_text()
    (picture,) = pictures_in(widget.static_html())
    assert picture.find("title").text.startswith(PANES[pane])
    assert "<table" in widget.static_html()


def test_a_pane_for_a_cpu_says_why_it_is_empty(explore):
    widget = explore(*matmul(), widget=Coalescing, target="cpu")
    assert "there are counters for GPUs only" in widget.static_text()
