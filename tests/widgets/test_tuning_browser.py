"""The tuning dashboard in a real JupyterLab: it grows, pauses and stops in a busy cell, opens."""

import pytest

pytest.importorskip("dlcompiler_widgets")
pytestmark = pytest.mark.campaign(whole_file=True)

START = """\
import time
from dlcompiler_widgets import TuningView
from tests.watched_runs import Pool, start

class Slow(Pool):
    def result(self, config):
        time.sleep(0.02)
        return super().result(config)

run = start(5000, pool=Slow())
view = TuningView(run)
view
"""
BUSY = "time.sleep(600)"
ANSWERED = "print(view.dashboard._control.answer)"
BROKEN = "window.broken"


@pytest.fixture(scope="module")
def notebook(open_notebook):
    return open_notebook("tuning", [START, BUSY, ANSWERED])


@pytest.fixture
def page(notebook):
    """A fresh run, shown; nothing may go wrong in the page."""
    notebook.errors.clear()
    notebook.run(0)
    notebook.page.locator(".dlc-tuning").wait_for()
    yield notebook.page
    assert not notebook.errors
    assert not notebook.foreign


def trials(page):
    text = page.locator('dd[data-fact="trials"]').inner_text()
    return int(text.split(" of ")[0].replace(",", ""))


def wait_for_trials(page, count):
    page.wait_for_function(
        "n => parseInt(document.querySelector('dd[data-fact=trials]')"
        "?.textContent.replace(',', '')) >= n",
        arg=count,
    )


def trials_at_rest(page):
    """How many trials a run has that goes on no more: one that was just done may still arrive."""
    before, now = None, trials(page)
    while now != before:
        page.wait_for_timeout(500)
        before, now = now, trials(page)
    return now


def choose(page, number):
    """Choose a trial: on a busy machine there may be more of them than a page of the table has."""
    page.locator('.dlc-tuning [data-key="sort index"]').click()  # from the newest first
    page.locator(f'.dlc-tuning tr[data-key="trial {number}"]').click()


def state(page, name):
    page.locator(f".dlc-tuning[data-state={name}]").wait_for()


def test_it_grows_and_is_stopped(page):
    wait_for_trials(page, 10)
    assert page.locator(".dlc-tuning-curve path.dlc-dots").count() >= 2
    assert "GFLOP/s" in page.locator('dd[data-fact="best"]').inner_text()
    assert "wrong answer" in page.locator('dd[data-fact="failed"]').inner_text()
    page.locator('.dlc-tuning [data-key="stop"]').click()
    state(page, "stopped")
    assert trials(page) < 5000


def test_it_pauses_changes_pictures_and_stops_while_a_cell_is_busy(notebook, page, lab):
    notebook.run_until(2, "hello 1")
    notebook.start(1)
    notebook.status("busy").wait_for()
    wait_for_trials(page, trials(page) + 5)
    page.locator('.dlc-tuning [data-key="pause"]').click()
    state(page, "paused")
    before = trials_at_rest(page)
    page.locator('.dlc-tuning [data-key="tab map"]').click()
    page.locator(".dlc-tuning-picture svg", has_text="direction 1").wait_for()
    assert trials(page) == before
    page.locator('.dlc-tuning [data-key="resume"]').click()
    wait_for_trials(page, before + 5)
    page.locator('.dlc-tuning [data-key="stop"]').click()
    state(page, "stopped")
    assert notebook.status("busy").count()
    notebook.interrupt(lab)


def test_a_trial_opens_in_an_explorer_below(page):
    wait_for_trials(page, 12)
    page.locator('.dlc-tuning [data-key="stop"]').click()
    state(page, "stopped")
    choose(page, 1)
    page.locator('.dlc-tuning [data-key="open"]').click()
    page.locator('.dlc-explorer:not(.dlc-tuning) [role="treeitem"]').first.wait_for()


def test_a_page_that_is_loaded_again_goes_on_where_the_run_is(notebook, page, lab):
    wait_for_trials(page, 10)
    for name in ("time", "map"):  # so that the kernel has answered this page
        page.locator(f'.dlc-tuning [data-key="tab {name}"]').click()
    notebook.save(lab)
    before = trials(page)
    notebook.load_again(".dlc-tuning")
    wait_for_trials(page, before + 5)
    assert page.locator(".dlc-tuning-curve path.dlc-dots").count() >= 2
    page.locator('.dlc-tuning [data-key="stop"]').click()
    state(page, "stopped")


def test_the_buttons_are_used_by_keyboard_and_keep_their_letters(notebook, page):
    cells = notebook.cells()
    row = page.locator(".dlc-tuning tbody tr").first
    row.wait_for()
    for place in (page.locator('.dlc-tuning [data-key="stop"]'), row):
        place.focus()
        page.keyboard.press("b")  # JupyterLab's command for a new cell
        assert notebook.cells() == cells
    page.locator('.dlc-tuning [data-key="stop"]').focus()
    page.keyboard.press("Enter")
    state(page, "stopped")


def test_a_hostile_text_is_only_text(page):
    wait_for_trials(page, 8)
    page.locator('.dlc-tuning [data-key="stop"]').click()
    state(page, "stopped")
    choose(page, 6)
    page.locator(".dlc-tuning-message", has_text="onerror").wait_for()
    assert page.evaluate(BROKEN) is None
    assert page.locator(".dlc-tuning img").count() == 0
