"""Steps that change nothing: they are told from those that change the program or an annotation."""

import pytest

from dlcompiler import te
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.moves.unchanged import RULES, why_unchanged
from dlcompiler.schedule.primitives import REGISTRY

ALWAYS = frozenset(
    {"cache_read", "cache_write", "create_group", "env_threads", "rfactor", "set_store_predicate",
     "tensorize", "transform_layout"}
)  # fmt: skip
"""Primitives of which every legal step makes a stage or a group, or changes the program."""


def why(s, stage, name, **args):
    return why_unchanged(s.state, s.state.stage(stage), name, args)


@pytest.fixture
def thin():
    """Two stages, with loops of 1, 2 and 8 iterations."""
    A = te.placeholder((1, 2, 8), name="A")
    P = te.compute((1, 2, 8), lambda i, j, k: A[i, j, k] + 1.0, name="P")
    C = te.compute((1, 2, 8), lambda i, j, k: P[i, j, k] * 2.0, name="C")
    return create_schedule(C.op), A, P, C


def test_each_primitive_is_known():
    assert set(RULES) | ALWAYS == set(REGISTRY)


@pytest.mark.parametrize("number", [1, 2, 3, 8])
@pytest.mark.parametrize("parameter", ["factor", "nparts"])
def test_a_loop_of_one_iteration_is_not_split(thin, parameter, number):
    s, _, _, C = thin
    i = C.op.axis[0]
    assert why(s, "C", "split", axis=i, **{parameter: number}) == "C.i has one iteration"


@pytest.mark.parametrize(
    ("number", "changes"),
    [(1, False), (2, True), (3, True), (8, False), (9, False), (10**24, False)],
)
@pytest.mark.parametrize("parameter", ["factor", "nparts"])
def test_a_split_that_leaves_one_loop_changes_nothing(thin, parameter, number, changes):
    s, _, _, C = thin
    reason = why(s, "C", "split", axis=C.op.axis[2], **{parameter: number})
    assert bool(reason) is not changes
    assert changes or reason == (
        "one of both loops would run once, and the other 8 times, as C.k does now"
    )


@pytest.mark.parametrize("name", ["vectorize", "unroll", "parallel"])
def test_an_annotation_needs_several_iterations(thin, name):
    s, _, _, C = thin
    assert why(s, "C", name, axis=C.op.axis[0]) == "C.i has one iteration"
    assert why(s, "C", name, axis=C.op.axis[2]) == ""
    getattr(s[C], name)(C.op.axis[2])
    kind = {"vectorize": "vectorized", "unroll": "unrolled"}.get(name, name)
    assert why(s, "C", name, axis=C.op.axis[2]) == f"C.k is {kind} already"


def test_the_order_of_loops_that_run_once_does_not_matter(thin):
    s, _, P, C = thin
    i, j, k = C.op.axis
    assert why(s, "C", "reorder", axes=(j, i)) == "C.i has one iteration"
    assert why(s, "C", "fuse", axes=(i, j)) == "C.i has one iteration"
    assert why(s, "C", "reorder", axes=(k, j)) == why(s, "C", "fuse", axes=(j, k)) == ""
    assert why(s, "C", "reorder", axes=(i, k)) == "the loops are in this order already"
    s[P].compute_at(s[C], i)
    assert why(s, "C", "reorder", axes=(j, i)) == ""


def test_a_tile_of_loops_that_stay_whole(thin):
    s, _, _, C = thin
    i, j, k = C.op.axis
    whole = why(s, "C", "tile", x=i, y=j, x_factor=1, y_factor=2)
    assert whole == "C.i and C.j would stay whole"
    assert why(s, "C", "tile", x=j, y=k, x_factor=1, y_factor=8) == "C.j and C.k would stay whole"
    assert why(s, "C", "tile", x=j, y=k, x_factor=2, y_factor=1) == ""  # k.outer is around j.inner
    assert why(s, "C", "tile", x=i, y=k, x_factor=1, y_factor=4) == ""


def test_extents_that_depend_on_symbols_may_change_anything():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    for name, args in (("split", {"factor": 1}), ("unroll", {}), ("vectorize", {})):
        assert why(s, "B", name, axis=B.op.axis[0], **args) == ""
