"""`moves`: finite, each illegal one with its reason, each legal one applicable."""

import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError
from dlcompiler.schedule import Illegal, create_schedule
from dlcompiler.schedule.moves import divisors, moves_of


def apply(schedule, move):
    """Apply a move with the first suggested value of each parameter."""
    chosen = {d.parameter: (d.suggested or (2,))[0] for d in move.domains}
    return schedule.apply(move.primitive, move.stage, {**move.args, **chosen})


def test_the_moves_of_a_stage(matmul, golden):
    golden("matmul", "\n".join(repr(move) for move in matmul.s.moves(matmul.C)))


def test_every_stage_by_default(chain):
    assert {move.stage for move in chain.s.moves()} == {"A", "P", "Q", "D"}
    assert {move.primitive for move in chain.s.moves(chain.A)} == {"cache_read"}


@pytest.mark.parametrize("key", ["stage", "tensor", "operation"])
def test_a_stage_is_named_by_its_handle_or_tensor(chain, key):
    value = {"stage": chain.s[chain.Q], "tensor": chain.Q, "operation": chain.Q.op}[key]
    assert {move.stage for move in chain.s.moves(value)} == {"Q"}


def states(expression):
    """Yield schedules in different states."""
    s = expression.s
    yield s
    for move in s.legal_moves():
        apply(s, move)
        yield s
        s.undo()


@pytest.mark.parametrize("name", ["matmul", "chain"])
def test_verdicts_are_true_and_explained(request, name):
    for s in states(request.getfixturevalue(name)):
        before = s.state
        for move in s.moves():
            if move.verdict:
                apply(s, move)
                s.undo()
                continue
            assert isinstance(move.verdict, Illegal)
            assert move.verdict.kind in ("structural", "semantic", "limit")
            assert move.verdict.reason
            with pytest.raises(ScheduleError, match=r"\w"):
                apply(s, move)
        assert s.state is before


def test_legal_moves_are_those_with_a_verdict_that_holds(matmul):
    legal = matmul.s.legal_moves(matmul.C)
    assert [repr(move) for move in legal] == [
        repr(move) for move in matmul.s.moves(matmul.C) if move.verdict
    ]


def test_no_stage_is_left_out_while_an_obligation_is_open(chain):
    d = chain.D.op.axis[0]
    chain.s[chain.Q].compute_at(chain.s[chain.D], d)
    chain.s[chain.D].split(d, 4)
    assert {move.stage for move in chain.s.moves()} == {"A", "P", "Q", "D"}


@pytest.mark.parametrize(
    ("extent", "expected"),
    [
        (1, ()),
        (2, ()),
        (3, (2,)),
        (4, (2,)),
        (7, (2, 4)),
        (12, (2, 3, 4, 6)),
        (36, (2, 3, 4, 6, 9, 12, 18)),
        (0, ()),
    ],
)
def test_divisors(extent, expected):
    assert divisors(extent) == expected


def test_huge_extents_have_finite_suggestions():
    A = te.placeholder((2**40,), name="A")
    C = te.compute((2**40,), lambda i: A[i] + 1.0, name="C")
    s = create_schedule(C.op)
    assert all(move.verdict or move.verdict.reason for move in s.moves())
    assert divisors(999_999_937) == (2, 4, 8)


def test_only_wanted_moves_are_checked(monkeypatch):
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j] + 1.0, name="B")
    s = create_schedule(B.op)
    checked = []
    attempt = s.attempt
    monkeypatch.setattr(s, "attempt", lambda *a: checked.append(a[0]) or attempt(*a))
    found = list(moves_of(s, "B", lambda name, args: name == "unroll"))
    assert [move.targets for move in found] == [("B.i",), ("B.j",)]
    assert checked == ["unroll", "unroll"]
