"""Schedules taken away from the workbench, and opened again."""

import json
from pathlib import Path

import pytest

from dlcompiler.errors import UserError
from dlcompiler.schedule.saved.document import from_json, from_link
from tests.widgets.live_page import LivePage
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer

HOSTILE = "</script>\"'\n<img src=x onerror=alert(1)>"


@pytest.fixture
def explorer():
    schedule, args = matmul()
    schedule[args[2]].parallel(args[2].op.axis[0])
    schedule.describe("threads", HOSTILE)
    widget = Explorer(schedule, args, "x86-64-avx2", name="mat mul/" + HOSTILE)
    yield widget
    widget.close()


def send(explorer, op, **args):
    explorer.intent = {"id": f"{op} {args}", "op": op, "args": args}
    return explorer.view


def test_each_kind_can_be_shown(explorer):
    for kind, file in (("python", "py"), ("notebook", "ipynb"), ("json", "json"), ("link", "txt")):
        shown = send(explorer, "export", kind=kind)["export"]
        assert (shown["kind"], shown["file"].rpartition(".")[2]) == (kind, file)
        assert shown["text"]
        assert "/" not in shown["file"]
    assert send(explorer, "export")["export"] == {}
    assert send(explorer, "export", kind="exe")["status"]["tone"] == "error"


def test_what_is_shown_is_of_this_state(explorer):
    send(explorer, "export", kind="python")
    assert send(explorer, "undo")["export"] == {}


@pytest.mark.parametrize("form", ["json", "link"])
def test_an_explorer_opens_what_another_wrote(explorer, form):
    write, read = (getattr(Explorer, f"{way}_{form}") for way in ("to", "from"))
    other = read(write(explorer))
    assert other.schedule.node.id == explorer.schedule.node.id
    assert other.schedule.node.name == "threads"
    assert (other.view["bar"]["target"], other.view["bar"]["name"]) == (
        "x86-64-avx2",
        explorer.view["bar"]["name"],
    )
    other.close()
    assert read(write(explorer), target="cpu").view["bar"]["target"] == "cpu"


def test_an_unknown_target_is_refused(explorer):
    data = {**json.loads(explorer.to_json()), "target": "abacus"}
    with pytest.raises(UserError) as refused:
        Explorer.from_json(json.dumps(data))
    assert str(refused.value) == (
        "open a schedule: no target here has the name of its target\n"
        "  got       'abacus'\n"
        '  hint      give one: Explorer.from_json(text, target="cpu")'
    )
    with pytest.raises(UserError, match="no target has this name"):
        Explorer.from_json(json.dumps(data), target="xylophone")
    other = Explorer.from_json(json.dumps(data), target="gpu")
    assert other.view["bar"]["target"] == "gpu"
    other.close()


@pytest.fixture
def page(contexts, explorer):
    context = contexts.open(viewport={"width": 1000, "height": 900}, accept_downloads=True)
    page = LivePage(context, explorer)
    yield page
    assert not page.errors
    context.close()


class TestInBrowser:
    def test_a_download(self, page):
        page.click("export")
        assert "s[C].parallel(i)" in page.locate(".dlc-export textarea").input_value()
        page.click("export json")
        with page.page.expect_download() as started:
            page.key("export download").click()
        assert started.value.suggested_filename == "mat-mul-script-img-src-x-onerror-alert-1.json"
        read = from_json(Path(started.value.path()).read_text())
        assert read.schedule.node.id == page.widget.schedule.node.id

    def test_by_keyboard(self, page):
        page.key("export").focus()
        page.page.keyboard.press("Enter")
        page.settle()
        for _ in range(3):
            page.page.keyboard.press("Tab")
        page.page.keyboard.press("Enter")
        page.settle()
        link = page.locate(".dlc-export textarea").input_value()
        assert from_link(link).schedule.node.id == page.widget.schedule.node.id
        page.page.keyboard.press("Escape")
        page.settle()
        assert page.page.evaluate("document.activeElement.dataset.key") == "export"
