"""The Explorer in a real JupyterLab: every way in which a person uses it."""

import statistics

import pytest

from tests.widgets.jupyter import open_panes

pytest.importorskip("dlcompiler_widgets")

START = """\
import dlcompiler as dlc
from dlcompiler import te
from dlcompiler_widgets import Explorer
n = 256
A = te.placeholder((n, n), name="A")
B = te.placeholder((n, n), name="B")
k = te.reduce_axis((0, n), name="k")
C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
s = te.create_schedule(C.op)
e = Explorer(s, [A, B, C], name="matmul")
e
"""
ELSEWHERE = "s[C].unroll(s[C].op.axis[0])"
HOSTILE = """\
bad = "<img src=x onerror='window.broken = 1'>"
row = {**e.tree["rows"][1], "name": bad, "label": bad, "made_by": bad}
line = {**e.text["lines"][0], "tokens": [{"kind": "text", "text": bad}]}
with e.hold_sync():
    e.status = {"text": bad, "tone": "error", "details": [[bad, bad]]}
    e.tree = {**e.tree, "rows": [row], "inputs": [bad], "obligations": [bad]}
    e.text = {**e.text, "lines": [line], "note": bad}
    row = {**e.history["rows"][0], "step": bad, "name": bad, "note": bad, "notes": {bad: bad}}
    row = {**row, "short": bad, "time": bad, "seconds": bad}
    e.history = {**e.history, "lanes": 1, "rows": [row]}
    e.bar = {**e.bar, "name": bad, "known": [bad]}
    e.reply = {"seq": 999, "id": None}
"""


@pytest.fixture(scope="module")
def notebook(open_notebook):
    cells = [START, ELSEWHERE, HOSTILE]
    return open_notebook("explorer", cells, permissions=["clipboard-read", "clipboard-write"])


class ExplorerPage:
    """What a person sees of the Explorer, and does with it."""

    def __init__(self, page):
        self.page = page
        self.root = page.locator(".dlc-explorer")
        self.status = page.locator(".dlc-status")
        self.program = page.locator(".dlc-lines")

    def loop(self, key):
        return self.page.locator(f'[role="treeitem"][data-key="{key}"]')

    def move(self, key):
        return self.page.locator(f'.dlc-moves [data-key="{key}"]')

    def button(self, key):
        return self.page.locator(f'.dlc-bar [data-key="{key}"]')

    def loops(self):
        return self.page.locator(".dlc-loop").evaluate_all("all => all.map(e => e.dataset.key)")

    def states(self):
        return self.page.locator(".dlc-state").evaluate_all("all => all.map(e => e.dataset.name)")

    def settle(self):
        """Wait until the answer to the last request is drawn."""
        self.page.locator(".dlc-explorer:not([aria-busy])").wait_for()

    def focused(self):
        return self.page.evaluate("document.activeElement.dataset.key ?? null")


@pytest.fixture
def explorer(notebook):
    """A fresh Explorer on a plain matmul; nothing may go wrong in the page."""
    notebook.errors.clear()
    notebook.run(0)
    explorer = ExplorerPage(notebook.page)
    explorer.root.wait_for()
    open_panes(explorer.root)
    yield explorer
    assert not notebook.errors
    assert not notebook.foreign


def test_first_render(explorer):
    assert explorer.loops() == ["C/i", "C/j", "C/k"]
    assert "for i in range(256):" in explorer.program.inner_text()
    assert explorer.states() == ["create"]
    assert explorer.root.get_attribute("aria-busy") is None


def test_click_an_axis(explorer):
    explorer.loop("C/k").click()
    explorer.settle()
    assert explorer.loop("C/k").get_attribute("aria-selected") == "true"
    assert explorer.page.locator(".dlc-moves h3").inner_text() == "loop k of C"
    marked = explorer.page.locator(".dlc-line.dlc-own").all_inner_texts()
    assert len(marked) == 1
    assert "for k in range(256)" in marked[0]
    assert explorer.page.locator(".dlc-line.dlc-inside").count() == 1


def test_apply_a_primitive_and_see_the_program_change(explorer):
    explorer.loop("C/j").click()
    explorer.settle()
    explorer.move("split C C.j factor").fill("16")
    explorer.move("split C C.j").click()
    explorer.settle()
    assert explorer.loops() == ["C/i", "C/j.outer", "C/j.inner", "C/k"]
    added = explorer.page.locator(".dlc-added").all_inner_texts()
    removed = explorer.page.locator(".dlc-removed").all_inner_texts()
    assert any("for j.inner in range(16):" in line for line in added)
    assert any("for j in range(256):" in line for line in removed)
    assert explorer.states() == ["create", "split C j 16"]
    assert explorer.loop("C/j.inner").get_attribute("aria-selected") == "true"


