"""The list of keys: where it opens, and how it is left."""

import re
from pathlib import Path

import pytest

from tests.widgets.axe import violations
from tests.widgets.live_page import LivePage
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
import dlcompiler_widgets
from dlcompiler_widgets import Explorer

OPEN = ".dlc-help[open]"
OF_JUPYTERLAB = """
.jp-OutputArea-output dl, .jp-OutputArea-output dt, .jp-OutputArea-output dd { display: block; }
.jp-OutputArea-output dl { width: 100%; overflow: hidden; padding: 0; margin: 0; }
.jp-OutputArea-output dt { font-weight: bold; float: left; width: 20%; padding: 0; margin: 0; }
.jp-OutputArea-output dd { float: left; width: 80%; padding: 0; margin: 0; }
"""
"""What JupyterLab 4.6 says of lists in the outputs of a cell."""


@pytest.fixture
def page(contexts):
    schedule, args = matmul()
    widget = Explorer(schedule, args, name="matmul")
    context = contexts.open(viewport={"width": 900, "height": 300})
    shown = LivePage(context, widget)
    yield shown
    assert not shown.errors
    widget.close()
    context.close()


def focused(page):
    return page.page.evaluate("document.activeElement.dataset.key")


def test_it_opens_in_the_middle_of_the_window_and_gives_the_focus_back(page):
    page.key("help").click()
    box, view = page.locate(OPEN).bounding_box(), page.page.viewport_size
    assert abs(box["x"] + box["width"] / 2 - view["width"] / 2) < 2
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= view["height"]
    assert focused(page) == "help close"
    page.page.keyboard.press("Escape")
    assert not page.locate(OPEN).count()
    assert focused(page) == "help"


def test_by_key_from_the_tree_and_by_its_button(page):
    page.loop("C/j").focus()
    page.page.keyboard.press("?")
    page.page.keyboard.press("Enter")
    assert not page.locate(OPEN).count()
    assert focused(page) == "C/j"


def test_a_click_beside_it_closes_it(page):
    page.key("help").click()
    page.page.mouse.click(5, 5)
    assert not page.locate(OPEN).count()


def test_it_scrolls_by_key_and_lists_all_keys(page):
    page.key("help").click()
    page.page.keyboard.press("Tab")
    lines = page.locate(".dlc-help-keys")
    assert lines.evaluate("e => e.scrollHeight > e.clientHeight && e === document.activeElement")
    page.page.keyboard.press("End")
    page.page.wait_for_function("document.querySelector('.dlc-help-keys').scrollTop > 0")
    text = lines.inner_text()
    folder = Path(dlcompiler_widgets.__file__).parent / "js"
    sources = "".join(path.read_text() for path in folder.glob("*.js"))
    letters = set(re.findall(r"event\.key === \"(\S)\"", sources))
    assert "?" in letters
    named = ("Ctrl+Z", "Ctrl+Shift+Z", "Alt+↑ ↓", "Enter", "Esc", "Tab", "n, a, b", ", .")
    for key in (*named, *letters):
        assert key in text, key


def test_a_key_stands_beside_what_it_does_in_jupyterlab(page):
    page.page.add_style_tag(content=OF_JUPYTERLAB)
    page.page.evaluate("document.body.classList.add('jp-OutputArea-output')")
    page.key("help").click()
    keys, texts = (page.locate(f".dlc-help-keys {name}").all() for name in ("dt", "dd"))
    assert len(keys) == len(texts) > 10
    for key, text in zip(keys, texts, strict=True):
        a, b = key.bounding_box(), text.bounding_box()
        assert abs(a["y"] - b["y"]) < 1
        assert a["x"] + a["width"] < b["x"]
    page.page.evaluate("document.body.classList.remove('jp-OutputArea-output')")


def test_axe_finds_nothing_serious(page):
    page.key("help").click()
    assert violations(page.page, OPEN) == []
