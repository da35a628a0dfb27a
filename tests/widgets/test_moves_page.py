"""The moves on a page: sliders, refusals, previews, rows that are dragged, levels."""

import pytest

from tests.widgets.axe import violations
from tests.widgets.live_page import LivePage
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer
from dlcompiler_widgets.explorer import moving

WIDTH = 1200


@pytest.fixture
def context(contexts):
    context = contexts.open(viewport={"width": WIDTH, "height": 900})
    yield context
    context.close()


@pytest.fixture
def start(context):
    pages = []

    def open_page(**options):
        schedule, args = matmul()
        widget = Explorer(schedule, args, name="matmul", **options)
        pages.append(LivePage(context, widget))
        return pages[-1]

    yield open_page
    for page in pages:
        assert not page.errors
        page.widget.close()


@pytest.fixture
def page(start):
    return start()


def choose(page, key):
    page.loop(key).click()
    page.settle()


def answered(page):
    """Wait for the answer about a move; it is the one part that shows metrics or a button."""
    page.locate(".dlc-metrics, .dlc-nearest").first.wait_for()


def why(page):
    return page.locate(".dlc-why").inner_text()


def order(page):
    return [row["name"] for row in page.widget.tree["rows"] if row["type"] == "loop"]


# -- numbers ---------------------------------------------------------------------------------------


def test_a_slider_snaps_to_divisors(page):
    choose(page, "C/j")
    slider, field = page.key("split C C.j factor slider"), page.key("split C C.j factor")
    slider.focus()
    seen = []
    for key in ("Home", "ArrowRight", "ArrowRight", "End"):
        page.page.keyboard.press(key)
        seen.append(field.input_value())
    assert seen == ["2", "4", "8", "32"]
    assert slider.get_attribute("aria-valuetext") == "32 divides 64: 2 blocks of 32, no tail"
    page.page.keyboard.press("Enter")
    page.settle()
    assert page.widget.schedule.node.title() == "split C j 32"


def test_another_number_shows_its_tail_before_it_is_applied(page):
    choose(page, "C/j")
    page.key("split C C.j factor").fill("48")
    answered(page)
    assert "48 does not divide 64: 2 blocks of 48, 32 of 96 iterations guarded, 33 %" in why(page)
    assert page.key("nearest").inner_text() == "use 32 instead of 48, without a tail"
    assert len(page.widget.schedule.trace) == 0
    page.click("split C C.j")
    assert page.widget.schedule.node.title() == "split C j 48"


def test_a_number_that_cannot_be_has_a_near_one_that_can(page):
    choose(page, "C/j")
    page.key("split C C.j factor").fill("0")
    answered(page)
    page.click("nearest")
    assert page.widget.schedule.node.title() == "split C j 2"


def test_a_tile_has_two_numbers(page):
    choose(page, "C/i")
    page.key("tile C C.i C.j x_factor").fill("16")
    page.key("tile C C.i C.j y_factor").fill("8")
    page.click("tile C C.i C.j")
    assert page.widget.schedule.node.title() == "tile C i j 16 8"


# -- refusals --------------------------------------------------------------------------------------


def test_a_refused_move_says_why_what_is_in_the_way_and_what_instead(page):
    choose(page, "C/k")
    move = page.key("vectorize C C.k")
    assert move.get_attribute("aria-disabled") == "true"
    move.focus()
    assert "a reduction axis cannot be vectorized" in why(page)
    marked = page.locate(".dlc-conflict")
    assert [marked.nth(n).get_attribute("data-key") for n in range(2)] == ["C/k", "C//body"]
    answered(page)
    assert page.key("nearest").inner_text() == "vectorize j instead"
    page.page.keyboard.press("Enter")
    assert page.page.evaluate("document.activeElement.dataset.key") == "nearest"
    page.page.keyboard.press("Escape")
    assert page.page.evaluate("document.activeElement.dataset.key") == "vectorize C C.k"
    page.page.keyboard.press("Enter")
    page.page.keyboard.press("Enter")
    page.settle()
    assert page.widget.schedule.node.title() == "vectorize C j"
    assert page.locate(".dlc-conflict").count() == 0


def test_legal_moves_stand_before_illegal_ones(page):
    choose(page, "C/k")
    status = page.locate(".dlc-moves .dlc-group").evaluate_all(
        "(groups) => groups.map((g) => g.querySelector('.dlc-legal') !== null)"
    )
    of_loop = status[: len(page.widget.moves["loop"])]
    assert of_loop == sorted(of_loop, reverse=True)


# -- previews --------------------------------------------------------------------------------------


