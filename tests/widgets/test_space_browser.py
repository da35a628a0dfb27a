"""The iteration space in a browser: the rules of the page, and what a person does with it."""

import base64
import random

import pytest

from dlcompiler.pipeline import lower
from dlcompiler.views import loop_tree
from dlcompiler.views.loops.iteration_scene import cells
from dlcompiler.views.loops.iteration_space import iteration_space
from dlcompiler.views.loops.visits import OPERATIONS, touched, value_of
from tests.widgets.live_page import LivePage
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer
from dlcompiler_widgets.assets import _JS

CELLS = """
async ([source, space, steps]) => {
  const { touched, cellsOf } = await import(`data:text/javascript;base64,${source}`);
  return steps.map((step) => space.tensors.map(
    (tensor) => [...cellsOf(tensor, touched(space, tensor, step))].sort((a, b) => a - b)));
}
"""


@pytest.fixture
def context(contexts):
    made = contexts.open(viewport={"width": 1200, "height": 900})
    yield made
    made.close()


@pytest.mark.parametrize("key", ["C/i.outer", "C/k", "C/j.inner"])
@pytest.mark.parametrize("size", [20, 200])
def test_the_page_touches_what_python_does(context, key, size):
    s, args = matmul(size)
    C = args[-1]
    i_outer, j_outer, i_inner, j_inner = s[C].tile(*s[C].op.axis, 7, 8)
    s[C].reorder(i_outer, j_outer, *s[C].op.reduce_axis, i_inner, j_inner)
    space = iteration_space(lower(s, args, simple_mode=True), loop_tree(s), key)
    steps = random.Random(0).sample(range(space["steps"]), min(space["steps"], 20))
    source = base64.b64encode((_JS / "visits.js").read_bytes()).decode()
    page = context.new_page()
    for step, found in zip(steps, page.evaluate(CELLS, [source, space, steps]), strict=True):
        seen = touched(space, step)
        for tensor, got in zip(space["tensors"], found, strict=True):
            columns = tensor["grid"]["columns"]
            wanted = {row * columns + column for row, column in cells(tensor, seen[tensor["name"]])}
            assert got == sorted(wanted), (step, tensor["name"])


FORMULAS = """
async ([source, formulas]) => {
  const { valueOf } = await import(`data:text/javascript;base64,${source}`);
  return formulas.map((formula) => valueOf(formula, []));
}
"""


def test_the_page_computes_formulas_as_python_does(context):
    formulas = [
        [op, a, b] for op in OPERATIONS for a in (-7, -4, 0, 5) for b in (-2, 0, 3)
        if op not in ("shl", "shr") or b >= 0
    ]  # fmt: skip
    source = base64.b64encode((_JS / "visits.js").read_bytes()).decode()
    found = context.new_page().evaluate(FORMULAS, [source, formulas])
    wanted = [value_of(formula, []) for formula in formulas]
    wrong = [row for row in zip(formulas, found, wanted, strict=True) if row[1] != row[2]]
    assert not wrong


@pytest.fixture
def explorer(context):
    schedule, args = matmul(16)
    widget = Explorer(schedule, args, name="matmul")
    page = LivePage(context, widget)
    page.click("tab space")
    page.loop("C/k").click()
    page.settle()
    yield page
    assert not page.errors
    widget.close()


def where(page):
    return page.locate(".dlc-summary").inner_text()


def test_stepping_asks_nothing_of_python(explorer):
    sent = explorer.widget.intent
    explorer.key("space on").click()
    explorer.key("space on").click()
    explorer.key("space back").click()
    assert where(explorer) == "One iteration of k: step 2 of 4,096, at i = 0, j = 0, k = 1."
    assert explorer.locate("canvas").nth(1).get_attribute("aria-label") == "A: 1 element touched"
    assert explorer.widget.intent == sent


def test_the_next_reuse(explorer):
    explorer.key("space reuse").click()
    assert "at i = 0, j = 1, k = 0." in where(explorer)
    assert "A[0, 0] was read 16 steps before" in explorer.locate(".dlc-status").inner_text()


def test_playing_and_pausing(explorer):
    explorer.key("space speed").select_option("64")
    explorer.key("space play").click()
    explorer.page.wait_for_function("document.querySelector('.dlc-scrub').value >= 3", polling=50)
    explorer.key("space play").click()
    stopped = where(explorer)
    explorer.page.wait_for_timeout(100)
    assert where(explorer) == stopped


def test_who_wants_no_motion_gets_steps(contexts):
    context = contexts.open(reduced_motion="reduce")
    schedule, args = matmul(16)
    widget = Explorer(schedule, args)
    page = LivePage(context, widget)
    page.click("tab space")
    assert page.locate('[data-key="space play"]').count() == 0
    page.key("space on").click()
    assert "step 2 of" in where(page)
    context.close()
    widget.close()
