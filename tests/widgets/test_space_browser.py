"""The iteration space in a browser: the rules of the page, and what a person does with it."""

import base64
import random

import pytest

from dlcompiler import te
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from dlcompiler.views import loop_tree
from dlcompiler.views.loops.earlier import earlier
from dlcompiler.views.loops.iteration_space import iteration_space
from dlcompiler.views.loops.space_zoom import (
    cells,
    first_zoom,
    part_text,
    region_cells,
    window_of,
    zooms,
)
from dlcompiler.views.loops.visits import OPERATIONS, touched, value_of
from tests.widgets.live_page import LivePage
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer
from dlcompiler_widgets.assets import _JS, module

pytestmark = pytest.mark.campaign(whole_file=True)

CELLS = """
async ([source, space, steps, zooms]) => {
  const { Trail, cellsOf, firstZoom, partOf, regionCells, touched, windowOf, zoomsOf } =
    await import(`data:text/javascript;base64,${source}`);
  const trails = space.tensors.map((tensor) => new Trail(space, tensor));
  const sorted = (cells) => [...cells].sort((a, b) => a - b);
  const found = steps.flatMap((step) => zooms.map((zoom) => space.tensors.map((tensor, n) => {
    const shown = windowOf(space, tensor, zoom, step), before = trails[n].before(step);
    return [shown, partOf(tensor, shown), sorted(cellsOf(touched(space, tensor, step), shown)),
      sorted(regionCells(before, tensor.shape.length, shown)), before.every(({ exact }) => exact)];
  })));
  return [zoomsOf(space), firstZoom(space), found];
}
"""


def space_source(*names):
    """The drawer's module with its imports, which exports `names` of them, as base64."""
    text = f"{module('space')}\nexport {{ {', '.join(names)} }};"
    return base64.b64encode(text.encode()).decode()


@pytest.fixture
def context(contexts):
    made = contexts.open(viewport={"width": 1200, "height": 900})
    yield made
    made.close()


def tiled(size):
    s, args = matmul(size)
    C = args[-1]
    i_outer, j_outer, i_inner, j_inner = s[C].tile(*s[C].op.axis, 7, 8)
    s[C].reorder(i_outer, j_outer, *s[C].op.reduce_axis, i_inner, j_inner)
    return s, args


def skewed():
    """Dimensions that hang together, a padded read, and a fused loop."""
    A = te.placeholder((30, 30), name="A")
    k = te.reduce_axis((0, 5), name="k")
    B = te.compute(
        (20, 12),
        lambda i, j: te.sum(te.if_then_else(te.all(i >= k, j < 9), A[i - k, i], 0.0), axis=k),
        name="B",
    )
    s = create_schedule(B.op)
    s[B].fuse(*s[B].op.axis)
    return s, [A, B]


