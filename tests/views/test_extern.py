"""Code from outside in the views: seen as a call, never a reason not to be drawn."""

from dlcompiler import te
from dlcompiler.analysis.advice import advise
from dlcompiler.ir import call_packed
from dlcompiler.pipeline import lower
from dlcompiler.schedule import Step, create_schedule
from dlcompiler.target import resolve
from dlcompiler.views.loops.loop_tree import loop_tree
from dlcompiler.views.moves.advice import footprint_of
from dlcompiler.views.moves.figures import figures
from dlcompiler.views.moves.predicted_time import NO_STATEMENTS
from dlcompiler.views.moves.preview import preview
from dlcompiler.views.render.html import operation_html, tensor_html

A = te.placeholder((8, 3), name="A")
E = te.extern((8, 8), [A], lambda i, o: call_packed("test.views", *i, *o), name="E")
D = te.compute((8, 8), lambda i, j: E[i, j] + 1.0, name="D")


def test_a_tensor_shows_its_statements():
    for text in (str(tensor_html(E)), str(operation_html(E.op))):
        assert "computed from A" in text
        assert "call test." in text


def test_the_loop_tree_has_a_row_for_it():
    rows = loop_tree(create_schedule(D.op))["rows"]
    (body,) = [row for row in rows if row["key"] == "E//body"]
    assert body["name"].startswith("call test.")
    assert [row["name"] for row in rows if row["type"] == "loop"] == ["i", "j"]


def test_a_preview_has_the_figures_that_are_known():
    s = create_schedule(D.op)
    machine = resolve("cpu")
    view = preview(s, Step("parallel", "D", {"axis": "i"}), lambda t: figures(t, [A, D], machine))
    assert view["unknown"] == NO_STATEMENTS
    assert "operations" in [metric["name"] for metric in view["metrics"]]


def test_advice_counts_what_can_be_counted():
    s = create_schedule(D.op)
    machine = resolve("cpu")
    assert advise(s, footprint_of(s, [A, D], machine), machine) is not None
    assert lower(s, [A, D]) is not None
