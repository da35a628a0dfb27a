"""create_group: stages that are moved as one, and refusals of what would tear them apart."""

from types import SimpleNamespace

import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError
from dlcompiler.measurement import verify
from dlcompiler.schedule import Illegal, Pending, Trace, create_schedule
from dlcompiler.schedule.saved import document as saved
from dlcompiler.views.code.export import python_text


@pytest.fixture
def stages():
    """A to P to Q to R to C, all of 9×6; Q and C read elements beside their own."""
    A = te.placeholder((9, 6), "int32", name="A")
    P = te.compute((9, 6), lambda i, j: A[i, j] * 2, name="P")
    Q = te.compute((9, 6), lambda i, j: P[i, j] + P[i, 5 - j], name="Q")
    R = te.compute((9, 6), lambda i, j: Q[i, j] - 1, name="R")
    C = te.compute((9, 6), lambda i, j: R[i, j] * R[i, 5 - j], name="C")
    s = create_schedule(C.op)
    return SimpleNamespace(s=s, A=A, P=P, Q=Q, R=R, C=C, args=[A, C], i=C.op.axis[0])


def places(s):
    """Return where each stage is computed."""
    found = {}
    for stage in s.state.stages:
        at = stage.attachment
        found[stage.name] = f"{at.stage}.{at.axis.name}" if hasattr(at, "axis") else ""
    return found


def test_a_group_is_computed_where_it_is_needed(stages, nest, golden, computes):
    s = stages.s
    g = s.create_group(outputs=stages.R, inputs=stages.A)
    assert repr(g) == "StageGroup(R.group: P, Q, R)"
    assert [stage.name for stage in g.stages] == ["P", "Q", "R"]
    g.compute_at(s[stages.C], stages.i)
    golden("attached", nest(stages))
    computes(s)
    assert verify(s, stages.args)


def test_making_a_group_changes_no_nest(stages, nest):
    before = nest(stages)
    stages.s.create_group([stages.R], [stages.A])
    assert nest(stages) == before


@pytest.mark.parametrize(
    ("outputs", "inputs", "include", "members"),
    [
        ("R", "A", False, ["P", "Q", "R"]),
        ("R", "", False, ["P", "Q", "R"]),
        ("R", "P", False, ["Q", "R"]),
        ("R", "P", True, ["P", "Q", "R"]),
        ("R", "AQ", False, ["R"]),
        ("RQ", "P", False, ["Q", "R"]),
        ("C", "Q", False, ["R", "C"]),
    ],
)
def test_what_is_in_a_group(stages, outputs, inputs, include, members):
    ends = ([getattr(stages, name) for name in names] for names in (outputs, inputs))
    g = stages.s.create_group(*ends, include_inputs=include)
    assert [stage.name for stage in g.stages] == members


def test_stages_are_attached_to_each_other_in_it(stages, computes):
    s = stages.s
    g = s.create_group([stages.R], [stages.A])
    s[stages.Q].compute_at(s[stages.R], stages.R.op.axis[0])
    s[stages.P].compute_inline()
    g.compute_at(s[stages.C], stages.i)
    assert places(s) == {"A": "", "P": "", "Q": "R.i", "R": "C.i", "C": ""}
    s[stages.P].compute_root()
    assert places(s)["P"] == "C.i", "a stage of the group stands where the group is"
    s[stages.Q].compute_root()
    assert places(s)["Q"] == "C.i"
    computes(s)
    g.compute_root()
    assert set(places(s).values()) == {""}
    computes(s)


