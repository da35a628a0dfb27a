"""Reduction axes that do not start at 0: comparing them with `==` builds an expression."""

import pytest

from dlcompiler import te
from dlcompiler.schedule import create_schedule


@pytest.fixture
def shifted():
    A = te.placeholder((20, 20), name="A")
    k = te.reduce_axis((1, 5), name="k")
    r = te.reduce_axis((2, 8), name="r")
    C = te.compute((4,), lambda i: te.sum(A[i + k, r], axis=[k, r]), name="C")
    return create_schedule(C.op), C, k, r


def test_every_move_is_judged_after_a_reorder(shifted):
    s, C, k, r = shifted
    s[C].reorder(r, k)
    assert [repr(move) for move in s.moves(C) if move.primitive == "cache_write"] == [
        "Move(cache_write, C, global)",
        "Move(cache_write, C, local)",
    ]


def test_fuse_refuses_loops_that_are_not_neighbours(shifted, refusal):
    s, C, k, r = shifted
    s[C].reorder(r, C.op.axis[0], k)
    assert refusal(s[C].fuse, r, k) == (
        "fuse C (r, k): the loops are not adjacent\n"
        "  got       r, k\n"
        "  hint      the loops are: r, i, k; reorder them first"
    )


def test_fuse_takes_a_pair(shifted):
    s, C, k, r = shifted
    assert s[C].fuse(k, r).extent == 24
