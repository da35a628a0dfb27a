"""A replay page is made in the background: progress, cancelling, and which file one gets."""

import json
import threading

import pytest

from tests.widgets.live_page import LivePage
from tests.widgets.test_live_page import matmul
from tests.widgets.test_run import FakeStopwatch, send

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer
from dlcompiler_widgets.explorer import exports, recording
from dlcompiler_widgets.explorer.progress import Cancelled, Progress, Watch
from dlcompiler_widgets.explorer.replay import ReplayPage

from dlcompiler.errors import ScheduleError

PANE = '.dlc-export[aria-label="Export"]'


@pytest.fixture
def explorer():
    schedule, args = matmul()
    schedule[args[2]].parallel(args[2].op.axis[0])
    widget = Explorer(schedule, args, "x86-64-avx2", name="matmul")
    yield widget
    widget.close()


class Slow:
    """Stands in for the recording of a page: it goes on when it is told to."""

    def __init__(self, monkeypatch, result="<html>", error=None, left_out=()):
        self.result, self.error, self.left_out = result, error, left_out
        self.begun, self.go = threading.Event(), threading.Event()
        self.calls = 0
        self.notices = True
        monkeypatch.setattr(exports, "_sent_page", self)

    def __call__(self, session, watch):
        self.calls += 1
        self.begun.set()
        watch.report(Progress("panes", 3, 12, 15, 96))
        while not self.go.wait(0.01):
            if watch.is_cancelled() and self.notices:
                raise Cancelled
        if watch.is_cancelled():
            raise Cancelled
        if self.error:
            raise self.error
        return ReplayPage(self.result, 12, self.left_out, "1 MB")

    def finish(self, explorer):
        self.go.set()
        explorer._session.exporting.wait(30)


def html(explorer):
    view = send(explorer, "export", kind="html")
    assert view["export"]["state"] == "running"
    return view


def test_the_request_is_answered_before_the_page_is_made(explorer, monkeypatch):
    slow = Slow(monkeypatch)
    shown = html(explorer)["export"]
    assert (shown["kind"], shown["file"], shown["text"]) == ("html", "matmul.html", "")
    slow.finish(explorer)
    done = explorer.export
    assert (done["state"], done["text"], done["id"]) == ("ready", "<html>", shown["id"])
    assert "12 states" in done["note"]
    assert explorer.status["text"] == "Replay page: download it as a file."


def test_the_progress_is_said(explorer, monkeypatch):
    from dlcompiler_widgets.explorer import exporting

    monkeypatch.setattr(exporting, "PUSH_S", 0.0)
    slow = Slow(monkeypatch)
    seen = []
    explorer.observe(lambda change: seen.append(change["new"].get("progress")), names="export")
    html(explorer)
    slow.finish(explorer)
    assert {"text": "panes: state 3 of 12", "done": 15, "all": 96} in seen


def test_what_is_left_out_of_the_page_is_named_with_the_way_to_have_it(explorer, monkeypatch):
    slow = Slow(monkeypatch, left_out=("20 comparisons",))
    html(explorer)
    slow.finish(explorer)
    assert explorer.view["export"]["note"].endswith(
        "12 states, 0 kB; left out at the limit of 1 MB: 20 comparisons. "
        "explorer.save_html(path) writes a larger page, with more of it."
    )


def test_it_can_be_cancelled(explorer, monkeypatch):
    slow = Slow(monkeypatch)
    slow.notices = False  # it ends after what is asked here
    shown = html(explorer)["export"]
    assert send(explorer, "export", cancel=shown["id"])["status"]["text"] == "Cancelling …"
    slow.finish(explorer)
    assert (explorer.export["state"], explorer.export["text"]) == ("cancelled", "")
    assert "nothing" not in send(explorer, "export", cancel=shown["id"])["status"]["text"]
    assert explorer.status["text"] == "No export is being made."


def test_closing_the_pane_cancels_it(explorer, monkeypatch):
    Slow(monkeypatch)
    html(explorer)
    assert send(explorer, "export")["export"] == {}
    explorer._session.exporting.wait(30)
    assert explorer.export == {}


def test_another_kind_is_shown_meanwhile_and_has_its_own_id(explorer, monkeypatch):
    slow = Slow(monkeypatch)
    first = html(explorer)["export"]
    python = send(explorer, "export", kind="python")["export"]
    assert (python["kind"], python["state"], python["file"]) == ("python", "ready", "matmul.py")
    assert python["id"] != first["id"]
    slow.finish(explorer)
    assert explorer.export == python
    again = send(explorer, "export", kind="html")["export"]
    assert (again["state"], again["text"], slow.calls) == ("ready", "<html>", 1)
    slow.go.clear()
    html(explorer)
    slow.finish(explorer)
    assert slow.calls == 2


def test_steps_go_on_while_a_page_is_made(explorer, monkeypatch):
    slow = Slow(monkeypatch)
    html(explorer)
    view = send(explorer, "undo")
    assert (view["bar"]["steps"], view["export"]["state"]) == (0, "running")
    slow.finish(explorer)
    assert explorer.export["state"] == "ready"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ScheduleError("export a replay page", "the page is too large"), "the page is too large"),
        (ValueError("a bug"), "export: ValueError: a bug"),
    ],
    ids=["refused", "bug"],
)
def test_a_failure_is_said_in_the_pane(explorer, monkeypatch, error, text):
    slow = Slow(monkeypatch, error=error)
    html(explorer)
    slow.finish(explorer)
    assert explorer.export["state"] == "failed"
    assert text in explorer.export["error"]["text"]
    assert text in explorer.status["text"]


