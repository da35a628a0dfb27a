"""The layout of the Explorer: nothing cut, empty or covered; panes sized, collapsed and fitted."""

import json
import re

import pytest

from tests.thread_programs import tiled_matmul
from tests.widgets.axe import violations
from tests.widgets.live_page import DARK
from tests.widgets.looks import looks_of
from tests.widgets.shots import gemm

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer
from dlcompiler_widgets.assets import TUNING_SHEETS, WORKBENCH_SHEETS, styles

STORAGE = """
(() => {
  const kept = new Map(Object.entries(KEPT));
  const storage = {
    getItem: (name) => kept.get(name) ?? null,
    setItem: (name, text) => kept.set(name, text),
  };
  Object.defineProperty(window, "localStorage", { value: storage, configurable: true });
  window.kept = kept;
})()
"""


def device():
    schedule, args = tiled_matmul(64)
    return Explorer(schedule, args, target="v100", name="matmul")


@pytest.fixture
def show(open_live):
    """Show an Explorer at a width."""

    def show_(make=gemm, width=1400, height=900, theme="light"):
        ground = DARK if theme == "dark" else ""
        return open_live(make(), width, height, ground, color_scheme=theme, reduced_motion="reduce")

    return show_


def box(page, css):
    return page.locate(css).first.bounding_box()


# -- what is measured of a page (all states: `test_looks`) ----------------------------------------


def test_at_1400_pixels_the_picture_has_half_of_the_area_and_the_text_25_lines(show):
    looks = looks_of(show(device))
    assert looks.picture >= 0.5
    assert looks.lines >= 25
    assert looks.tab_rows == 1


def test_at_1400_pixels_the_pictures_of_a_cpu_are_one_row_of_tabs(show):
    assert looks_of(show()).tab_rows == 1


def test_in_a_cell_the_nest_its_moves_and_the_picture_are_seen_without_scrolling(show):
    page = show(width=720, height=800)
    for css in (".dlc-tree", ".dlc-palette", ".dlc-picture"):
        place = box(page, css)
        assert place["height"] >= 150, css
        assert place["y"] + place["height"] <= 800, css
    assert box(page, ".dlc-tree")["x"] == box(page, ".dlc-palette")["x"]
    assert box(page, ".dlc-picture")["y"] == box(page, ".dlc-tree")["y"]


@pytest.mark.parametrize(
    ("css", "found"),
    [
        (".dlc-stage-name { width: 4px; overflow: hidden; text-overflow: clip }", "cut"),
        (".dlc-loop-name { margin-left: 900px } .dlc-body { overflow: visible }", "outside"),
        (".dlc-loop { margin-bottom: -12px }", "one over the other"),
        (
            ".dlc-tree { height: 60px !important; min-height: 0 !important; "
            "flex: none !important } .dlc-moves > * + *, .dlc-why { display: none !important }",
            "half empty",
        ),
    ],
)
def test_the_measuring_finds_a_page_that_is_wrong(show, css, found):
    page = show()
    page.page.add_style_tag(content=css)
    assert [problem for problem in looks_of(page).problems if problem.startswith(found)]


def test_axe_finds_nothing_serious_in_the_new_parts(show):
    page = show()
    page.click("pane advice")
    assert violations(page.page) == []


# -- splitters ------------------------------------------------------------------------------------


def test_a_splitter_is_moved_by_keys(show):
    page = show()
    line = page.key("splitter left")
    line.focus()
    first = box(page, ".dlc-left")["width"]
    assert line.get_attribute("role") == "separator"
    assert line.get_attribute("aria-valuenow") == str(round(100 * first / 1398))
    line.press("ArrowRight")
    assert box(page, ".dlc-left")["width"] == pytest.approx(first + 0.02 * 1398, abs=2)
    line.press("End")
    assert line.get_attribute("aria-valuenow") == line.get_attribute("aria-valuemax")
    line.press("Home")
    assert line.get_attribute("aria-valuenow") == line.get_attribute("aria-valuemin")
    line.press("Enter")
    assert box(page, ".dlc-left")["width"] == pytest.approx(first, abs=1)


