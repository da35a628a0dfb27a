"""Another expression in the workbench."""

import threading

import pytest

from dlcompiler import te
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import call_packed
from dlcompiler.schedule import create_schedule
from tests.widgets.axe import violations
from tests.widgets.live_page import LivePage
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer
from dlcompiler_widgets.explorer.writing import MOST_FORMER

HOSTILE = "</script><img src=x onerror=alert(1)>"
ROWS = "S[i] += A[i, k]\nA: float64[8, 16]"


FORBID_NEW_LINES = """() => document.addEventListener("keydown", ({ target }) =>
  target.addEventListener("beforeinput",
    (event) => event.inputType === "insertLineBreak" && event.preventDefault(),
    { once: true }), true)"""


@pytest.fixture
def explorer():
    schedule, args = matmul()
    schedule[args[2]].parallel(args[2].op.axis[0])
    widget = Explorer(schedule, args, name="matmul")
    yield widget
    widget.close()


def send(explorer, op, **args):
    explorer.intent = {"id": f"{op} {args}", "op": op, "args": args}
    return explorer.view


def test_an_expression_from_python():
    explorer = Explorer.write("C[i, j] += A[i, k] * B[k, j]\nB: [8, 4]", A=((2, 8), "float32"))
    assert [row["key"] for row in explorer.view["tree"]["rows"] if row["type"] == "loop"] == [
        "C/i",
        "C/j",
        "C/k",
    ]
    explorer.close()
    with pytest.raises(ExpressionError, match=r"(?s)the axis j is not on the left.*\^"):
        Explorer.write("C[i] = A[i, j]", A=(2, 8))


def test_without_a_schedule_the_editor_is_open():
    explorer = Explorer()
    assert explorer.view["editor"]["text"].startswith("C[i, j] += A[i, k]*B[k, j]\nA: float32[512")
    assert explorer.view["bar"]["steps"] == 0
    explorer.close()


def test_the_editor_shows_the_expression_and_applies_another(explorer):
    before = explorer.schedule
    view = send(explorer, "write")
    assert view["editor"]["text"] == (
        "C[i, j] += A[i, k]*B[k, j]\nA: float32[64, 64]\nB: float32[64, 64]"
    )
    view = send(explorer, "write", text=ROWS)
    assert view["editor"] == {}
    assert view["tree"]["inputs"] == ["A: float64[8, 16]"]
    assert explorer.schedule is not before
    assert before.node.title() == "parallel C i"
    assert explorer.schedule.outputs[0].name == "S"
    before.undo()
    assert explorer.view["bar"]["steps"] == 0
    assert explorer.view["tree"]["inputs"] == ["A: float64[8, 16]"]
    explorer.schedule[explorer.schedule.outputs[0]].parallel(
        explorer.schedule.outputs[0].op.axis[0]
    )
    said = "Changed in another cell or view: now at parallel S i."
    assert explorer.view["status"]["text"] == said


def test_a_program_without_notation_gets_an_example():
    A = te.placeholder((8,), name="A")
    B = te.extern((8,), [A], lambda i, o: call_packed("test.views", *i, *o), name="B")
    widget = Explorer(create_schedule(B.op), name="sorted")
    send(widget, "write")
    assert widget.status["text"] == (
        "sorted cannot be written as text: this is an example. Apply another."
    )
    widget.close()


def test_the_same_expression_keeps_its_steps(explorer):
    before = explorer.schedule
    text = send(explorer, "write")["editor"]["text"]
    view = send(explorer, "write", text=f"# the product\n{text}\n\n")
    assert explorer.schedule is before
    assert view["bar"]["steps"] == 1
    assert view["editor"] == {}
    assert view["status"]["text"] == "The expression is the same: its schedule and steps stay."


def test_the_editor_leads_back_to_an_earlier_expression_and_its_steps(explorer):
    before = explorer.schedule
    assert send(explorer, "write")["editor"]["former"] == []
    view = send(explorer, "write", text=ROWS)
    assert view["status"]["details"] == [["hint", "the editor leads back to it"]]
    send(explorer, "target", target="c")
    view = send(explorer, "write")
    assert view["editor"]["former"] == [{"text": "C[i, j] += A[i, k]*B[k, j] (1 step)"}]
    view = send(explorer, "write", former=0)
    assert explorer.schedule is before
    assert (view["bar"]["steps"], view["bar"]["target"]) == (1, "cpu")
    assert view["status"]["text"] == "Back at C[i, j] += A[i, k]*B[k, j] (1 step)."
    before.undo()
    assert explorer.view["bar"]["steps"] == 0, "it is followed again"
    assert send(explorer, "undo")["editor"] == {}
    former = send(explorer, "write", text="T[i] = A[i]\nA: float32[4]") and explorer._session.former
    assert [each.schedule.outputs[0].name for each in former] == ["S", "C"]