@pytest.mark.parametrize(
    ("make", "key"),
    [
        *((size, key) for size in (20, 200) for key in ("C/i.outer", "C/k", "C/j.inner")),
        ("skewed", "B/i.j.fused"),
        ("skewed", "B/k"),
    ],
)
def test_the_page_touches_what_python_does(context, make, key):
    s, args = skewed() if make == "skewed" else tiled(make)
    space = iteration_space(lower(s, args, simple_mode=True), loop_tree(s), key)
    steps = random.Random(0).sample(range(space["steps"]), min(space["steps"], 8))
    levels = range(len(zooms(space)))
    names = ["Trail", "cellsOf", "firstZoom", "partOf", "regionCells", "touched", "windowOf"]
    source = space_source(*names, "zoomsOf")
    page = context.new_page()
    words, first, found = page.evaluate(CELLS, [source, space, steps, list(levels)])
    assert (words, first) == (zooms(space), first_zoom(space))
    wanted = [
        [look(space, tensor, zoom, step) for tensor in space["tensors"]]
        for step in steps for zoom in levels
    ]  # fmt: skip
    for number, (got, own) in enumerate(zip(found, wanted, strict=True)):
        assert got == own, (steps[number // len(levels)], number % len(levels))


def look(space, tensor, zoom, step):
    window = window_of(space, tensor, zoom, step)
    before = earlier(space, tensor, step)
    shown = {
        "top": window.top, "left": window.left, "rows": window.rows, "columns": window.columns,
        "block": list(window.block), "cell": window.cell,
    }  # fmt: skip

    def numbers(found):
        return sorted(row * window.columns + column for row, column in found)

    return [
        shown, part_text(tensor, window),
        numbers(cells(touched(space, step)[tensor["name"]], window)),
        numbers(region_cells(before, len(tensor["shape"]), window)),
        all(region.exact for region in before),
    ]  # fmt: skip


REUSE = """
async ([source, space, steps]) => {
  const { nextReuse } = await import(`data:text/javascript;base64,${source}`);
  return steps.map((step) => nextReuse(space, step));
}
"""


@pytest.mark.parametrize("key", ["C/i.outer", "C/k", "C/i.inner", "C/j.inner"])
def test_the_next_reuse_is_that_of_a_plain_search(context, key):
    s, args = tiled(20)
    space = iteration_space(lower(s, args, simple_mode=True), loop_tree(s), key)
    last = {}
    again = []  # of each step, by element the last step before that read it
    for step in range(space["steps"]):
        read = {
            (name, *point) for name, seen in touched(space, step).items() if name != "C"
            for point in seen["points"]
        }  # fmt: skip
        again.append({element: last[element] for element in read if element in last})
        last |= dict.fromkeys(read, step)
    steps = random.Random(1).sample(range(space["steps"]), min(space["steps"], 12))
    found = context.new_page().evaluate(REUSE, [space_source("nextReuse"), space, steps])
    for step, got in zip(steps, found, strict=True):
        wanted = next((n for n in range(step + 1, space["steps"]) if again[n]), None)
        assert got["step"] == wanted, step
        if wanted is not None:
            name, _, index = got["what"].partition("[")
            element = (name, *map(int, index.rstrip("]").split(", ")))
            assert got["before"] == again[wanted][element]


def windows(size):
    """Each step reads a window of `size` × `size`, one element beside that of the step before."""
    A = te.placeholder((6 + size, 8 + size), name="A")
    r, q = te.reduce_axis((0, size), name="r"), te.reduce_axis((0, size), name="q")
    B = te.compute((6, 8), lambda i, j: te.sum(A[i + r, j + q], axis=[r, q]), name="B")
    s = create_schedule(B.op)
    s[B].fuse(*B.op.axis)
    return s, [A, B]


def diagonals(size):
    """Each step reads elements that no other step reads, `size` of each column."""
    A = te.placeholder((4 * size, size), name="A")
    k = te.reduce_axis((0, size), name="k")
    B = te.compute((4 * size - size,), lambda i: te.sum(A[i + k, k], axis=k), name="B")
    s = create_schedule(B.op)
    s[B].split(B.op.axis[0], size)
    return s, [A, B]


def test_large_steps_are_compared_one_by_one(context):
    """A step reads more elements than are listed; of all earlier ones only bounds are known."""
    page = context.new_page()
    s, args = windows(70)
    space = iteration_space(lower(s, args, simple_mode=True), loop_tree(s), "B/i.j.fused")
    found = page.evaluate(REUSE, [space_source("nextReuse"), space, [0, 20]])
    assert [(each["step"], each["before"]) for each in found] == [(1, 0), (21, 20)]
    s, args = diagonals(200)
    space = iteration_space(lower(s, args, simple_mode=True), loop_tree(s), "B/i.outer")
    (none,) = page.evaluate(REUSE, [space_source("nextReuse"), space, [0]])
    assert (none["step"], none["isAll"], none["isUnsure"]) == (None, True, True)


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


OPACITY = """
([number, row, column, columns]) => {
  const canvas = document.querySelectorAll(".dlc-canvas")[number];
  const side = (canvas.width - 1) / columns;
  const [x, y] = [(column + 0.5) * side, (row + 0.5) * side].map(Math.floor);
  return canvas.getContext("2d").getImageData(x, y, 1, 1).data[3];
}
"""


def opacities(page, row, columns):
    """How strong the cells of a row of A are painted, from 0 to 255."""
    return [page.page.evaluate(OPACITY, [1, row, n, columns]) for n in range(columns)]


def test_the_trail_counts_steps_that_were_not_shown(explorer):
    """Row 0 and half of row 1 of A were read before, though the page jumps there."""
    explorer.page.evaluate(
        """() => { const scrub = document.querySelector(".dlc-scrub"); scrub.value = 16 * 16 + 8;
        scrub.dispatchEvent(new Event("input")); }"""
    )
    assert opacities(explorer, 0, 16) == [64] * 16
    assert opacities(explorer, 1, 16) == [64] * 8 + [255] + [0] * 7


def test_reuse_in_the_very_next_step(explorer):
    explorer.loop("C/j").click()
    explorer.settle()
    explorer.key("space reuse").click()
    assert "step 2 of" in where(explorer)
    assert "A[0, 0] was read in the step before." in explorer.locate(".dlc-status").inner_text()


def test_zooming_by_keyboard_shows_inner_loops_move(context):
    schedule, args = matmul(512)
    widget = Explorer(schedule, args)
    page = LivePage(context, widget)
    page.click("tab space")
    page.loop("C/k").click()
    page.settle()
    zoom = page.key("space zoom")
    sent = widget.intent
    assert zoom.locator("option:checked").inner_text() == "single elements"
    page.key("space on").click()
    image = page.locate("canvas").nth(1)
    assert image.get_attribute("aria-label") == ("A, rows 0–31, columns 0–31: 1 element touched")
    assert opacities(page, 0, 32)[:3] == [64, 255, 0]
    zoom.focus()
    page.page.keyboard.press("Home")
    assert image.get_attribute("aria-label") == "A: 1 element touched"
    assert widget.intent == sent
    assert not page.errors
    widget.close()


LINE = """(canvas) => {  // the least and the greatest red of a line of cells that nothing fills
  const { data } = canvas.getContext("2d").getImageData(1, canvas.height - 1, canvas.width - 2, 1);
  const reds = Array.from(data).filter((_, n) => n % 4 === 0);
  return [Math.min(...reds), Math.max(...reds)];
}"""


def test_another_theme_paints_again(explorer):
    lines = explorer.locate(".dlc-canvas").first
    dark_on_light = lines.evaluate(LINE)
    explorer.use_media(color_scheme="dark")
    light_on_dark = lines.evaluate(LINE)
    explorer.use_media(color_scheme="light")
    assert dark_on_light[1] < 100 < 200 < light_on_dark[0]
    assert lines.evaluate(LINE) == dark_on_light
