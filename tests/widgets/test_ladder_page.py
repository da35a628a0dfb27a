"""The ladder, the roofline and predict-first in a browser, without Jupyter."""

import pytest

from tests.widgets.axe import violations
from tests.widgets.live_page import DARK, LivePage
from tests.widgets.test_measured import explore, measured, note

pytestmark = pytest.mark.campaign(whole_file=True)

pytest.importorskip("dlcompiler_widgets")


@pytest.fixture
def start(contexts):
    opened = []

    def start(*results, width=1200, body="", **options):
        widget = explore(steps=bool(results), **options)
        if results:
            note(widget, *results)
            widget.intent = {"id": "again", "op": "picture", "args": {"tab": "ladder"}}
            widget._session.machine.wait(30)
        context = contexts.open(viewport={"width": width, "height": 900})
        opened.append((widget, context, LivePage(context, widget, body)))
        return opened[-1][2]

    yield start
    for widget, context, live in opened:
        assert not live.errors
        context.close()
        widget.close()


STORY = measured(0.02, numpy_s=0.001), None, measured(0.002, numpy_s=0.001)


def test_a_click_on_a_bar_goes_to_its_state(start):
    live = start(*STORY)
    bars = live.locate(".dlc-ladder-bar")
    assert bars.count() == 3
    assert not violations(live.page, ".dlc-ladder")
    bars.first.click()
    live.settle()
    assert live.widget.schedule.node.parent is None
    assert bars.first.get_attribute("aria-current") == "true"
    assert bars.count() == 3


def test_the_keyboard_walks_along_the_bars(start):
    live = start(*STORY)
    live.locate(".dlc-ladder-bar.dlc-current").focus()
    live.page.keyboard.press("ArrowLeft")
    live.page.keyboard.press("ArrowLeft")
    live.page.keyboard.press("Enter")
    live.settle()
    assert live.widget.schedule.node.parent is None
    here = f"ladder {live.widget.schedule.node.id}"
    assert live.page.evaluate("document.activeElement.dataset.key") == here


def test_faster_bars_are_higher_and_the_peak_is_above_them(start):
    live = start(*STORY)
    boxes = [live.locate(".dlc-ladder-fill").nth(n).bounding_box() for n in (0, 2)]
    lines = [live.locate(".dlc-ladder-line").nth(n).bounding_box()["y"] for n in (0, 1)]
    assert boxes[1]["height"] > boxes[0]["height"]
    assert lines[1] < lines[0] < boxes[0]["y"]  # the peak, numpy, the first state
    assert lines[1] < boxes[1]["y"]


def test_the_numbers_of_the_ladder_open_as_a_table(start):
    live = start(*STORY)
    live.locate(".dlc-ladder summary").click()
    assert "20 ms" in live.locate(".dlc-ladder .dlc-table").inner_text()


def test_a_mark_of_the_picture_goes_to_its_state(start):
    live = start(*STORY, level="work")
    live.locate(".dlc-states-picture rect.dlc-link").first.click()
    live.settle()
    assert live.widget.schedule.node.parent is None


def test_the_roofline_is_drawn_and_the_machine_is_measured_again_on_request(start):
    live = start(*STORY, body=DARK, level="work")
    live.click("tab roofline")
    live.wait(lambda: "model" in live.widget.picture and live.widget.picture["model"])
    assert "GFLOP/s, measured" in live.locate("svg.dlc-scene").text_content()
    asked = len(live.widget._stopwatch.asked)
    live.click("machine")
    live.wait(lambda: len(live.widget._stopwatch.asked) > asked)


def test_a_prediction_by_keyboard(start):
    live = start(predict=True, level="learn")
    live.loop("C/i").click()
    live.settle()
    live.click("parallel C C.i")
    assert live.widget.schedule.node.parent is None
    live.page.keyboard.press("Space")  # the first answer has the focus
    live.key("factor more than 10×").check()
    live.page.keyboard.press("Enter")
    live.settle()
    assert live.widget.schedule.node.title() == "parallel C i"
    assert "more than 10×" in live.locate(".dlc-predict").inner_text()
    saved = live.page.evaluate("JSON.stringify({ ...window.model.traits, _esm: null })")
    assert "more than 10×" not in saved  # a host may save all traits with the notebook
    assert not violations(live.page, ".dlc-predict")
    live.click("measure before and after")
    live.wait(lambda: not live.key("measure before and after").count())
    speed, factor = live.locate(".dlc-verdict").all_inner_texts()[:2]
    assert {speed, factor} <= {"✓ right", "✕ not so"}  # as it was measured
    live.locate('[data-key="withdraw"]').focus()
    live.page.keyboard.press("Escape")
    live.settle()
    assert live.locate(".dlc-predict").is_hidden()
    assert live.page.evaluate("document.activeElement.closest('.dlc-tree') !== null")


def test_a_new_view_of_a_page_has_the_open_question(start, contexts):
    live = start(predict=True)
    live.loop("C/i").click()
    live.settle()
    live.click("parallel C C.i")
    other = contexts.open(viewport={"width": 900, "height": 700})
    again = LivePage(other, live.widget)
    again.locate(".dlc-predict form").wait_for()
    other.close()


def test_a_recording_says_that_predictions_are_off(start, contexts, tmp_path):
    live = start(*STORY)
    path = tmp_path / "replay.html"
    live.widget.save_html(path)
    context = contexts.open(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    page.goto(path.as_uri())
    page.locator('[data-key="predict"]').click(force=True)
    assert "off in a recording" in page.locator(".dlc-status").inner_text()
    page.locator(".dlc-ladder-bar").first.click()
    page.locator(".dlc-ladder-bar").first.and_(page.locator('[aria-current="true"]')).wait_for()
    context.close()
