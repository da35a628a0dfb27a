"""A live view that is drawn from the state that a notebook stores: nobody answers it."""

import pytest

from tests import watched_runs
from tests.widgets import live_page
from tests.widgets.live_page import MODEL, LivePage
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer
from dlcompiler_widgets.tuning.dashboard import TuningDashboard

START = "constructor(traits) {"
MANAGER = """
  const own = { comm_live: IS_LIVE, get: () => 0, set: () => {}, save_changes: () => {} };
  this.widget_manager = { get_model: async () => { window.wasAsked = true; return own; } };
"""


def explorer():
    return Explorer(*matmul())


def dashboard():
    return TuningDashboard(watched_runs.ended(24))


@pytest.fixture(params=[explorer, dashboard], ids=["explorer", "dashboard"])
def open_page(contexts, request, monkeypatch):
    """Open a page whose models have a way to Python, or none."""
    context, widget = contexts.open(), request.param()

    def open_(is_live):
        manager = MANAGER.replace("IS_LIVE", is_live)
        monkeypatch.setattr(live_page, "MODEL", MODEL.replace(START, START + manager))
        page = LivePage(context, widget)
        page.page.wait_for_function("() => window.wasAsked")
        return page

    yield open_
    widget.close()
    context.close()


def test_it_says_that_there_is_no_kernel(open_page):
    page = open_page("false")
    status = page.locate(".dlc-status", has_text="The kernel that made this is gone")
    status.wait_for()
    assert page.locate(".dlc-explorer").get_attribute("aria-busy") is None
    assert not page.errors


def test_with_a_kernel_it_does_not(open_page):
    page = open_page("true")
    page._next_frame()
    assert "is gone" not in page.locate(".dlc-status").inner_text()
    assert not page.errors
