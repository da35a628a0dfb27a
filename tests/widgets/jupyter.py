"""A Jupyter server and a browser, and notebooks opened in JupyterLab or in Notebook 7.

Without an installed package the kernel finds the sources by PYTHONPATH. The same server serves both
front ends. Nothing of the user's configuration is read or written.
"""

import contextlib
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
from typing import Literal

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 120
"""How long a start or an answer may take [s]; a fifth of it is usual on a busy machine."""
POLL_MS = 50
"""Time between two looks of the page at what it waits for [ms]: by default it looks at each frame,
and draws frames for nothing else."""
LOADS = 3
# The second is said of a script that took more than 2 s to start, on a busy machine: it is used all
# the same, and a test that waits for what is not drawn fails.
KNOWN_ERRORS = ("favicon", "[anywidget] Failed to initialize model.")
BROWSER_ARGUMENTS = [
    "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-background-networking",
]  # fmt: skip
THEMES = "@jupyterlab/apputils-extension/themes.jupyterlab-settings"
TRACKER = "@jupyterlab/notebook-extension/tracker.jupyterlab-settings"
NEWS = "@jupyterlab/apputils-extension/notification.jupyterlab-settings"
WATCH_PROMPT = """
(prompt) => {
  prompt.hasRun = false;
  const look = () => { prompt.hasRun ||= prompt.innerText.includes("*"); };
  const all = { childList: true, subtree: true, characterData: true };
  new MutationObserver(look).observe(prompt, all);
}
"""

Front = Literal["lab", "notebook"]


@dataclass
class Server:
    """A running server."""

    url: str
    token: str
    folder: Path
    settings: Path

    def request(self, path, data=None, method=None):
        request = urllib.request.Request(
            f"{self.url}{path}",
            method=method,
            data=None if data is None else json.dumps(data).encode(),
            headers={"Authorization": f"token {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            return json.loads(answer.read() or b"null")

    def wait(self, process):
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            assert process.poll() is None, "the Jupyter server ended"
            try:
                return self.request("/api/status")
            except OSError:
                time.sleep(0.1)
        raise AssertionError("the Jupyter server did not start")

    def end_kernels(self):
        """End all kernels."""
        for session in self.request("/api/sessions"):
            self.request(f"/api/sessions/{session['id']}", method="DELETE")

    def set(self, plugin, **values):
        """Write settings of the front ends; pages that are opened later read them."""
        path = self.settings / plugin
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))

    def address(self, path, front):
        if front == "notebook":
            return f"{self.url}/notebooks/{path}?token={self.token}"
        # A workspace of its own: Lab would open the other notebooks' tabs again.
        workspace = path.removesuffix(".ipynb")
        return f"{self.url}/lab/workspaces/{workspace}/tree/{path}?token={self.token}"


@contextlib.contextmanager
def serving(folder):
    """Run a Jupyter server on 127.0.0.1 that keeps its files in a folder."""
    own = ("CONFIG", "DATA", "RUNTIME")
    root = folder / "root"
    root.mkdir(exist_ok=True)  # a server that is started again has its files
    token = secrets.token_hex(16)
    port = free_port()
    paths = [str(ROOT), str(ROOT / "widgets"), os.environ.get("PYTHONPATH", "")]
    settings = folder / "settings"
    environment = {
        **os.environ,
        **{f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in own},
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_TOKEN": token,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    server = Server(f"http://127.0.0.1:{port}", token, root, settings)
    server.set(NEWS, fetchNews="false", checkForUpdates=False)
    _leave_out(folder / "config")
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
            server.wait(process)
            yield server
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def _leave_out(config):
    """Switch off what looks for other software: each page would begin with it."""
    pages = config / "labconfig" / "page_config.json"
    pages.parent.mkdir(parents=True, exist_ok=True)
    manager = {"@jupyterlab/extensionmanager-extension": True}
    pages.write_text(json.dumps({"buildCheck": False, "disabledExtensions": manager}))
    server = config / "jupyter_server_config.json"
    server.write_text(json.dumps({
        "LabApp": {"extension_manager": "readonly"},
        "LanguageServerManager": {"autodetect": False},
    }))  # fmt: skip


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def browsing(path, sync_api=None):
    """Run a headless Chromium."""
    if sync_api is None:
        from playwright import sync_api
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=path, headless=True, args=BROWSER_ARGUMENTS
        )
        yield running
        running.close()


