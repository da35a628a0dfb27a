"""The box beside a move: where it is, how it opens and closes, and how one gets into it."""

import pytest

from tests.widgets.axe import violations
from tests.widgets.live_page import LivePage
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer

pytestmark = pytest.mark.campaign(whole_file=True)

CAMPAIGN = pytest.mark.campaign
SIZES = [
    pytest.param((1400, 900), marks=CAMPAIGN, id="three columns"),
    pytest.param((760, 700), id="two columns"),
    pytest.param((420, 800), marks=CAMPAIGN, id="one column"),
]


@pytest.fixture(params=SIZES)
def page(contexts, request):
    width, height = request.param
    yield from opened(contexts, width, height)


@pytest.fixture
def wide(contexts):
    yield from opened(contexts, 1400, 900)


def opened(contexts, width, height):
    context = contexts.open(viewport={"width": width, "height": height})
    schedule, args = matmul()
    page = LivePage(context, Explorer(schedule, args, name="matmul", level="all"))
    yield page
    assert not page.errors
    page.widget.close()
    context.close()


def choose(page, key):
    page.loop(key).click()
    page.settle()


def answered(page):
    page.locate(".dlc-metrics, .dlc-nearest").first.wait_for()


def box(page, css):
    found = page.locate(css).first.bounding_box()
    return found["x"], found["y"], found["x"] + found["width"], found["y"] + found["height"]


def is_apart(a, b):
    return a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def is_within(a, b):
    return a[0] >= b[0] and a[1] >= b[1] and a[2] <= b[2] and a[3] <= b[3]


def focused(page):
    return page.page.evaluate("document.activeElement.dataset.key ?? null")


MOVES = [
    "split C C.k", "vectorize C C.k", "rfactor C C.k", "reorder C C.k C.j", "compute_inline C C",
    "set_scope C C global",
]  # fmt: skip


def test_it_covers_neither_its_button_nor_what_is_outside_the_widget(page):
    choose(page, "C/k")
    for key in MOVES:
        page.key(key).scroll_into_view_if_needed()
        page.key(key).hover()
        answered(page) if key in ("split C C.k", "vectorize C C.k") else None
        page.locate(".dlc-why").wait_for()
        why, own = box(page, ".dlc-why"), box(page, f'.dlc-palette [data-key="{key}"]')
        assert is_apart(why, own), key
        assert is_within(why, box(page, ".dlc-explorer")), key
        assert why[2] - why[0] >= 200, key
        page.page.mouse.move(2, 2)
        page.locate(".dlc-why").wait_for(state="hidden")


def test_there_is_no_box_before_a_move_has_the_attention(page):
    choose(page, "C/k")
    assert not page.locate(".dlc-why").is_visible()
    below = page.locate(".dlc-palette").evaluate("(e) => e.lastElementChild.className")
    assert "dlc-why" in below
    assert page.locate(".dlc-legend").inner_text().startswith("✕ not possible")


def test_the_keyboard_opens_it_enters_it_and_closes_it(page):
    choose(page, "C/k")
    page.key("vectorize C C.k").focus()
    page.locate(".dlc-why").wait_for()
    about = page.key("vectorize C C.k").get_attribute("aria-describedby")
    text = page.locate(f"#{about}").inner_text()
    assert "not possible, it would change the result: a reduction axis" in text
    answered(page)
    page.page.keyboard.press("Alt+ArrowDown")
    assert focused(page) == "nearest"
    page.page.keyboard.press("Escape")
    assert focused(page) == "vectorize C C.k"
    assert not page.locate(".dlc-why").is_visible()
    assert page.key("vectorize C C.k").get_attribute("aria-describedby") is None
    page.page.keyboard.press("Escape")
    assert focused(page) == "C/k"


def test_tab_goes_on_to_the_next_move(wide):
    choose(wide, "C/k")
    wide.key("unroll C C.k").focus()
    answered(wide)
    before = focused(wide)
    wide.page.keyboard.press("Tab")
    assert wide.locate(".dlc-moves :focus").count() == 1
    assert focused(wide) != before


def test_the_pointer_reaches_its_button_past_other_moves(wide):
    """On its way the pointer crosses other moves: it does not stop, and they do not take over."""
    choose(wide, "C/k")
    wide.key("vectorize C C.k").hover()
    answered(wide)
    left, top, right, bottom = box(wide, '[data-key="nearest"]')
    x, y = (left + right) / 2, (top + bottom) / 2
    wide.page.mouse.move(x, y, steps=25)
    assert "vectorize" in wide.locate(".dlc-why").inner_text()
    wide.page.mouse.click(x, y)
    wide.settle()
    assert wide.widget.schedule.node.title() == "vectorize C j"


def test_it_goes_when_the_pointer_goes(wide):
    choose(wide, "C/i")
    wide.key("parallel C C.i").hover()
    answered(wide)
    wide.page.mouse.move(5, 5)
    wide.locate(".dlc-why").wait_for(state="hidden")
    assert wide.locate(".dlc-about").count() == 0


def test_the_palette_begins_at_its_top_for_another_loop(wide):
    choose(wide, "C/k")
    moves = wide.locate(".dlc-moves")
    moves.evaluate("(e) => { e.style.maxHeight = '120px'; e.scrollTop = 80; }")
    assert moves.evaluate("(e) => e.scrollTop") == 80
    wide.key("split C C.k factor").focus()
    choose(wide, "C/i")
    assert moves.evaluate("(e) => e.scrollTop") == 0
    moves.evaluate("(e) => { e.scrollTop = 60; }")
    wide.widget.schedule[wide.widget._session.args[-1]].parallel(
        wide.widget._session.args[-1].op.axis[0]
    )
    wide.push()
    assert wide.widget.chosen == "C/i"
    assert moves.evaluate("(e) => e.scrollTop") == 60


def test_a_tile_names_its_loops(wide):
    choose(wide, "C/j")
    assert wide.key("tile C C.i C.j").inner_text() == "tile i × j"
    fields = wide.locate('[data-key^="tile C C.i C.j "][type="text"]')
    assert [fields.nth(n).get_attribute("aria-label") for n in range(2)] == [
        "size of i in tile i × j, typed",
        "size of j in tile i × j, typed",
    ]
    names = wide.locate(".dlc-number-name")
    assert [names.nth(n).inner_text() for n in range(2)] == ["i", "j"]


def test_the_figures_stand_in_a_table(wide):
    choose(wide, "C/i")
    wide.key("parallel C C.i").hover()
    answered(wide)
    heads = wide.locate(".dlc-metrics tbody th")
    names = [heads.nth(n).inner_text() for n in range(heads.count())]
    caches = [level.name for level in wide.widget._session.target.caches]
    pairs = zip(caches, [*caches[1:], "memory"], strict=True)
    assert names == [
        "operations", "at once", *(f"{near} ↔ {far}" for near, far in pairs), "time of a call",
    ]  # fmt: skip
    models = wide.locate(".dlc-model")
    texts = [models.nth(n).inner_text() for n in range(models.count())]
    assert texts[0].startswith("bytes predicted by the cache model")
    assert texts[1].startswith("time predicted by the roofline model")
    assert wide.locate(".dlc-pair").count() >= 1
    assert violations(wide.page) == []
