"""What a step would do, before it is done; and the steps that moving a row means."""

import json
import random

import pytest

from dlcompiler.errors import ScheduleError
from dlcompiler.schedule import Step, create_schedule
from dlcompiler.schedule.trace import decode
from dlcompiler.views import loop_tree
from dlcompiler.views.loops.ghost import ghost_rows
from dlcompiler.views.loops.rearrange import moved_by, moved_onto
from dlcompiler.views.moves.preview import preview
from tests.fuzz.expressions import random_expression
from tests.fuzz.walks import Walk


def rows(view):
    return [(row["name"], row["change"], row["was"]) for row in view["rows"]]


def loops(schedule):
    return [row["name"] for row in loop_tree(schedule)["rows"] if row["type"] == "loop"]


def test_a_split(plain):
    view = preview(plain, Step("split", "C", {"axis": "j", "factor": 48}))
    assert view["status"] == "legal"
    assert view["tail"].startswith("48 does not divide 64: 2 blocks of 48")
    assert rows(view) == [
        ("C float32[64, 64]", "same", ""),
        ("i", "same", ""),
        ("j", "removed", ""),
        ("j.outer", "added", ""),
        ("j.inner", "added", ""),
        ("init C[…] = 0.0", "same", ""),
        ("k", "same", ""),
        ("C[i, j] += A[i, k]*B[k, j]", "same", ""),
    ]
    assert json.loads(json.dumps(view)) == view


def test_an_annotation_and_a_reorder(plain):
    view = preview(plain, Step("parallel", "C", {"axis": "i"}))
    assert [row for row in rows(view) if row[1] != "same"] == [("i", "changed", "was serial")]
    view = preview(plain, Step("reorder", "C", {"axes": ["j", "i"]}))
    assert [row for row in rows(view) if row[1] != "same"] == [("j", "moved", "")]


def test_a_nest_in_which_nothing_changes_is_left_out(blocked, plain):
    before = loop_tree(plain)
    assert ghost_rows(before, before) == []
    view = preview(blocked, Step("compute_root", "C.local", {}))
    assert {row["change"] for row in view["rows"]} >= {"moved", "changed"}


def test_a_split_with_a_tail_has_a_near_one_without(plain):
    view = preview(plain, Step("split", "C", {"axis": "j", "factor": 3}))
    assert (view["status"], view["nearest"]["text"]) == (
        "legal",
        "use 2 instead of 3, without a tail",
    )
    (step,) = view["nearest"]["steps"]
    assert step == {"primitive": "split", "stage": "C", "args": {"axis": "j", "factor": 2}}
    args = {"x": "i", "y": "j", "x_factor": 16, "y_factor": 30}
    view = preview(plain, Step("tile", "C", args))
    assert view["nearest"]["text"] == "use 32 instead of 30, without a tail"
    assert view["nearest"]["steps"][0]["args"] == {**args, "y_factor": 32}
    for axis, factor in (("i", 16), ("i", 100)):
        view = preview(plain, Step("split", "C", {"axis": axis, "factor": factor}))
        assert view["nearest"] is None


def test_nothing_is_changed_by_looking(blocked):
    node, count = blocked.node, len(blocked.history.history.nodes)
    preview(blocked, Step("split", "C", {"axis": "i.outer", "factor": 2}))
    preview(blocked, Step("vectorize", "C.local", {"axis": "k.outer"}))
    assert blocked.node is node
    assert len(blocked.history.history.nodes) == count


def test_a_refused_step_has_reason_conflicts_and_what_to_do(plain):
    view = preview(plain, Step("vectorize", "C", {"axis": "k"}))
    assert (view["status"], view["kind"]) == ("illegal", "semantic")
    assert view["conflicts"] == ["C/k", "C//body"]
    assert view["nearest"] == {
        "text": "vectorize j instead",
        "steps": [{"primitive": "vectorize", "stage": "C", "args": {"axis": "j"}}],
        "start": "",
    }
    assert view["rows"] == view["metrics"] == []


@pytest.mark.parametrize("value", ["3x", "", None, 2.5, -1, 10**40, [], {}, True])
def test_any_typed_value_has_an_answer(plain, value):
    view = preview(plain, Step("split", "C", {"axis": "i", "factor": value}))
    assert view["status"] in ("legal", "illegal", "done")  # by more than the extent: nothing
    assert json.dumps(view)


@pytest.mark.parametrize(
    "step",
    [
        Step("split", "X", {"axis": "i", "factor": 2}),
        Step("split", "C", {"axis": "x", "factor": 2}),
        Step("split", "C", {"axis": {}, "factor": 2}),
        Step("eval", "C", {}),
        Step("split", "C", {"colour": 2}),
    ],
)
def test_a_step_that_names_nothing_is_refused(plain, step):
    view = preview(plain, step)
    assert view["status"] == "illegal"
    assert view["reason"]


