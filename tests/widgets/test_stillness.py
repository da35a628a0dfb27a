"""Nothing on the page moves when something is said, asked or opened, and an error is seen."""

import pytest

from dlcompiler.errors import MeasurementError
from tests.widgets.axe import violations
from tests.widgets.live_page import LivePage
from tests.widgets.looks import looks_of
from tests.widgets.test_measured import Watch, explore

pytestmark = pytest.mark.campaign(whole_file=True)

pytest.importorskip("dlcompiler_widgets")

PLACES = """(css) => [...document.querySelectorAll(css)].map((each) => {
  const { left, top, width, height } = each.getBoundingClientRect();
  const name = each.dataset.key ?? each.className.split(" ")[0];
  return [name, ...[left, top, width, height].map(Math.round)].join(" ");
})"""
BAR = ".dlc-bar button"
FRAME = {1400: f"{BAR}, .dlc-explorer, .dlc-grid, .dlc-column, .dlc-status", 500: BAR}
"""By width; one column of panes is as high as what is in them."""
FRAME[720] = FRAME[1400]
PANES = f"{FRAME[720]}, .dlc-pane"
CLOSED = {"export": "export close", "write": "write close"}
"""What opens under the bar, and what closes it."""


@pytest.fixture
def start(contexts):
    opened = []

    def start(width=1400, height=900, watch=None, **options):
        widget = explore(watch or Watch(), **options)
        context = contexts.open(viewport={"width": width, "height": height})
        page = LivePage(context, widget)
        opened.append((page, context))
        page.settle()
        return page

    yield start
    for page, context in opened:
        assert not page.errors
        context.close()
        page.widget.close()


def places(page, css=PANES):
    return page.page.evaluate(PLACES, css)


def run(page):
    page.click("measure")
    page.wait(lambda: page.widget.bar["measuring"]["state"] == "idle" and page.widget.bar["known"])
    page.settle()


@pytest.mark.parametrize("width", [1400, 720, 500])
def test_a_run_moves_neither_the_bar_nor_what_is_below_it(start, width):
    page = start(width, level="work")
    before = places(page, FRAME[width])
    run(page)
    assert places(page, FRAME[width]) == before
    known = page.locate(".dlc-known")
    assert known.inner_text() == known.get_attribute("title")
    assert looks_of(page).problems == []


@pytest.mark.parametrize("width", [1400, 720, 500])
def test_a_question_and_its_answer_lie_over_the_panes(start, width):
    page = start(width, steps=False, predict=True)
    page.loop("C/i").click()
    page.settle()
    before, frame = places(page), places(page, FRAME[width])
    page.click("parallel C C.i")
    box = page.locate(".dlc-predict .dlc-popover")
    box.wait_for()
    assert places(page) == before
    own, move = box.bounding_box(), page.key("parallel C C.i").bounding_box()
    is_right = own["x"] >= move["x"] + move["width"]
    assert (
        is_right or own["y"] >= move["y"] + move["height"] or own["y"] + own["height"] <= move["y"]
    )
    page.key("vectorize C C.i").hover()
    page.page.wait_for_timeout(150)
    assert page.locate(".dlc-why").is_hidden()  # it would tell the answer
    page.key("speed faster").check()
    page.click("answer")
    assert "you said" in box.inner_text()
    assert places(page, FRAME[width]) == frame
    assert not violations(page.page, ".dlc-predict")
    page.click("withdraw")
    box.wait_for(state="hidden")


@pytest.mark.parametrize("key", [*CLOSED, "copy"])
def test_what_opens_under_the_bar_lies_over_the_panes(start, key):
    page = start(720, level="work")
    before = places(page)
    page.click(key)
    assert places(page) == before
    page.key(CLOSED[key]).click() if key in CLOSED else page.locate(".dlc-code button").click()
    page.settle()
    assert places(page) == before


def test_a_long_message_goes_on_upwards(start):
    page = start(720)
    before = places(page)
    page.page.evaluate("document.querySelector('.dlc-explorer').scrollIntoView(false)")
    page.widget.intent = {"id": "x", "op": "apply", "args": {
        "step": {"primitive": "split", "stage": "C", "args": {"axis": "i" * 900}}}}  # fmt: skip
    page.push()
    assert page.locate(".dlc-status .dlc-error").count() == 1
    assert [each.split()[3:] for each in places(page)] == [each.split()[3:] for each in before]


# -- errors ----------------------------------------------------------------------------------------


def in_window(page, css):
    """Tell whether all of an element is in the window, and nothing lies over its middle."""
    return page.locate(css).evaluate(
        """(each) => {
          const { left, right, top, bottom } = each.getBoundingClientRect();
          const found = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
          return top >= 0 && bottom <= innerHeight && each.contains(found);
        }"""
    )


def test_that_the_kernel_is_gone_is_said_where_one_looks(start):
    page = start(1400, 500)
    assert not in_window(page, ".dlc-status")
    page.page.evaluate("window.model.fire; (window.model.listeners.get('comm_live_update') ?? [])"
                       ".forEach((f) => f())")  # fmt: skip
    page.locate(".dlc-notice").wait_for()
    assert "The kernel that made this is gone" in page.locate(".dlc-notice").inner_text()
    assert in_window(page, ".dlc-notice")
    assert not violations(page.page, ".dlc-notice")
    page.page.mouse.wheel(0, 200)
    page.page.wait_for_function("scrollY > 100")
    page.page.wait_for_timeout(50)
    assert in_window(page, ".dlc-notice")
    page.key("notice close").click()
    page.locate(".dlc-notice").wait_for(state="hidden")


def test_a_run_that_fails_is_said_where_one_looks_and_the_next_message_closes_it(start):
    page = start(1400, 500, watch=Watch(MeasurementError("run a kernel", "it crashed")))
    page.click("measure")
    page.wait(lambda: page.widget.status["tone"] == "error")
    assert "it crashed" in page.locate(".dlc-notice").inner_text()
    assert in_window(page, ".dlc-notice")
    page.loop("C/k").click()
    page.settle()
    assert page.locate(".dlc-notice").is_hidden()


def test_an_error_is_said_once_where_the_status_line_is_seen(start):
    page = start(1400, 1100, watch=Watch(MeasurementError("run a kernel", "it crashed")))
    page.click("measure")
    page.wait(lambda: page.widget.status["tone"] == "error")
    page._next_frame()
    assert "it crashed" in page.locate(".dlc-status").inner_text()
    assert page.locate(".dlc-notice").is_hidden()