@pytest.mark.parametrize("number", [-1, 0, 1.0, True, None, "0", [], HOSTILE])
def test_what_is_no_earlier_expression_is_refused(explorer, number):
    before = explorer.schedule
    view = send(explorer, "write", former=number)
    assert explorer.schedule is before
    assert view["status"]["tone"] == "error"
    assert "there is none of this number" in view["status"]["text"]


def test_only_the_last_earlier_expressions_are_kept(explorer):
    for size in range(1, 12):
        send(explorer, "write", text=f"S[i] = A[i]\nA: float32[{size}]")
    former = send(explorer, "write", text="")["editor"]["former"]
    assert len(former) == MOST_FORMER
    assert explorer._session.former[-1].args[0].shape == (10,)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("C[i] = A[i, j]\nA: [4, 4]", 1, 13),
        ("C[i] = A[i]\nA: float31[4]", 2, 4),
        ("C[i] = A[i] +\nA: [4]", 1, None),
        (HOSTILE, 1, None),
        ("", None, None),
    ],
)
def test_an_error_points_at_the_character(explorer, text, line, column):
    before = explorer.view["tree"]
    view = send(explorer, "write", text=text)
    error = view["editor"]["error"]
    assert view["editor"]["text"] == text
    assert error["line"] == line
    assert column is None or error["column"] == column
    assert view["status"]["tone"] == "error"
    assert view["tree"] == before
    assert send(explorer, "write", close=True)["editor"] == {}


def test_steps_and_texts_from_two_threads_do_not_block_each_other(explorer):
    axis = explorer.schedule.outputs[0].op.axis[0]
    schedule = explorer.schedule

    def elsewhere():
        for _ in range(20):
            schedule.undo()
            schedule[schedule.outputs[0]].parallel(axis)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    for n in range(10):
        send(explorer, "write", text=f"S[i] += A[i, k]\nA: [8, {n + 2}]")
    thread.join(60)
    assert not thread.is_alive()
    assert explorer.view["tree"]["inputs"] == ["A: float32[8, 11]"]


# -- in a browser ---------------------------------------------------------------------------------


@pytest.fixture
def page(contexts, explorer):
    context = contexts.open(viewport={"width": 1200, "height": 900})
    page = LivePage(context, explorer)
    yield page
    assert not page.errors
    context.close()


class TestInBrowser:
    def test_writing_by_keyboard(self, page):
        page.key("write").focus()
        page.page.keyboard.press("Enter")
        page.settle()
        area = page.locate(".dlc-write textarea")
        area.fill("S[i] += A[i, x]\nA: [8, y")
        page.page.keyboard.press("Control+Enter")
        page.settle()
        assert "line 2, column 4" in page.locate(".dlc-write-error").inner_text()
        assert page.locate(".dlc-caret").inner_text().splitlines()[1].strip() == "^"
        selected = "a => a.value.slice(a.selectionStart, a.selectionEnd)"
        assert area.evaluate(selected) == "["
        area.fill(ROWS)
        page.page.keyboard.press("Control+Enter")
        page.settle()
        assert page.loop("S/k").count() == 1
        assert page.page.evaluate("document.activeElement.dataset.key") == "write"
        page.click("write")
        page.click("write former 0")
        assert page.loop("C/k").count() == 1

    def test_a_line_can_be_added_where_the_host_forbids_new_lines(self, page):
        """JupyterLab 4.6 does so in outputs, with a listener that each key adds to its target."""
        page.page.evaluate(FORBID_NEW_LINES)
        page.click("write")
        area = page.locate(".dlc-write textarea")
        area.fill("S[i] = A[i]")
        area.focus()
        page.page.keyboard.press("End")
        page.page.keyboard.press("Enter")
        page.page.keyboard.type("A: float32[8]")
        assert area.input_value() == "S[i] = A[i]\nA: float32[8]"

    @pytest.mark.campaign
    def test_axe_finds_nothing_serious_in_the_editor_and_the_export(self, page):
        page.click("export")
        page.click("write")
        page.locate(".dlc-write textarea").fill("S[i] += A[i, x]")
        page.click("write apply")
        assert violations(page.page) == []

    @pytest.mark.campaign
    def test_an_open_editor_does_not_take_the_focus_by_itself(self, contexts):
        context = contexts.open()
        page = LivePage(context, Explorer())
        page.locate(".dlc-write textarea").wait_for()
        assert page.page.evaluate("document.activeElement.tagName") == "BODY"
        page.widget.close()
        context.close()
