"""The Explorer in JupyterLab and in Notebook 7: what these two do to a widget.

Each test is a trap in which widgets get caught: threads, busy cells, the notebook's own keys, two
views, a kernel that is restarted, themes, notebooks without a kernel.
"""

import pytest

from tests.widgets.jupyter import THEMES

pytest.importorskip("dlcompiler_widgets")
pytestmark = pytest.mark.campaign(whole_file=True)

START = """\
import threading, time
import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import MeasurementError
from dlcompiler_widgets import Explorer

class Slow:
    "Measures until it is cancelled."
    def __init__(self):
        self.ended = threading.Event()
    def measure(self, *args):
        self.ended.wait(600)
        raise MeasurementError("measure", "it was ended")
    verify = measure
    def cancel(self):
        self.ended.set()

A = te.placeholder((64, 64), name="A")
B = te.placeholder((64, 64), name="B")
k = te.reduce_axis((0, 64), name="k")
C = te.compute((64, 64), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
s = te.create_schedule(C.op)
e = Explorer(s, [A, B, C], name="matmul", stopwatch=Slow())
e
"""
AGAIN = "e"
SLEEP = "time.sleep(600)"
WORK = """\
def work():
    time.sleep(1)
    s[C].parallel(C.op.axis[0])
threading.Thread(target=work).start()
time.sleep(600)
"""
WATCH = """\
threads = []
handle = e._handle
def watched(op, args):
    threads.append(threading.current_thread().name)
    handle(op, args)
e._handle = watched
"""
HERE = """\
e.intent = {"id": "cell", "op": "choose", "args": {"key": "C/k"}}
print("threads:", *threads)
"""
BREAK = """\
def broken(args):
    raise KeyError("a bug")
e._session.choose = broken
"""
ANSWERED = "print('hello', e._control.answer)"
GRAPH = """\
from dlcompiler import graph
from dlcompiler.graph import op
from dlcompiler_widgets import GraphView
x = graph.var("x", (8, 8))
GraphView(graph.Module.from_expr(op.exp(op.sqrt(x, name="root"), name="power")))
"""
CELLS = [START, AGAIN, SLEEP, WORK, WATCH, HERE, BREAK, ANSWERED, GRAPH]
NUMBER = {"again": 1, "sleep": 2, "work": 3, "watch": 4, "here": 5, "break": 6, "answered": 7,
          "graph": 8}  # fmt: skip
KINDS = """
() => {
  const root = document.querySelector(".dlc-explorer"), kinds = new Map();
  for (const node of root.querySelectorAll("button, select, summary, textarea, [tabindex]")) {
    if (!node.checkVisibility()) continue;
    const pane = node.closest("[aria-label]:not(button):not([data-item])")?.ariaLabel ?? "";
    const kind = `${pane}: ${node.tagName} ${node.className} ${node.getAttribute("role") ?? ""}`;
    if (kinds.has(kind)) continue;
    node.dataset.kind = kinds.size;
    kinds.set(kind, kinds.size);
  }
  return [...kinds];
}
"""
CONTRASTS = """
() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const over = (colors) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const color of colors) { canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  for (const node of document.querySelectorAll(".dlc-explorer *:not(svg *)")) {
    const own = [...node.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !node.checkVisibility() || node.getAttribute("aria-disabled")) continue;
    const behind = [];
    for (let at = node; at; at = at.parentElement) {
      behind.unshift(getComputedStyle(at).backgroundColor);
    }
    const back = over(["white", ...behind]);
    const front = over(["white", ...behind, getComputedStyle(node).color]);
    const [low, high] = [luminance(back), luminance(front)].sort((a, b) => a - b);
    found.push([(high + 0.05) / (low + 0.05), node.className, node.textContent.slice(0, 30)]);
  }
  return found.sort((a, b) => a[0] - b[0]);
}
"""


@pytest.fixture(scope="module", params=["lab", "notebook"])
def notebook(request, open_notebook):
    return open_notebook(f"front-{request.param}", CELLS, front=request.param)


class View:
    """An Explorer that a cell shows, and what a person does with it."""

    def __init__(self, notebook, number=0):
        self.page = notebook.page
        self.root = notebook.output(number).locator(".dlc-explorer")
        self.root.wait_for()

    def loop(self, key):
        return self.root.locator(f'[role="treeitem"][data-key="{key}"]')

    def key(self, key):
        return self.root.locator(f'[data-key="{key}"]').first

    def pills(self):
        return self.root.locator(".dlc-tree .dlc-pill").all_inner_texts()

    def status(self, text):
        """Wait for what is said."""
        return self.root.locator(".dlc-status", has_text=text).wait_for()

    def settle(self):
        self.page.wait_for_function(
            "root => !root.hasAttribute('aria-busy')", arg=self.root.element_handle()
        )

    def click(self, key):
        self.key(key).click()
        self.settle()


@pytest.fixture
def view(notebook):
    """A fresh Explorer in the first cell; nothing may go wrong in the page."""
    notebook.errors.clear()
    notebook.run(0)
    view = View(notebook)
    yield view
    assert not notebook.errors
    assert not notebook.foreign


def test_requests_are_served_on_any_thread(notebook, view):
    notebook.run(NUMBER["watch"])
    for key in ("C/j", "C/k", "C/j"):
        view.loop(key).click()
        view.settle()
    view.click("vectorize C C.j")
    assert view.pills() == ["vectorized"]
    notebook.run(NUMBER["here"])
    assert view.loop("C/k").get_attribute("aria-selected") == "true"
    threads = notebook.output(NUMBER["here"]).inner_text().split()[1:]
    assert len(threads) >= 5
    assert threads[-1] == "MainThread"


