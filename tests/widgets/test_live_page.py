"""The workbench in a contexts, without Jupyter around it."""

import pytest

from dlcompiler import te
from dlcompiler.schedule import create_schedule
from tests.widgets.live_page import LivePage

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer


def matmul(n=64):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return create_schedule(C.op), [A, B, C]


@pytest.fixture
def explorer(contexts):
    schedule, args = matmul()
    widget = Explorer(schedule, args, name="matmul")
    context = contexts.open(viewport={"width": 1200, "height": 900})
    page = LivePage(context, widget)
    yield page
    assert not page.errors
    context.close()
    widget.close()


def test_a_click_applies_a_step(explorer):
    explorer.loop("C/j").click()
    explorer.settle()
    explorer.key("split C C.j factor").fill("16")
    explorer.click("split C C.j")
    assert explorer.widget.schedule.node.title() == "split C j 16"
    assert explorer.loop("C/j.inner").get_attribute("aria-selected") == "true"


def test_tabs_change_the_text(explorer):
    explorer.click("tab final")
    assert explorer.widget.text["tab"] == "final"
    assert "after all passes" in explorer.locate(".dlc-status").inner_text()


def test_quick_clicks_are_served_one_after_the_other(explorer):
    """A host may merge two changes of a trait, so the second waits for the answer to the first."""
    s = explorer.widget.schedule
    C = s.outputs[0]
    for axis in (*C.op.axis, *C.op.reduce_axis):
        s[C].split(axis, factor=2)
    explorer.push()
    sent = explorer.page.evaluate("""() => {
      const intents = [], set = window.model.set.bind(window.model);
      window.model.set = (name, value) => {
        if (name === "intent") intents.push(value.op);
        set(name, value);
      };
      const undo = document.querySelector('[data-key="undo"]');
      undo.click();
      undo.click();
      return intents.length;
    }""")
    assert sent == 1
    explorer.settle()
    assert explorer.widget.schedule.node.title() == "split C i 2"


SCALE = "(scene) => scene.getScreenCTM().a"


def test_zooming_asks_nothing_of_python_and_stays(explorer):
    scene = explorer.locate("svg.dlc-scene")
    fitted = scene.evaluate(SCALE)
    sent = explorer.widget.intent
    explorer.key("zoom in").click()
    explorer.key("zoom in").click()
    assert explorer.widget.intent == sent
    larger = scene.evaluate(SCALE)
    assert larger == pytest.approx(fitted * 1.25**2, rel=0.01)
    explorer.click("tab axes")
    explorer.click("tab nest")
    assert scene.evaluate(SCALE) == pytest.approx(larger, rel=0.01)
    explorer.key("zoom fit").click()
    assert scene.evaluate(SCALE) == pytest.approx(fitted, rel=0.01)


def test_the_whole_screen(explorer):
    explorer.key("maximise").click()
    explorer.page.wait_for_function("document.fullscreenElement !== null")
    explorer.locate('[data-key="maximise"]', has_text="Leave full screen").wait_for()
    explorer.key("maximise").click()
    explorer.page.wait_for_function("document.fullscreenElement === null")


def test_a_box_of_the_picture_chooses_its_loop(explorer):
    explorer.locate("rect.dlc-link").nth(2).click(position={"x": 5, "y": 5})
    explorer.settle()
    assert explorer.widget.chosen == "C/j"
    assert explorer.locate("rect.dlc-own").count() == 1


def test_what_a_refused_move_said_outlasts_its_preview(explorer):
    explorer.loop("C/k").click()
    explorer.settle()
    explorer.key("vectorize C C.k").click(force=True)
    explorer.page.wait_for_timeout(300)  # the preview is asked for after a moment
    assert "vectorize: a reduction axis" in explorer.locate(".dlc-status").inner_text()
    explorer.loop("C/i").click()
    explorer.settle()
    assert "loop i of C" in explorer.locate(".dlc-status").inner_text()
