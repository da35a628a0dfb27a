"""The Explorer in a marimo notebook: it is drawn, and a click goes to Python and back."""

import importlib.util
import os
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

from tests.widgets.jupyter import free_port

pytestmark = pytest.mark.campaign(whole_file=True)

pytest.importorskip("dlcompiler_widgets")
if importlib.util.find_spec("marimo") is None:
    pytest.skip("marimo is not installed", allow_module_level=True)

WAIT_S = 60
NOTEBOOK = """
import marimo

app = marimo.App()


@app.cell
def _():
    from dlcompiler import te
    from dlcompiler_widgets import Explorer

    A = te.placeholder((64, 64), name="A")
    B = te.compute((64, 64), lambda i, j: A[j, i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    widget = Explorer(s, [A, B], name="transpose")
    widget
    return


if __name__ == "__main__":
    app.run()
"""


@pytest.fixture
def address(tmp_path):
    """Where marimo serves the notebook on this machine, with none of the user's settings."""
    path = tmp_path / "notebook.py"
    path.write_text(NOTEBOOK)
    port = free_port()
    found = f"http://127.0.0.1:{port}/"
    command = [
        sys.executable, "-m", "marimo", "run", str(path), "--headless", "--no-token",
        "--host", "127.0.0.1", "-p", str(port),
    ]  # fmt: skip
    homes = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    with (tmp_path / "log.txt").open("w") as log:
        process = subprocess.Popen(
            command, env={**os.environ, **homes}, stdout=log, stderr=log, start_new_session=True,
            cwd=tmp_path,
        )  # fmt: skip
        try:
            _wait(found, process)
            yield found
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def _wait(address, process):
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        assert process.poll() is None, "marimo ended"
        try:
            urllib.request.urlopen(address, timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("marimo did not start")


def test_the_explorer_works_in_marimo(browser, address):
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    page.set_default_timeout(WAIT_S * 1000)
    errors, foreign = [], []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda m: m.type == "error" and errors.append(m.text))
    own = (address, address.replace("http", "ws"), "data:", "blob:")
    page.on("request", lambda r: r.url.startswith(own) or foreign.append(r.url))
    page.goto(address)
    page.locator('[role="treeitem"][data-key="B/j"]').click()
    page.locator(".dlc-status", has_text="loop j of B, level 2").wait_for()
    page.locator('button[data-key*="vectorize"]').first.click()
    page.locator('[role="treeitem"][data-key="B/j"]', has_text="vectorized").wait_for()
    page.locator(".dlc-status", has_text="vectorize B j: done").wait_for()
    assert errors == []
    assert foreign == []
    context.close()
