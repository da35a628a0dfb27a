"""Dependences on a page: the tab, and the arrows that stand in the way of a refused move."""

import pytest

from dlcompiler import te
from dlcompiler.schedule import create_schedule
from tests.widgets.axe import violations
from tests.widgets.live_page import LivePage
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Dependences, Explorer

ARROWS = ".dlc-picture path.dlc-curve"


@pytest.fixture
def page(contexts):
    context = contexts.open(viewport={"width": 1200, "height": 900})
    schedule, args = matmul()
    C = args[-1]
    schedule[C].split(C.op.reduce_axis[0], 4)
    widget = Explorer(schedule, args, name="matmul")
    shown = LivePage(context, widget)
    shown.click("tab dependences")
    shown.loop("C/k.inner").click()
    shown.settle()
    yield shown
    assert not shown.errors
    context.close()
    widget.close()


def in_way(page):
    return page.page.evaluate(
        f"() => [...document.querySelectorAll('{ARROWS}.dlc-in-way')].map(({{ keys }}) => keys[0])"
    )


def test_the_tab_shows_the_loop_and_its_arrows(page):
    assert page.locate(ARROWS).count() == 2
    summary = page.locate(".dlc-picture .dlc-summary").inner_text()
    assert summary.startswith("Dependences of C: carried by k.outer, k.inner, of a reduction")
    texts = page.locate(".dlc-picture svg.dlc-scene").text_content()
    assert "(0, 0, 0, <), nearest (0, 0, 0, 1)" in texts
    page.locate(".dlc-picture .dlc-twin summary").click()
    page.locate(".dlc-picture .dlc-twin table").wait_for()
    assert (
        "updated again at a later k.outer; the nearest at k.outer + 1, k.inner - 3"
        in page.locate(".dlc-picture .dlc-twin").inner_text()
    )
    assert not violations(page.page)


def test_a_refused_move_shows_the_arrow_that_forbids_it(page):
    assert in_way(page) == []
    page.key("vectorize C C.k.inner").focus()
    assert in_way(page) == ["C/k.inner"]
    page.locate(".dlc-way").wait_for()
    assert (
        "Distance of (i, j, k.outer, k.inner): (0, 0, 0, <)."
        in page.locate(".dlc-way").inner_text()
    )
    page.loop("C/k.inner").focus()
    assert in_way(page) == []


def test_a_click_on_an_arrow_chooses_its_loop(page):
    page.page.evaluate(
        f"() => document.querySelector('{ARROWS}').dispatchEvent(new Event('click', {{}}))"
    )
    page.settle()
    assert page.widget.chosen == "C/k.outer"


def test_a_pane_of_its_own_says_the_same_without_a_page():
    schedule, args = matmul()
    pane = Dependences(schedule, args[-1].op.reduce_axis[0], args)
    assert "(0, 0, <)" in pane.static_text()
    assert "C[i, j] updated at k" in pane.static_html()
    pane.close()


def test_a_program_with_symbols_has_dependences():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    pane = Dependences(create_schedule(B.op))
    assert "none carried by i" in pane.static_text()
    pane.close()
