"""Everybody can use the workbench: axe-core, contrast, the keyboard, media that hosts ask for."""

import pytest

from dlcompiler import te
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve
from tests.thread_programs import tiled_matmul
from tests.widgets.axe import violations
from tests.widgets.live_page import DARK, LivePage

pytest.importorskip("dlcompiler_widgets")
import dlcompiler_widgets
from dlcompiler_widgets import Explorer, LoopTree, ThreadBlock
from dlcompiler_widgets.explorer import background
from dlcompiler_widgets.explorer.kernels import SCENES
from dlcompiler_widgets.explorer.pictures import PICTURES as ALL_PICTURES
from dlcompiler_widgets.explorer.texts import tabs_of
from dlcompiler_widgets.explorer.widget import Workbench

TABS = tabs_of(resolve("cpu"))
OF_ACCELERATORS = ("timeline", "chip")
PICTURES = [name for name in ALL_PICTURES if name not in ("block", *SCENES, *OF_ACCELERATORS)]
"""The tabs for a CPU, which has no threads of a block, no kernels and no engines."""

PANES = [
    value
    for value in vars(dlcompiler_widgets).values()
    if isinstance(value, type) and issubclass(value, Workbench) and value is not Explorer
]
SCHEMES = [
    pytest.param("light", (), id="light"),
    pytest.param("dark", ("color-contrast",), id="dark"),  # the other rules see no colours
]
OPEN_ALL = "() => { for (const each of document.querySelectorAll('details')) each.open = true; }"


def blocked(n=64):
    """A product with a cached block, steps undone, and states with names."""
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    cached = s.cache_write(C, "local")
    io, jo, _, ji = s[C].tile(*C.op.axis, 16, 16)
    s[cached].compute_at(s[C], jo)
    s[C].vectorize(ji)
    s.history.history.describe(s.node, name="blocked", note="a note")
    s.undo()
    s[C].parallel(io)
    return s, [A, B, C]


def opened(contexts, widget, **options):
    """A widget on a page of its own."""
    is_dark = options.get("color_scheme") == "dark"
    context = contexts.open(viewport={"width": 1200, "height": 900}, **options)
    page = LivePage(context, widget, DARK if is_dark else "")
    page.settle()
    return page


@pytest.fixture
def show(contexts):
    """Show an Explorer, or another widget, on a page; ends without an error on its console."""
    pages = []

    def show_(pane=Explorer, **options):
        schedule, args = tiled_matmul() if pane is ThreadBlock else blocked()
        widget = pane(schedule, args=args, name="matmul", level="all")
        pages.append(opened(contexts, widget, **options))
        return pages[-1]

    yield show_
    for page in pages:
        assert not page.errors
        page.context.close()
        page.widget.close()


@pytest.mark.campaign
@pytest.mark.parametrize(("scheme", "rules"), SCHEMES)
def test_axe_finds_nothing_serious_in_any_tab(show, scheme, rules):
    page = show(color_scheme=scheme)
    assert violations(page.page, only=rules) == []
    for pane, tabs in ((".dlc-picture", PICTURES), (".dlc-program", TABS)):
        for name in tabs:
            page.open_tab(name)
            page.page.evaluate(OPEN_ALL)
            assert violations(page.page, pane, rules) == [], name


@pytest.mark.campaign(longest=True)
@pytest.mark.parametrize(("scheme", "rules"), SCHEMES)
def test_axe_finds_nothing_serious_in_a_program_for_a_device(contexts, scheme, rules, monkeypatch):
    monkeypatch.setattr(background, "PATIENCE_S", 60.0)
    schedule, args = tiled_matmul()
    widget = Explorer(schedule, args, target="v100", level="all")
    page = opened(contexts, widget, color_scheme=scheme)
    for name in ("block", "memory", "nest", *SCENES):
        page.open_tab(name)
        page.page.evaluate(OPEN_ALL)
        assert violations(page.page, only=rules) == [], name
        assert page.page.evaluate(LETTING_KEYS_THROUGH) == [], name
    assert not page.errors
    page.context.close()
    widget.close()


@pytest.mark.campaign
@pytest.mark.parametrize(("scheme", "rules"), SCHEMES)
def test_axe_finds_nothing_serious_in_what_opens(show, scheme, rules):
    page = show(color_scheme=scheme)
    nodes = [row["id"] for row in page.widget.history["rows"]]
    page.locate(f'.dlc-state[data-key="{nodes[0]}"]').focus()
    for key in ("a", "ArrowDown", "b"):
        page.page.keyboard.press(key)
        page.settle()
    page.locate(".dlc-compare:not([hidden])").wait_for()
    assert violations(page.page, only=rules) == []
    page.page.keyboard.press("Escape")
    page.settle()
    page.locate(f'.dlc-state[data-key="{nodes[0]}"]').press("n")
    assert violations(page.page, ".dlc-history", rules) == []


@pytest.mark.campaign
@pytest.mark.parametrize("pane", PANES)
def test_axe_finds_nothing_serious_in_a_single_pane(show, pane):
    assert violations(show(pane).page) == []


# -- the keyboard ----------------------------------------------------------------------------------

