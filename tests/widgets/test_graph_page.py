"""The fusion view on a page: what is drawn, pointed at, searched, and what everybody can use."""

import pytest

from dlcompiler import graph
from dlcompiler.graph import builders, op
from tests.fusion_networks import chain, residual
from tests.widgets.axe import violations
from tests.widgets.live_page import DARK, LivePage
from tests.widgets.looks import problems_of
from tests.widgets.test_accessibility import SCHEMES

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import GraphView

from tests.widgets.test_graph_view import HOSTILE

UNMARKED = """
() => [...document.querySelectorAll(".dlc-graph *")]
  .filter((e) => e.tabIndex >= 0 || e.hasAttribute("tabindex"))
  .filter((e) => e.dataset.lmSuppressShortcuts !== "true")
  .map((e) => e.outerHTML.slice(0, 120))
"""
FOCUSED = "() => document.activeElement.dataset.key ?? null"
SMALL = """
() => [...document.querySelectorAll(".dlc-graph button, .dlc-graph summary, .dlc-graph input")]
  .filter((e) => e.getBoundingClientRect().height > 0)
  .filter((e) => Math.min(e.getBoundingClientRect().height, e.getBoundingClientRect().width) < 23.9)
  .map((e) => e.outerHTML.slice(0, 120))
"""


@pytest.fixture
def show(contexts):
    """Show a module; its pages are closed at the end, and must not have failed."""
    pages = []

    def show_(module, width=1200, **options):
        is_dark = options.get("color_scheme") == "dark"
        view = GraphView(module)
        context = contexts.open(viewport={"width": width + 16, "height": 1000}, **options)
        page = LivePage(context, view.panel, DARK if is_dark else "")
        page.view = view
        page.settle()
        pages.append(page)
        return page

    yield show_
    for page in pages:
        assert page.errors == []
        assert all(url.startswith(("data:", "about:", "blob:")) for url in page.requests)
        page.context.close()
        page.view.close()


@pytest.fixture(scope="module")
def resnet():
    return residual()


@pytest.fixture(scope="module")
def lenet():
    return builders.lenet().bound


def part(page, key):
    return page.locate(f'.dlc-graph-picture [data-key="{key}"]')


def edge(page, a, b):
    """The arrow of a verdict."""
    rows = page.widget.verdicts["table"]["rows"]
    number = next(n for n, row in enumerate(rows) if row[:2] == [a, b])
    return next(e for e in page.widget.picture["edges"] if number in e["verdicts"])


def details(page):
    return page.locate(".dlc-graph-detail").inner_text()


def press(page, *keys):
    for key in keys:
        page.page.keyboard.press(key)
        page.settle()


def test_every_part_of_the_model_is_drawn(show, lenet):
    page = show(lenet)
    for name in ("node", "edge", "frame"):
        drawn = page.locate(f".dlc-graph-{name}").count()
        assert drawn == len(page.widget.picture[f"{name}s"]), name
    assert page.page.evaluate(UNMARKED) == []


def test_an_arrow_says_its_verdict_when_pointed_at(show, lenet):
    page = show(lenet)
    found = edge(page, "conv1", "conv1_add")
    part(page, found["key"]).hover()
    assert page.locate(".dlc-graph-hint").inner_text() == found["text"]
    assert "fused by the rule “elementwise after anchor”; saves 1 kernel" in found["text"]


def test_a_decision_is_changed_and_taken_back(show, lenet):
    page = show(lenet)
    part(page, edge(page, "conv1", "conv1_add")["key"]).click(force=True)
    assert "elementwise after anchor" in details(page)
    page.click("wish keep apart")
    assert page.locate('dd[data-fact="kernels"]').inner_text() == "9 → 10"
    assert "kept apart" in details(page)
    page.click("wish ")
    assert page.locate('dd[data-fact="kernels"]').inner_text() == "10 → 9"
    part(page, edge(page, "pool1", "conv2")["key"]).click(force=True)
    page.click("wish fuse")
    assert "cannot be one kernel" in page.locate(".dlc-status").inner_text()


def test_the_whole_by_keys(show, lenet):
    page = show(lenet)
    part(page, "node 0").focus()
    press(page, "ArrowDown")
    first = page.page.evaluate(FOCUSED)
    assert first.startswith("node 0 → ")
    assert page.locate(".dlc-graph-hint").is_visible()
    press(page, "ArrowDown", "ArrowDown")
    second = edge(page, "conv1", "conv1_add")["key"]
    assert page.page.evaluate(FOCUSED) == second
    press(page, "Enter")
    assert page.page.evaluate(FOCUSED) == "wish keep apart"
    press(page, "Enter")
    assert page.locate('dd[data-fact="kernels"]').inner_text() == "9 → 10"
    press(page, "Escape")
    assert page.page.evaluate(FOCUSED).startswith("node 1")
    press(page, "ArrowUp", "ArrowUp")
    assert page.page.evaluate(FOCUSED).startswith("node 0")
    press(page, "End", "Home")
    assert page.page.evaluate(FOCUSED) == "node 0"


