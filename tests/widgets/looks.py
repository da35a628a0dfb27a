"""Find what is wrong with the looks of a page: ``python -m tests.widgets.looks``.

Four questions about a workbench as a browser has laid it out: what is cut, which panes scroll
beside ones that are half empty, what lies over what, and how much of the whole is the picture's.
The command prints the answers for the gallery, at two widths, in light and dark; `test_looks` and
`test_layout` assert them.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

LOOKS, WAIT_MS = 4, 250
FIND = (Path(__file__).parent / "looks.js").read_text()


@dataclass(frozen=True)
class Looks:
    """What was measured of a page."""

    cut: tuple[str, ...]
    """Elements that hide a part of their text, which no tooltip says."""
    outside: tuple[str, ...]
    """Elements that stand out of the box of their pane."""
    empty: tuple[str, ...]
    """Panes that are less than half full, in a column where another pane scrolls."""
    overlapping: tuple[str, ...]
    """Pairs of siblings that lie over each other."""
    picture: float
    """The share of the picture in the whole area, bar and status included."""
    lines: int
    """How many lines of text there is room for."""
    tab_rows: int
    """In how many lines tabs are."""
    height: int
    """Of the whole [px]."""
    wider: int
    """How much wider the contents are than the whole [px]."""

    @property
    def problems(self) -> list[str]:
        """All that is wrong, in words."""
        found = {
            "cut": self.cut,
            "outside of its pane": self.outside,
            "half empty": self.empty,
            "one over the other": self.overlapping,
        }
        said = [f"{what}: {each}" for what, all_ in found.items() for each in all_]
        return said + (["wider than its place"] if self.wider > 1 else [])


def looks_of(page) -> Looks:
    """Measure the workbench of a `LivePage`."""
    return measured(page.locate(".dlc-explorer").first)


def problems_of(page) -> list[str]:
    """Return what is wrong, and stays so: a busy machine arranges panes some frames later."""
    found: list[str] = []
    for _ in range(LOOKS):
        found = looks_of(page).problems
        if not found:
            break
        page.page.wait_for_timeout(WAIT_MS)
    return found


def measured(root) -> Looks:
    """Measure the workbench that a locator finds."""
    found = root.evaluate(FIND)
    return Looks(
        *(tuple(found[name]) for name in ("cut", "outside", "empty", "overlapping")),
        found["picture"], found["lines"], found["tabRows"], found["height"], found["wider"],
    )  # fmt: skip


def main() -> None:
    """Print what is wrong with each picture of the gallery."""
    from playwright.sync_api import sync_playwright

    from tests.widgets.live_page import Contexts, LivePage
    from tests.widgets.screenshots import THEMES
    from tests.widgets.shots import SHOTS, gemm

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        contexts = Contexts(browser)
        for shot in SHOTS:
            for width in (720, 1400):
                context = contexts.open(
                    viewport={"width": width + 16, "height": 900}, reduced_motion="reduce"
                )
                widget = (shot.make or gemm)()
                page = LivePage(context, widget)
                shot.drive(page)
                for theme in THEMES:
                    page.use_media(color_scheme=theme)
                    looks = looks_of(page)
                    print(
                        f"{shot.name} {width} {theme}: picture {looks.picture:.0%}, "
                        f"{looks.lines} lines, {looks.height} px high"
                    )
                    for problem in looks.problems:
                        print("   ", problem)
                context.close()
                widget.close()
        browser.close()


if __name__ == "__main__":
    main()
