"""Nothing is cut, half empty or covered, in any state, at any width, for anybody."""

import pytest

from tests.widgets.axe import violations
from tests.widgets.looks import problems_of
from tests.widgets.shots import (
    GRAPH_SHOTS,
    SHOTS,
    Shot,
    expand,
    gemm,
    threads,
    tuned,
    tuning_tab,
    two_trials,
)

pytest.importorskip("dlcompiler_widgets")


def everything_open(page):
    for pane in ("text", "history", "advice"):
        expand(page, pane)
    assert page.widget._session.wait_for_pictures(60), "kernels are never counted"
    page.push()


STATES = {
    **{shot.name: shot for shot in (*SHOTS, *GRAPH_SHOTS)},
    "everything open": Shot("everything open", "", everything_open),
    "many states": Shot("many states", "", everything_open, threads),
    "tuning": Shot("tuning", "", tuning_tab("knobs"), tuned),
    "why": Shot("why", "", two_trials, tuned),
}
LATER = pytest.mark.campaign(longest=True)
FIRST = ("cache", "compare")
"""States that each run of the tests looks at; it looks at the others in turn."""
POINTED = {"refused", "preview"}
"""States that end when the page changes its size."""
WITH_AXE = {"everything open", "export", "preview", "refused", "roofline", "write", "zoomed"}
"""States that no test of `test_accessibility` and of the pages of a pane looks at."""
WIDTHS = (1400, 900, 720, 480)
"""720 pixels on a page that is zoomed to 150 % are 480."""
LARGE_AND_RTL = """() => {
  document.documentElement.style.fontSize = "20px";
  document.documentElement.dir = "rtl";
}"""


@pytest.fixture
def show(open_live):
    """Show a state."""

    def show_(shot, width=1400):
        page = open_live((shot.make or gemm)(), width, reduced_motion="reduce")
        shot.drive(page)
        return page

    return show_


@pytest.mark.parametrize(
    "name",
    [n if n in FIRST else pytest.param(n, marks=LATER) for n in STATES],
)
def test_nothing_is_cut_empty_or_covered(show, name):
    page, found = show(STATES[name]), {}
    for width in WIDTHS:
        page.resize(width + 16)
        if name in POINTED:
            STATES[name].drive(page)
        found[f"{width} px"] = problems_of(page)
    if name in WITH_AXE:
        found["axe"] = violations(page.page)
    page.use_media(color_scheme="dark")
    found["dark"] = problems_of(page)
    if name in WITH_AXE:
        found["axe in the dark"] = violations(page.page, only=("color-contrast",))
    page.use_media(color_scheme="light", forced_colors="active")
    found["forced colours"] = problems_of(page)
    page.page.evaluate(LARGE_AND_RTL)
    for width in (1400, 720):
        page.resize(width + 16)
        found[f"large words, from right to left, {width} px"] = problems_of(page)
    assert {where: problems for where, problems in found.items() if problems} == {}
