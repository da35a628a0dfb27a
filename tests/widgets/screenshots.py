"""Screenshots of every pane for the documentation: ``make screenshots``.

Each is taken of the page as `live_page` draws it; look at them before you commit them.
``docs/GALLERY.md`` is written from the same list. With ``--all``, each is taken at both widths, on
light and on dark ground, into ``build/screenshots``, and the documentation stays as it is.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterable
from pathlib import Path

from PIL import Image

from tests.widgets.live_page import LivePage
from tests.widgets.shots import GRAPH_SHOTS, SHOTS, TUNING_SHOTS, Shot, gemm, tuned

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/images/explorer"
TUNING = ROOT / "docs/images/tuning"
GRAPHS = ROOT / "docs/images/graphs"
ALL = ROOT / "build/screenshots"
WIDTHS = (720, 1400)
THEMES = ("light", "dark")
SHOWN = ((1400, "light"), (720, "dark"))
"""The widths and the grounds that the gallery shows of each."""


def take(browser, shot: Shot, width: int, themes: Iterable[str], folder: Path) -> list[Path]:
    """Take the screenshots of a page at one width, on each ground."""
    context = browser.new_context(
        viewport={"width": width + 16, "height": 900}, reduced_motion="reduce"
    )
    widget = (shot.make or gemm)()
    page = LivePage(context, widget)
    shot.drive(page)
    paths = []
    for theme in themes:
        page.use_media(color_scheme=theme)
        paths.append(folder / f"{shot.name}-{width}-{theme}.png")
        page.locate(".dlc-explorer").first.screenshot(path=paths[-1])
        reduce_colors(paths[-1])
    if page.errors:
        raise RuntimeError(f"{shot.name}: {page.errors}")
    context.close()
    widget.close()
    return paths


def reduce_colors(path: Path) -> None:
    """Store a screenshot in 256 colours: half the size, and text stays sharp."""
    with Image.open(path) as image:
        image.convert("RGB").quantize(
            256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
        ).save(path, optimize=True)


def gallery() -> str:
    """Return the page that shows those of the Explorer and of the fusion view."""
    lines = [
        "# Gallery",
        "",
        "Every pane of the Explorer, then the fusion view, wide on light ground and narrow on dark",
        "ground; taken by `make screenshots`.",
    ]
    for shot, folder in [*((s, "explorer") for s in SHOTS), *((s, "graphs") for s in GRAPH_SHOTS)]:
        lines += ["", f"## {shot.text}", ""]
        for width, theme in SHOWN:
            path = f"images/{folder}/{shot.name}-{width}-{theme}.png"
            lines.append(f"![{shot.text} {width} pixels wide, {theme}]({path})")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Take those that are named, or all."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="names of shots; all by default")
    parser.add_argument("--all", action="store_true", help="all widths and grounds, into build/")
    options = parser.parse_args()
    wanted = [(shot, ALL if options.all else FOLDER, SHOWN) for shot in SHOTS]
    wanted += [(shot, ALL if options.all else GRAPHS, SHOWN) for shot in GRAPH_SHOTS]
    for shot, width, theme in TUNING_SHOTS:
        shown = Shot(shot.name, shot.text, shot.drive, tuned)
        wanted.append((shown, ALL if options.all else TUNING, ((width, theme),)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for shot, folder, shown in wanted:
            if options.names and shot.name not in options.names:
                continue
            folder.mkdir(parents=True, exist_ok=True)
            for width in WIDTHS:
                themes = [t for t in THEMES if options.all or (width, t) in shown]
                for path in take(browser, shot, width, themes, folder) if themes else ():
                    print(path.relative_to(ROOT))
        browser.close()
    if not options.all:
        (ROOT / "docs/GALLERY.md").write_text(gallery(), "utf-8")


if __name__ == "__main__":
    main()
