"""Static pictures of containers of ipywidgets that hold our widgets."""

import xml.etree.ElementTree as ET

import ipywidgets
import pytest

from tests.static_pictures import pictures_in
from tests.widgets.test_live_page import matmul
from tests.widgets.test_static_output import VIEW, made, outputs_of, shell, updated  # noqa: F401

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import LoopTree
from dlcompiler_widgets.static_output import LARGEST_BYTES


@pytest.fixture
def boxes(shell, made):  # noqa: F811
    """The shell with the extension, which displays containers."""
    shell.extension_manager.load_extension("dlcompiler_widgets")
    made["tree"] = LoopTree(matmul()[0])
    shell.push({**made, "W": ipywidgets})
    yield shell
    shell.extension_manager.unload_extension("dlcompiler_widgets")


@pytest.mark.parametrize(
    "code",
    [
        "W.VBox([e])",
        "W.HBox([W.Label('x'), W.VBox([W.Button(), e])])",
        "W.Accordion([e])",
        "W.GridBox([e])",
        "from IPython.display import display; display(W.Stack([e]))",
    ],
)
def test_a_container_has_a_view_and_a_picture(boxes, made, code):  # noqa: F811
    live, still = outputs_of(boxes, code)
    assert live.data[VIEW]["model_id"] != made["e"].model_id
    assert "dlc-static" not in live.data["text/html"]
    assert VIEW not in still.data
    assert len(pictures_in(still.data["text/html"])) == 1
    assert "Explorer(main on cpu" in still.data["text/plain"]


def test_tabs_have_their_titles_and_two_equal_widgets_two_pictures(boxes):
    code = "W.Tab([e, W.VBox([tree, tree])], titles=('mine <1>', 'other'))"
    _, still = outputs_of(boxes, code)
    html = still.data["text/html"]
    assert html.index("mine &lt;1&gt;") < html.index("Explorer(") < html.index("<h4>other</h4>")
    assert html.count("<h4>other</h4>") == 2
    assert len(html.encode()) < LARGEST_BYTES + 1000


def test_what_does_not_fit_is_named(boxes):
    _, still = outputs_of(boxes, "W.VBox([e] * 9)")
    assert "Left out" in still.data["text/html"]
    assert "9. Explorer(" in still.data["text/html"]
    assert len(still.data["text/html"].encode()) < LARGEST_BYTES + 1000


def test_a_change_in_it_and_of_it_updates_its_picture(boxes):
    outputs_of(boxes, "box = W.VBox([W.HBox([e])]); box")
    (html,) = updated(boxes, "s[C].parallel(i)")
    assert "1 parallel" in html
    (html,) = updated(boxes, "box.children[0].children = (tree, e)")
    assert html.index("LoopTree(") < html.index("Explorer(")
    assert not updated(boxes, "1")
    assert len(updated(boxes, "s.undo()")) == 1, "the new children are followed, too"
    assert not updated(boxes, "box.close()\ns.redo()"), "a closed container keeps its picture"


@pytest.mark.parametrize("code", ["W.VBox([W.Button()])", "W.Tab()"])
def test_a_container_without_ours_is_displayed_as_ever(boxes, code):
    (only,) = outputs_of(boxes, f"from IPython.display import display; display({code})")
    assert VIEW in only.data
    assert "text/html" not in only.data


@pytest.fixture
def outputs(boxes, monkeypatch):
    """Outputs that capture as in a kernel: they have the id of the cell's message."""
    monkeypatch.setattr(ipywidgets.Output, "__enter__", lambda o: setattr(o, "msg_id", "cell"))
    monkeypatch.setattr(ipywidgets.Output, "__exit__", lambda o, *_: setattr(o, "msg_id", ""))
    return boxes


FILL = "with o:\n  display(e)\n"


@pytest.mark.parametrize("code", [f"{FILL}display(W.VBox([o]))", f"display(o)\n{FILL}"])
def test_an_output_that_the_cell_fills_has_a_picture(outputs, code):
    found = outputs_of(outputs, f"from IPython.display import display\no = W.Output()\n{code}")
    ids = [output.transient.get("display_id") for output in found if output.transient]
    assert len(set(ids)) == len(ids) == 2, "one in the Output, one of the cell"
    assert len(found) == 4
    assert len(updated(outputs, "s[C].parallel(i)")) == 2


def test_an_output_that_an_event_fills_later_has_a_picture(outputs, made):  # noqa: F811
    """Its picture is there from the beginning, without contents: cells get no outputs later."""
    code = "from IPython.display import display\no = W.Output()\ndisplay(W.VBox([W.Button(), o]))"
    live, still = outputs_of(outputs, code)
    assert VIEW in live.data
    assert "".join(ET.fromstring(still.data["text/html"]).itertext()).startswith(".jp-OutputArea")
    assert not pictures_in(still.data["text/html"])
    assert still.data["text/plain"] == ""
    view = {"output_type": "display_data", "data": {VIEW: {"model_id": made["e"].model_id}}}
    outputs.user_ns["o"].outputs = (view,)
    (html,) = updated(outputs, "1")
    assert pictures_in(html)
    (again,) = updated(outputs, "s[C].parallel(i)")
    assert "1 parallel" in again
    outputs.user_ns["o"].outputs = ()
    (html,) = updated(outputs, "1")
    assert not pictures_in(html)


def test_an_output_holds_what_the_page_says(outputs, made):  # noqa: F811
    outputs_of(outputs, f"from IPython.display import display\no = W.Output()\n{FILL}o")
    output = outputs.user_ns["o"]
    view = {"output_type": "display_data", "data": {VIEW: {"model_id": made["tree"].model_id}}}
    output.outputs = (view,)
    (html,) = updated(outputs, "1")
    assert "LoopTree(" in html
    assert "Explorer(" not in html
    output.outputs = ()
    (html,) = updated(outputs, "1")
    assert not pictures_in(html)


def test_a_closed_widget_shows_its_picture_only(boxes):
    (still,) = outputs_of(boxes, "tree.close()\ntree")
    assert VIEW not in still.data
    assert "dlc-static" in still.data["text/html"]
