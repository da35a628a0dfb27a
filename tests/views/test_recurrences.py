"""Views of a recurrence: the loop nest, the graph of stages, cards, notation."""

from dlcompiler import te
from dlcompiler.schedule import create_schedule
from dlcompiler.views import loop_tree
from dlcompiler.views.cards.schedules import stage_html
from dlcompiler.views.code.notation_view import notation_lines
from dlcompiler.views.loops.schedule_graph import dataflow_scene
from dlcompiler.views.render.html import operation_html, tensor_html
from tests.recurrences import lstm, two_stages


def test_the_loop_tree():
    r = two_stages(6, 5)
    rows = loop_tree(create_schedule(r.S.op))["rows"]
    assert [row["label"] for row in rows if row["type"] == "stage"] == [
        "stage first, float32[1, 5] of S: first[t, i] = X[0, i]",
        "stage S, float32[6, 5]: S = scan(first, s2, state)",
        "stage s1, float32[1, 5], inside loop S.idx, computed 5 times: s1[t, i] = "
        "state[t - 1, i]*2.0",
        "stage s2, float32[1, 5] of S, inside loop S.idx, computed 5 times: s2[t, i] = "
        "s1[t, i] + X[t, i]",
    ]
    time = next(row for row in rows if row["key"] == "S/idx")
    assert time["label"] == "loop idx of S, level 1, time, extent 5, serial"


def test_the_graph_of_stages_has_no_circle():
    r = two_stages(6, 5)
    rows = dataflow_scene(create_schedule(r.S.op))["table"]["rows"]
    assert [(row[0], row[3], row[4]) for row in rows] == [
        ("first", "in loops of its own", "S"),
        ("s1", "at each step of S", "s2"),
        ("s2", "at each step of S", "S"),
        ("S", "output", ""),
        ("X", "input", "first, s2"),
    ]


def test_notation():
    s = create_schedule(lstm(4, 2, 3, 5).C.op)
    assert notation_lines(s)[-1]["text"] == (
        "lstm_v0, lstm_v1 = scan([c_first, h_first], [c_step, h_step], [c_state, h_state])"
        "  # idx < 3 (time)"
    )


def test_cards():
    r = two_stages(6, 5)
    s = create_schedule(r.S.op)
    for stage in s.stages:
        assert stage.name in stage_html(stage)
    assert "S = scan(first, s2, state)" in tensor_html(r.S)
    assert "S = scan(first, s2, state)" in operation_html(r.S.op)


def test_a_card_of_a_reduction_that_does_not_start_at_zero():
    A, k = te.placeholder((8,), name="A"), te.reduce_axis((2, 5), name="k")
    B = te.compute((2,), lambda i: te.sum(A[k + i], axis=k), name="B")
    s = create_schedule(B.op)
    s[B].split(k, 2)
    assert "k.outer" in stage_html(s[B])
