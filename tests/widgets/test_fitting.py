"""Pictures, nests and programs that are larger than their pane: what of them is seen."""

import pytest

from tests.thread_programs import tiled_matmul
from tests.widgets.live_page import LivePage
from tests.widgets.looks import looks_of
from tests.widgets.shots import compared, gemm
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Dependences, Explorer, MemoryScopes

OVERFLOW = "(e) => [e.scrollWidth - e.clientWidth, e.scrollHeight - e.clientHeight]"


@pytest.fixture(scope="module")
def page(contexts):
    """A page with the classic product; each test sets the width that it needs."""
    context = contexts.open(viewport={"width": 1416, "height": 900}, reduced_motion="reduce")
    shown = LivePage(context, gemm())
    yield shown
    assert not shown.errors
    context.close()
    shown.widget.close()


def view_box(page):
    return page.locate("svg.dlc-scene").evaluate(
        "({ viewBox: { baseVal: b } }) => [b.width, b.height]"
    )


def test_parts_of_a_picture_are_beside_each_other_or_below(page):
    page.resize(1416)
    page.click("tab dependences")
    page.loop("C/k.outer").click()
    page.settle()
    scene = page.widget.picture["model"]
    assert view_box(page) == pytest.approx([scene["width"], scene["height"]])
    assert page.locate("svg.dlc-scene [transform]").count() == 0
    page.resize(736)
    first, second = scene["parts"]
    assert view_box(page) == pytest.approx(
        [max(first["width"], second["width"]), first["height"] + second["height"]]
    )
    words = page.locate("svg.dlc-scene text").last.bounding_box()
    frame = page.locate(".dlc-picture .dlc-scroll").bounding_box()
    assert frame["x"] <= words["x"]
    assert words["x"] + words["width"] <= frame["x"] + frame["width"]
    page.resize(1416)
    assert page.locate("svg.dlc-scene [transform]").count() == 0


def test_a_picture_that_scrolls_anyway_is_not_made_smaller(page):
    page.resize(736)
    page.click("tab memory")
    frame = page.locate(".dlc-picture .dlc-scroll")
    frame.evaluate("(e) => e.closest('.dlc-grid').style.setProperty('--dlc-row', '300px')")
    page.resize(737)
    scale = page.locate("svg.dlc-scene").evaluate("(e) => e.getScreenCTM().a")
    assert scale >= 0.98
    frame.evaluate("(e) => e.closest('.dlc-grid').style.removeProperty('--dlc-row')")


def test_grids_of_tensors_stand_in_a_line_on_one_scale(page):
    page.click("tab space")
    for width in (736, 1416):
        page.resize(width)
        boxes = [each.bounding_box() for each in page.locate(".dlc-canvas").all()]
        assert len({round(box["y"]) for box in boxes}) == 1, width
        room = page.locate(".dlc-picture-body").bounding_box()
        assert boxes[-1]["x"] + boxes[-1]["width"] <= room["x"] + room["width"] + 1, width
        widths = page.page.evaluate(
            "[...document.querySelectorAll('.dlc-canvas')].map((e) => e.width / e.clientWidth)"
        )
        assert max(widths) == pytest.approx(min(widths), rel=0.02), width


def test_the_history_shows_whole_rows_the_current_state_and_the_one_that_made_the_loop(page):
    page.resize(1416)
    page.click("tab loops")
    page.loop("C/k.outer").click()
    page.settle()
    page.locate(".dlc-made-mark").first.wait_for()
    page.page.wait_for_function("""() => {
      const list = document.querySelector(".dlc-states");
      const { top, bottom } = list.getBoundingClientRect();
      return [...list.children].some((row) => Math.abs(row.getBoundingClientRect().top - top) < 1)
        && list.querySelector(".dlc-made-mark").getBoundingClientRect().top >= top
        && list.querySelector(".dlc-current").getBoundingClientRect().bottom <= bottom + 1;
    }""")


def test_long_lines_of_a_comparison_go_on_in_the_next_line(page):
    page.resize(736)
    compared(page)
    wide, _ = page.locate(".dlc-compare .dlc-lines").evaluate(OVERFLOW)
    assert wide <= 0
    page.page.keyboard.press("Escape")
    page.settle()


@pytest.mark.parametrize("pane", [Dependences, MemoryScopes])
def test_a_picture_on_its_own_has_no_empty_line_and_shows_all(contexts, pane):
    context = contexts.open(viewport={"width": 776, "height": 900}, reduced_motion="reduce")
    schedule, args = matmul()
    page = LivePage(context, pane(schedule, args=args))
    page.settle()
    assert page.locate(".dlc-pane-head").is_hidden()
    assert page.locate(".dlc-scroll").evaluate(OVERFLOW)[1] <= 0
    assert looks_of(page).problems == []
    assert not page.errors
    context.close()
    page.widget.close()


def test_what_a_deep_loop_is_can_be_read(contexts):
    """Its sign, its extent and the beginning of its name stay, whatever is around it."""
    context = contexts.open(viewport={"width": 1416, "height": 900}, reduced_motion="reduce")
    schedule, args = tiled_matmul(64)
    page = LivePage(context, Explorer(schedule, args, target="v100", name="matmul"))
    for width in (736, 1416):
        page.resize(width)
        cut = page.page.evaluate("""() => {
          const tree = document.querySelector(".dlc-body").getBoundingClientRect();
          const isCut = (e) => e.getBoundingClientRect().right > tree.right + 1;
          const isTiny = (e) => e.matches(".dlc-pill") && e.clientWidth < 18;
          return [...document.querySelectorAll(".dlc-loop > span")]
            .filter((e) => isCut(e) || isTiny(e)).map((e) => e.parentElement.title);
        }""")
        assert cut == [], width
        assert page.locate(".dlc-body").evaluate(OVERFLOW)[0] <= 0, width
    assert not page.errors
    context.close()
    page.widget.close()
