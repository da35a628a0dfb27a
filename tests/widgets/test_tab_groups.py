"""Tabs that stand together under one tab."""

import pytest

from dlcompiler.bench import gpu_ladders

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer

IN_KERNEL = ["Coalescing", "Banks", "Occupancy", "Waves"]


@pytest.fixture
def live(open_live):
    return open_live(Explorer(*gpu_ladders.naive(64), target="rtx-a6000", name="matmul"), 1400)


def rows(page):
    """Return the labels of the tabs over the picture, row by row."""
    found = page.locate(".dlc-picture .dlc-tabs, .dlc-headline .dlc-tabs[aria-label='Pictures']")
    return found.evaluate_all("all => all.map(row => [...row.children].map(tab => tab.innerText))")


def selected(page):
    return page.locate("[role=tab][aria-selected=true]").all_inner_texts()


def test_pictures_of_a_kernel_have_a_row_of_their_own_while_one_is_open(live):
    assert len([labels for labels in rows(live) if "Coalescing" in labels]) == 0
    live.click("tabs Kernel")
    assert live.widget.picture["tab"] == "coalescing"
    assert IN_KERNEL in rows(live)
    assert {"Kernel", "Coalescing"} <= set(selected(live))
    live.click("tab banks")
    assert live.widget.picture["tab"] == "banks"
    assert {"Kernel", "Banks"} <= set(selected(live))
    assert "Coalescing" not in selected(live)
    live.click("tab stages")
    assert IN_KERNEL not in rows(live)
    assert "Kernel" not in selected(live)


def test_arrows_lead_through_a_row(live):
    live.click("tabs Kernel")
    live.key("tab coalescing").focus()
    live.page.keyboard.press("ArrowRight")
    live.settle()
    assert live.widget.picture["tab"] == "banks"
    assert live.page.evaluate("document.activeElement.dataset.key") == "tab banks"
    live.key("tabs Kernel").focus()
    live.page.keyboard.press("ArrowLeft")
    live.settle()
    assert live.widget.picture["tab"] == "block"
