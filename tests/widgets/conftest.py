"""A JupyterLab and a browser, started once, and notebooks opened in them.

Without an installed package the kernel finds the sources by PYTHONPATH.
"""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 90
LOADS = 3
CLIENT_ERRORS_OF_LAB = ("favicon",)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Lab:
    """A running server."""

    url: str
    token: str
    folder: Path

    def request(self, path, data=None):
        request = urllib.request.Request(
            f"{self.url}{path}",
            data=None if data is None else json.dumps(data).encode(),
            headers={"Authorization": f"token {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())

    def wait(self, process):
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            assert process.poll() is None, "JupyterLab ended"
            try:
                return self.request("/api/status")
            except OSError:
                time.sleep(0.1)
        raise AssertionError("JupyterLab did not start")


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """A JupyterLab on 127.0.0.1 that reads and writes nothing of the user's configuration."""
    folder = tmp_path_factory.mktemp("lab")
    own = ("CONFIG", "DATA", "RUNTIME")
    settings = folder / "settings"
    news = settings / "@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    news.parent.mkdir(parents=True)
    news.write_text('{"fetchNews": "false", "checkForUpdates": false}')
    root = folder / "root"
    root.mkdir()
    token = secrets.token_hex(16)
    port = free_port()
    paths = [str(ROOT), str(ROOT / "widgets"), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        **{f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in own},
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_TOKEN": token,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    with (folder / "log.txt").open("w") as log:
        process = subprocess.Popen(
            [
                sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser",
                "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}",
                "--ServerApp.port_retries=0", f"--ServerApp.root_dir={root}",
                "--KernelManager.transport=ipc",
            ],
            env=environment, stdout=log, stderr=log, start_new_session=True, cwd=root,
        )  # fmt: skip
        try:
            server = Lab(f"http://127.0.0.1:{port}", token, root)
            server.wait(process)
            yield server
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def browser(browser_path):
    """A headless Chromium."""
    sync_api = pytest.importorskip("playwright.sync_api")
    arguments = [
        "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
        "--disable-background-networking",
    ]  # fmt: skip
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=browser_path, headless=True, args=arguments
        )
        yield running
        running.close()


@dataclass
class Notebook:
    """A notebook in the browser."""

    page: object
    errors: list = field(default_factory=list)
    foreign: list = field(default_factory=list)
    """Requests that left this machine."""

    def watch(self):
        page = self.page
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._console)
        page.on("request", self._request)

    def _console(self, message):
        if message.type == "error" and not any(t in message.text for t in CLIENT_ERRORS_OF_LAB):
            self.errors.append(message.text)

    def _request(self, request):
        if not request.url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")):
            self.foreign.append(request.url)

    def open(self, address):
        """Load the notebook; again, when a request of JupyterLab's own got lost on the way."""
        limit = WAIT_S * 1000
        for _ in range(LOADS):
            self.page.goto(address, timeout=limit)
            self.page.locator(".jp-CodeCell").first.wait_for(timeout=limit)
            self.page.locator("#jp-main-statusbar", has_text="| Idle").wait_for(timeout=limit)
            self.idle()
            if not self.dialogs():
                return
            print(f"JupyterLab asks: {self.dialogs()}; loading it again")
        raise AssertionError(f"JupyterLab asks: {self.dialogs()}")

    def dialogs(self):
        return self.page.locator(".jp-Dialog").all_inner_texts()

    def cell(self, number):
        return self.page.locator(".jp-Notebook .jp-Cell").nth(number)

    def run(self, number):
        """Run a cell, and wait until the kernel is idle."""
        assert not self.dialogs(), f"JupyterLab asks: {self.dialogs()}"
        self.cell(number).locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")
        self.idle()

    def idle(self):
        idle = self.page.locator('.jp-NotebookPanel:not(.lm-mod-hidden) [data-status="idle"]')
        idle.first.wait_for()


@pytest.fixture(scope="session")
def open_notebook(lab, browser):
    """Open a notebook of the given cells in a page of its own: ``open_notebook(name, cells)``.

    ``stored`` is what the notebook holds as the output of its first cell, by media type.
    """
    contexts = []

    def open_(name, cells, stored=None, **options):
        content = {
            "cells": [
                {
                    "cell_type": "code", "id": f"cell-{n}", "source": source, "metadata": {},
                    "outputs": [], "execution_count": None,
                }
                for n, source in enumerate(cells)
            ],
            "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }  # fmt: skip
        if stored:
            content["cells"][0]["outputs"] = [
                {"output_type": "display_data", "data": stored, "metadata": {}}
            ]
        path = f"{name}.ipynb"
        (lab.folder / path).write_text(json.dumps(content))
        # A session first: otherwise running a cell races with the question for a kernel.
        kernel = {"name": "python3"}
        lab.request(
            "/api/sessions", {"path": path, "name": path, "type": "notebook", "kernel": kernel}
        )
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 1000}, **options})
        contexts.append(context)
        notebook = Notebook(context.new_page())
        notebook.watch()
        # A workspace of its own: Lab would open the other notebooks' tabs again.
        notebook.open(f"{lab.url}/lab/workspaces/{name}/tree/{path}?token={lab.token}")
        return notebook

    yield open_
    for context in contexts:
        context.close()