@pytest.mark.campaign
def test_a_box_opens_by_enter_and_closes_by_escape(show, resnet):
    page = show(resnet)
    part(page, "block 0").focus()
    press(page, "Enter")
    assert part(page, "block 0").get_attribute("class").startswith("dlc-graph-frame")
    inside = page.widget.picture["frames"][1]
    part(page, inside["key"]).focus()
    press(page, "Escape")
    assert part(page, inside["key"]).get_attribute("class").startswith("dlc-graph-node")


@pytest.mark.campaign
def test_a_search_finds_calls_in_closed_boxes(show, resnet):
    page = show(resnet)
    page.key("search").fill("stage3_unit2 conv2d")
    assert page.locate(".dlc-graph-found").inner_text() == "1 found"
    assert page.locate(".dlc-hit").get_attribute("data-key") in {
        node["key"] for node in page.widget.picture["nodes"] if "stage3_unit2" in node["words"]
    }
    press(page, "Enter")
    assert "stage3_unit2" in details(page)
    press(page, "Escape")
    assert page.locate(".dlc-hit").count() == 0


@pytest.mark.campaign
def test_the_map_moves_the_frame(show, resnet):
    page = show(resnet)
    frame = page.locate(".dlc-graph-picture .dlc-scroll")
    box = page.locate(".dlc-graph-map canvas").bounding_box()
    page.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - 4)
    assert frame.evaluate("(e) => e.scrollTop") > 500


@pytest.mark.campaign
def test_the_passes_are_scrubbed(show, lenet):
    page = show(lenet)
    page.click("tab passes")
    page.key("pass 0").click()
    page.settle()
    assert "each by itself" in page.locate(".dlc-graph-picture .dlc-summary").inner_text()
    scrub = page.key("pass scrub")
    scrub.focus()
    press(page, "End")
    assert page.widget.picture["after"] is None
    assert "fused" in page.locate(".dlc-graph-did").inner_text()


@pytest.mark.campaign
def test_a_row_and_a_bar_lead_to_the_picture(show, lenet):
    page = show(lenet)
    rows = page.widget.verdicts["table"]["rows"]
    last = len(rows) - 1
    page.key(f"verdict {last}").click()
    assert rows[last][1] in details(page)
    assert page.locate("tr.dlc-own").count() == 1
    page.click("tab arena")
    page.locate(".dlc-graph-part rect.dlc-link").first.click()
    assert "conv1" in details(page)


@pytest.mark.campaign
def test_measured_times_are_bars(show):
    x = graph.var("x", (8, 8))
    page = show(graph.Module.from_expr(op.sqrt(op.sum(op.exp(x), axis=1))))
    page.click("tab times")
    assert "press Measure" in page.locate(".dlc-graph-part").inner_text()
    page.key("measure").click()
    page.wait(lambda: page.widget.times["scene"] is not None)
    assert "measured on" in page.locate(".dlc-graph-part").inner_text()
    assert page.locate(".dlc-graph-part rect.dlc-bar").count() == 2


@pytest.mark.campaign
def test_hostile_names_are_text(show):
    x = graph.var(HOSTILE, (2,))
    page = show(graph.Module.from_expr(op.sqrt(op.sum(op.exp(x, name=HOSTILE)))))
    for name in ("verdicts", "passes", "arena", "times"):
        page.click(f"tab {name}")
    part(page, "node 1").click()
    assert page.locate(".dlc-graph img").count() == 0
    assert "onerror" in details(page)


@pytest.mark.campaign
def test_500_calls_have_few_elements(show):
    page = show(chain(500))
    assert page.locate(".dlc-graph-node").count() < 30
    page.click("level calls")
    assert page.locate(".dlc-graph-node").count() == 501
    assert page.page.evaluate("document.querySelectorAll('.dlc-graph-picture *').length") < 5_000


@pytest.mark.campaign
@pytest.mark.parametrize("width", [480, 720, 1400])
def test_nothing_is_cut_small_or_sticks_out(show, lenet, width):
    page = show(lenet, width)
    part(page, "node 2").click()
    for name in ("passes", "arena", "times", "verdicts"):
        page.click(f"tab {name}")
        assert problems_of(page) == [], name
        assert page.page.evaluate(SMALL) == [], name
        assert page.page.evaluate(UNMARKED) == [], name


@pytest.mark.campaign
@pytest.mark.parametrize(("scheme", "rules"), SCHEMES)
def test_axe_finds_nothing_serious(show, lenet, scheme, rules):
    page = show(lenet, color_scheme=scheme)
    part(page, edge(page, "conv1", "conv1_add")["key"]).click(force=True)
    for name in ("passes", "arena", "times", "verdicts"):
        page.click(f"tab {name}")
        assert violations(page.page, only=rules) == [], name
