"""What there is to see of the widgets: each state of a page that `screenshots` and `looks` show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dlcompiler import te
from dlcompiler.bench import gpu_ladders
from dlcompiler.schedule import Schedule, create_schedule
from tests.accelerator_programs import plain_product, scheduled_product
from tests.thread_programs import tiled_matmul
from tests.widgets.live_page import LivePage


@dataclass(frozen=True)
class Shot:
    """One picture of the gallery."""

    name: str
    text: str
    """What it shows, in a sentence."""
    drive: Callable[[LivePage], None]
    """What is clicked before it is taken."""
    make: Callable[[], object] | None = None
    """Makes the widget that is shown; None for the product that most shots show."""


def expand(page: LivePage, pane: str) -> None:
    """Open a pane that a narrow page begins with as its title."""
    title = page.key(f"pane {pane}")
    if title.is_visible() and title.get_attribute("aria-expanded") == "false":
        title.click()
        page.settle()


def tabs(*names: str, loop: str = "C/k.inner") -> Callable[[LivePage], None]:
    """Open tabs, and choose a loop."""

    def drive(page: LivePage) -> None:
        for name in names:
            if not page.key(f"tab {name}").is_visible():
                expand(page, "text")
            page.open_tab(name)
        page.loop(loop).click()
        page.settle()

    return drive


def with_code(*names: str) -> Callable[[LivePage], None]:
    """Open tabs, and wait for the code that a worker makes."""

    def drive(page: LivePage) -> None:
        tabs(*names)(page)
        for _ in range(100):
            page.push()
            if page.widget.text["lines"] and not page.widget.text.get("is_stale"):
                break
            page.page.wait_for_timeout(100)
        page.push()
        page.settle()

    return drive


def refused(page: LivePage) -> None:
    """Point at a move that is not possible."""
    tabs("nest", "loops", loop="C/k.inner")(page)
    page.key("vectorize C C.k.inner").focus()
    page.page.wait_for_timeout(300)


def previewed(page: LivePage) -> None:
    """Point at a move that is possible."""
    tabs("memory", "loops", loop="C/i.inner")(page)
    page.key("unroll C C.i.inner").focus()
    page.page.wait_for_timeout(600)
    page.settle()


def compared(page: LivePage) -> None:
    """Compare the two branches."""
    expand(page, "history")
    rows = [r for r in page.widget.history["rows"] if r["step"].startswith("parallel")]
    for side, row in zip("ab", rows, strict=True):
        page.key(row["id"]).hover()
        page.click(f"{side} {row['id']}")


def opened(key: str) -> Callable[[LivePage], None]:
    """Open what a button of the bar opens."""

    def drive(page: LivePage) -> None:
        page.key(key).click()
        page.page.wait_for_timeout(200)

    return drive


def learning(page: LivePage) -> None:
    """Choose the level for learners."""
    page.key("level").select_option("learn")
    page.settle()


def one_block(page: LivePage) -> None:
    """Open the picture of a block: what its threads read of a tile."""
    page.widget._session.blocks.open(page.widget._session, {"buffer": "B.shared r"})
    tabs("block", "loops", loop="C.local/k.outer")(page)
    page.widget._session.blocks.wait()
    page.page.wait_for_timeout(200)
    page.push()
    page.settle()
    page.locate(".dlc-picture").evaluate("(pane) => { pane.scrollTop = 0; }")


def caches(page: LivePage) -> None:
    """Open the picture of simulated caches, and wait for the simulation."""
    tabs("cache", "loops")(page)
    page.wait(lambda: "is_pending" not in page.widget.picture["model"])
    page.settle()


def zoomed(page: LivePage) -> None:
    """Zoom the iteration space into a tile, and go some steps on."""
    tabs("space", "notation")(page)
    zoom = page.key("space zoom")
    zoom.select_option(index=zoom.locator("option").count() - 1)
    page.key("space reuse").click()
    page.settle()


def on_chip(picture: str, *cycles: int) -> Callable[[LivePage], None]:
    """Open a picture of an accelerator in all or some of its cycles, and choose an instruction."""

    def drive(page: LivePage) -> None:
        if cycles:
            wanted = {"first": cycles[0], "last": cycles[1]}
            page.widget._session.accelerators.open(page.widget._session, wanted)
        tabs(picture, "source", loop="acc/ko.outer")(page)
        page.widget._session.accelerators.wait(60)
        page.push()
        page.wait(lambda: "is_pending" not in page.widget.picture["model"])
        page.locate(".dlc-picture rect.dlc-link", has_text="W.wgt").nth(1).click()
        page.settle()

    return drive


def wrong_memory(page: LivePage) -> None:
    """Point at a copy into a memory that its reader cannot read."""
    tabs("stages", "notation", loop="sums/ko")(page)
    page.key("cache_read A A vta-pynq.wgt sums").focus()
    page.page.wait_for_timeout(300)


def accelerator():
    """Make an Explorer of a product on an accelerator, with two virtual threads."""
    from dlcompiler_widgets import Explorer

    return Explorer(*scheduled_product(), target="vta-pynq", name="gemv")


def product_on_blocks():
    """Make an Explorer of a product of matrices on blocks, without any step."""
    from dlcompiler_widgets import Explorer

    return Explorer(*plain_product(), target="vta-pynq", name="product")


def story(page: LivePage) -> None:
    """Show the measured states as a ladder: beneath the picture for learners, else as a picture."""
    if page.key("tab ladder").count():
        page.click("tab ladder")
    _with_machine(page)


def roofline(page: LivePage) -> None:
    """Open the roofline, and wait for the ceilings."""
    page.click("tab roofline")
    _with_machine(page)


def _with_machine(page: LivePage) -> None:
    page.widget._session.machine.wait(30)
    page.push()
    page.settle()


def asked(page: LivePage) -> None:
    """Take a step that asks for a prediction first."""
    page.loop("C/i").click()
    page.settle()
    page.click("parallel C C.i")


def threads() -> object:
    """Return an Explorer on a product for the threads of a device."""
    from dlcompiler_widgets import Explorer

    schedule, args = tiled_matmul(64)
    return Explorer(schedule, args, target="v100", name="matmul")


def of_warps(tab: str, loop: str) -> Callable[[LivePage], None]:
    """Open a picture of a kernel, and wait until its accesses are counted."""

    def drive(page: LivePage) -> None:
        tabs(tab, "loops", loop=loop)(page)
        page.widget._session.wait_for_pictures()
        page.push()
        page.settle()

    return drive


def on_gpu(make: Callable[[int], tuple[Schedule, list[te.Tensor]]]) -> Callable[[], object]:
    """Return what makes an Explorer on a product of a published ladder, for its GPU."""

    def explorer() -> object:
        from dlcompiler_widgets import Explorer

        return Explorer(*make(1024), target="rtx-a6000", name="matmul")

    return explorer


def gemm(**options: object):
    """Return an Explorer on the classic product in six steps, with a branch."""
    from dlcompiler_widgets import Explorer

    n = 512
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    i_outer, j_outer, i_inner, j_inner = s[C].tile(*s[C].op.axis, 32, 32)
    k_outer, k_inner = s[C].split(k, factor=4)
    s[C].reorder(i_outer, j_outer, k_outer, k_inner, i_inner, j_inner)
    s[C].parallel(j_outer)
    s.undo()
    s[C].vectorize(j_inner)
    s[C].parallel(i_outer)
    return Explorer(s, [A, B, C], name="matmul", **options)


def climbed() -> object:
    """Return the product with times for some states, by a stopwatch that measures nothing."""
    from tests.widgets.test_measured import Watch, measured, note

    explorer = gemm(stopwatch=Watch())
    flops, numpy_s = 2.0 * 512**3, 0.0034
    times = (0.21, 0.094, None, 0.088, 0.0121, 0.0058)
    note(explorer, *(s and measured(s, numpy_s=numpy_s, flops=flops) for s in times))
    explorer.intent = {"id": "again", "op": "picture", "args": {"tab": "ladder"}}
    explorer._session.machine.wait(30)
    return explorer


def asking() -> object:
    """Return an Explorer on a product without steps that asks for predictions."""
    from dlcompiler_widgets import Explorer

    from tests.widgets.test_measured import Watch

    n = 64
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    return Explorer(s, [A, B, C], name="matmul", level="learn", predict=True, stopwatch=Watch())


SHOTS = (
    Shot(
        "memory",
        "Memory scopes, and assembly whose lines know their loops.",
        with_code("memory", "assembly"),
    ),
    Shot("cache", "Hits and misses in simulated caches, beside the prediction.", caches),
    Shot("space", "The iteration space, and the expression.", tabs("space", "notation")),
    Shot("zoomed", "The iteration space, zoomed until the innermost loop moves.", zoomed),
    Shot(
        "dependences",
        "Which iterations depend on which, and how far apart they are.",
        tabs("dependences", "loops", loop="C/k.outer"),
    ),
    Shot("ladder", "The measured states of a branch, beside NumPy and the peak.", story, climbed),
    Shot("roofline", "Every measured state under the ceilings of the machine.", roofline, climbed),
    Shot("predict", "A question before a step is taken.", asked, asking),
    Shot("nest", "The loop nest as boxes, and the program as scheduled.", tabs("nest", "loops")),
    Shot("passes", "A pass of the compiler, before and after.", tabs("stages", "passes")),
    Shot("axes", "How loops follow from axes, and the steps as Python.", tabs("axes", "python")),
    Shot("llvm", "LLVM IR; pictures switched off.", with_code("off", "llvm")),
    Shot("final", "The program after all passes.", tabs("memory", "final")),
    Shot("refused", "A move that is not possible says why.", refused),
    Shot("preview", "What a move would lead to, before it is made.", previewed),
    Shot("compare", "Two branches side by side.", compared),
    Shot("write", "Writing the expression.", opened("write")),
    Shot("export", "Taking the schedule away.", opened("export")),
    Shot("learn", "The level for learners.", learning),
    Shot(
        "coalescing",
        "The sectors of global memory that the lanes of a warp touch.",
        of_warps("coalescing", "C.local/k"),
        on_gpu(gpu_ladders.naive),
    ),
    Shot(
        "banks",
        "The banks of shared memory that the lanes of a warp hit, and longer rows.",
        of_warps("banks", "C.local/k.outer"),
        on_gpu(gpu_ladders.vectorized),
    ),
    Shot(
        "occupancy",
        "What limits the blocks of a multiprocessor, and what more would cost.",
        of_warps("occupancy", "C.local/k.outer"),
        on_gpu(gpu_ladders.vectorized),
    ),
    Shot(
        "waves",
        "The waves of blocks on a GPU, and their tail.",
        of_warps("waves", "C.local/k.outer"),
        on_gpu(gpu_ladders.tiles_1d),
    ),
    Shot("block", "Which thread of a block touches what, by phases.", one_block, threads),
    Shot("device", "The memories of a device.", tabs("memory", "final", loop="C/j.inner"), threads),
    Shot(
        "timeline",
        "When the engines of an accelerator run, in some cycles, beside its instructions.",
        on_chip("timeline", 1000, 4000),
        accelerator,
    ),
    Shot(
        "chip",
        "Which values lie where in the memories of an accelerator.",
        on_chip("chip"),
        accelerator,
    ),
    Shot(
        "scopes",
        "Memories of an accelerator that a tensor may be copied into, and why not into others.",
        wrong_memory,
        product_on_blocks,
    ),
)


def tuned():
    """A run on a machine that is a formula, with the user's own config."""
    from dlcompiler_widgets import TuningDashboard

    from tests.watched_runs import Pool, ended, space

    run = ended(160, pool=Pool(message="C[3, 5] is 0.25, expected 1.5"))
    own = space().at(run.trials[20].point)
    return TuningDashboard(run, own=own, open_trial=lambda trial: None)


