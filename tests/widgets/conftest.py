"""A Jupyter server and a browser, started once, and notebooks opened in them."""

import pytest

from tests.widgets import jupyter


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """A Jupyter server on 127.0.0.1: JupyterLab and Notebook 7."""
    with jupyter.serving(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture(scope="session")
def browser(browser_path):
    """A headless Chromium."""
    sync_api = pytest.importorskip("playwright.sync_api")
    with jupyter.browsing(browser_path, sync_api) as running:
        yield running


@pytest.fixture(scope="session")
def open_notebook(lab, browser):
    """Open a notebook of the given cells in a page of its own: ``open_notebook(name, cells)``.

    ``front`` is ``lab`` or ``notebook``; ``stored`` is what the notebook holds as the output of its
    first cell, by media type.
    """
    contexts = []

    def open_(name, cells, **options):
        notebook = jupyter.open_notebook(lab, browser, name, cells, **options)
        contexts.append(notebook.page.context)
        return notebook

    yield open_
    for context in contexts:
        context.close()