@pytest.mark.parametrize("kind", ["cache_read", "cache_write", "rfactor"])
def test_copies_of_its_stages_belong_to_it(stages, computes, kind):
    s = stages.s
    if kind == "rfactor":
        k = te.reduce_axis((0, 6), name="k")
        R = te.compute((9, 6), lambda i, j: te.sum(stages.Q[i, k], axis=k), name="R")
        C = te.compute((9, 6), lambda i, j: R[i, j] + 1, name="C")
        s, stages.R, stages.C, stages.i = create_schedule(C.op), R, C, C.op.axis[0]
    g = s.create_group([stages.R], [stages.A])
    g.compute_at(s[stages.C], stages.i)
    made = {
        "cache_read": lambda: s.cache_read(stages.Q, "local", [stages.R]),
        "cache_write": lambda: s.cache_write(stages.Q, "local"),
        "rfactor": lambda: s.rfactor(stages.R, s[stages.R].op.reduce_axis[0]),
    }[kind]()
    assert s[made].name in [stage.name for stage in g.stages]
    assert places(s)[s[made].name] == "C.i"
    computes(s)
    g.compute_root()
    computes(s)


def test_it_follows_its_loop(stages, computes):
    s = stages.s
    g = s.create_group([stages.R], [stages.A])
    g.compute_at(s[stages.C], stages.i)
    copy = s.cache_write(stages.C, "local")
    assert places(s)["Q"] == "C.local.i.c"
    s[stages.P].compute_root()
    assert places(s)["P"] == "C.local.i.c"
    s[copy].split(s[copy].op.axis[0], 4)
    computes(s)
    computes(s.normalize())


def test_a_group_of_symbolic_shapes():
    n = te.var("n")
    A = te.placeholder((n, 4), "int32", name="A")
    P = te.compute((n, 4), lambda i, j: A[i, j] * 2, name="P")
    Q = te.compute((n, 4), lambda i, j: P[i, 3 - j] + 1, name="Q")
    C = te.compute((n, 4), lambda i, j: Q[i, j] + Q[i, 3 - j], name="C")
    s = create_schedule(C.op)
    s.create_group([Q], [A]).compute_at(s[C], C.op.axis[0])
    assert verify(s, [A, C])


def test_it_is_written_and_replayed(stages):
    s = stages.s
    g = s.create_group([stages.R], [stages.P], include_inputs=True)
    g.compute_at(s[stages.C], stages.i)
    g.compute_root()
    code = s.trace.to_python()
    assert "R_group = s.create_group([R], [P], include_inputs=True)\n" in code
    assert "R_group.compute_at(s[C], C_i)\nR_group.compute_root()\n" in code
    again = create_schedule(stages.C.op)
    Trace.from_json(s.trace.to_json()).replay(again)
    assert again.state.id == s.state.id


def test_it_is_exported_with_what_follows(stages):
    s = stages.s
    s.create_group([stages.R], [stages.A]).compute_at(s[stages.C], stages.i)
    s[stages.P].transform_layout(lambda i, j: [i, te.AXIS_SEPARATOR, j])
    code = python_text(saved.Saved(s, tuple(stages.args)))
    assert "R_group = s.create_group([R], [A])\nR_group.compute_at(s[C], C_i)\n" in code
    assert "s[P].transform_layout(lambda i, j: [i, te.AXIS_SEPARATOR, j])\n" in code
    again = saved.from_json(saved.to_json(saved.Saved(s, tuple(stages.args))))
    assert [step.primitive for step in again.schedule.trace.steps] == [
        "create_group", "compute_group_at", "transform_layout",
    ]  # fmt: skip


def test_moves_and_verdicts(stages):
    s = stages.s
    assert s.can("create_group", stages.R, [stages.R], [stages.A])
    assert isinstance(s.can("compute_group_root", stages.R), Illegal)
    names = [move.primitive for move in s.legal_moves(stages.R)]
    assert "create_group" in names
    assert not {"compute_group_at", "compute_group_root"} & set(names)
    g = s.create_group([stages.R], [stages.A])
    names = [move.primitive for move in s.legal_moves(stages.R)]
    assert names.count("compute_group_at") == 2
    assert "compute_group_root" in names
    assert s.can("compute_group_at", g, s[stages.C], stages.i) == Pending("C.i must stay a loop")