def test_a_typed_factor(explorer):
    field = explorer.move("split C C.i factor")
    field.fill("48")
    field.press("Enter")
    explorer.settle()
    assert explorer.states() == ["create", "split C i 48"]
    assert "if i.outer*48 + i.inner < 256:" in explorer.program.inner_text()


@pytest.mark.parametrize(
    ("typed", "reason"),
    [("0", "factor must be at least 1"), ("x; 1", "factor must be an integer")],
)
def test_a_wrong_factor_is_explained_and_nothing_is_lost(explorer, typed, reason):
    explorer.move("split C C.i factor").fill(typed)
    explorer.move("split C C.i").click()
    explorer.settle()
    assert reason in explorer.status.inner_text()
    assert explorer.loops() == ["C/i", "C/j", "C/k"]
    assert explorer.move("split C C.i factor").input_value() == typed


def test_an_illegal_move_explains_itself(explorer):
    explorer.loop("C/k").click()
    explorer.settle()
    button = explorer.move("vectorize C C.k")
    assert button.get_attribute("aria-disabled") == "true"
    explorer.page.mouse.move(0, 0)  # the page scrolls: no other move comes under the pointer
    button.focus()
    why = explorer.page.locator(".dlc-why").inner_text()
    assert "a reduction axis cannot be vectorized" in why
    assert "write the same element" in why
    assert "a reduction axis cannot be vectorized" in button.get_attribute("aria-label")
    button.click(force=True)  # it is marked as disabled, and still answers
    assert "vectorize: a reduction axis" in explorer.status.inner_text()
    assert explorer.states() == ["create"]


def test_undo_redo_and_jump(explorer):
    explorer.move("parallel C C.i").click()
    explorer.settle()
    assert explorer.page.locator(".dlc-tree .dlc-pill").all_inner_texts() == ["parallel"]
    explorer.button("undo").click()
    explorer.settle()
    assert explorer.page.locator(".dlc-tree .dlc-pill").count() == 0
    explorer.button("redo").click()
    explorer.settle()
    assert explorer.page.locator(".dlc-tree .dlc-pill").count() == 1
    explorer.page.locator(".dlc-state", has_text="create").click()
    explorer.settle()
    assert explorer.page.locator(".dlc-tree .dlc-pill").count() == 0
    assert explorer.states() == ["create", "parallel C i"]


def test_a_whole_task_by_keyboard(explorer):
    keyboard = explorer.page.keyboard
    explorer.button("help").focus()
    keyboard.press("Tab")
    assert explorer.focused() == "pane tree"
    keyboard.press("Tab")
    assert explorer.focused() == "C/i"
    keyboard.press("ArrowDown")
    explorer.settle()
    assert explorer.focused() == "C/j"
    keyboard.press("Enter")
    assert explorer.focused() == "split C C.j factor slider"
    keyboard.press("ArrowLeft")  # from 32 to the next smaller divisor
    assert explorer.move("split C C.j factor").input_value() == "16"
    keyboard.press("Enter")
    explorer.settle()
    assert explorer.states() == ["create", "split C j 16"]
    keyboard.press("Escape")
    assert explorer.focused() == "C/j.inner"
    keyboard.press("v")  # no name begins so: nothing happens
    keyboard.press("k")
    explorer.settle()
    assert explorer.focused() == "C/k"
    keyboard.press("Control+z")
    explorer.settle()
    assert explorer.loops() == ["C/i", "C/j", "C/k"]


def test_the_keys_are_listed(explorer):
    explorer.loop("C/i").focus()
    explorer.page.keyboard.press("?")
    listed = explorer.page.locator(".dlc-help[open]")
    assert "Ctrl+Z, Ctrl+Shift+Z undo, redo" in listed.inner_text().replace("\n", " ")
    explorer.page.keyboard.press("b")  # no letter goes on to the notebook
    explorer.page.keyboard.press("Escape")
    listed.wait_for(state="detached")
    assert explorer.focused() == "C/i"


@pytest.mark.parametrize(
    "place",
    [
        ".dlc-loop",
        ".dlc-moves button",
        ".dlc-state",
        ".dlc-bar button",
        ".dlc-line[data-item]",
    ],
)
def test_letters_do_not_reach_the_notebook(explorer, notebook, place):
    before = notebook.page.locator(".jp-Notebook .jp-Cell").count()
    notebook.page.locator(place).first.focus()
    for letter in "bam":
        notebook.page.keyboard.press(letter)
    assert notebook.page.locator(".jp-Notebook .jp-Cell").count() == before
    assert notebook.page.locator(".jp-MarkdownCell").count() == 0
    assert notebook.page.evaluate("!!document.activeElement.closest('.dlc-explorer')")