def test_cancel_during_a_busy_cell(notebook, view, lab):
    view.key("measure").click()
    view.key("measure").filter(has_text="Cancel").wait_for()
    notebook.run_until(NUMBER["answered"], "hello 1")
    notebook.start(NUMBER["sleep"])
    notebook.status("busy").wait_for()
    view.key("measure").click()
    view.status("cancelled")
    assert notebook.status("busy").is_visible()
    notebook.interrupt(lab)


def test_a_thread_shows_its_step_while_a_cell_is_busy(notebook, view, lab):
    notebook.start(NUMBER["work"])
    notebook.status("busy").wait_for()
    view.root.locator(".dlc-tree .dlc-pill", has_text="parallel").wait_for()
    assert notebook.status("busy").is_visible()
    notebook.interrupt(lab)


def test_two_views_of_one_explorer(notebook, view):
    notebook.run(NUMBER["again"])
    other = View(notebook, NUMBER["again"])
    view.loop("C/j").click()
    view.settle()
    view.loop("C/j").focus()
    view.page.keyboard.press("Enter")
    view.page.keyboard.press("Escape")
    view.click("parallel C C.j")
    focused = "document.activeElement.dataset.key"
    assert view.page.evaluate(focused) == "parallel C C.j"
    other.root.locator(".dlc-tree .dlc-pill", has_text="parallel").wait_for()
    assert view.pills() == other.pills() == ["parallel"]
    assert other.loop("C/j").get_attribute("aria-selected") == "true"
    other.click("undo")
    view.root.locator(".dlc-tree .dlc-pill").wait_for(state="detached")
    assert view.page.evaluate("root => root.contains(document.activeElement)",
                              other.root.element_handle())  # fmt: skip


def test_keys_stay_in_the_widget_and_tab_leaves_it(notebook, view):
    cells, page = notebook.cells(), view.page
    for kind, number in page.evaluate(KINDS):
        keys = ("b", "m", "d", "d", "x")
        if "SELECT" not in kind:  # where an "a" chooses what begins with it
            keys += ("a", "ArrowDown", "ArrowUp")
        node = page.locator(f'[data-kind="{number}"]')
        if not node.count():
            continue  # a key of another kind has drawn it anew
        for key in keys:
            if node.count():
                node.focus()
            page.keyboard.press(key)
        assert notebook.cells() == cells, kind
        assert page.locator(".jp-MarkdownCell").count() == 0, kind
        view.settle()
    view.key("help").focus()
    for _ in range(200):
        page.keyboard.press("Tab")
        if not page.evaluate("Boolean(document.activeElement.closest('.dlc-explorer'))"):
            break
    else:
        raise AssertionError("Tab does not leave the widget")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("Boolean(document.activeElement.closest('.dlc-explorer'))")


def test_letters_are_typed_into_fields(notebook, view):
    cells = notebook.cells()
    field = view.key("split C C.i factor")
    field.fill("")
    field.press_sequentially("bamdd")
    assert field.input_value() == "bamdd"
    field.press("Enter")
    view.settle()
    view.status("factor must be an integer")
    assert notebook.cells() == cells


def test_a_bug_is_shown_and_logged(notebook, view, lab):
    notebook.run(NUMBER["break"])
    view.loop("C/k").click()
    view.status("choose: KeyError: 'a bug'")
    view.settle()
    assert "in broken" in view.root.locator(".dlc-status").inner_text()
    view.key("parallel C C.i").click()
    view.root.locator(".dlc-tree .dlc-pill", has_text="parallel").wait_for()  # it goes on
    if notebook.front == "lab":
        log = notebook.log()
        log.locator("*", has_text="Traceback").first.wait_for()
        assert "KeyError: 'a bug'" in log.inner_text()


def test_a_restarted_kernel(notebook, view):
    """The old view stays and says what to do; run again, the cell gives a live one."""
    notebook.restart()
    view.status("The kernel that made this is gone")
    view.loop("C/j").click()
    view.settle()
    assert "for i in range(64):" in view.root.locator(".dlc-lines").inner_text()
    notebook.run(0)
    fresh = View(notebook)
    fresh.click("parallel C C.i")
    assert fresh.pills() == ["parallel"]


IS_DARK = "!!document.querySelector('body[data-jp-theme-light=false]')"


def weak_texts(page):
    return [each for each in page.evaluate(CONTRASTS) if each[0] < 4.5]


def test_fusion_is_decided_and_measured(notebook, view):
    notebook.run(NUMBER["graph"])
    fusion = View(notebook, NUMBER["graph"])
    now = fusion.root.locator('[data-fact="kernels"]')
    assert now.inner_text() == "1"
    fusion.click("level calls")
    fusion.root.locator(".dlc-graph-go", has_text="root").click()
    fusion.click("wish keep apart")
    assert now.inner_text() == "1 → 2"
    fusion.key("measure").click()
    fusion.root.locator('[data-fact="time of a call"]', has_text="measured on").wait_for()
    fusion.click("reset")
    assert now.inner_text().endswith("1")


def test_text_can_be_read(view):
    view.click("parallel C C.i")
    assert not view.page.evaluate(IS_DARK)
    assert not weak_texts(view.page)


def test_text_can_be_read_in_a_dark_theme(open_notebook, lab):
    lab.set(THEMES, theme="JupyterLab Dark")
    try:
        notebook = open_notebook("dark", [START])
    finally:
        lab.set(THEMES)
    notebook.run(0)
    view = View(notebook)
    view.click("parallel C C.i")
    assert view.page.evaluate(IS_DARK)
    assert not weak_texts(view.page)
    assert not notebook.errors
