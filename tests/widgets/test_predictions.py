"""Predicted times of GPU targets in the history of the workbench."""

from __future__ import annotations

import time

import pytest

from dlcompiler.bench import gpu_ladders
from dlcompiler.views.render.html import history_html
from tests.widgets.live_page import LivePage
from tests.widgets.test_panes import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer, HistoryTree
from dlcompiler_widgets.explorer.recording import record

pytestmark = pytest.mark.campaign(whole_file=True)


def settled(widget, rows):
    """Wait until some rows of the history have a predicted time; return all rows."""
    for _ in range(6000):
        found = widget.history["rows"]
        if sum(row["predicted"] is not None for row in found) >= rows:
            return found
        time.sleep(0.01)
    raise AssertionError("no predicted times")


def test_states_on_the_way_get_their_predicted_times():
    s, args = gpu_ladders.shared(64)
    widget = Explorer(s, args, target="rtx-a6000")
    rows = settled(widget, 4)
    here = next(row for row in rows if row["is_here"])
    assert rows[0]["predicted"] is None, "no loop is bound to threads"
    assert here["predicted"]["label"].startswith(f"{here['predicted']['time']} predicted on rtx-")
    assert here["predicted"]["label"] in here["label"]
    assert here["time"] == ""
    widget.close()


def test_a_cpu_has_none():
    widget = Explorer(*matmul())
    assert all(row["predicted"] is None for row in widget.history["rows"])
    widget.close()


def test_the_page_has_a_bar_of_parts_that_add_up(contexts):
    s, args = gpu_ladders.shared(64)
    context = contexts.open(viewport={"width": 1400, "height": 900})
    page = LivePage(context, Explorer(s, args, target="rtx-a6000"))
    settled(page.widget, 4)
    page.push()
    page.settle()
    current = page.locate(".dlc-state.dlc-current")
    assert "predicted on rtx-a6000" in current.inner_text()
    bars = page.locate(".dlc-predicted-bar")
    assert bars.count() >= 4
    of_current = current.locator(".dlc-predicted-bar span")
    widths = of_current.evaluate_all("(all) => all.map((part) => parseFloat(part.style.width))")
    assert sum(widths) == pytest.approx(100, abs=0.1)
    assert of_current.first.get_attribute("title").startswith("shared and L1: ")
    assert not page.errors
    context.close()
    page.widget.close()


def test_a_recording_has_those_of_all_its_states():
    s, args = gpu_ladders.shared(64)
    widget = Explorer(s, args, target="rtx-a6000")
    recorded = record(widget._session, ("tree", "history"), ())
    rows = recorded["history"]["rows"]
    assert all(row["predicted"] is not None for row in rows[-4:])
    widget.close()


def test_a_pane_on_its_own_has_them():
    s, args = gpu_ladders.shared(64)
    widget = HistoryTree(s, args, target="rtx-a6000")
    settled(widget, 4)
    assert "predicted on rtx-a6000" in widget.static_text()
    html = history_html(s.history, widget._session.predictions.of(widget._session))
    assert "predicted on rtx-a6000" in html
    widget.close()