def tuning_tab(name: str) -> Callable[[LivePage], None]:
    """Open a picture of the dashboard."""

    def drive(page: LivePage) -> None:
        page.page.wait_for_timeout(300)  # until it has said how wide it is
        page.settle()
        page.click(f"tab {name}")

    return drive


def two_trials(page: LivePage) -> None:
    """Ask why the best trial was predicted before another."""
    tuning_tab("why")(page)
    page.click("sort gflops")
    page.locate("tbody tr").nth(0).press("a")
    page.settle()
    page.locate("tbody tr").nth(8).press("b")
    page.settle()


def fusion(name: str = "resnet") -> object:
    """Return the graph of a fusion view."""
    from dlcompiler_widgets import GraphView

    from dlcompiler.graph import builders

    made = builders.resnet(50) if name == "resnet" else builders.lenet()
    return GraphView(made.bound).panel


def block_opened(page: LivePage) -> None:
    """Open the second block of a model, and choose an edge that is not fused."""
    page.page.locator('.dlc-graph-picture [data-key="block 1"]').dblclick()
    page.settle()
    edges = [e for e in page.widget.picture["edges"] if e["kind"] == "not fused"]
    page.page.evaluate(
        """(key) => { const node = document.querySelector(`.dlc-graph-picture [data-key="${key}"]`);
        node.dispatchEvent(new MouseEvent("click", { bubbles: true }));
        node.closest(".dlc-scroll").scrollTop = 330; }""",
        edges[4]["key"],
    )
    page.settle()


