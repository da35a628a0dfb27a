"""Screenshots of every pane for the documentation: ``make screenshots``.

Each is taken at two widths, on light and on dark ground, of the page as `live_page` draws it; look
at them before you commit them. ``docs/GALLERY.md`` is written from the same list.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from dlcompiler import te
from dlcompiler.schedule import create_schedule
from tests.thread_programs import tiled_matmul
from tests.widgets.live_page import DARK, LivePage

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/images/explorer"
TUNING = ROOT / "docs/images/tuning"
WIDTHS = (765, 1400)
THEMES = ("light", "dark")


@dataclass(frozen=True)
class Shot:
    """One picture of the gallery."""

    name: str
    text: str
    """What it shows, in a sentence."""
    drive: Callable[[LivePage], None]
    """What is clicked before it is taken."""
    make: Callable[[], object] | None = None
    """What it is taken of; None for the product that most of them show."""


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
            page.click(f"tab {name}")
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


def threads() -> object:
    """Return an Explorer on a product for the threads of a device."""
    from dlcompiler_widgets import Explorer

    schedule, args = tiled_matmul(64)
    return Explorer(schedule, args, target="v100", name="matmul")


SHOTS = (
    Shot(
        "memory",
        "Memory scopes, and assembly whose lines know their loops.",
        with_code("memory", "assembly"),
    ),
    Shot("cache", "Hits and misses in simulated caches, beside the prediction.", caches),
    Shot("space", "The iteration space, and the expression.", tabs("space", "notation")),
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
    Shot("block", "Which thread of a block touches what, by phases.", one_block, threads),
    Shot("device", "The memories of a device.", tabs("memory", "final", loop="C/j.inner"), threads),
)


def gemm():
    """The classic product in six steps, with a branch."""
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
    return Explorer(s, [A, B, C], name="matmul")


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


TUNING_SHOTS = (
    (Shot("dashboard", "A run, and the space knob by knob.", tuning_tab("knobs")), 1400, "light"),
    (Shot("why", "Why A was predicted before B.", two_trials), 1400, "dark"),
    (Shot("narrow", "The dashboard in one column.", tuning_tab("predicted")), 765, "light"),
)
"""Pictures of ``docs/TUNING.md``, each at one width and on one ground."""


def take(
    browser, shot: Shot, width: int, theme: str, folder: Path, make: Callable[[], object] = gemm
) -> Path:
    """Take one screenshot."""
    context = browser.new_context(
        viewport={"width": width + 16, "height": 800}, color_scheme=theme, reduced_motion="reduce"
    )
    widget = (shot.make or make)()
    page = LivePage(context, widget, DARK if theme == "dark" else "")
    shot.drive(page)
    path = folder / f"{shot.name}-{width}-{theme}.png"
    page.locate(".dlc-explorer").first.screenshot(path=path)
    reduce_colors(path)
    if page.errors:
        raise RuntimeError(f"{shot.name}: {page.errors}")
    context.close()
    widget.close()
    return path


def reduce_colors(path: Path) -> None:
    """Store a screenshot in 256 colours: half the size, and text stays sharp."""
    with Image.open(path) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def gallery() -> str:
    """Return the page that shows all of them."""
    lines = [
        "# Gallery",
        "",
        "Every pane of the Explorer, at two widths, on light and on dark ground; taken by",
        "`make screenshots`.",
    ]
    for shot in SHOTS:
        lines += ["", f"## {shot.text}", ""]
        for theme in THEMES:
            for width in WIDTHS:
                path = f"images/explorer/{shot.name}-{width}-{theme}.png"
                lines.append(f"![{shot.text} {width} pixels wide, {theme}]({path})")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Take those that are named, or all."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="names of shots; all by default")
    names = parser.parse_args().names
    for folder in (FOLDER, TUNING):
        folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for shot in SHOTS:
            for width in WIDTHS if not names or shot.name in names else ():
                for theme in THEMES:
                    print(take(browser, shot, width, theme, FOLDER))
        for shot, width, theme in TUNING_SHOTS:
            if not names or shot.name in names:
                print(take(browser, shot, width, theme, TUNING, tuned))
        browser.close()
    (ROOT / "docs/GALLERY.md").write_text(gallery(), "utf-8")


if __name__ == "__main__":
    main()