def test_the_pointer_shows_the_nest_and_the_metrics(page):
    choose(page, "C/i")
    page.key("parallel C C.i").hover()
    answered(page)
    (row,) = page.locate(".dlc-ghost-row.dlc-changed").all()
    assert "was serial" in row.inner_text()
    assert "1 parallel × 1 lane → 64 parallel × 1 lane ×64" in why(page)
    assert page.loop("C/i").evaluate("(row) => row.classList.contains('dlc-about')")
    assert len(page.widget.schedule.trace) == 0
    page.page.mouse.move(5, 5)
    page.locate(".dlc-ghost-row").first.wait_for(state="detached")
    assert page.locate(".dlc-about").count() == 0


@pytest.mark.parametrize("move", ["split C C.i", "tile C C.i C.j"])
def test_a_refused_move_is_previewed_with_its_own_reason(page, move):
    choose(page, "C/i")
    page.click("parallel C C.i")
    page.key(move).hover()
    page.locate(".dlc-why", has_text="undo that step").wait_for()
    page.page.wait_for_function("model.get('preview').status === 'illegal'")
    assert "the loop is parallel already" in why(page)
    assert "must be given" not in why(page)


def test_an_answer_that_comes_too_late_is_not_drawn(page):
    choose(page, "C/i")
    page.key("parallel C C.i").hover()
    answered(page)
    page.page.evaluate("() => { window.late = window.model.get('preview'); }")
    page.key("unroll C C.i").hover()
    page.page.evaluate(
        "() => window.model.update({ preview: window.late, reply: { seq: 1e6, id: 'another-1' } })"
    )
    page.page.evaluate("() => new Promise((f) => requestAnimationFrame(() => f()))")
    assert "64 parallel" not in why(page)


def test_moves_that_are_only_passed_are_not_asked_about(page):
    choose(page, "C/i")
    asked = []
    page.widget.observe(lambda change: asked.append(change["new"]["op"]), names="intent")
    page.locate(".dlc-plain, .dlc-numbers").evaluate_all(
        "(all) => all.slice(0, 3).forEach((e) => e.dispatchEvent(new MouseEvent('mouseenter')))"
    )
    answered(page)
    assert asked == ["preview"]


def test_the_page_is_not_busy_while_it_looks(page):
    choose(page, "C/i")
    page.page.evaluate(
        """() => { window.busy = 0; new MutationObserver(() => { window.busy += 1; }).observe(
        document.querySelector(".dlc-explorer"), { attributeFilter: ["aria-busy"] }); }"""
    )
    page.key("parallel C C.i").hover()
    answered(page)
    assert page.page.evaluate("window.busy") == 0


# -- rows ------------------------------------------------------------------------------------------


def middle(page, key):
    box = page.loop(key).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_row_is_dragged_onto_another(page):
    page.page.mouse.move(*middle(page, "C/k"))
    page.page.mouse.down()
    x, y = middle(page, "C/i")
    page.page.mouse.move(x, y + 9)
    page.page.mouse.move(x, y)
    note = page.locate(".dlc-drop-note")
    note.wait_for()
    assert note.inner_text() == "✓ drop: reorder C (k, i, j)"
    assert page.loop("C/i").evaluate("(row) => row.classList.contains('dlc-drop-legal')")
    assert order(page) == ["i", "j", "k"]
    page.page.mouse.up()
    page.settle()
    assert order(page) == ["k", "i", "j"]
    assert page.locate(".dlc-drop-note").count() == 0


def test_a_drop_that_is_illegal_says_why_before_it_is_dropped(page):
    schedule, (_, _, C) = page.widget.schedule, page.widget._session.args
    i, j = C.op.axis
    schedule[C].parallel(i)
    schedule[C].vectorize(j)
    page.push()
    page.page.mouse.move(*middle(page, "C/j"))
    page.page.mouse.down()
    x, y = middle(page, "C/i")
    page.page.mouse.move(x, y + 9)
    page.page.mouse.move(x, y)
    note = page.locate(".dlc-drop-note")
    note.wait_for()
    assert "✕ a parallel loop cannot stand inside a vectorized one" in note.inner_text()
    page.page.keyboard.press("Escape")
    assert note.count() == 0
    page.page.mouse.up()
    assert order(page) == ["i", "j", "k"]


def test_a_click_that_trembles_chooses(page):
    page.page.mouse.move(*middle(page, "C/k"))
    page.page.mouse.down()
    x, y = middle(page, "C/k")
    page.page.mouse.move(x + 2, y + 1)
    page.page.mouse.up()
    page.settle()
    assert page.widget.chosen == "C/k"


