"""Views of an Explorer that pages open and close: what no page shows is not drawn."""

import pytest

from tests.static_pictures import pictures_in
from tests.widgets.live_page import LivePage
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer


@pytest.fixture
def made():
    schedule, args = matmul()
    widget = Explorer(schedule, args)
    yield widget, schedule, args[2]
    widget.close()


def say(widget, *views):
    for view in views:
        widget._handle_custom_msg({"view": view}, [])


@pytest.mark.parametrize(
    "views",
    [[], ["opened"], ["opened", "opened", "closed"], ["closed"], ["opened", "closed", "opened"]],
    ids=lambda views: "-".join(views) or "none",
)
def test_a_widget_that_may_be_shown_follows_every_step(made, views):
    widget, schedule, C = made
    say(widget, *views)
    before = widget.reply["seq"]
    schedule[C].parallel(C.op.axis[0])
    assert widget.bar["steps"] == 1
    assert widget.reply["seq"] == before + 1


def test_a_widget_on_no_page_is_drawn_when_it_is_shown_or_asked_again(made):
    widget, schedule, C = made
    say(widget, "opened", "closed")
    before = widget.reply["seq"]
    schedule[C].parallel(C.op.axis[0])
    assert (widget.bar["steps"], widget.reply["seq"]) == (0, before)
    assert "1 step)" in repr(widget)
    (picture,) = pictures_in(widget.static_html())
    assert "parallel" in "".join(picture.itertext())
    schedule.undo()
    assert widget.view["bar"]["steps"] == 0
    schedule.redo()
    assert widget.bar["steps"] == 0
    say(widget, "opened")
    assert widget.bar["steps"] == 1
    seq = widget.reply["seq"]
    say(widget, "closed", "opened")
    assert widget.reply["seq"] == seq, "nothing was missed"


@pytest.mark.parametrize("content", [None, 3, "opened", [], {}, {"view": ["closed"]}, {"ask": 1}])
def test_other_messages_count_no_view(made, content):
    widget, schedule, C = made
    say(widget, "opened")
    widget._handle_custom_msg(content, [])
    widget._handle_custom_msg(content, [])
    schedule[C].parallel(C.op.axis[0])
    assert widget.bar["steps"] == 1


def test_the_page_says_when_its_view_goes(contexts, made):
    widget, schedule, C = made
    context = contexts.open()
    page = LivePage(context, widget)
    page.page.evaluate("window.stop.abort()")
    page.wait(lambda: widget._views.may_skip())
    schedule[C].parallel(C.op.axis[0])
    assert widget.bar["steps"] == 0
    page.page.evaluate("document.querySelector('#host').replaceChildren()")
    page.show()
    page.wait(lambda: page.loop("C/i").count() and widget.bar["steps"] == 1)
    page.push()
    assert "parallel" in page.loop("C/i").inner_text()
    assert not page.errors
    context.close()