@pytest.mark.parametrize(
    ("key", "css", "move", "grows"),
    [
        ("splitter left", ".dlc-left", (60, 0), 60),
        ("splitter right", ".dlc-right", (60, 0), -60),
        ("splitter tree", ".dlc-tree", (0, 40), 40),
        ("splitter history", ".dlc-history", (0, -40), 40),
    ],
)
def test_a_splitter_is_dragged_and_a_double_click_brings_it_back(show, key, css, move, grows):
    page = show()
    side = "width" if move[0] else "height"
    first, line = box(page, css)[side], page.key(key).bounding_box()
    x, y = line["x"] + line["width"] / 2, line["y"] + line["height"] / 2
    page.page.mouse.move(x, y)
    page.page.mouse.down()
    page.page.mouse.move(x + move[0] / 2, y + move[1] / 2)
    page.page.mouse.move(x + move[0], y + move[1])
    page.page.mouse.up()
    page.settle()
    assert box(page, css)[side] == pytest.approx(first + grows, abs=3)
    page.key(key).dblclick()
    page.settle()
    assert box(page, css)[side] == pytest.approx(first, abs=1)


def test_moving_a_splitter_asks_nothing_of_python(show):
    page = show()
    before = dict(page.widget.intent)
    page.key("splitter left").press("ArrowRight")
    page.key("pane history").click()
    page.key("wrap").click()
    assert dict(page.widget.intent) == before


# -- titles ---------------------------------------------------------------------------------------


def test_a_pane_collapses_to_its_title(show):
    page = show()
    before = box(page, ".dlc-program")["height"]
    title = page.key("pane history")
    title.press("Enter")
    assert title.get_attribute("aria-expanded") == "false"
    assert box(page, ".dlc-history")["height"] < 45
    assert box(page, ".dlc-program")["height"] > before
    assert page.key("splitter history").is_hidden()
    title.press("Enter")
    assert title.get_attribute("aria-expanded") == "true"
    assert page.locate(".dlc-current").is_visible()


def test_advice_is_a_title_with_its_count_at_first(show):
    page = show()
    title = page.key("pane advice")
    assert title.get_attribute("aria-expanded") == "false"
    assert title.inner_text() == f"Advice ({len(page.widget.advice['rows'])})"


def test_enter_on_a_loop_opens_the_moves(show):
    page = show()
    page.click("pane moves")
    page.loop("C/k.inner").click()
    page.settle()
    page.loop("C/k.inner").press("Enter")
    page.settle()
    assert page.page.evaluate("!!document.activeElement.closest('.dlc-palette')")


def test_a_preset_without_a_picture_gives_its_place_to_the_text(show):
    page = show(width=720)
    page.key("preset").select_option("code")
    page.settle()
    assert box(page, ".dlc-program")["y"] == box(page, ".dlc-tree")["y"]
    assert box(page, ".dlc-program")["height"] > 400


# -- what is remembered ---------------------------------------------------------------------------


def with_storage(page, kept):
    """Show the widget of a page again, on a page that has storage."""
    page.page.evaluate(STORAGE.replace("KEPT", kept))
    page.page.evaluate("document.querySelector('#host').replaceChildren()")
    page.show()


def kept(page):
    return page.page.evaluate("JSON.stringify(Object.fromEntries(window.kept))")


def test_sizes_and_titles_are_remembered(show):
    page = show()
    with_storage(page, "{}")
    page.key("splitter left").press("ArrowRight")
    page.key("pane history").click()
    page.key("wrap").click()
    width = box(page, ".dlc-left")["width"]
    with_storage(page, kept(page))
    assert box(page, ".dlc-left")["width"] == pytest.approx(width, abs=1)
    assert page.key("pane history").get_attribute("aria-expanded") == "false"
    assert page.key("wrap").get_attribute("aria-pressed") == "false"


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[1]",
        "null",
        '{"wide left": "30", "wide right": 1e999, "wide tree": -5, "wide text collapsed": 1}',
        '{"__proto__": {"wide left": 70}}',
    ],
)
def test_what_others_stored_does_no_harm(show, text):
    page = show()
    widths = [box(page, css)["width"] for css in (".dlc-left", ".dlc-right")]
    with_storage(page, json.dumps({"dlcompiler.explorer": text}))
    assert [box(page, css)["width"] for css in (".dlc-left", ".dlc-right")] == pytest.approx(widths)
    assert looks_of(page).problems == []


