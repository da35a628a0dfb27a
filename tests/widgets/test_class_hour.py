"""A class hour in JupyterLab: from an expression to the classic GEMM by clicks, and home."""

import subprocess
import sys

import pytest

from tests.widgets.jupyter import open_panes

pytest.importorskip("dlcompiler_widgets")
pytestmark = pytest.mark.campaign(whole_file=True)

CELLS = [
    "%load_ext dlcompiler_widgets",
    """\
%%explore name=matmul level=all
C[i, j] += A[i, k] * B[k, j]
A: float32[64, 64]
B: float32[64, 64]
""",
    "e = _",
    """\
import dlcompiler as dlc
e.save_html("replay.html")
print(dlc.lower(e.schedule, e._session.args, name="matmul"))
""",
]


class Student:
    """Someone who clicks in the workbench of the second cell."""

    def __init__(self, notebook):
        self.notebook = notebook
        self.page = notebook.page
        self.root = notebook.output(1).locator(".dlc-explorer")
        self.root.wait_for()
        open_panes(self.root)

    def settle(self):
        self.page.wait_for_function(
            "root => !root.hasAttribute('aria-busy')", arg=self.root.element_handle()
        )

    def key(self, key):
        return self.root.locator(f'[data-key="{key}"]').first

    def choose(self, loop):
        self.root.locator(f'[role="treeitem"][data-key="{loop}"]').click()
        self.settle()

    def click(self, key):
        self.key(key).click()
        self.settle()

    def step(self, loop, move, **numbers):
        """Choose a loop, type numbers, and apply a move; returns the loops that there are then."""
        self.choose(loop)
        for name, value in numbers.items():
            self.key(f"{move} {name}").fill(str(value))
        self.click(move)
        assert self.root.locator(".dlc-status .dlc-error").count() == 0, self.said()
        return self.loops()

    def loops(self):
        return self.root.locator(".dlc-loop").evaluate_all("all => all.map(e => e.dataset.key)")

    def moves(self):
        return self.root.locator(".dlc-move").evaluate_all("all => all.map(e => e.dataset.key)")

    def said(self):
        return self.root.locator(".dlc-status").inner_text()

    def state(self, title):
        """The id of the newest state with a step."""
        row = self.root.locator(".dlc-state", has_text=title).last
        return row.get_attribute("data-key")

    def compare(self, side, title):
        self.key(f"{side} {self.state(title)}").dispatch_event("click")
        self.settle()


@pytest.fixture(scope="module")
def student(open_notebook):
    notebook = open_notebook("class-hour", CELLS)
    notebook.run(0)
    notebook.run(1)
    yield Student(notebook)
    assert not notebook.errors
    assert not notebook.foreign


def test_a_class_hour(student, lab, browser, tmp_path):
    assert student.loops() == ["C/i", "C/j", "C/k"]
    student.notebook.run(2)

    # One refused move, explained.
    student.choose("C/k")
    refused = student.key("vectorize C C.k")
    assert refused.get_attribute("aria-disabled") == "true"
    refused.click(force=True)
    student.settle()
    why = student.root.locator(".dlc-why")
    why.get_by_text("write the same element").first.wait_for()
    assert "a reduction axis cannot be vectorized" in student.said()
    assert student.loops() == ["C/i", "C/j", "C/k"]

    # Six steps to the classic product.
    student.step("C/i", "tile C C.i C.j", x_factor=16, y_factor=8)
    student.step("C/k", "split C C.k", factor=4)
    for inner in ("j.inner", "i.inner"):
        student.step("C/k.outer", f"reorder C C.k.outer C.{inner}")
    student.step("C/k.inner", "reorder C C.k.inner C.j.inner")
    student.step("C/j.inner", "vectorize C C.j.inner")
    student.step("C/k.inner", "unroll C C.k.inner")
    loops = student.step("C/i.outer", "parallel C C.i.outer")
    order = ("i.outer", "j.outer", "k.outer", "i.inner", "k.inner", "j.inner")
    assert loops == [f"C/{name}" for name in order]
    pills = student.root.locator(".dlc-tree .dlc-pill").all_inner_texts()
    assert pills == ["parallel", "unrolled", "vectorized"]

    # Another branch, and both side by side.
    student.click("undo")
    student.step("C/j.outer", "parallel C C.j.outer")
    student.compare("a", "parallel C i.outer")
    student.compare("b", "parallel C j.outer")
    side_by_side = student.root.locator(".dlc-compare:not([hidden])").inner_text()
    assert "parallel C i.outer" in side_by_side
    assert "for j.outer in parallel(8):" in side_by_side
    student.click("close comparison")

    # Taken home as Python, which gives the same loop IR.
    student.click("export")
    text = student.root.locator(".dlc-export textarea").input_value()
    (tmp_path / "matmul.py").write_text(text)
    replayed = subprocess.run(
        [sys.executable, "matmul.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    student.notebook.run(3)
    printed = student.notebook.output(3).inner_text()
    assert "parallel(8)" in printed
    assert replayed.stdout.strip().splitlines() == printed.strip().splitlines()

    # And as a page that needs neither kernel nor network.
    context = browser.new_context(offline=True, viewport={"width": 1200, "height": 1000})
    page = context.new_page()
    page.set_default_timeout(20_000)
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((lab.folder / "replay.html").as_uri())
    page.locator(".dlc-tree .dlc-loop").first.wait_for()
    shown = "all => all.map(e => e.dataset.key)"
    assert page.locator(".dlc-tree .dlc-loop").evaluate_all(shown) == student.loops()
    page.locator(".dlc-state", has_text="create").first.click()
    page.locator('[role="treeitem"][data-key="C/i"]').wait_for()
    assert not errors
    context.close()