def decided(page: LivePage) -> None:
    """Keep two calls apart, and look at the memory."""
    edge = next(e for e in page.widget.picture["edges"] if e["kind"] == "fused")
    page.page.evaluate(
        """(key) => document.querySelector(`.dlc-graph-picture [data-key="${key}"]`)
        .dispatchEvent(new MouseEvent("click", { bubbles: true }))""",
        edge["key"],
    )
    page.click("wish keep apart")
    page.click("tab arena")


def passes_scrubbed(page: LivePage) -> None:
    """Look at the graph after a pass in the middle."""
    page.click("tab passes")
    page.click("pass 3")


GRAPH_SHOTS = (
    Shot("fusion", "A whole model by blocks; one is open, and an edge says why it is not fused.",
         block_opened, fusion),
    Shot("decided", "Two calls are kept apart: old and new numbers, and the arena.", decided,
         lambda: fusion("lenet")),
    Shot("graph-passes", "A model after one of its passes, and what the pass did.",
         passes_scrubbed, fusion),
)  # fmt: skip
"""What there is to see of the fusion view."""
TUNING_SHOTS = (
    (Shot("dashboard", "A run, and the space knob by knob.", tuning_tab("knobs")), 1400, "light"),
    (Shot("why", "Why A was predicted before B.", two_trials), 1400, "dark"),
    (Shot("narrow", "The dashboard in one column.", tuning_tab("predicted")), 720, "light"),
)
"""Pictures of ``docs/TUNING.md``, each at one width and on one ground."""
