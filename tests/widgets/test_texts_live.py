"""The text pane in a browser: one selection in all texts, and the passes."""

import threading

import pytest

from dlcompiler.bench.programs import six_step_gemm
from dlcompiler.pipeline.pipelines import passes_of
from dlcompiler.target import resolve
from tests.thread_programs import tiled_matmul
from tests.widgets.live_page import LivePage

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import CodePanes, Explorer, PassDiff

pytestmark = pytest.mark.campaign(whole_file=True)

OWN = ".dlc-lines .dlc-own"
IS_ANY_IN_VIEW = """lines => lines.some((line) => {
  const { top, bottom } = line.getBoundingClientRect();
  const box = line.parentNode.getBoundingClientRect();
  return top >= box.top - 1 && bottom <= box.bottom + 1;
})"""

CPU_PASSES = passes_of(resolve("cpu"))


def numbered(name):
    """Return a pass as the page shows it: the loop nests are the first step."""
    return f"{[item.name for item in CPU_PASSES].index(name) + 2} {name}"


@pytest.fixture
def show(contexts):
    """Show a widget on a page."""
    shown = []

    def show_(pane):
        schedule, args = six_step_gemm(64)
        widget = pane(schedule, args, target="x86-64-avx2", name="gemm")
        context = contexts.open(viewport={"width": 1200, "height": 900})
        shown.append((context, LivePage(context, widget)))
        return shown[-1][1]

    yield show_
    for context, page in shown:
        assert not page.errors
        context.close()
        page.widget.close()


@pytest.fixture
def explorer(show):
    return show(Explorer)


def open_code(page, tab):
    page.click(f"tab {tab}")
    assert page.widget._session.code.compiling.wait()
    page.push()
    page.locate(".dlc-lines:not(.dlc-stale) .dlc-line").first.wait_for()


def choose(page, key):
    page.loop(key).click()
    page.settle()


def loops(page):
    return [row["key"] for row in page.widget.tree["rows"] if row["type"] == "loop"]


def test_a_click_in_assembly_chooses_the_loop(explorer):
    open_code(explorer, "assembly")
    line = explorer.locate(".dlc-line", has_text="vfmadd").first
    line.click()
    explorer.settle()
    assert explorer.widget.chosen == "C.global/j.c"
    line.click()
    explorer.settle()
    assert explorer.widget.chosen == "C.global/k.inner"
    assert "made by split C.global k 4" in explorer.locate(".dlc-status").inner_text()
    made = explorer.locate(".dlc-state", has=explorer.locate(".dlc-made-mark"))
    assert made.count() == 1
    assert "split C.global k 4" in made.inner_text()


def test_there_and_back_is_the_same_loop(explorer):
    """From a loop to each of its lines, and from there through the line's loops back to it."""
    open_code(explorer, "assembly")
    with_lines = []
    for key in loops(explorer):
        choose(explorer, key)
        own = explorer.locate(OWN)
        if not own.count():
            assert f"no line comes from {key}" in explorer.locate(".dlc-found").inner_text()
            continue
        with_lines.append(key)
        line = own.first.element_handle()
        keys = line.evaluate("node => node.line.keys.filter((k) => k.includes('/'))")
        assert key in keys
        for _ in keys:
            line.click()
            explorer.settle()
            assert explorer.widget.chosen in keys
        assert explorer.widget.chosen == key
    assert {"C.global/j.c", "C.global/k.inner", "packedB/z", "C/i.outer"} <= set(with_lines)


def test_the_chosen_loop_is_marked_and_in_view(explorer):
    for tab in ("loops", "passes", "final", "llvm", "assembly", "python"):
        open_code(explorer, tab)
        for key in ("packedB/z", "C.global/j.c"):
            choose(explorer, key)
            assert explorer.locate(OWN).count() > 0, tab
            assert explorer.locate(OWN).evaluate_all(IS_ANY_IN_VIEW), tab


def test_the_chosen_loop_marks_the_variables_of_its_axis(explorer):
    explorer.click("tab notation")
    choose(explorer, "C.global/k.outer")
    marked = explorer.locate(".dlc-own-axis").all_inner_texts()
    assert marked == ["k", "k", "k"]
    explorer.locate(".dlc-axis", has_text="j_c").first.click()
    explorer.settle()
    assert explorer.widget.chosen == "C.global/j.c"


def test_passes_without_a_change_are_skipped(explorer):
    explorer.click("tab passes")
    assert explorer.locate(".dlc-pass-name").inner_text() == numbered("simplify")
    explorer.click("later pass")
    assert explorer.locate(".dlc-pass-name").inner_text() == numbered("vectorize")
    assert explorer.locate(".dlc-line.dlc-removed").count() > 0
    explorer.locate(".dlc-passes summary").click()
    explorer.locate(".dlc-pass-search input[type=checkbox]").uncheck()
    explorer.click("later pass")
    assert explorer.locate(".dlc-pass-name").inner_text() == numbered("narrow")
    assert "changed nothing" in explorer.locate(".dlc-pass-head").inner_text()


def test_the_slider_goes_through_the_passes_and_keeps_the_loop(explorer):
    choose(explorer, "C.global/j.c")
    explorer.click("tab passes")
    slider = explorer.locate(".dlc-scrubber input")
    slider.focus()
    for name in map(numbered, ("vectorize", "unroll", "simplify unrolled")):
        slider.press("ArrowRight")
        explorer.locate(f".dlc-pass-name >> text={name}").wait_for()
        explorer.settle()
        assert explorer.locate(OWN).count() > 0
    assert slider.evaluate("node => node === document.activeElement")
    assert numbered("simplify unrolled") in slider.get_attribute("aria-valuetext")


