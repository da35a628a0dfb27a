"""The picture of simulated caches on a page: drawn, and its marks choose loops."""

import pytest

from tests.widgets.live_page import LivePage
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer


def test_a_bar_chooses_the_loop_with_most_misses(contexts):
    schedule, args = matmul()
    widget = Explorer(schedule, args, target="x86-64-avx2")
    context = contexts.open(viewport={"width": 1200, "height": 900})
    page = LivePage(context, widget)
    page.click("tab cache")
    page.wait(lambda: "is_pending" not in widget.picture["model"])
    page.push()
    assert "Simulated: of 1.05 M accesses" in page.locate(".dlc-picture .dlc-summary").inner_text()
    assert widget.chosen == "C/i"
    page.locate(".dlc-picture rect.dlc-bar").first.click()
    page.settle()
    assert widget.chosen == "C/k"
    assert page.locate(".dlc-picture rect.dlc-own").count() > 0
    assert not page.errors
    context.close()
    widget.close()