def test_keys_move_a_loop(page):
    page.loop("C/k").focus()
    page.page.keyboard.press("Alt+ArrowUp")
    page.settle()
    assert order(page) == ["i", "k", "j"]
    assert page.page.evaluate("document.activeElement.dataset.key") == "C/k"
    page.page.keyboard.press("Alt+ArrowDown")
    page.settle()
    assert order(page) == ["i", "j", "k"]
    page.page.keyboard.press("Alt+ArrowDown")
    page.settle()
    assert "innermost loop of C already" in page.locate(".dlc-status").inner_text()


# -- pending obligations ---------------------------------------------------------------------------


def test_a_pending_obligation_is_marked_and_listed(page):
    schedule, (_, _, C) = page.widget.schedule, page.widget._session.args
    cached = schedule.cache_write(C, "local")
    schedule[cached].double_buffer()
    page.push()
    assert page.loop("C.local").locator(".dlc-pending").inner_text() == "◦ pending"
    text = page.locate(".dlc-obligations").inner_text()
    assert "double_buffer C.local" in text
    assert "compute it inside a loop" in text


def test_an_attach_point_is_shown_in_the_tree(page):
    schedule, (_, _, C) = page.widget.schedule, page.widget._session.args
    schedule.cache_write(C, "local")
    page.push()
    choose(page, "C.local")
    page.key("compute_at C.local C.local C.i").focus()
    answered(page)
    assert page.loop("C/i").evaluate("(row) => row.classList.contains('dlc-about')")
    page.page.keyboard.press("Enter")
    page.settle()
    assert page.loop("C.local").get_attribute("data-parent") == "C/i"


# -- levels ----------------------------------------------------------------------------------------


def test_levels_show_more(start):
    page = start(level="learn")
    assert page.locate(".dlc-program").is_visible()
    assert not page.locate(".dlc-history").is_visible()
    assert page.locate(".dlc-tree").is_visible()
    page.key("level").select_option("all")
    page.settle()
    assert page.locate(".dlc-program").is_visible()
    assert page.locate(".dlc-history").is_visible()
    choose(page, "C/j")
    assert page.key("storage_align C C.j offset 0").count() == 1
    assert page.page.evaluate("document.activeElement.tagName") != "BODY"


def test_a_preset_and_back(page):
    page.key("preset").select_option("code")
    page.settle()
    assert not page.locate(".dlc-picture").is_visible()
    assert page.locate(".dlc-program").is_visible()
    page.key("preset").select_option("all")
    page.settle()
    assert page.locate(".dlc-picture").is_visible()


def test_reset(page):
    choose(page, "C/i")
    page.click("parallel C C.i")
    page.click("reset")
    assert page.locate(".dlc-tree .dlc-pill").count() == 0
    assert "Back at the first state" in page.locate(".dlc-status").inner_text()


# -- for everybody ---------------------------------------------------------------------------------


def test_axe_finds_nothing_serious(start):
    page = start(level="all")
    choose(page, "C/k")
    page.locate(".dlc-move[aria-disabled]").first.focus()
    answered(page)
    assert violations(page.page) == []


def test_everything_can_be_reached_with_a_thumb(page):
    choose(page, "C/i")
    sizes = page.locate(".dlc-moves button, .dlc-moves input, .dlc-bar select").evaluate_all(
        "(all) => all.map((e) => [e.dataset.key, e.getBoundingClientRect().height])"
    )
    assert all(height >= 24 for _, height in sizes), sizes


def test_words_are_text(page, monkeypatch):
    """Whatever a preview says: nothing of it becomes an element."""
    hostile = "<img src=x onerror=alert(1)>"

    def spoilt(value):
        match value:
            case str():
                return f"{value}{hostile}" if value not in SHAPES else value
            case list():
                return [spoilt(item) for item in value]
            case dict():
                return {name: spoilt(item) for name, item in value.items()}
        return value

    real = moving.preview
    monkeypatch.setattr(moving, "preview", lambda *args: spoilt(real(*args)))
    choose(page, "C/k")
    page.key("vectorize C C.k").focus()
    answered(page)
    assert hostile in why(page)
    page.key("split C C.k").focus()
    page.locate(".dlc-ghost-row").first.wait_for()
    assert hostile in why(page)
    assert page.locate(".dlc-explorer img").count() == 0


SHAPES = {"legal", "illegal", "pending", "same", "added", "removed", "changed", "moved", "serial"}
"""Words of a preview that say how it is drawn."""
