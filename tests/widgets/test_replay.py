"""The page that replays a session: opened from a file in a browser, without a kernel."""

import html
import json
import re
import xml.etree.ElementTree as ET

import pytest

from dlcompiler import te
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.saved.document import from_link
from tests.widgets.axe import violations
from tests.widgets.looks import measured
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer
from dlcompiler_widgets.explorer.recording import Limits, record

HOSTILE = "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 1'><!--"


def explored(name="matmul"):
    """An Explorer whose schedule has two branches; it stands on the second."""
    schedule, args = matmul()
    C = args[2]
    i, j = C.op.axis
    schedule[C].split(j, 16)
    schedule.describe("narrow", HOSTILE)
    schedule.undo()
    schedule[C].parallel(i)
    schedule[C].vectorize(j)
    schedule.node.notes["measured"] = HOSTILE
    return Explorer(schedule, args, name=name)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    explorer = explored()
    path = tmp_path_factory.mktemp("replay") / "replay page.html"
    page = explorer.save_html(path)
    explorer.close()
    assert re.fullmatch(r"ReplayPage\(4 states, \d+ kB\)", repr(page))
    return path


def recording(file):
    text = file.read_text()
    data = re.search(r'<script type="application/json" id="recording">(.*?)</script>', text, re.S)[
        1
    ]
    assert "<" not in data
    return json.loads(data)


def test_all_states_are_in_it(file):
    data = recording(file)
    assert [state["title"] for state in data["states"].values()] == [
        "create",
        "split C j 16",
        "parallel C i",
        "vectorize C j",
    ]
    assert data["left_out"] == []


def test_the_page_is_well_formed_and_allows_one_script(file):
    text = file.read_text()
    assert "</script><script>" not in text
    assert text.count("<script") == text.count("</script>") == 2
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1])
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    without = re.sub(r"<(script|style|meta)[^>]*>(?:.*?</\1>)?", "", text, flags=re.S)
    ET.fromstring(without.partition("\n")[2])


@pytest.mark.campaign
def test_limits_are_kept_and_said():
    explorer = explored()
    data = record(explorer._session, explorer.shown_panes, ["python"], Limits(max_bytes=100_000))
    explorer.close()
    assert len(json.dumps(data["values"])) < 110_000
    assert any(text.endswith(" comparisons") for text in data["left_out"])
    assert data["states"][data["here"]]["shown"]["picture"]


@pytest.mark.campaign
def test_each_state_has_its_open_tabs_before_any_has_the_others():
    explorer = explored()
    limits = Limits(max_bytes=200_000, seconds=600)
    data = record(explorer._session, explorer.shown_panes, ["python"], limits)
    explorer.close()
    assert any(text.endswith(" pictures") for text in data["left_out"])
    assert data["limit"] == "0.2 MB"
    for state in data["states"].values():
        for pane in ("picture", "text", "moves", "advice"):
            opened = data["tabs"].get(pane, "")
            assert opened in state["shown"].get(pane, {}), (state["title"], pane)


def test_a_page_says_which_limit_left_something_out(tmp_path):
    explorer = explored()
    page = explorer.save_html(tmp_path / "page.html", max_seconds=0)
    explorer.close()
    assert "left out at the limit of 0 s: " in page.summary
    assert "Not recorded, because of its limit of 0 s: " in page.html


@pytest.mark.campaign
def test_recording_changes_nothing():
    explorer = explored()
    before = explorer.view
    ids = list(explorer.schedule.history.history.nodes)
    record(explorer._session, explorer.shown_panes, ["python"])
    assert explorer.view == before
    assert explorer.schedule.node.id == before["history"]["rows"][-1]["id"]
    assert list(explorer.schedule.history.history.nodes) == ids
    explorer.close()


def test_a_schedule_that_cannot_be_written_is_recorded_without_exports(tmp_path):
    mine = te.comm_reducer(lambda x, y: x * y + 1.0, lambda t: te.const(1, t), name="mine")
    A = te.placeholder((4, 4), name="A")
    k = te.reduce_axis((0, 4), name="k")
    B = te.compute((4,), lambda i: mine(A[i, k], axis=k), name="B")
    explorer = Explorer(create_schedule(B.op), [A, B])
    assert explorer.save_html(tmp_path / "x.html").states == 1
    explorer.close()


# -- in a browser ---------------------------------------------------------------------------------


