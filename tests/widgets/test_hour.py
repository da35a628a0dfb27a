"""What somebody stumbled over who had only the notebooks, in a cell as wide as theirs."""

import pytest

from dlcompiler import te
from dlcompiler.schedule import create_schedule
from dlcompiler.views.history.steps import rows_html
from dlcompiler.views.loops.loop_tree import loop_tree
from dlcompiler.views.loops.nest_picture import nest_picture
from tests.widgets.looks import looks_of

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer, HistoryTree
from dlcompiler_widgets.explorer.status import Status

pytestmark = pytest.mark.campaign(whole_file=True)

CELL_PX = 736


def tiled(n=256):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    schedule = create_schedule(C.op)
    outer = schedule[C].tile(*C.op.axis, 32, 32)
    k_outer, k_inner = schedule[C].split(k, factor=4)
    schedule[C].reorder(*outer[:2], k_outer, k_inner, *outer[2:])
    return schedule, [A, B, C]


@pytest.fixture
def show(open_live):
    def show_(widget, width=CELL_PX, **media):
        return open_live(widget, width, 1000, **media)

    return show_


@pytest.mark.parametrize("width", [CELL_PX, 1108])
def test_the_words_of_a_move_and_of_what_is_in_its_way_are_seen_whole(show, width):
    schedule, args = tiled()
    page = show(Explorer(schedule, args, name="matmul", level="learn"), width)
    page.loop("C/k.inner").click()
    page.settle()
    page.page.get_by_role("button", name="parallel").hover()
    page.locate(".dlc-conflict").first.wait_for()
    assert looks_of(page).problems == []


def test_play_and_pause_move_nothing(show):
    schedule, args = tiled()
    page = show(Explorer(schedule, args, level="learn"), reduced_motion="no-preference")
    places = """() => [...document.querySelectorAll('[role="group"][aria-label="Steps"] > *')]
      .map((e) => { const box = e.getBoundingClientRect(); return [box.x, box.y]; })"""
    before = page.page.evaluate(places)
    page.key("space play").click()
    assert page.key("space play").inner_text().endswith("Pause")
    assert page.page.evaluate(places) == before
    page.key("space play").click()


def test_a_comparison_covers_nothing_of_itself(show):
    schedule, args = tiled()
    inner, outer = (schedule[args[2]].leaf_iter_vars[n] for n in (-1, 0))
    schedule[args[2]].vectorize(inner)
    here = schedule.node.id
    schedule[args[2]].parallel(outer)
    page = show(HistoryTree(schedule, args))
    page.widget.intent = {"id": 1, "op": "compare", "args": {"a": here, "b": schedule.node.id}}
    page.push()
    assert page.locate(".dlc-compare").is_visible()
    assert looks_of(page).problems == []


def test_a_long_sentence_covers_no_state(show):
    schedule, args = tiled()
    page = show(HistoryTree(schedule, args))
    page.widget.schedule.describe("a name that is as long as a name of a state may be: sixty", None)
    page.widget._session.status = Status("A sentence of two lines. " * 8)
    page.widget._push(None)
    page.push()
    bottom, top = page.page.evaluate("""() => [...document.querySelectorAll(".dlc-state")].at(-1)
      .getBoundingClientRect().bottom + " " + document.querySelector(".dlc-message")
      .getBoundingClientRect().top""").split(" ")
    assert float(bottom) <= float(top)


def test_a_prediction_does_not_contradict_itself_and_says_what_is_missing(show):
    schedule, args = tiled()
    page = show(Explorer(schedule, args, level="learn", predict=True))
    page.loop("C/k.inner").click()
    page.settle()
    page.page.get_by_role("button", name="split", exact=True).click()
    asked = page.locate(".dlc-predict")
    asked.get_by_role("button", name="Apply and reveal").click()
    assert asked.get_by_role("alert").inner_text() == "Choose an answer first, or press Skip."
    sizes = asked.locator('[name="factor"]').first
    asked.get_by_label("about the same").check()
    assert sizes.is_disabled()
    asked.get_by_label("slower").check()
    assert sizes.is_enabled()


def test_the_output_of_a_step_fits_its_cell(contexts):
    """What a cell shows without a widget: the table of steps, and a loop nest of a usual depth."""
    rows = [
        {
            "step": f"a step of {words}", "threads": 1, "median_s": 0.661, "spread_s": 0.102,
            "gflops": 3.25, "baseline_gflops": 31.9, "ratio": 0.11,
        }
        for words in ("one word", "two words or more")
    ]  # fmt: skip
    schedule, _ = tiled()
    page = contexts.open(viewport={"width": 718, "height": 900}).new_page()
    page.set_content(
        "<style>body { margin: 0; font: 13px sans-serif } td { padding: 6px }</style>"
        + rows_html(rows, "numpy.matmul")
        + nest_picture(loop_tree(schedule))
    )
    wider, lines = page.evaluate("""() => [
      ...[document.querySelector(".dlc-nest")].map((e) => e.scrollWidth - e.clientWidth),
      [...document.querySelectorAll("td + td")].map((e) => e.getClientRects()[0].height),
    ]""")
    assert wider <= 0
    assert max(lines) == min(lines)


def test_a_button_is_called_by_the_words_on_it(show):
    """Who speaks to a computer says what stands on a button."""
    schedule, args = tiled()
    page = show(Explorer(schedule, args, name="matmul"), 1400)
    page.click("export")
    odd = page.page.evaluate("""() => [...document.querySelectorAll("button")]
      .filter((e) => e.checkVisibility())
      .map((e) => [e.innerText.replace(/[^a-z0-9 ]/gi, " ").trim().toLowerCase(), e.ariaLabel])
      .filter(([words, name]) => words && name && !words.split(/ +/).every(
        (word) => name.toLowerCase().includes(word)))""")
    assert odd == []