# -- refusals -------------------------------------------------------------------------------------


def test_groups_cannot_overlap(stages, refusal):
    s = stages.s
    s.create_group([stages.Q], [stages.A])
    assert refusal(s.create_group, [stages.R], [stages.P]) == (
        "create_group R: Q is in the group Q.group already\n"
        "  hint      groups cannot overlap: the inputs say where one ends"
    )
    assert s.create_group([stages.R], [stages.Q]).name == "R.group"


def test_ends_that_are_none(stages, refusal):
    s = stages.s
    assert refusal(s.create_group, [stages.P], [stages.Q]) == (
        "create_group P: Q is not read on the way to P"
    )
    assert refusal(s.create_group, [stages.Q], [stages.Q]) == (
        "create_group Q: no stage is computed between the inputs and the outputs"
    )
    assert refusal(s.create_group, [], [stages.Q]) == (
        "create_group: no output is given\n  expected  [C], a list of tensors"
    )
    other = te.placeholder((3,), name="other")
    assert "no stage of this schedule" in refusal(s.create_group, [stages.Q], other)


def test_a_stage_that_is_attached_outside(stages, refusal):
    s = stages.s
    s[stages.Q].compute_at(s[stages.C], stages.i)
    assert refusal(s.create_group, [stages.Q], [stages.A]) == (
        "create_group Q: Q is computed outside the group\n"
        "  got       it is attached at C.i\n"
        "  hint      call s[Q].compute_root() first, and attach the group there"
    )


def test_a_stage_cannot_leave_its_group(stages, refusal):
    s = stages.s
    s.create_group([stages.Q], [stages.A])
    assert refusal(s[stages.P].compute_at, s[stages.C], stages.i) == (
        "compute_at P at C.i: P would leave its group\n"
        "  got       C is not in Q.group: P, Q\n"
        "  hint      attach the group there, or the stage at a loop of the group"
    )
    s[stages.R].compute_at(s[stages.C], stages.i)  # it is in none


def test_places_that_a_group_cannot_have(stages, refusal):
    s = stages.s
    g = s.create_group([stages.Q], [stages.A])
    assert refusal(g.compute_at, s[stages.Q], stages.Q.op.axis[0]) == (
        "compute_group_at P at Q.i: Q is in the group Q.group itself"
    )
    assert refusal(g.compute_at, stages.C, stages.i).startswith(
        "compute_at Q.group: not a stage of this schedule\n"
    )
    assert "the axis does not belong to stage C" in refusal(
        g.compute_at, s[stages.C], stages.R.op.axis[0]
    )
    D = te.compute((9, 6), lambda i, j: stages.C[i, j] + stages.P[i, j], name="D")
    s = create_schedule(D.op)
    g = s.create_group([stages.Q], [stages.A])
    text = refusal(g.compute_at, s[stages.C], stages.i)
    assert "D reads P outside the loop C.i, where P is computed" in text


def test_a_group_with_an_output_stays(stages, refusal):
    s = create_schedule([stages.C.op, stages.Q.op])
    g = s.create_group([stages.Q], [stages.A])
    assert "Q is an output of the schedule" in refusal(g.compute_at, s[stages.C], stages.i)


def test_a_group_of_an_undone_step(stages):
    s = stages.s
    g = s.create_group([stages.Q], [stages.A])
    s.undo()
    with pytest.raises(ScheduleError) as caught:
        g.compute_root()
    assert str(caught.value) == (
        "group Q.group: made by an undone step\n  hint      s.redo() brings it back"
    )
    s.redo()
    g.compute_root()


def test_a_stage_without_a_group(stages, refusal):
    s = stages.s
    with pytest.raises(ScheduleError) as caught:
        s.apply("compute_group_root", "Q", {})
    assert str(caught.value) == (
        "compute_group_root Q: Q is in no group\n"
        "  hint      make one: s.create_group([outputs], [inputs])"
    )