# -- pictures -------------------------------------------------------------------------------------


def scale(page):
    return page.locate("svg.dlc-scene").evaluate("(scene) => scene.getScreenCTM().a")


@pytest.mark.parametrize("tab", ["nest", "memory", "axes", "stages"])
def test_a_picture_fits_its_pane(show, tab):
    page = show()
    page.open_tab(tab)
    frame, scene = page.locate(".dlc-picture .dlc-scroll"), page.locate("svg.dlc-scene")
    assert 0.75 <= scale(page) <= 1.76
    inside = frame.evaluate(
        "(e) => e.scrollWidth <= e.clientWidth + 1 && e.scrollHeight <= e.clientHeight + 1"
    )
    assert inside
    assert scene.bounding_box()["width"] > 300


def test_in_a_cell_the_axes_stand_below_each_other_and_fit(show):
    page = show(width=720)
    page.click("tab axes")
    inside = page.locate(".dlc-picture .dlc-scroll").evaluate(
        "(e) => e.scrollWidth <= e.clientWidth + 1 && e.scrollHeight <= e.clientHeight + 1"
    )
    assert inside
    assert scale(page) >= 0.75


@pytest.mark.parametrize("width", [1200, 1000, 720, 480])
def test_every_tab_is_seen_where_there_is_less_room(show, width):
    page = show(width=width)
    tabs = page.locate(".dlc-picture [role=tablist]")
    assert tabs.evaluate(
        "(e) => e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight"
    )
    place, last = box(page, ".dlc-picture"), tabs.locator("button").last.bounding_box()
    assert last["x"] + last["width"] <= place["x"] + place["width"]


def test_the_name_of_the_program_leaves_room_for_the_time_but_is_not_cut(show):
    from tests.widgets.shots import climbed

    page = show(climbed, 720)
    name = page.locate(".dlc-title strong")
    assert name.evaluate("(e) => e.scrollWidth <= e.clientWidth")
    assert box(page, ".dlc-known")["width"] > 300


def test_a_picture_too_large_is_moved_not_made_unreadable(show):
    page = show(device, 720)
    page.click("tab nest")
    assert scale(page) >= 0.749
    frame = page.locate(".dlc-picture .dlc-scroll")
    page.key("zoom in").click()
    page.key("zoom in").click()
    frame.focus()
    for _ in range(3):
        frame.press("ArrowDown")
    page.page.wait_for_function("document.querySelector('.dlc-picture .dlc-scroll').scrollTop > 0")
    top = frame.evaluate("(e) => e.scrollTop")
    place = frame.bounding_box()
    x, y = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
    chosen = page.widget.chosen
    page.page.mouse.move(x, y)
    page.page.mouse.down()
    page.page.mouse.move(x, y - 10)
    page.page.mouse.move(x, y - 40)
    page.page.mouse.up()
    page.settle()
    assert frame.evaluate("(e) => e.scrollTop") > top
    assert page.widget.chosen == chosen


def test_ctrl_and_the_wheel_keep_the_point_under_the_pointer(show):
    page = show()
    page.click("tab axes")
    mark = page.locate("text.dlc-link").nth(3)
    place = mark.bounding_box()
    x, y = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
    page.page.mouse.move(x, y)
    page.page.keyboard.down("Control")
    first = scale(page)
    for _ in range(6):
        page.page.mouse.wheel(0, -100)
    page.page.keyboard.up("Control")
    page.page.wait_for_timeout(50)
    assert scale(page) > 1.4 * first
    moved = mark.bounding_box()
    assert abs(moved["x"] + moved["width"] / 2 - x) < 40
    frame = page.locate(".dlc-picture .dlc-scroll")
    frame.press("0")
    assert scale(page) == pytest.approx(first, rel=0.01)