def test_a_step_made_in_another_cell_shows_up(explorer, notebook):
    notebook.run(1)
    explorer.page.locator(".dlc-tree .dlc-pill", has_text="unrolled").wait_for()
    assert explorer.states() == ["create", "unroll C i"]
    assert "Changed in another cell or view: now at unroll C i" in explorer.status.inner_text()


def test_measure(explorer):
    explorer.button("measure").click()
    explorer.page.locator(".dlc-known", has_text="measured").wait_for()
    text = explorer.page.locator(".dlc-known").inner_text()
    assert "±" in text
    assert "GFLOP/s" in text
    assert "±" in explorer.page.locator(".dlc-state").first.inner_text()


def test_cancel_a_measurement(explorer):
    explorer.button("measure").click()
    explorer.page.locator('[data-key="measure"]', has_text="Cancel").click()
    explorer.page.locator('[data-key="measure"]', has_text="Run").wait_for()
    assert "cancelled" in explorer.status.inner_text()
    known = explorer.page.locator(".dlc-known").inner_text()
    assert "measured" not in known  # it may have been verified before


def test_the_other_program(explorer):
    explorer.loop("C/j").click()
    explorer.settle()
    explorer.move("vectorize C C.j").click()
    explorer.settle()
    explorer.page.get_by_role("tab", name="after all passes").click()
    explorer.settle()
    assert "broadcast(" in explorer.program.inner_text()


@pytest.mark.campaign
def test_assembly_comes_when_it_is_ready_and_leads_back_to_its_loop(explorer):
    explorer.loop("C/j").click()
    explorer.settle()
    explorer.move("vectorize C C.j").click()
    explorer.settle()
    explorer.page.get_by_role("tab", name="assembly").click()
    instruction = explorer.page.locator(".dlc-lines:not(.dlc-stale) .dlc-line.dlc-own").nth(1)
    instruction.wait_for()
    explorer.loop("C/k").click()
    explorer.settle()
    instruction.click()
    explorer.settle()
    assert explorer.loop("C/k").get_attribute("aria-selected") == "true"
    explorer.page.locator(".dlc-line", has_text="vfmadd").first.click()
    explorer.settle()
    assert explorer.loop("C/j").get_attribute("aria-selected") == "true"


def test_copy_as_python(explorer):
    explorer.move("parallel C C.i").click()
    explorer.settle()
    explorer.button("copy").click()
    area = explorer.page.locator(".dlc-code textarea")
    area.wait_for()
    expected = "s = te.create_schedule(C.op)\n"
    assert area.input_value().startswith(expected)
    assert "s[C].parallel(i)" in area.input_value()
    explorer.page.locator(".dlc-status", has_text="Copied").wait_for()
    assert explorer.page.evaluate("navigator.clipboard.readText()") == area.input_value()
    explorer.page.get_by_role("button", name="Close").click()
    assert explorer.focused() == "copy"


def test_hostile_names_are_text(explorer, notebook):
    notebook.run(2)
    explorer.page.locator(".dlc-loop-name", has_text="<img").wait_for()
    assert explorer.page.locator(".dlc-explorer img").count() == 0
    assert explorer.page.evaluate("window.broken === undefined")


@pytest.mark.campaign
def test_latency_by_the_page_clock(explorer, capsys):
    """No bound: the machine is shared. `make figures` and people read the number."""
    times = []
    for _ in range(6):
        explorer.loop("C/j").click()
        explorer.settle()
        for key in ("split C C.j", "vectorize C C.j.inner"):
            explorer.move(key).click()
            explorer.settle()
            times.append(float(explorer.root.get_attribute("data-latency-ms")))
        explorer.page.locator(".dlc-state", has_text="create").click()
        explorer.settle()
    assert all(time > 0 for time in times)
    with capsys.disabled():
        print(
            f"\na click to the redrawn tree, by the page's clock: median "
            f"{statistics.median(times):.0f} ms, {min(times):.0f} to {max(times):.0f} ms"
        )


def test_a_page_that_is_loaded_again_is_still_answered(notebook, explorer, lab):
    explorer.loop("C/i").click()
    explorer.settle()  # the kernel has answered this page
    notebook.save(lab)
    notebook.load_again(".dlc-explorer [role=treeitem]")
    steps = len(explorer.states())
    explorer.loop("C/i").click()
    explorer.move("split C C.i").click()
    notebook.page.wait_for_function(
        "n => document.querySelectorAll('.dlc-state-step').length > n", arg=steps
    )
