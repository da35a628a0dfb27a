"""The page that replays a fusion view: what was recorded, without any request."""

import itertools
import json
import re

import pytest

from dlcompiler import graph
from dlcompiler.graph import builders, op
from tests.fusion_networks import residual
from tests.widgets.axe import violations

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import GraphView

NUMBERS = itertools.count()
FACT = 'dd[data-fact="kernels"]'


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A page on which a decision was tried."""
    view = GraphView(builders.lenet().bound)
    view.panel.intent = {"id": "a", "op": "wish", "args": {"verdict": 0, "kind": "keep apart"}}
    view.panel.intent = {"id": "b", "op": "wish", "args": {"verdict": 0, "kind": ""}}
    path = tmp_path_factory.mktemp("pages") / "page.html"
    page = view.save_html(path)
    view.close()
    assert page.left_out == 0
    return path


@pytest.fixture
def opened(contexts, saved):
    context = contexts.open(viewport={"width": 1200, "height": 1000})
    page = context.new_page()
    errors, requests = [], []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(saved.as_uri())
    page.locator(".dlc-graph").wait_for()
    yield page
    assert errors == []
    assert all(url.startswith(("file:", "data:", "about:")) for url in requests)
    context.close()


def click(page, key):
    page.locator(f'[data-key="{key}"]').first.click()
    page.locator(".dlc-explorer:not([aria-busy])").wait_for()


def choose(page, key):
    page.evaluate(
        """(key) => document.querySelector(`.dlc-graph-picture [data-key="${key}"]`)
        .dispatchEvent(new MouseEvent("click", { bubbles: true }))""",
        key,
    )


def test_it_replays_a_decision_levels_and_passes(opened):
    choose(opened, "node 1 → node 2")
    click(opened, "wish keep apart")
    assert opened.locator(FACT).inner_text() == "9 → 10"
    click(opened, "wish ")
    assert opened.locator(FACT).inner_text() == "10 → 9"
    click(opened, "level kernels")
    assert opened.locator(".dlc-graph-frame").count() == 0
    opened.locator('.dlc-graph-picture [data-key="kernel 0"]').dblclick()
    opened.locator(".dlc-graph-frame").wait_for()
    click(opened, "tab passes")
    click(opened, "pass 0")
    assert "each by itself" in opened.locator(".dlc-graph-picture .dlc-summary").inner_text()
    assert violations(opened, "#workbench") == []


@pytest.mark.campaign
def test_what_is_not_recorded_needs_a_kernel(opened):
    click(opened, "measure")
    assert "needs a kernel" in opened.locator(".dlc-status").inner_text()
    choose(opened, "node 2 → node 3")
    click(opened, "wish keep apart")
    assert "needs a kernel" in opened.locator(".dlc-status").inner_text()
    assert opened.locator(FACT).inner_text() == "10 → 9"


@pytest.mark.campaign
def test_a_page_is_bounded_and_says_what_is_left_out(tmp_path):
    view = GraphView(residual())
    page = view.save_html(tmp_path / "page.html", max_bytes=300_000)
    assert page.left_out > 0
    assert f"{page.left_out} pictures are left out" in page.html
    assert len(page.html) < 700_000
    assert str(page.left_out) in repr(page)
    view.close()


def test_a_hostile_name_ends_no_element(tmp_path):
    x = graph.var("x", (2,))
    view = GraphView(graph.Module.from_expr(op.exp(x, name="</script><script>alert(1)</script>")))
    text = view.save_html(tmp_path / "page.html").html
    view.close()
    assert "<script>alert" not in text
    (data,) = re.findall(r'id="recording">(.*?)</script>', text, re.DOTALL)
    assert "alert(1)" in json.dumps(json.loads(data))
