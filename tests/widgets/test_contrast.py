"""Contrast of every colour of the style sheets, in each theme, computed from their values.

**Source of the limits:** WCAG 2.2, 1.4.3 (text, 4.5) and 1.4.11 (controls and marks, 3).
**Source of the themes:** ``theme-light-extension`` and ``theme-dark-extension`` of JupyterLab 4.6.
"""

import re

import pytest

from dlcompiler.views.render.colors import HUES, SIGN_COLORS, lighter
from tests.widgets.css_colors import color, contrast, declarations, over

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer, TuningDashboard

JUPYTER_LIGHT = {
    "--jp-layout-color1": "#ffffff", "--jp-border-color2": "#e0e0e0",
    "--jp-ui-font-color1": "rgba(0, 0, 0, .87)", "--jp-ui-font-color2": "rgba(0, 0, 0, .54)",
    "--jp-brand-color1": "#1976d2",
}  # fmt: skip
JUPYTER_DARK = {
    "--jp-layout-color1": "#212121", "--jp-border-color2": "#424242",
    "--jp-ui-font-color1": "rgba(255, 255, 255, .87)",
    "--jp-ui-font-color2": "rgba(255, 255, 255, .54)", "--jp-brand-color1": "#2196f3",
}  # fmt: skip
THEMES = {
    "light": (False, {}),
    "dark": (True, {}),
    "jupyter light": (False, JUPYTER_LIGHT),
    "jupyter dark": (True, JUPYTER_DARK),
}
ADDED, REMOVED = "rgba(0, 114, 178, .17)", "rgba(213, 94, 0, .13)"
"""Grounds of lines that a step added and removed, as in ``workbench.css``."""


@pytest.fixture(params=THEMES)
def theme(request):
    is_dark, host = THEMES[request.param]
    return {**declarations(str(Explorer._css), is_dark), **host}


def grounds(theme):
    """What text stands on, by name."""
    base = color("var(--dlc-ground)", theme)
    plain = {"ground": base, "panel": over(color("var(--dlc-panel)", theme), base)}
    tinted = {
        f"{tint} on {name}": over(color(f"var(--dlc-{tint})", theme), ground)
        for tint in ("chosen", "within")
        for name, ground in plain.items()
    }
    lines = {"added": over(color(ADDED, {}), base), "removed": over(color(REMOVED, {}), base)}
    return {**plain, **tinted, **lines}


def of(name, theme, ground):
    """The contrast of a colour of the style sheet on an opaque ground."""
    return contrast(over(color(f"var(--dlc-{name})", theme), ground), ground)


def test_the_rule_is_that_of_wcag():
    black, white, grey = (color(text, {}) for text in ("#000", "#ffffff", "#767676"))
    assert contrast(black, white) == pytest.approx(21)
    assert contrast(grey, white) == pytest.approx(4.54, abs=0.005)
    half = color("color-mix(in srgb, #000000 50%, var(--x, #ffffff))", {})
    assert half == pytest.approx((0.5, 0.5, 0.5, 1.0))


@pytest.mark.parametrize("name", ["ink", "soft"])
def test_text_can_be_read(theme, name):
    low = {where: of(name, theme, ground) for where, ground in grounds(theme).items()}
    assert {where: round(value, 2) for where, value in low.items() if value < 4.5} == {}


@pytest.mark.parametrize("name", ["ink", "soft", "edge", "accent"])
def test_marks_can_be_seen(theme, name):
    low = {where: of(name, theme, ground) for where, ground in grounds(theme).items()}
    assert {where: round(value, 2) for where, value in low.items() if value < 3} == {}


def test_signs_of_threads_can_be_seen(theme):
    """The edge of a loop's kind in the tree; its sign and its words say the same."""
    (rule,) = re.findall(r"solid (color-mix\(in srgb, var\(--dlc-sign\).*);", str(Explorer._css))
    for hue in SIGN_COLORS.values():
        edge = color(rule, {**theme, "--dlc-sign": hue})
        for where, ground in grounds(theme).items():
            assert contrast(over(edge, ground), ground) >= 3, (hue, where)


def test_words_on_boxes_can_be_read(theme):
    """A box or a node of the page is its hue mixed with the ground, whatever it stands in."""
    (rule,) = re.findall(r"fill: (color-mix\(in srgb, var\(--dlc-fill,.*);", str(Explorer._css))
    for hue in [*HUES, *map(lighter, HUES)]:
        box = color(rule.rstrip(" }"), {**theme, "--dlc-fill": hue})
        for name in ("ink", "soft"):
            assert of(name, theme, box) >= 4.5, (name, hue)


def test_words_in_boxes_that_stand_still_can_be_read(theme):
    """Here nothing is known of the ground: each box lies over those around it."""
    from dlcompiler.views.render.scene import _STYLES

    opacity = float(_STYLES["box"].partition("fill-opacity:")[2].partition(";")[0])
    inside = color("var(--dlc-ground)", theme)
    for hue in [*HUES[:3], *map(lighter, HUES[:2]), *HUES[3:6]]:
        inside = over(color(hue, {}), inside, opacity)
        assert of("ink", theme, inside) >= 4.5, hue


def test_the_tuning_view_can_be_read():
    for is_dark, host in THEMES.values():
        theme = {**declarations(str(TuningDashboard._css), is_dark), **host}
        ground = color("var(--dlc-ground)", theme)
        for name in ("ink", "soft"):
            assert of(name, theme, ground) >= 4.5
