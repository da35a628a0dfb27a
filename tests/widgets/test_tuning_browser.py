"""The tuning view in a real JupyterLab: it grows, it can be stopped, it shows hostile text."""

import pytest

pytest.importorskip("dlcompiler_widgets")

pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]

START = """\
import time
from dlcompiler.autotune import Result, tune
from dlcompiler.space import Workload
from dlcompiler_widgets import TuningView

class Measurer:
    number = 0
    is_interrupted = False
    def measure(self, config, best_s):
        time.sleep(0.02)
        self.number += 1
        if self.number % 5 == 0:
            return Result("wrong answer", message="C[0] is 1, expected 2")
        return Result("ok", (1e-3 / self.number,) * 3)
    def interrupt(self):
        self.is_interrupted = True
    def close(self):
        pass

run = tune(Workload.of("matmul", m=64, n=64, k=64), trials=5000, tuner="random",
           measurer=Measurer())
view = TuningView(run)
view
"""
BUSY = "time.sleep(12)"
HOSTILE = """\
bad = "<img src=x onerror='window.broken = 1'>"
run.stop(); run.wait(5)
time.sleep(0.5)
best = {"trial": 0, "gflops": 1.0, "time": bad, "config": bad}
view.curve.model = {**view.curve.model, "title": bad, "state": bad, "text": bad, "note": bad,
                    "counts": [[bad, 3]], "best": best}
"""


@pytest.fixture(scope="module")
def notebook(open_notebook):
    return open_notebook("tuning", [START, BUSY, HOSTILE])


@pytest.fixture
def page(notebook):
    """A fresh run, shown; nothing may go wrong in the page."""
    notebook.errors.clear()
    notebook.run(0)
    notebook.page.locator(".dlc-tuning-dots").wait_for(state="attached")
    yield notebook.page
    assert not notebook.errors
    assert not notebook.foreign


def trials(page):
    text = page.locator("dd.dlc-tuning-trials").inner_text()
    return int(text.split(" of ")[0])


def wait_for_trials(page, count):
    page.wait_for_function(
        "n => parseInt(document.querySelector('dd.dlc-tuning-trials')?.textContent) >= n",
        arg=count,
    )


def test_it_grows_and_is_stopped(page):
    wait_for_trials(page, 10)
    dots = page.locator(".dlc-tuning-dots").get_attribute("d").count("M")
    fails = page.locator(".dlc-tuning-fails").get_attribute("d").count("M")
    assert dots >= 8
    assert fails >= 2
    assert page.locator(".dlc-tuning-line").get_attribute("d").startswith("M")
    assert "GFLOP/s" in page.locator("dd.dlc-tuning-best").inner_text()
    assert "wrong answer" in page.locator("dd.dlc-tuning-failed").inner_text()
    button = page.locator(".dlc-tuning-stop")
    assert button.inner_text() == "Stop"
    button.click()
    page.locator(".dlc-tuning[data-state=stopped]").wait_for(timeout=5000)
    page.locator(".dlc-tuning-stop", has_text="Stopped").wait_for()
    assert trials(page) < 5000


def test_it_is_stopped_while_a_cell_is_busy(notebook, page):
    page.wait_for_timeout(2500)  # until the button has said hello
    notebook.cell(1).locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    page.locator('.jp-NotebookPanel [data-status="busy"]').first.wait_for()
    before = trials(page)
    wait_for_trials(page, before + 5)
    page.locator(".dlc-tuning-stop").click()
    page.locator(".dlc-tuning[data-state=stopped]").wait_for(timeout=6000)
    assert page.locator('.jp-NotebookPanel [data-status="busy"]').count() > 0
    notebook.idle()


def test_the_button_is_used_by_keyboard_and_keeps_its_letters(page):
    cells = page.locator(".jp-Notebook .jp-Cell").count()
    button = page.locator(".dlc-tuning-stop")
    button.focus()
    page.keyboard.press("b")  # JupyterLab's command for a new cell
    assert page.locator(".jp-Notebook .jp-Cell").count() == cells
    page.keyboard.press("Enter")
    page.locator(".dlc-tuning[data-state=stopped]").wait_for(timeout=5000)


def test_a_hostile_text_is_only_text(notebook, page):
    notebook.run(2)
    page.locator("strong", has_text="onerror").wait_for()
    assert page.evaluate("window.broken") is None
    assert page.locator(".dlc-tuning img").count() == 0