def test_a_pass_is_found_by_name_and_opened(explorer):
    explorer.click("tab passes")
    explorer.locate(".dlc-passes summary").click()
    explorer.locate(".dlc-pass-search input[type=search]").fill("VECT")
    shown = explorer.locate(".dlc-pass:not([hidden])")
    assert shown.count() == 1
    shown.click()
    explorer.settle()
    assert explorer.locate(".dlc-pass-name").inner_text() == numbered("vectorize")
    assert explorer.locate(".dlc-pass:not([hidden])").count() == 1


class Waiting:
    def __init__(self):
        self.over = threading.Event()

    def assembly(self, text, options, name=""):
        assert self.over.wait(60)
        return "f:\n"

    def cancel(self):
        self.over.set()

    close = cancel


def test_old_code_is_dimmed_while_the_new_is_made(explorer):
    open_code(explorer, "llvm")
    compiling = explorer.widget._session.code.compiling
    compiling._printer = waiting = Waiting()
    explorer.click("undo")
    assert explorer.locate(".dlc-lines.dlc-stale .dlc-line").count() > 10
    waiting.over.set()
    assert compiling.wait()
    explorer.push()
    explorer.locate(".dlc-lines:not(.dlc-stale)").wait_for()


def test_copy_without_a_clipboard_selects_the_text(explorer):
    explorer.click("tab python")
    explorer.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    explorer.key("copy text").click()
    explorer.locate(".dlc-status >> text=the text is selected").wait_for()
    assert "te.create_schedule" in explorer.page.evaluate("String(window.getSelection())")


def test_lines_are_walked_and_chosen_by_keys(explorer):
    open_code(explorer, "assembly")
    choose(explorer, "C/i.outer")
    page = explorer.page
    explorer.key("copy text").focus()
    page.keyboard.press("Tab")
    focused = explorer.locate(".dlc-line:focus")
    assert focused.evaluate("node => node.classList.contains('dlc-own')")
    numbers = set()
    for _ in range(5):
        page.keyboard.press("n")
        numbers.add(focused.get_attribute("data-key"))
        assert focused.evaluate("node => node.line.keys.includes('C/i.outer')")
    assert len(numbers) > 2
    for _ in range(100):
        if "vfmadd" in focused.inner_text():
            break
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    explorer.settle()
    assert explorer.widget.chosen == "C.global/j.c"
    assert "vfmadd" in focused.inner_text()
    page.keyboard.press("b")
    assert "vfmadd" in focused.inner_text()


def test_a_word_is_found_in_the_text(explorer):
    open_code(explorer, "assembly")
    search = explorer.locate(".dlc-text-bar input")
    search.fill("VFMADD")
    matches = explorer.locate(".dlc-match")
    number = matches.count()
    assert all("vfmadd" in text for text in matches.all_inner_texts())
    assert explorer.locate(".dlc-found").inner_text() == f"1 of {number} found"
    search.press("Enter")
    assert explorer.locate(".dlc-found").inner_text() == f"2 of {number} found"
    assert matches.evaluate_all(IS_ANY_IN_VIEW)
    search.fill("no such thing")
    assert explorer.locate(".dlc-found").inner_text() == "not found in these lines"
    search.fill("")
    assert matches.count() == 0


def test_the_passes_alone(show):
    page = show(PassDiff)
    assert page.locate('[role="tab"]').count() == 0
    page.click("later pass")
    assert page.locate(".dlc-pass-name").inner_text() == numbered("vectorize")
    page.locate(".dlc-line", has_text="for k.outer").click()
    page.settle()
    assert page.widget.chosen == "C.global/k.outer"
    page.click("later pass")
    assert page.locate(OWN).count() == 1


def test_the_code_alone(show):
    page = show(CodePanes)
    open_code(page, "assembly")
    page.locate(".dlc-line", has_text="vfmadd").first.click()
    page.settle()
    assert page.widget.chosen == "C.global/j.c"
    assert "made by cache_write C global" in page.locate(".dlc-status").inner_text()


@pytest.fixture(scope="module")
def kernels(contexts):
    """A product for the threads of a simulated GPU."""
    schedule, args = tiled_matmul()
    context = contexts.open(viewport={"width": 1200, "height": 900})
    page = LivePage(context, Explorer(schedule, args, target="v100", name="gemm"))
    yield page
    assert not page.errors
    context.close()
    page.widget.close()


@pytest.mark.parametrize(
    ("tab", "store"),
    [("cuda", "C_local[0] +="), ("ptx", "fma.rn.f32"), ("opencl", "C_local[0] +=")],
)
def test_code_of_kernels_leads_to_its_loops_and_back(kernels, tab, store):
    kernels.click(f"tab {tab}")
    for key in ("C.local/j.c", "A.shared/ax0.ax1.fused.outer.inner", "C/i.outer", "C/i.inner"):
        choose(kernels, key)
        assert kernels.locate(OWN).count() > 0, key
        assert kernels.locate(OWN).evaluate_all(IS_ANY_IN_VIEW), key
    kernels.locate(".dlc-line", has_text=store).last.click()
    kernels.settle()
    assert kernels.widget.chosen.startswith("C.local/")
    assert kernels.loop(kernels.widget.chosen).get_attribute("aria-selected") == "true"
    assert store in " ".join(kernels.locate(OWN).all_inner_texts())