def test_a_pending_step_says_what_it_would_owe(blocked):
    view = preview(blocked, Step("split", "C", {"axis": "j.outer", "factor": 2}))
    assert view["status"] == "pending"
    assert "no longer a loop" in view["reason"]
    assert view["rows"]


def test_metrics_are_paired_by_name(plain):
    def metrics(schedule):
        count = len(loops(schedule))
        return [
            {
                "name": "loops",
                "value": count,
                "unit": "",
                "text": f"{count} loops",
                "kind": "exact",
            },
            {"name": f"only {count}", "value": 1, "unit": "", "text": "1", "kind": "exact"},
            {"name": "steps", "value": 0, "unit": "", "text": "none", "kind": "exact"},
        ]

    view = preview(plain, Step("split", "C", {"axis": "i", "factor": 2}), metrics)
    assert view["metrics"] == [
        {"name": "loops", "before": "3 loops", "after": "4 loops", "kind": "exact",
         "change": "1.3×", "bars": [0.75, 1.0]},
        {"name": "steps", "before": "none", "after": "none", "kind": "exact", "change": "same",
         "bars": []},
    ]  # fmt: skip


def test_no_metrics_where_a_state_has_none(plain):
    def metrics(schedule):
        raise ScheduleError("count", "what is owed is open")

    view = preview(plain, Step("split", "C", {"axis": "i", "factor": 2}), metrics)
    assert (view["metrics"], view["unknown"]) == ([], "what is owed is open")


@pytest.mark.parametrize("seed", range(10))
def test_the_ghost_is_the_nest_that_follows(seed):
    """On random schedules: without the removed rows, it has the rows of the next state's tree."""
    rng = random.Random(seed)
    schedule = create_schedule([t.op for t in random_expression(rng).outputs])
    Walk(rng, schedule).run(5)
    for before, after in zip(schedule.trace.nodes, schedule.trace.nodes[1:], strict=False):
        there = schedule.fork("there")
        there.jump(before.id)
        view = preview(there, after.step)
        there.jump(after.id)
        kept = [row["key"] for row in view["rows"] if row["change"] != "removed"]
        keys = [row["key"] for row in loop_tree(there)["rows"]]
        assert [key for key in keys if key in kept] == kept
        assert len(set(kept)) == len(kept)


# -- rows that are moved ---------------------------------------------------------------------------


def take(schedule, step):
    schedule.apply(step.primitive, step.stage, decode(schedule.state, step))


@pytest.mark.parametrize(
    ("key", "target", "order"),
    [
        ("C/k", "C/i", ["k", "i", "j"]),
        ("C/k", "C/j", ["i", "k", "j"]),
        ("C/i", "C/k", ["j", "k", "i"]),
        ("C/i", "C/j", ["j", "i", "k"]),
    ],
)
def test_a_loop_takes_the_place_of_another(plain, key, target, order):
    take(plain, moved_onto(plain, key, target))
    assert loops(plain) == order


def test_a_loop_moves_by_a_place(plain):
    take(plain, moved_by(plain, "C/j", 1))
    assert loops(plain) == ["i", "k", "j"]
    take(plain, moved_by(plain, "C/j", -2))
    assert loops(plain) == ["j", "i", "k"]


def test_a_stage_onto_a_loop_is_computed_there(blocked):
    step = moved_onto(blocked, "C.local", "C/i.outer")
    assert str(step) == "compute_at C.local C i.outer"
    take(blocked, step)


@pytest.mark.parametrize(
    ("key", "target", "text"),
    [
        ("C/i.outer", "C.local/i.c", "can only be moved among the loops of C"),
        ("C/i.outer", "C", "can only be moved among the loops of C"),
        ("C.local", "C", "can only be moved to a loop"),
        ("C/nothing", "C/i.outer", "no such loop"),
        ("C/i.outer", "C//body", "no such loop"),
        ("A", "C/i.outer", "no such loop"),
    ],
)
def test_a_move_that_means_nothing_is_refused(blocked, key, target, text):
    with pytest.raises(ScheduleError, match=text):
        moved_onto(blocked, key, target)


def test_the_ends_of_a_nest(plain):
    with pytest.raises(ScheduleError, match="outermost loop of C already"):
        moved_by(plain, "C/i", -1)
    with pytest.raises(ScheduleError, match="innermost loop of C already"):
        moved_by(plain, "C/k", 1)
    with pytest.raises(ScheduleError, match="only a loop"):
        moved_by(plain, "C", 1)