class Replay:
    """The page as a person uses it."""

    def __init__(self, page):
        self.page = page

    def click(self, key):
        self.page.locator(f'[data-key="{key}"]').first.click()
        self.settle()

    def settle(self):
        self.page.locator(".dlc-explorer:not([aria-busy])").wait_for()
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => done()))")

    def status(self):
        return self.page.locator(".dlc-status").inner_text()

    def loops(self):
        return self.page.locator(".dlc-loop").evaluate_all("all => all.map(e => e.dataset.key)")

    def here(self):
        return self.page.locator(".dlc-current .dlc-state-step > span").inner_text()

    def button(self, key):
        return self.page.locator(f'[data-key="{key}"]')

    def focused(self):
        return self.page.evaluate("document.activeElement.dataset.key")

    def row(self, number):
        return self.page.locator(".dlc-state").nth(number)


@pytest.fixture(scope="module")
def opened(browser, file):
    """The page, opened once, and what went wrong in it."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    page.set_default_timeout(10_000)
    errors, requests = [], []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: message.type == "error" and errors.append(message.text))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(file.as_uri())
    page.locator(".dlc-explorer").wait_for()
    yield Replay(page), errors
    assert set(requests) == {file.as_uri()}
    context.close()


@pytest.fixture
def replay(opened):
    page, errors = opened
    page.row(3).click()
    page.settle()
    yield page
    assert errors == []
    assert page.page.evaluate("window.broken === undefined")


class TestInBrowser:
    def test_undo_redo_and_jump(self, replay):
        assert replay.here() == "vectorize C j"
        replay.click("undo")
        assert replay.here() == "parallel C i"
        replay.click("redo")
        assert replay.here() == "vectorize C j"
        replay.row(1).click()
        replay.settle()
        assert replay.loops() == ["C/i", "C/j.outer", "C/j.inner", "C/k"]
        assert "for j.inner in range(16):" in replay.page.locator(".dlc-lines").inner_text()

    def test_choosing_a_loop_shows_its_moves(self, replay):
        replay.page.locator('[role="treeitem"][data-key="C/k"]').click()
        replay.settle()
        assert "k" in replay.page.locator(".dlc-moves h3").inner_text()
        assert replay.page.locator(".dlc-own").count() > 0

    @pytest.mark.campaign
    def test_every_tab(self, replay):
        tabs = replay.page.locator('[role="tab"]')
        assert tabs.count() > 8
        for number in range(tabs.count()):
            tabs.nth(number).click()
            replay.settle()
            assert tabs.nth(number).get_attribute("aria-selected") == "true"
            assert replay.status() == f"Shown: {tabs.nth(number).inner_text()}."
            assert "needs a kernel" not in replay.page.locator(".dlc-explorer").inner_text()

    def test_a_step_that_was_taken_leads_on_and_another_needs_a_kernel(self, replay):
        replay.row(0).click()
        replay.settle()
        replay.page.locator('[role="treeitem"][data-key="C/j"]').click()
        replay.settle()
        replay.page.locator('[data-key="split C C.j factor"]').fill("16")
        replay.click("split C C.j")
        assert replay.here() == "split C j 16"
        assert (
            replay.page.locator('[aria-selected="true"][role="treeitem"]').get_attribute("data-key")
            == "C/j.inner"
        )
        replay.page.locator(".dlc-moves button.dlc-legal").last.click()
        replay.settle()
        assert replay.here() == "split C j 16"
        assert "needs a kernel" in replay.status()
        assert "Explorer.from_json" in replay.status()

    def test_a_pass_and_the_code(self, replay):
        replay.click("tab passes")
        name = replay.page.locator(".dlc-pass-name")
        before = name.inner_text()
        replay.click("earlier pass")
        assert name.inner_text() != before
        replay.click("tab llvm")
        assert "define" in replay.page.locator(".dlc-lines").inner_text()
        replay.click("tab loops")

    def test_what_needs_a_kernel_says_so(self, replay):
        replay.click("measure")
        assert "measure: needs a kernel" in replay.status()

    def test_two_states_are_compared(self, replay):
        replay.row(1).focus()
        replay.page.keyboard.press("a")
        replay.settle()
        replay.row(2).focus()
        replay.page.keyboard.press("b")
        replay.settle()
        assert replay.page.locator(".dlc-compare h3").all_inner_texts() == [
            "A: narrow",
            "B: parallel C i",
        ]
        replay.page.keyboard.press("Escape")
        replay.settle()
        assert not replay.page.locator(".dlc-compare").is_visible()

    def test_the_visited_states_one_after_the_other(self, replay):
        replay.row(0).click()
        replay.settle()
        seen = [replay.here()]
        assert replay.button("visit before").get_attribute("aria-disabled") == "true"
        for _ in range(3):
            replay.click("visit after")
            seen.append(replay.here())
        assert seen == ["create", "split C j 16", "parallel C i", "vectorize C j"]
        assert replay.button("visit after").get_attribute("aria-disabled") == "true"
        assert "State 4 of 4: vectorize C j" in replay.page.locator(".dlc-visits").inner_text()
        replay.click("visit before")
        assert replay.here() == "parallel C i"
        assert replay.focused() == "visit before"

    def test_the_visited_states_by_key(self, replay):
        replay.page.locator('[role="treeitem"]').first.focus()
        replay.page.keyboard.press(",")
        replay.settle()
        assert replay.here() == "parallel C i"
        replay.page.keyboard.press(".")
        replay.page.keyboard.press(".")  # there is no further one
        replay.settle()
        assert replay.here() == "vectorize C j"
        replay.page.locator(".dlc-text-bar input").focus()
        replay.page.keyboard.type(",")
        assert replay.here() == "vectorize C j"
        replay.page.locator(".dlc-text-bar input").fill("")

    def test_an_export_that_was_not_recorded_gives_no_other_file(self, replay):
        replay.click("export")
        replay.click("export html")
        pane = replay.page.locator('.dlc-export[aria-label="Export"]')
        assert "needs a kernel" in pane.inner_text()
        assert replay.button("export download").get_attribute("aria-disabled") == "true"
        replay.click("export json")
        assert replay.button("export download").get_attribute("aria-disabled") is None
        replay.click("export close")

    def test_it_can_be_taken_on_to_a_notebook(self, replay):
        replay.click("export")
        replay.click("export link")
        link = replay.page.locator(".dlc-export textarea").input_value()
        assert from_link(link).schedule.node.title() == "vectorize C j"

    def test_sizes_of_panes_are_remembered(self, replay):
        line, left = replay.button("splitter left"), replay.page.locator(".dlc-left")
        before = left.bounding_box()["width"]
        for _ in range(5):
            line.press("ArrowRight")
        replay.click("pane history")
        wider = left.bounding_box()["width"]
        assert wider > before + 50
        replay.page.reload()
        replay.settle()
        assert left.bounding_box()["width"] == pytest.approx(wider, abs=1)
        assert replay.button("pane history").get_attribute("aria-expanded") == "false"
        line.press("Enter")
        replay.click("pane history")
        assert left.bounding_box()["width"] == pytest.approx(before, abs=1)

    def test_nothing_is_cut_empty_or_covered(self, replay):
        for width in (1400, 720):
            replay.page.set_viewport_size({"width": width, "height": 900})
            replay.settle()
            looks = measured(replay.page.locator(".dlc-explorer"))
            assert looks.problems == [], width
        assert violations(replay.page, "body") == []
        replay.page.set_viewport_size({"width": 1200, "height": 900})

    def test_panes_beyond_the_limit_say_so(self, browser, tmp_path):
        explorer = explored()
        explorer.save_html(tmp_path / "small.html", max_bytes=1)
        explorer.close()
        context = browser.new_context(viewport={"width": 1400, "height": 1000})
        tab, errors = context.new_page(), []
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.goto((tmp_path / "small.html").as_uri())
        page = Replay(tab)
        page.settle()
        page.click("pane advice")
        for name in ("picture", "program", "palette", "advice"):
            shown = page.page.locator(f".dlc-pane.dlc-{name}").inner_text()
            assert "this was not recorded: needs a kernel" in shown, name
        others = page.page.locator(".dlc-unavailable > :not(.dlc-message, .dlc-pane-head)")
        assert others.count() > 4
        assert not any(part.is_visible() for part in others.all())
        page.click("undo")
        assert page.here() == "parallel C i"
        assert errors == []
        context.close()

    @pytest.mark.campaign
    def test_a_hostile_name_is_text(self, browser, tmp_path):
        explorer = explored(HOSTILE)
        explorer.save_html(tmp_path / "hostile.html")
        explorer.close()
        context = browser.new_context()
        page = context.new_page()
        page.goto((tmp_path / "hostile.html").as_uri())
        assert page.locator(".dlc-title strong").inner_text() == HOSTILE
        assert page.locator("img").count() == 0
        assert page.evaluate("window.broken === undefined")
        context.close()

    def test_without_javascript_the_nest_is_seen(self, browser, file):
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(file.as_uri())
        assert "C[i, j] += A[i, k]*B[k, j]" in page.locator("body").inner_text()
        context.close()
