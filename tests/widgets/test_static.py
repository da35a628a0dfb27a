"""Notebooks that nobody runs: converted to HTML offline, or opened again without a kernel."""

import nbformat
import pytest

from tests.widgets.jupyter import Notebook
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
pytest.importorskip("nbconvert")
from dlcompiler_widgets import Explorer, MemoryScopes
from nbconvert import HTMLExporter


@pytest.fixture
def bundle():
    schedule, args = matmul()
    with_explorer = Explorer(schedule, args, name="matmul")
    data, _ = with_explorer._repr_mimebundle_()
    yield data
    with_explorer.close()


def test_a_converted_notebook_shows_the_nest_offline(browser, bundle, tmp_path):
    output = nbformat.v4.new_output("execute_result", data=bundle, execution_count=1)
    cell = nbformat.v4.new_code_cell("Explorer(s)", outputs=[output], execution_count=1)
    notebook = nbformat.v4.new_notebook(cells=[cell])
    html, _ = HTMLExporter().from_notebook_node(notebook)
    (tmp_path / "converted.html").write_text(html)
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.set_default_timeout(10_000)
    # Without network, the page of nbconvert waits for its own scripts: only ours matter.
    page.goto((tmp_path / "converted.html").as_uri(), wait_until="commit")
    nest = page.locator(".jp-OutputArea .dlc-nest")
    nest.wait_for()
    assert "k" in nest.inner_text()
    assert nest.locator("xpath=ancestor::*[contains(@class, 'jp-OutputArea')]").first.is_visible()
    assert page.locator(".jp-OutputArea script").count() == 0
    assert "dlc-explorer" not in html
    context.close()


@pytest.mark.parametrize("front", ["lab", "notebook"])
def test_a_notebook_opened_again_shows_the_nest_without_a_kernel(open_notebook, bundle, front):
    notebook: Notebook = open_notebook(f"again-{front}", ["1"], stored=bundle, front=front)
    nest = notebook.page.locator(".jp-OutputArea .dlc-nest")
    nest.wait_for()
    assert "C[i, j] += A[i, k]*B[k, j]" in nest.inner_text()
    # The notebook is not trusted: what Jupyter removes from it must not leave a mess.
    bar = nest.locator("span[style*='background-color']").first
    assert bar.bounding_box()["height"] == 24
    assert notebook.page.locator(".jp-OutputArea details").count() == 1
    assert not notebook.foreign


VISIBLE_WORDS = """(root) => {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), words = [];
  while (walker.nextNode()) {
    const { parentElement: parent, data } = walker.currentNode;
    const size = parseFloat(getComputedStyle(parent).fontSize);
    if (data.trim() && parent.getClientRects().length && size) words.push(data.trim());
  }
  return words.join(" ");
}"""


def test_a_pane_opened_again_without_trust_is_read_as_a_table(open_notebook):
    """JupyterLab takes the SVG away and leaves its words: these must not show, the table must."""
    schedule, _ = matmul()
    pane = MemoryScopes(schedule, target="x86-64-avx2")
    data, _ = pane._repr_mimebundle_()
    notebook = open_notebook("untrusted-pane", ["1"], stored=data)
    output = notebook.page.locator(".jp-OutputArea-output").first
    output.locator("table").wait_for()
    assert output.locator("svg").count() == 0
    words = output.evaluate(VISIBLE_WORDS)
    assert "touched by an iteration [byte]" in words
    assert "How to read" in words
    assert "% in use" not in words, "the words of the picture are left without it"
    pane.close()
