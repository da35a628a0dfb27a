"""Stages that code from outside computes: what can be scheduled around them, and what not."""

import pytest

from dlcompiler import te
from dlcompiler.errors import DLCompilerError, ScheduleError
from dlcompiler.ir import call_packed
from dlcompiler.schedule import Trace, create_schedule
from dlcompiler.schedule.saved.document import Saved, to_json
from dlcompiler.schedule.verdict import Legal


def _expression(name="test.f"):
    A = te.placeholder((8, 3), name="A")
    P = te.compute((8, 3), lambda i, j: A[i, j] * 2.0, name="P")
    E = te.extern((8, 8), [P], lambda i, o: call_packed(name, *i, *o), name="E")
    D = te.compute((8, 8), lambda i, j: E[i, j] + P[i, 0], name="D")
    return A, P, E, D


@pytest.fixture
def program():
    A, P, E, D = _expression()
    return create_schedule(D.op), A, P, E, D


OUTSIDE = "E is computed by code from outside"


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (lambda s, P, E, D: s[E].split(D.op.axis[0], 2), OUTSIDE),
        (lambda s, P, E, D: s[E].parallel(D.op.axis[0]), OUTSIDE),
        (lambda s, P, E, D: s[E].vectorize(D.op.axis[0]), OUTSIDE),
        (lambda s, P, E, D: s[E].compute_at(s[D], D.op.axis[0]), OUTSIDE),
        (lambda s, P, E, D: s[E].compute_inline(), OUTSIDE),
        (lambda s, P, E, D: s[E].double_buffer(), OUTSIDE),
        (lambda s, P, E, D: s[E].storage_align(D.op.axis[0], 8, 0), OUTSIDE),
        (lambda s, P, E, D: s[E].rolling_buffer(), OUTSIDE),
        (lambda s, P, E, D: s.cache_write(E, "local"), OUTSIDE),
        (lambda s, P, E, D: s.rfactor(E, D.op.axis[0]), OUTSIDE),
        (lambda s, P, E, D: s[P].compute_at(s[E], D.op.axis[0]), "it has no loops here"),
        (lambda s, P, E, D: s[P].compute_at(s[D], D.op.axis[0]), "E reads P outside the loop D.i"),
        (lambda s, P, E, D: s[P].compute_inline(), "E, code from outside, reads P"),
        (lambda s, P, E, D: s[P].storage_align(P.op.axis[0], 8, 0), "reads P as it is"),
        (
            lambda s, P, E, D: s[P].transform_layout(lambda i, j: [j, i]),
            "it was written for rows that are side by side",
        ),
    ],
)
def test_what_is_refused(program, step, text):
    s, _, P, E, D = program
    before = s.state
    with pytest.raises(ScheduleError, match=text):
        step(s, P, E, D)
    assert s.state is before


def test_what_is_allowed(program):
    s, _, P, E, D = program
    cached = s.cache_read(P, "local", [E])
    copy = s.cache_read(E, "global", [D])
    s[copy].compute_at(s[D], D.op.axis[0])
    s[E].set_scope("local")
    s[E].compute_root()
    s[P].parallel(P.op.axis[0])
    assert s.state.find(E).op.inputs == (cached,)


def test_moves_and_trace(program):
    s, _, _, _, D = program
    own = [move for move in s.moves() if move.stage == "E" and isinstance(move.verdict, Legal)]
    assert {move.primitive for move in own} == {
        "cache_read", "compute_root", "create_group", "set_scope",
    }  # fmt: skip
    s[D].parallel(D.op.axis[0])
    fresh = create_schedule(_expression()[3].op)
    Trace.from_json(s.trace.to_json()).replay(fresh)
    assert fresh.state.id == s.state.id


def test_the_state_names_what_is_called():
    first = create_schedule(_expression()[3].op)
    other = create_schedule(_expression("test.g")[3].op)
    assert first.state.id != other.state.id


def test_a_schedule_with_it_cannot_be_saved(program):
    s, A, *_, D = program
    with pytest.raises(DLCompilerError, match=r"a tensor computed by te\.extern has no notation"):
        to_json(Saved(s, (A, D)))
