"""Advice in the workbench: a click chooses its loop, a button takes the step."""

from dataclasses import replace

import pytest

from dlcompiler.target import CacheLevel
from dlcompiler.target.presets import X86_64_AVX2
from tests.widgets.axe import violations
from tests.widgets.live_page import LivePage
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer


def open_page(contexts, schedule, args, target=X86_64_AVX2):
    context = contexts.open(viewport={"width": 1200, "height": 900})
    return context, LivePage(context, Explorer(schedule, args, target, name="main"))


@pytest.fixture
def page(contexts):
    context, page = open_page(contexts, *matmul())
    yield page
    assert not page.errors
    context.close()
    page.widget.close()


def test_a_click_chooses_the_loop(page):
    page.click("advice stride-one axis not innermost C/k")
    assert page.widget.chosen == "C/k"
    chosen = page.locate(".dlc-advice-item.dlc-own")
    assert "stride-one" in chosen.first.inner_text()
    assert "TOPLAS" in page.locate(".dlc-advice-source").inner_text()


def test_a_button_takes_the_step(page):
    page.click("try stride-one axis not innermost C/k")
    assert page.widget.schedule.node.title() == "reorder C (k, j)"
    assert "stride-one" not in page.locate(".dlc-advice-list").inner_text()


def test_by_keyboard(page):
    page.key("try stride-one axis not innermost C/k").focus()
    page.page.keyboard.press("Enter")
    page.settle()
    assert page.widget.schedule.node.title() == "reorder C (k, j)"


def test_hostile_names_are_text(contexts):
    bad = '<img src=x onerror="window.hit=1">'
    caches = (CacheLevel(bad, 4096, line=64, shared_by=1),)
    schedule, args = matmul()
    context, page = open_page(contexts, schedule, args, replace(X86_64_AVX2, caches=caches))
    page.click("tab memory")
    assert bad in page.locate(".dlc-advice-list").inner_text()
    assert page.locate(".dlc-scene text", has_text=bad).count() >= 1
    assert page.page.evaluate("window.hit") is None
    assert not page.errors
    context.close()
    page.widget.close()


def test_axe_finds_nothing_serious(page):
    page.click("tab memory")
    assert violations(page.page) == []