@pytest.mark.parametrize("end", ["close", "target", "write"])
def test_what_ends_the_session_ends_the_recording(explorer, monkeypatch, end):
    slow = Slow(monkeypatch)
    html(explorer)
    job = explorer._session.exporting
    if end == "close":
        explorer.close()
    elif end == "target":
        assert send(explorer, "target", target="gpu")["export"] == {}
    else:
        assert send(explorer, "write", text="S[i] += A[i, k]\nA: [8, 8]")["export"] == {}
    job.wait(30)
    assert job.job.state == "cancelled"
    assert slow.calls == 1


def test_a_failed_text_is_no_former_text(explorer, monkeypatch):
    send(explorer, "export", kind="python")

    def fails(saved):
        raise ScheduleError("write Python", "there is no text")

    monkeypatch.setattr(exports, "to_json", fails)
    view = send(explorer, "export", kind="json")
    assert (view["export"]["kind"], view["export"]["text"]) == ("json", "")
    assert view["export"]["error"]["text"] == "write Python: there is no text"
    assert view["status"]["tone"] == "error"


# -- the recording itself -------------------------------------------------------------------------


def test_progress_goes_from_the_first_to_the_last_state(explorer):
    seen = []
    recording.record(
        explorer._session, ["bar", "tree"], [], watch=Watch(seen.append, lambda: False)
    )
    assert [each.done for each in seen] == list(range(len(seen)))
    assert {(each.all, each.states) for each in seen} == {(len(seen), 2)}
    assert {each.state for each in seen} == {1, 2}


def test_a_cancelled_recording_ends_at_once(explorer):
    seen = []
    with pytest.raises(Cancelled):
        recording.record(
            explorer._session, ["bar", "tree"], [], watch=Watch(seen.append, lambda: len(seen) > 2)
        )
    assert len(seen) == 3


def test_states_that_are_added_meanwhile_are_not_in_it(explorer):
    def add(progress):
        schedule = explorer.schedule
        with schedule.lock:
            C = schedule.outputs[0]
            at = schedule.fork("other")
            at[C].split(C.op.axis[1], factor=progress.done + 2)

    data = recording.record(
        explorer._session, ["bar", "tree", "history"], [], watch=Watch(add, lambda: False)
    )
    assert len(data["states"]) == len(data["order"]) == len(data["history"]["rows"]) == 2
    assert len(explorer.schedule.history.history.nodes) > 5


@pytest.mark.campaign
def test_the_lock_is_free_again_and_again(explorer):
    """A click waits for the contents of one pane, not for the whole recording."""
    taken = []

    def other():
        for _ in range(20):
            with explorer.schedule.lock:
                taken.append(is_done.is_set())

    is_done = threading.Event()
    thread = threading.Thread(target=other)

    def report(progress):
        if progress.done == 1:
            thread.start()

    recording.record(explorer._session, ["bar", "tree", "moves", "picture", "text"], [],
                     watch=Watch(report, lambda: False))  # fmt: skip
    is_done.set()
    thread.join(30)
    assert not all(taken)


@pytest.mark.campaign
def test_a_page_is_made_while_a_run_measures(explorer):
    watch = FakeStopwatch()
    explorer._measuring._stopwatch = watch
    send(explorer, "measure")
    html(explorer)
    watch.go.set()
    explorer._measuring.wait(30)
    explorer._session.exporting.wait(120)
    assert explorer.export["state"] == "ready"
    assert explorer.export["text"].startswith("<!DOCTYPE html>")
    assert "measured" in explorer.schedule.node.notes


# -- in a browser ---------------------------------------------------------------------------------


@pytest.fixture
def page(contexts, explorer):
    context = contexts.open(viewport={"width": 1000, "height": 900}, accept_downloads=True)
    page = LivePage(context, explorer)
    yield page
    assert not page.errors
    context.close()


class TestInBrowser:
    def test_download_while_a_page_is_made_gives_no_other_file(self, page, monkeypatch):
        slow = Slow(monkeypatch)
        page.click("export")
        # A click on Download that comes before the answer to the click on the kind.
        said = page.page.evaluate("""() => {
            const key = (name) => document.querySelector(`[data-key="${name}"]`);
            const download = key("export download");
            key("export html").click();
            download.click();
            return document.querySelector(".dlc-status").innerText;
        }""")
        assert said == "Wait: another export is being made."
        page.settle()
        assert page.key("export download").count() == 0
        assert page.locate(".dlc-export progress").is_visible()
        slow.finish(page.widget)
        page.push()
        with page.page.expect_download() as started:
            page.key("export download").click()
        assert started.value.suggested_filename == "matmul.html"

    def test_progress_and_cancel(self, page, monkeypatch):
        Slow(monkeypatch)
        page.click("export")
        page.click("export html")
        page.wait(lambda: page.widget._session.exporting.job.progress.done == 15)
        page.widget._on_export(page.widget._session, page.widget._session.exporting.job)
        page.push()
        bar = page.locate(".dlc-export progress")
        assert (bar.get_attribute("value"), bar.get_attribute("max")) == ("15", "96")
        assert "panes: state 3 of 12" in page.locate(PANE).inner_text()
        page.key("export cancel").focus()
        page.page.keyboard.press("Enter")
        page.wait(lambda: page.widget.export["state"] == "cancelled")
        page.push()
        assert "was cancelled" in page.locate(PANE).inner_text()
        page.click("export json")
        text = page.locate(".dlc-export textarea").input_value()
        assert json.loads(text)["format"] == "dlcompiler schedule"