FOCUSED_PANE = """() => {
  const active = document.activeElement;
  const pane = active.closest('.dlc-pane, .dlc-bar, .dlc-status');
  return active.closest('.dlc-explorer') ? pane?.className ?? '' : null;
}"""


LETTING_KEYS_THROUGH = """() => [...document.querySelectorAll(
  '.dlc-explorer :is(button, summary, [tabindex]):not(input, textarea, select)')]
  .filter((each) => each.dataset.lmSuppressShortcuts !== "true").map((each) => each.outerHTML)"""


def test_tab_goes_through_the_panes_in_their_order_and_out(show):
    page = show()
    order = page.page.evaluate(
        "() => [...document.querySelectorAll('.dlc-bar, .dlc-pane')].map((each) => each.className)"
    )
    page.page.keyboard.press("Tab")
    visited = []
    for _ in range(150):
        where = page.page.evaluate(FOCUSED_PANE)
        if where is None:
            break
        visited.append(where)
        page.page.keyboard.press("Tab")
    else:
        raise AssertionError(f"Tab never leaves; last seen {visited[-3:]}")
    seen = list(dict.fromkeys(each for each in visited if each in order))
    assert seen == [name for name in order if name in seen]
    assert len(seen) >= 5
    for name in seen:
        first, last = visited.index(name), len(visited) - visited[::-1].index(name)
        assert set(visited[first:last]) == {name}, f"{name} is entered twice"
    tree = [name for name in visited if "dlc-tree" in name]
    assert len(tree) == 2, "its title, and one stop for all of its rows"


@pytest.mark.campaign
def test_what_takes_the_focus_keeps_its_keys_from_the_notebook(show):
    page = show()
    for name in (*PICTURES, *TABS):
        page.open_tab(name)
        page.page.evaluate(OPEN_ALL)
        assert page.page.evaluate(LETTING_KEYS_THROUGH) == [], name


# -- the tree --------------------------------------------------------------------------------------


def test_the_tree_says_what_it_shows(show):
    page = show(LoopTree)
    items = page.locate('[role="tree"] [role="treeitem"]')
    rows = [row for row in page.widget.tree["rows"] if row["type"] != "statement"]
    assert items.count() == len(rows)
    for n, row in enumerate(rows):
        item = items.nth(n)
        assert item.get_attribute("aria-level") == str(row["depth"] + 1)
        assert item.get_attribute("aria-label") == row["label"]
        assert item.get_attribute("aria-selected") == str(row["key"] == page.widget.chosen).lower()
    assert page.locate('[role="treeitem"][tabindex="0"]').count() == 1


def test_a_choice_is_announced(show):
    page = show(LoopTree)
    page.loop("C/j.outer").click()
    page.settle()
    status = page.locate('[role="status"][aria-live="polite"]')
    assert "loop j.outer of C" in status.inner_text()


# -- what hosts and users ask for ------------------------------------------------------------------


def test_forced_colours_keep_what_is_chosen_visible(show):
    page = show(forced_colors="active")
    outline = (
        "(each) => { const s = getComputedStyle(each); return [s.outlineStyle, s.outlineWidth] }"
    )
    for css in ('[role="treeitem"][aria-selected="true"]', '[role="tab"][aria-selected="true"]'):
        assert page.locate(css).first.evaluate(outline) == ["solid", "2px"], css
    inks = page.page.evaluate("""() => {
      const probe = document.body.appendChild(document.createElement("span"));
      probe.style.color = "CanvasText";
      return [getComputedStyle(probe).color,
              getComputedStyle(document.querySelector("text.dlc-name")).fill];
    }""")
    assert inks[0] == inks[1]


def test_reduced_motion_stops_everything_that_moves(show):
    page = show(reduced_motion="reduce")
    page.click("tab space")
    assert page.key("space play").count() == 0
    assert page.key("space on").is_visible()
    moving = page.page.evaluate("""() => [...document.querySelectorAll('.dlc-explorer *')]
      .map((each) => getComputedStyle(each))
      .filter((s) => parseFloat(s.transitionDuration) + parseFloat(s.animationDuration) > 0)
      .length""")
    assert moving == 0


def test_targets_are_large_enough_and_words_too(show):
    page = show()
    small = page.page.evaluate("""() => [...document.querySelectorAll(
      '.dlc-explorer :is(button, summary, select, [role="treeitem"], [role="tab"])')]
      .filter((each) => each.offsetParent && each.getBoundingClientRect().height < 23.5)
      .map((each) => each.outerHTML.slice(0, 120))""")
    assert small == []
    tiny = page.page.evaluate("""() => [...document.querySelectorAll('.dlc-explorer *')]
      .filter((each) => each.offsetParent && each.textContent.trim()
        && parseFloat(getComputedStyle(each).fontSize) < 12)
      .map((each) => each.outerHTML.slice(0, 120))""")
    assert tiny == []


def test_axe_finds_a_word_that_is_too_faint(show):
    page = show(LoopTree)
    page.page.add_style_tag(content=".dlc-loop-name { color: #ddd !important }")
    for rules in (), ("color-contrast",):
        assert "color-contrast (serious)" in violations(page.page, only=rules)[0]