@dataclass
class Notebook:
    """A notebook in the browser."""

    page: object
    name: str = ""
    front: Front = "lab"
    errors: list = field(default_factory=list)
    foreign: list = field(default_factory=list)
    """Requests that left this machine."""

    def watch(self):
        page = self.page
        page.set_default_timeout(WAIT_S * 1000)
        page.on("pageerror", lambda error: self._add_error(str(error)))
        page.on("console", self._console)
        page.on("request", self._request)

    def _console(self, message):
        if message.type == "error":
            self._add_error(message.text)

    def _add_error(self, text):
        if not any(known in text for known in KNOWN_ERRORS):
            self.errors.append(text)

    def _request(self, request):
        if not request.url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")):
            self.foreign.append(request.url)

    def open(self, address):
        """Load the notebook; again, when a request of Jupyter's own got lost on the way."""
        for _ in range(LOADS):
            self.page.goto(address)
            self.page.locator(".jp-CodeCell").first.wait_for()
            if self.front == "lab":
                self.page.locator("#jp-main-statusbar", has_text="| Idle").wait_for()
            self.idle()
            # On a busy machine the page may miss the session, and then asks for a kernel.
            kernel = self.page.locator(".jp-KernelName", has_text="Python 3")
            kernel.or_(self.page.locator(".jp-Dialog")).first.wait_for()
            if not self.dialogs():
                return
            print(f"Jupyter asks: {self.dialogs()}; loading it again")
        raise AssertionError(f"Jupyter asks: {self.dialogs()}")

    def save(self, server):
        """Save the notebook with its widgets, and wait until it is written."""
        self.cell(0).locator(".cm-content").click()
        path = server.folder / f"{self.name}.ipynb"
        before = path.stat().st_mtime_ns
        self.page.keyboard.press("Control+s")
        deadline = time.monotonic() + WAIT_S
        while path.stat().st_mtime_ns == before or "widget-view" not in path.read_text():
            assert time.monotonic() < deadline, "the notebook is not saved"
            self.page.wait_for_timeout(50)

    def run_until(self, number, text):
        """Run a cell again and again, until its output has a text."""
        deadline = time.monotonic() + WAIT_S
        self.run(number)
        while text not in self.output(number).inner_text():
            assert time.monotonic() < deadline, f"cell {number} never says {text}"
            self.page.wait_for_timeout(100)
            self.run(number)

    def interrupt(self, server):
        """End the cell that runs."""
        sessions = server.request("/api/sessions")
        kernel = next(s["kernel"]["id"] for s in sessions if self.name in s["path"])
        server.request(f"/api/kernels/{kernel}/interrupt", {})
        self.idle()

    def load_again(self, selector):
        """Load the page again, until a widget is there: JupyterLab may not find its model.

        It then shows the stored picture, and hides what it says instead of the widget.
        """
        widget = self.page.locator(selector)
        missing = self.page.get_by_text("model not found")
        deadline = time.monotonic() + WAIT_S
        while True:
            self.errors.clear()
            self.page.reload()
            widget.or_(missing).first.wait_for(state="attached")
            if widget.count():
                return
            assert time.monotonic() < deadline, "the widget does not come back"
            print("loading it again: its model was not found")

    def dialogs(self):
        return self.page.locator(".jp-Dialog").all_inner_texts()

    def cell(self, number):
        return self.page.locator(".jp-Notebook .jp-Cell").nth(number)

    def cells(self):
        """How many cells there are."""
        return self.page.locator(".jp-Notebook .jp-Cell").count()

    def output(self, number):
        return self.cell(number).locator(".jp-OutputArea").first

    def start(self, number):
        """Run a cell, and return at once."""
        assert not self.dialogs(), f"Jupyter asks: {self.dialogs()}"
        self.cell(number).locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")

    def run(self, number):
        """Run a cell, and wait until it is done."""
        prompt = self.cell(number).locator(".jp-InputPrompt").element_handle()
        self.page.evaluate(WATCH_PROMPT, prompt)
        self.start(number)
        done = r"prompt => prompt.hasRun && /\d/.test(prompt.innerText)"
        self.page.wait_for_function(done, arg=prompt, polling=POLL_MS)
        self.idle()

    def restart(self):
        """Restart the kernel, as a person does."""
        self.cell(0).locator(".jp-InputPrompt").click()
        self.page.keyboard.press("0")
        self.page.keyboard.press("0")
        self.page.locator(".jp-Dialog .jp-mod-accept").click()

    def log(self):
        """Open JupyterLab's log console, and return it."""
        self.page.get_by_role("menuitem", name="View", exact=True).click()
        self.page.get_by_role("menuitem", name="Show Log Console").click()
        return self.page.locator(".jp-LogConsolePanel")

    def idle(self):
        self.status("idle").wait_for()

    def status(self, status):
        """The notebook's sign that the kernel is ``idle`` or ``busy``."""
        return self.page.locator(
            f'.jp-NotebookPanel:not(.lm-mod-hidden) [data-status="{status}"]'
        ).first


def write_notebook(server, name, cells, stored=None):
    """Write a notebook, start its kernel, and return its path.

    ``stored`` is what the notebook holds as the output of its first cell, by media type.
    """
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
    (server.folder / path).write_text(json.dumps(content))
    # A session first: otherwise running a cell races with the question for a kernel.
    kernel = {"name": "python3"}
    server.request(
        "/api/sessions", {"path": path, "name": path, "type": "notebook", "kernel": kernel}
    )
    return path


def open_notebook(server, browser, name, cells, front="lab", stored=None, **options):
    """Open a notebook of the given cells in a page and a browser context of its own."""
    path = write_notebook(server, name, cells, stored)
    context = browser.new_context(**{"viewport": {"width": 1200, "height": 1000}, **options})
    notebook = Notebook(context.new_page(), name, front)
    notebook.watch()
    notebook.open(server.address(path, front))
    return notebook


def open_panes(root):
    """Open the panes of a workbench that a cell of a notebook begins with as their titles."""
    collapsed = root.locator('.dlc-pane-title [aria-expanded="false"]:visible')
    while collapsed.count():
        collapsed.first.click()
