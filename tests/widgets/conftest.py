"""A Jupyter server and a browser, which the tests of this folder share, and notebooks in them.

Each process of pytest-xdist has its own. Both end with the last test of this folder: Playwright's
event loop and its processes would be seen by tests elsewhere. That is why this folder is a package.
"""

import pytest

from tests.widgets import jupyter
from tests.widgets.live_page import Contexts, LivePage


@pytest.fixture(scope="package")
def lab(tmp_path_factory):
    """A Jupyter server on 127.0.0.1: JupyterLab and Notebook 7."""
    with jupyter.serving(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture(scope="package")
def browser(browser_path):
    """A headless Chromium."""
    sync_api = pytest.importorskip("playwright.sync_api")
    sync_api.expect.set_options(timeout=jupyter.WAIT_S * 1000)
    with jupyter.browsing(browser_path, sync_api) as running:
        yield running


@pytest.fixture(scope="package")
def contexts(browser):
    """Contexts of the browser whose pages are used again, for `LivePage`."""
    return Contexts(browser)


@pytest.fixture
def open_live(contexts):
    """Show a widget: ``open_live(widget, width)``. Nothing may go wrong on its page.

    ``ground`` is a style of the page's body; other options are those of a context of Playwright.
    """
    shown = []

    def open_(widget, width, height=900, ground="", **media):
        context = contexts.open(viewport={"width": width + 16, "height": height}, **media)
        page = LivePage(context, widget, ground)
        shown.append((context, page))
        page.settle()
        return page

    yield open_
    for context, page in shown:
        assert not page.errors
        context.close()
        page.widget.close()


@pytest.fixture(scope="module")
def open_notebook(lab, browser):
    """Open a notebook of the given cells in a page of its own: ``open_notebook(name, cells)``.

    ``front`` is ``lab`` or ``notebook``; ``stored`` is what the notebook holds as the output of its
    first cell, by media type. Pages and kernels end with the module.
    """
    contexts = []

    def open_(name, cells, **options):
        notebook = jupyter.open_notebook(lab, browser, name, cells, **options)
        contexts.append(notebook.page.context)
        return notebook

    yield open_
    for context in contexts:
        context.close()
    lab.end_kernels()
