"""The page's modules: put together in order, and free of what must not be in them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import dlcompiler.views

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import assets

FILES = sorted(assets._JS.glob("*.js"))


def test_a_module_stands_behind_what_it_imports():
    order = assets.order("workbench")
    assert order[-1] == "workbench"
    assert order.index("dom") < order.index("tree")
    assert len(set(order)) == len(order)


def test_one_module_comes_out():
    text = assets.module("workbench")
    assert not re.search(r"^import ", text, re.MULTILINE)
    assert re.findall(r"^export .*", text, re.MULTILINE) == ["export default main;"]


def test_modules_that_import_each_other_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(assets, "_JS", tmp_path)
    (tmp_path / "a.js").write_text('import { b } from "./b.js";\nexport const a = 1;\n')
    (tmp_path / "b.js").write_text('import { a } from "./a.js";\nexport const b = 1;\n')
    with pytest.raises(ValueError, match="a -> b -> a"):
        assets.order("a")


def test_every_file_is_used():
    used = [name for entry in ("replay", "tuning", "graph-replay") for name in assets.order(entry)]
    assert {path.stem for path in FILES} == set(used)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_makes_no_markup_from_text_and_loads_nothing(path):
    text = path.read_text()
    found = re.findall(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|fetch\(", text
    )
    assert not found
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert not re.search(r"\bimport\(", text)


@pytest.mark.skipif(shutil.which("node") is None, reason="no node to read the module with")
def test_the_module_is_javascript(tmp_path):
    for name in ("workbench", "tuning", "graph"):
        path = tmp_path / f"{name}.mjs"
        path.write_text(assets.module(name))
        subprocess.run(["node", "--check", path], check=True)


def test_no_rule_of_a_style_sheet_selects_a_fragment():
    """A widget's style sheet holds for the whole page, where a table beside it is a fragment's."""
    sheets = "".join(path.read_text() for path in assets._JS.glob("*.css"))
    styled = set(re.findall(r"\.(dlc-[\w-]+)", sheets))
    views = Path(dlcompiler.views.__file__).parent
    texts = (path.read_text() for path in views.rglob("*.py"))
    named = {name for text in texts for name in re.findall(r'"class": "(dlc-[\w-]+)"', text)}
    assert "dlc-fragment-table" in named
    assert not named & styled