# -- long lines -----------------------------------------------------------------------------------


def test_long_lines_wrap_with_a_hanging_indent_or_scroll(show):
    page = show()
    page.click("tab loops")
    lines = page.locate(".dlc-program .dlc-lines")
    fits = "(e) => e.scrollWidth <= e.clientWidth"
    assert lines.evaluate(fits)
    long = page.locate(".dlc-program .dlc-line").filter(has_text="+=").last
    starts = """(line) => {
      const range = document.createRange();
      range.selectNodeContents(line.querySelector(".dlc-text"));
      return [...range.getClientRects()].map(({ left, top }) => [Math.round(top), left]);
    }"""
    first = {}
    for top, left in long.evaluate(starts):
        first[top] = min(left, first.get(top, left))
    rows = [first[top] for top in sorted(first)]
    assert len(rows) > 1
    assert all(left > rows[0] for left in rows[1:])
    page.key("wrap").click()
    assert not lines.evaluate(fits)


# -- all the room there is ------------------------------------------------------------------------


@pytest.mark.campaign
def test_a_view_of_its_own_in_jupyterlab_is_filled(show):
    """JupyterLab's "Create New View for Output" is a panel whose size its user chooses."""
    for width, height in ((1200, 700), (800, 900), (400, 600)):
        page = show(width=width, height=height)
        page.page.evaluate(
            """([width, height]) => {
              const host = document.querySelector("#host");
              host.className = "jp-LinkedOutputView";
              Object.assign(host.style, { width: `${width}px`, height: `${height}px` });
            }""",
            [width, height],
        )
        page.settle()
        looks = looks_of(page)
        assert height - 60 <= looks.height <= height, width
        assert looks.problems == [], width


def test_the_whole_screen_is_filled(show):
    page = show(width=1400, height=1000)
    page.key("maximise").click()
    page.page.wait_for_function("document.fullscreenElement !== null")
    page.settle()
    looks = looks_of(page)
    assert looks.height >= 990
    assert looks.problems == []
    assert looks.picture >= 0.5
    page.key("maximise").click()
    page.page.wait_for_function("document.fullscreenElement === null")


# -- one language ---------------------------------------------------------------------------------

RAW = {
    "a colour": re.compile(r"#[0-9a-fA-F]{3,8}\b(?![^{}]*\{)|\brgba?\(|\bhsla?\("),
    "a size of text": re.compile(r"font(?:-size)?:[^;]*\b\d+(?:\.\d+)?(?:px|pt|rem|em)\b"),
    "a space": re.compile(
        r"\b(?:gap|padding|margin|border|border-radius)(?:-[a-z]+)*:[^;}]*\b(?!0px)\d+(?:\.\d+)?px"
    ),
    "a font": re.compile(r"font-family:(?![^;]*(?:var\(--dlc-|inherit))"),
}


@pytest.mark.parametrize("name", sorted({*WORKBENCH_SHEETS, *TUNING_SHEETS} - {"tokens"}))
def test_sheets_use_the_tokens(name):
    text = re.sub(r"/\*.*?\*/", "", styles(name), flags=re.DOTALL)
    found = [f"{what}: {match[0]}" for what, rule in RAW.items() for match in rule.finditer(text)]
    assert found == []


def test_every_token_that_is_used_is_there():
    everything = styles(*dict.fromkeys((*WORKBENCH_SHEETS, *TUNING_SHEETS)))
    local = {
        "across", "deepest", "depth", "fill", "floor", "h", "least", "left", "most", "rest",
        "right", "row", "rows", "share", "size", "w",
    }  # fmt: skip
    # set by scripts
    declared = set(re.findall(r"--dlc-([\w-]+):", everything)) | local
    assert set(re.findall(r"var\(--dlc-([\w-]+)", everything)) - declared == set()
