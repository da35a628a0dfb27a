"""Look at the built documentation in a browser: ``make docs`` runs this after the build.

The site is opened from its files, as somebody would who has downloaded it: no page may request
anything from outside, scroll sideways or cut text, and axe-core finds nothing serious. The Explorer
on the start page must answer a click, in the colours of the page. The search must find the
primitives by their names in TVM.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote

from playwright.sync_api import Browser, BrowserContext, Page, TimeoutError, sync_playwright

from tests.architecture.test_documentation import described
from tests.widgets.axe import violations

WIDTHS = (400, 900, 1400)
THEMES = ("light", "dark")
START = "docs/index.html"
LOOKED_AT = (
    START, "docs/reference.html", "docs/PRIMITIVES.html", "docs/COMPAT.html", "docs/EXPLORER.html",
    "docs/api/schedule.html", "notebooks/02_explorer.html",
)  # fmt: skip
"""The pages that are looked at in every width; the others in the narrowest."""
READ_ALOUD = (
    START, "docs/reference.html", "docs/PRIMITIVES.html", "docs/EXPLORER.html",
    "docs/api/graph_passes.html", "notebooks/02_explorer.html",
)  # fmt: skip
"""The pages that axe-core looks at in both themes: one of each kind, which is not the longest."""
FOUND_BY = {
    "tensorize": "PRIMITIVES", "compute_at": "PRIMITIVES", "cache_read": "PRIMITIVES",
    "rfactor": "PRIMITIVES", "set_scope": "PRIMITIVES", "te.create_schedule": "api/schedule",
    "time_evaluator": "COMING_FROM_TVM", "autotvm": "COMPAT", "store_in": "PRIMITIVES",
}  # fmt: skip
"""What a user of TVM or Halide types -> a page that must be among the first results."""
PICTURES = {
    "01_quickstart": 2, "02_explorer": 4, "03_autotuning": 6, "04_gpu": 9, "05_accelerator": 6,
    "06_fusion": 3, "07_models": 2,
}  # fmt: skip
"""Least number of pictures on the page of a notebook."""
PICTURE = re.compile(r"<svg\b|<img\b[^>]*\bsrc=.data:image/")
LOCAL = re.compile(r'\b(?:href|src)="([^"#?:]+)(?:[#?][^":]*)?"')
"""The path of a link that begins with no scheme."""
PROBLEMS = """() => {
  const found = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) found.push(`the page is ${root.scrollWidth} px wide`);
  for (const box of document.querySelectorAll(".bd-article-container, .bd-article"))
    if (box.scrollWidth > box.clientWidth + 1) {
      const right = (each) => each.getBoundingClientRect().right;
      const scrolls = "pre, .pst-scrollable-table-container, .dlc-picture, .cell_output";
      const [widest] = [...box.querySelectorAll("*")].filter((each) => !each.closest(scrolls))
        .sort((a, b) => right(b) - right(a));
      found.push(`wider than its column: ${(widest ?? box).outerHTML.slice(0, 120)}`);
    }
  for (const each of document.querySelectorAll(".bd-article *")) {
    const style = getComputedStyle(each);
    const isCut = /hidden|clip/.test(style.overflowX) && each.clientWidth > 4
      && each.scrollWidth > each.clientWidth + 1;
    if (isCut && !(each instanceof SVGElement)) found.push(`cut: ${each.outerHTML.slice(0, 120)}`);
  }
  for (const image of document.images)
    if (image.complete && !image.naturalWidth) found.push(`no picture: ${image.src}`);
  return found;
}"""

Say = Callable[[str], None]


def open_context(browser: Browser, width: int, theme: str, say: Say) -> BrowserContext:
    """Return a window; it reports requests of files that are not ours."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=theme, reduced_motion="reduce"
    )

    def guard(route):
        if route.request.url.startswith(("file:", "data:")):
            route.continue_()
            return
        say(f"requests {route.request.url}")
        route.abort()

    context.route("**/*", guard)
    return context


def look(page: Page, site: Path, name: str, where: str, say: Say) -> None:
    """Report what is wrong with a page."""
    page.goto((site / name).as_uri())
    for problem in page.evaluate(PROBLEMS):
        say(f"{name}, {where}: {problem}")


