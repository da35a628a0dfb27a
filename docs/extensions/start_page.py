"""Write what the start page shows: a replay of the Explorer, and a picture for each use.

Both are made when the documentation is built, by the code that the page describes. The machine is
fixed, so every build shows the same; the times of the tuning run are those of a stored table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from dlcompiler_widgets import Explorer
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

import dlcompiler as dlc
from dlcompiler import autotune, ops, te
from dlcompiler.autotune.pools.replay import SUFFIX, ReplayPool, ReplayTable
from dlcompiler.autotune.run.plan import Plan
from dlcompiler.autotune.tuners import tuner
from dlcompiler.pipeline import emit_source
from dlcompiler.runtime.cross import Assembler
from dlcompiler.runtime.llvm import Options
from dlcompiler.schedule import Schedule
from dlcompiler.target import resolve
from dlcompiler.views.code.assembly_text import assembly_code
from dlcompiler.views.code.code_text import code_text
from dlcompiler.views.device.thread_block import thread_block
from dlcompiler.views.memory.scopes import memory_scopes
from dlcompiler.views.render.html import lines_html
from dlcompiler.views.render.markup import Markup, tag
from dlcompiler.views.render.scene import Scene, scene_svg
from dlcompiler.views.tuning.one_scene import run_scene

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build/docs/start"
STATIC = FOLDER / "static"
MACHINE = "x86-64-avx2"
SIZE = 512
CODE_LINES = 17
TRIALS = 96

Program = tuple[Schedule, list[te.Tensor]]


def product(n: int) -> Program:
    """Return a matrix product without any step, and its parameters."""
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return te.create_schedule(C.op), [A, B, C]


def six_steps() -> Program:
    """Return the product of the first tutorial: blocked, vectorized, parallel; with a branch."""
    s, (A, B, C) = product(SIZE)
    (k,) = s[C].op.reduce_axis
    i_outer, j_outer, i_inner, j_inner = s[C].tile(*s[C].op.axis, 32, 32)
    k_outer, k_inner = s[C].split(k, factor=4)
    s[C].reorder(i_outer, j_outer, k_outer, i_inner, k_inner, j_inner)
    s[C].vectorize(j_inner)
    vectorized = s.node.id
    s[C].parallel(j_outer)
    s.jump(vectorized)
    s[C].parallel(i_outer)
    return s, [A, B, C]


def tiles_of_threads() -> Program:
    """Return a product whose blocks of 16 × 16 threads load their operands together."""
    s, (A, B, C) = product(64)
    x, y = te.thread_axis("threadIdx.x"), te.thread_axis("threadIdx.y")
    local = s.cache_write(C, "local")
    by, bx, i, j = s[C].tile(*s[C].op.axis, 16, 16)
    for loop, axis in ((by, "blockIdx.y"), (bx, "blockIdx.x")):
        s[C].bind(loop, te.thread_axis(axis))
    s[C].bind(i, y)
    s[C].bind(j, x)
    s[local].compute_at(s[C], j)
    k_outer, k_inner = s[local].split(s[local].op.reduce_axis[0], 16)
    s[local].reorder(k_outer, k_inner, *s[local].op.axis)
    for tensor in (A, B):
        shared = s.cache_read(tensor, "shared", [local])
        s[shared].compute_at(s[local], k_outer)
        row, column = s[shared].op.axis
        s[shared].bind(row, y)
        s[shared].bind(column, x)
    return s, [A, B, C]


def refusal() -> Markup:
    """Return a step that would change the result, and the error that refuses it."""
    s, (*_, C) = product(SIZE)
    (k,) = s[C].op.reduce_axis
    try:
        s[C].vectorize(k)
    except dlc.UserError as error:
        said = f">>> s[C].vectorize(k)\n{type(error).__name__}: {error}"
        return tag("pre", {"class": "dlc-message"}, said)
    raise AssertionError("a reduction axis was vectorized")


def memory() -> Markup:
    """Return the memories of the machine, with what an iteration of a loop touches in each."""
    s, args = six_steps()
    return picture(memory_scopes(s, args, resolve(MACHINE), "C/j.outer"))


def assembly() -> Markup:
    """Return the instructions of the innermost statement, each under its line of the program."""
    s, args = six_steps()
    target = resolve(MACHINE)
    source, func = emit_source(s, args, target, "matmul")
    printer = Assembler()
    try:
        text = printer.assembly(source.text, Options.for_target(target), "matmul")
    finally:
        printer.close()
    code = assembly_code(text, func, target.triple)
    first = next(n for n, line in enumerate(code.lines) if "+=" in line.text)
    return lines_html(code_text(code, first)["lines"][:CODE_LINES])


def tuning() -> Markup:
    """Return a search over a table of configs that were measured before."""
    table = ReplayTable.load(ROOT / f"dlcompiler/bench/tables/gemm-512x512x512{SUFFIX}")
    work = table.workload
    item = ops.operator(work.op)
    plan = Plan(
        item, work, resolve("cpu"), table.space, 1, TRIALS, None, 8, 2.0 * SIZE**3, tuner="xgb"
    )
    searcher = tuner("xgb", table.space, 0, points=table.points)
    run = autotune.TuningRun(plan, searcher, ReplayPool(table), autotune.RecordStore(":memory:"))
    run.start()
    return picture(run_scene(run.wait(), "best"))


def threads() -> Markup:
    """Return what the threads of a block read of a tile in shared memory."""
    return picture(thread_block(*tiles_of_threads(), buffer="B.shared r"))


def picture(scene: Scene) -> Markup:
    """Return a picture without its words."""
    return tag("div", {"class": "dlc-picture"}, scene_svg(scene))


PICTURES: dict[str, Callable[[], Markup]] = {
    "refusal": refusal,
    "memory": memory,
    "assembly": assembly,
    "tuning": tuning,
    "threads": threads,
}
"""File name -> what makes the picture."""


def replay() -> str:
    """Return the page that replays the Explorer."""
    s, args = six_steps()
    explorer = Explorer(s, args, target=MACHINE, name="matmul")
    path = STATIC / "explorer.html"
    explorer.save_html(path, max_seconds=math.inf)  # on a busy machine it is the same page
    explorer.close()
    return path.read_text(encoding="utf-8")


def in_theme(page: str, theme: str) -> str:
    """Return a page that follows the system's colours as one that is always light, or dark.

    The theme of the documentation can be chosen on the page, which no media query in a frame sees.
    """
    asked = "(prefers-color-scheme: dark)"
    page = page.replace(f"@media {asked}", "@media all" if theme == "dark" else "@media not all")
    return page.replace("color-scheme: light dark", f"color-scheme: {theme}")


def write(app: Sphinx) -> None:
    """Write the replay in both themes, and the pictures."""
    del app
    STATIC.mkdir(parents=True, exist_ok=True)
    page = replay()
    for theme in ("light", "dark"):
        (STATIC / f"explorer-{theme}.html").write_text(in_theme(page, theme), encoding="utf-8")
    for name, make in PICTURES.items():
        (FOLDER / f"{name}.html").write_text(make(), encoding="utf-8")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Write the files before the pages are read."""
    app.connect("builder-inited", write)
    return {"version": "1"}
