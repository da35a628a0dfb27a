"""The tuning dashboard on a page: what is drawn, chosen, sorted, and what everybody can use."""

import pytest

from tests.widgets.axe import violations
from tests.widgets.live_page import DARK, LivePage
from tests.widgets.test_accessibility import SCHEMES

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import TuningDashboard
from dlcompiler_widgets.tuning.session import TABS
from dlcompiler_widgets.tuning.shipping import unpacked

from tests.watched_runs import HOSTILE, ended, space, start

UNMARKED = """
() => [...document.querySelectorAll(".dlc-tuning *")]
  .filter((e) => e.tabIndex >= 0 || e.hasAttribute("tabindex"))
  .filter((e) => !["SVG", "svg", "INPUT"].includes(e.tagName))
  .filter((e) => e.dataset.lmSuppressShortcuts !== "true")
  .map((e) => e.outerHTML.slice(0, 120))
"""
SMALL_TARGETS = """
() => [...document.querySelectorAll(".dlc-tuning button, .dlc-tuning select, .dlc-tuning tbody tr,"
    + " .dlc-tuning summary")]
  .filter((e) => e.getBoundingClientRect().height > 0)
  .filter((e) => Math.min(e.getBoundingClientRect().height, e.getBoundingClientRect().width) < 23.9)
  .map((e) => e.outerHTML.slice(0, 120))
"""
SMALL_TEXT = """
() => [...document.querySelectorAll(".dlc-tuning *")]
  .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()))
  .filter((e) => parseFloat(getComputedStyle(e).fontSize) < 12)
  .map((e) => e.outerHTML.slice(0, 120))
"""
WIDE = """
() => document.documentElement.scrollWidth - document.documentElement.clientWidth
"""


def show(contexts, run, width=1200, **options):
    is_dark = options.get("color_scheme") == "dark"
    context = contexts.open(viewport={"width": width, "height": 1000}, **options)
    own = space().at(run.trials[0].point) if run.trials else None
    widget = TuningDashboard(run, own=own, open_trial=lambda trial: None)
    page = LivePage(context, widget, DARK if is_dark else "")
    page.wait(lambda: widget.intent.get("op") == "size")
    page.settle()
    return page


def close(page):
    assert page.errors == []
    assert all(url.startswith(("data:", "about:", "blob:")) for url in page.requests)
    page.context.close()
    page.widget.close()


@pytest.fixture(scope="module")
def run():
    return ended(120)


@pytest.fixture
def page(contexts, run):
    live = show(contexts, run)
    yield live
    close(live)


@pytest.fixture
def going(contexts):
    """A run that waits for permits, on a page."""
    run = start(60, permits=0)
    live = show(contexts, run)
    yield live
    run.stop()
    run.wait()
    close(live)


def wait_for(page, count):
    """Wait until the run has so many trials on the page."""
    trials = page.locate('dd[data-fact="trials"]')
    page.wait(lambda: int(trials.inner_text().split(" ")[0]) >= count)


def rows(page):
    return page.page.evaluate(
        "() => [...document.querySelectorAll('.dlc-tuning tbody tr')].map((e) => e.dataset.key)"
    )


def row(page, number):
    return page.locate(f'.dlc-tuning tr[data-key="trial {number}"]')


def signs(page):
    """How many signs the curve has: each is a move to its place."""
    return page.page.evaluate(
        """() => [...document.querySelectorAll(".dlc-tuning-curve path.dlc-dots")]
            .filter((e) => e.signs.keys.length)
            .reduce((n, e) => n + e.getAttribute("d").split("M").length - 1, 0)"""
    )


def test_the_page_draws_what_arrives(going):
    assert signs(going) == 0
    going.widget.run.pool.permits = 10
    wait_for(going, 10)
    assert signs(going) == 10
    assert len(rows(going)) == 10
    going.widget.run.pool.permits = 60
    wait_for(going, 60)
    assert signs(going) == 60
    assert rows(going)[0] == "trial 59"


def test_a_page_that_comes_later_draws_the_same(contexts, going):
    going.widget.run.pool.permits = 33
    wait_for(going, 33)
    context = contexts.open()
    other = LivePage(context, going.widget)
    other.settle()
    assert signs(other) == signs(going) == 33
    assert rows(other) == rows(going)
    assert not other.errors
    context.close()


def test_a_sign_chooses_its_trial(page):
    marks = unpacked(page.widget.progress_base, page.widget.progress)
    mark = next(m for m in marks if m["shape"] == "dots" and m["glyph"] == "tick")
    box = page.locate(".dlc-tuning-curve svg").bounding_box()
    page.page.mouse.move(box["x"] + mark["xy"][0] + 3, box["y"] + mark["xy"][1] + 3)
    key = mark["keys"][0]
    page.locate(f'.dlc-tuning-curve .dlc-scroll[title="{key}"]').wait_for()
    page.page.mouse.down()
    page.page.mouse.up()
    page.settle()
    assert page.widget.detail["key"] == key
    assert "dlc-tuning-chosen" in row(page, key.split()[1]).get_attribute("class")


