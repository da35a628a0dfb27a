"""Moves that change nothing are not offered, and what is offered changes something."""

import itertools
from dataclasses import replace

import pytest

from dlcompiler import te
from dlcompiler.errors import DLCompilerError
from dlcompiler.ir import Allocate, structural_equal, walk
from dlcompiler.pipeline import lower
from dlcompiler.pipeline.checks import default_args
from dlcompiler.schedule import Step, create_schedule
from dlcompiler.schedule.trace import decode
from dlcompiler.target import resolve
from dlcompiler.views import loop_tree, palette
from dlcompiler.views.moves.effect import SAME
from dlcompiler.views.moves.predicted_time import predicted_time
from dlcompiler.views.moves.preview import preview
from tests.fuzz.checks import case_of

TARGET = resolve("x86-64-avx2")
MOST = 24
"""Moves that are tried in each state."""


def items_of(s, key):
    view = palette(s, key)
    return [item for part in ("loop", "stage") for group in view[part] for item in group["items"]]


def step_of(item):
    numbers = {each["name"]: each["default"] for each in item["parameters"]}
    step = Step(**item["step"])
    return replace(step, args={**step.args, **numbers})


def program_of(s):
    """The loop nests of a state; None if it cannot be lowered."""
    try:
        return lower(s, default_args(s), simple_mode=True)
    except DLCompilerError:
        return None


def buffers_of(func):
    made = [node.buffer for node in walk(func.body) if isinstance(node, Allocate)]
    return [(b.shape, b.scope, b.strides, b.dtype) for b in (*func.buffers, *made)]


def annotations_of(s):
    """What a step may change beside the program: notes of stages and loops, and obligations."""
    stages = [
        (stage.name, stage.scope, stage.group and (stage.group.name, type(stage.group.place)),
         stage.double_buffered_by, stage.rolled_by, sorted(map(str, stage.rounded.values())),
         sorted(stage.alignments.values()),
         sorted(str(dict(notes)) for notes in stage.pragmas.values()))
        for stage in s.state.stages
    ]  # fmt: skip
    return stages, [str(item) for item in s.obligations if not item.is_settled]


def changes(s, step):
    """Tell whether a step changes the program, and an annotation; None if that is not known."""
    there = s.fork("there")
    there.apply(step.primitive, step.stage, decode(there.state, step))
    is_noted = annotations_of(s) != annotations_of(there)
    before, after = program_of(s), program_of(there)
    if before is None or after is None:
        return None, is_noted
    same = structural_equal(before.body, after.body) and buffers_of(before) == buffers_of(after)
    return not same, is_noted


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(12))
def test_an_offered_move_changes_something_and_another_says_why_not(seed):
    s = case_of(f"effect {seed}").schedule()
    keys = [row["key"] for row in loop_tree(s)["rows"] if row["type"] in ("loop", "stage")]
    items = list({item["key"]: item for key in keys for item in items_of(s, key)}.values())
    for item in itertools.islice(items, 0, None, max(len(items) // MOST, 1)):
        if item["status"] == "illegal":
            continue
        step = step_of(item)
        view = preview(s, step)
        if view["status"] == "illegal":
            continue  # refused, because it was made already
        assert view["status"] == item["status"], (str(step), view, item["reason"])
        program, annotation = changes(s, step)
        if item["status"] == "done":
            assert not program, (str(step), item["reason"])
            assert len(set(predicted(s, step))) == 1, (str(step), item["reason"])
        else:
            assert program is None or program or annotation, str(step)


def predicted(s, step):
    """The predicted times before and after a step."""
    there = s.fork("there")
    there.apply(step.primitive, step.stage, decode(there.state, step))
    return [predicted_time(each, default_args(each), TARGET)["value"] for each in (s, there)]


def test_a_region_that_only_lowering_knows_exactly_is_that_of_the_predicted_time():
    """A part of a fused loop reads one column; the ranges of its indices cover all five."""
    A = te.placeholder((8, 5), name="A")
    P = te.compute((8, 5), lambda i, j: A[i, j] * 2.0, name="P")
    C = te.compute((8, 5), lambda i, j: P[i % 4, j] + P[7 - i, j], name="C")
    s = create_schedule(C.op)
    outer, inner = s[C].split(s[C].fuse(*C.op.axis), factor=10)
    middle, inner = s[C].split(inner, factor=5)
    s[C].reorder(inner, outer)
    s[P].compute_at(s[C], middle)
    s[C].reorder(inner, middle, outer)
    (item,) = (each for each in items_of(s, "P/j") if each["primitive"] == "unroll")
    assert (item["status"], item["reason"]) == ("done", "P.j has one iteration")
    before, after = predicted(s, step_of(item))
    assert before == after


def test_a_loop_of_one_iteration_has_few_moves():
    A = te.placeholder((1, 8), name="A")
    B = te.compute((1, 8), lambda i, j: A[i, j] + 1.0, name="B")
    s = create_schedule(B.op)
    status = {item["key"]: item["status"] for item in items_of(s, "B/i")}
    assert status["split B B.i"] == status["unroll B B.i"] == status["fuse B B.i B.j"] == "done"
    assert status["tile B B.i B.j"] == "legal"
    (tile,) = (item for item in items_of(s, "B/i") if item["primitive"] == "tile")
    assert [each["default"] for each in tile["parameters"]] == [1, 4]
    assert [each["label"] for each in tile["parameters"]] == ["i", "j"]


def test_a_stage_between_loops_that_run_once():
    """No rule of one primitive knows that both places are the same: the programs are compared."""
    A = te.placeholder((1, 8), name="A")
    P = te.compute((1, 8), lambda i, j: A[i, j] + 1.0, name="P")
    C = te.compute((1, 8), lambda i, j: P[i, j] * 2.0, name="C")
    s = create_schedule(C.op)
    (move,) = (item for item in items_of(s, "C/i") if item["key"] == "compute_at P P C.i")
    assert (move["status"], move["reason"]) == ("done", SAME)
    (move,) = (item for item in items_of(s, "C/j") if item["key"] == "compute_at P P C.j")
    assert move["status"] == "pending"  # its loops would be in another order


@pytest.mark.parametrize(("factor", "status"), [(1, "done"), (64, "done"), (63, "legal")])
def test_a_typed_number_that_changes_nothing(plain, factor, status):
    view = preview(plain, Step("split", "C", {"axis": "i", "factor": factor}))
    assert view["status"] == status


def test_a_step_between_loops_of_unknown_length():
    m, n = te.var("m"), te.var("n")
    X, state = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="state")
    first = te.compute((1, n), lambda _, i: X[0, i], name="first")
    step = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i], name="step")
    s = create_schedule(te.scan(first, step, state, inputs=[X]).op)
    s.cache_write(step, "local")
    statuses = {item["status"] for item in items_of(s, "step/i")}
    assert "legal" in statuses


@pytest.mark.parametrize(("is_bound", "status"), [(True, "legal"), (False, "done")])
def test_a_pragma_at_a_thread_axis_of_one_thread(is_bound, status):
    A = te.placeholder((1, 8), name="A")
    B = te.compute((1, 8), lambda n, i: A[n, i] + 1.0, name="B")
    s = create_schedule(B.op)
    if is_bound:
        s[B].bind(B.op.axis[0], te.thread_axis("blockIdx.x"))
    pragmas = [item for item in items_of(s, "B/n") if item["primitive"] == "pragma"]
    assert {item["status"] for item in pragmas} == {status}