def use_axe(page: Page, name: str, theme: str, say: Say) -> None:
    """Report what keeps people from using the page that is open; in the dark only its colours."""
    rules = () if theme == THEMES[0] else ("color-contrast",)
    for problem in violations(page, "body", rules):
        say(f"{name}, {theme}: {problem}")


def try_replay(page: Page, theme: str, say: Say) -> None:
    """Click in the Explorer on the start page, which is open."""
    frame = page.frame_locator(f"iframe.only-{theme}")
    page.locator(f"iframe.only-{theme}").scroll_into_view_if_needed()
    explorer = frame.locator(".dlc-explorer")
    explorer.wait_for()
    loops = frame.get_by_role("treeitem")
    loops.nth(loops.count() - 1).click()
    if frame.locator('[role="treeitem"][aria-selected="true"]').count() != 1:
        say(f"the replay, {theme}: a click chooses no loop")
    color = explorer.evaluate("(each) => getComputedStyle(each).backgroundColor")
    channels = [int(number) for number in color.strip("rgba()").split(",")[:3]]
    if (sum(channels) / 3 > 128) != (theme == "light"):
        say(f"the replay, {theme}: its ground is {color}")
    if page.locator("iframe:visible").count() != 1:
        say(f"the replay, {theme}: not one frame is visible")


SHOWN = """(wanted) => [...document.querySelectorAll("#search-results li a, ul.search li a")]
  .slice(0, 12).some((each) => each.getAttribute("href").includes(wanted))"""


def search(page: Page, site: Path, text: str, say: Say) -> None:
    """Search as a user does, and look at the first results."""
    page.goto(f"{(site / 'search.html').as_uri()}?q={text}")
    try:  # results appear one after the other
        page.wait_for_function(SHOWN, arg=FOUND_BY[text], timeout=20_000)
    except TimeoutError:
        say(f"searching {text!r} does not find {FOUND_BY[text]} among the first twelve results")


def read(site: Path, say: Say) -> None:
    """Look for what must be in the text of the pages: entries of names, pictures of notebooks."""
    pages = [path.read_text(encoding="utf-8") for path in (site / "docs/api").glob("*.html")]
    for module, name in described():
        if not any(f'id="{module}.{name}"' in text for text in pages):
            say(f"{module}.{name} has no entry")
    for name, least in PICTURES.items():
        text = (site / f"notebooks/{name}.html").read_text(encoding="utf-8")
        count = len(PICTURE.findall(text))
        if count < least:
            say(f"notebooks/{name}: {count} pictures of {least}")


def follow(site: Path, name: str, say: Say) -> None:
    """Report links and frames of a page that lead to no file of the site."""
    page = site / name
    for link in LOCAL.findall(page.read_text(encoding="utf-8")):
        if not (page.parent / unquote(link)).exists():
            say(f"{name}: {link} leads nowhere")


def names_of(site: Path) -> Iterator[str]:
    """Yield the pages of the site."""
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).as_posix()
        if not name.startswith(("_", "genindex", "index", "py-modindex", "search")):
            yield name


def check(site: Path, say: Say) -> None:
    """Report what is wrong with a site."""
    read(site, say)
    for name in names_of(site):
        follow(site, name, say)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for width in WIDTHS:  # the theme changes no layout
            context = open_context(browser, width, THEMES[0], say)
            page = context.new_page()
            for name in names_of(site) if width == WIDTHS[0] else LOOKED_AT:
                look(page, site, name, f"{width} px", say)
            if width == WIDTHS[-1]:
                for text in FOUND_BY:
                    search(page, site, text, say)
            context.close()
        for theme in THEMES:
            context = open_context(browser, WIDTHS[-1], theme, say)
            page = context.new_page()
            for name in READ_ALOUD:
                look(page, site, name, theme, say)
                use_axe(page, name, theme, say)
            look(page, site, START, theme, say)
            try_replay(page, theme, say)
            context.close()
        browser.close()


def main() -> int:
    """Check the site in the folder that is given."""
    if shutil.which("chromium") is None:
        print("chromium is not here: the pages are not looked at", file=sys.stderr)
        return 1 if "CI" in os.environ else 0
    problems: list[str] = []
    check(Path(sys.argv[1]).resolve(), problems.append)
    for problem in dict.fromkeys(problems):
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