def test_a_and_b_by_the_keyboard(page):
    row(page, 119).focus()
    page.page.keyboard.press("ArrowDown")
    page.settle()
    assert page.widget.detail["key"] == "trial 118"
    page.page.keyboard.press("a")
    page.settle()
    page.page.keyboard.press("End")
    page.settle()
    page.page.keyboard.press("b")
    page.settle()
    title = page.widget.picture["scene"]["title"]
    assert title == f"Why trial 118 before {rows(page)[-1]}"
    assert row(page, 118).get_attribute("data-side") == "A"
    assert page.page.evaluate("document.activeElement.dataset.key") == rows(page)[-1]


def test_rows_are_sorted_and_filtered(page):
    page.click("sort gflops")
    best = f"trial {page.widget.run.best.index}"
    assert rows(page)[0] == best
    heading = page.locate("th[aria-sort]")
    assert heading.get_attribute("aria-sort") == "descending"
    page.click("sort gflops")
    assert heading.get_attribute("aria-sort") == "ascending"
    page.key("filter").select_option("crashed")
    page.settle()
    assert set(page.locate(".dlc-tuning tbody td:nth-child(4)").all_inner_texts()) == {"crashed"}


def test_a_page_of_rows_is_turned(page):
    assert len(rows(page)) == 100
    page.click("page behind")
    assert len(rows(page)) == 20
    assert page.key("page behind").get_attribute("aria-disabled") == "true"


def test_the_buttons_pause_and_stop(going):
    going.widget.run.pool.permits = 3
    wait_for(going, 3)
    going.click("pause")
    going.wait(going.key("resume").count)
    assert going.locate(".dlc-tuning").get_attribute("data-state") == "paused"
    assert going.page.evaluate("document.activeElement.dataset.key") == "resume"
    going.click("stop")
    going.widget.run.wait()
    going.wait(going.locate('.dlc-tuning[data-state="stopped"]').count)


def test_what_is_open_stays_open_while_trials_arrive(going):
    going.widget.run.pool.permits = 5
    wait_for(going, 5)
    going.locate(".dlc-tuning-curve summary").click()
    going.locate(".dlc-tuning-curve details[open] table").wait_for()
    row(going, 2).focus()
    going.widget.run.pool.permits = 30
    wait_for(going, 30)
    assert going.locate(".dlc-tuning-curve details[open] table").count() == 1
    assert going.page.evaluate("document.activeElement.dataset.key") == "trial 2"


def test_a_hostile_text_is_only_text(page):
    row(page, 111).click()
    page.settle()
    assert page.locate(".dlc-tuning-message").inner_text() == HOSTILE
    hostile = {"text": HOSTILE, "tone": "error", "details": [[HOSTILE, HOSTILE]]}
    page.page.evaluate(
        """([status, bad]) => window.model.update({
            status, reply: { seq: 1e9, id: null },
            head: { ...window.model.get("head"), title: bad, state: bad, note: bad, text: bad,
                    facts: [[bad, bad]] } })""",
        [hostile, HOSTILE],
    )
    page.locate(".dlc-status", has_text="onerror").wait_for()
    assert page.page.evaluate("window.broken") is None
    assert page.locate(".dlc-tuning img").count() == 0


def test_the_code_and_the_explorer(page):
    row(page, 119).click()
    page.settle()
    page.click("code")
    assert page.locate(".dlc-tuning-detail .dlc-line").count() > 5
    page.click("open")
    assert "open in the Explorer" in page.widget.status["text"]


@pytest.mark.campaign
@pytest.mark.parametrize("width", [500, 765, 1200])
def test_nothing_is_too_small_or_sticks_out(contexts, run, width):
    live = show(contexts, run, width)
    row(live, 119).click()
    live.settle()
    for tab in TABS:
        live.click(f"tab {tab}")
        assert live.page.evaluate(SMALL_TARGETS) == [], tab
        assert live.page.evaluate(SMALL_TEXT) == [], tab
        assert live.page.evaluate(WIDE) <= 0, tab
        assert live.page.evaluate(UNMARKED) == [], tab
    close(live)


def test_wide_pages_have_two_columns(contexts, run):
    places = {}
    for width in (765, 1200):
        live = show(contexts, run, width)
        left, right = (live.locate(f".dlc-tuning-{n}").bounding_box() for n in ("curve", "picture"))
        places[width] = left["y"] == right["y"]
        close(live)
    assert places == {765: False, 1200: True}


@pytest.mark.campaign
@pytest.mark.parametrize(("scheme", "rules"), SCHEMES)
def test_axe_finds_nothing_serious(contexts, scheme, rules):
    live = show(contexts, ended(24), color_scheme=scheme)
    for side, number in (("a", 18), ("b", 10)):
        row(live, number).click()
        live.settle()
        live.click(side)
    assert violations(live.page, only=rules) == []
    for tab in TABS:
        live.click(f"tab {tab}")
        live.page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
        assert violations(live.page, ".dlc-tuning-picture", rules) == [], tab
    close(live)
