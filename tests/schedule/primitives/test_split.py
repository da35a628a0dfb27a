"""split: the nests it makes, and what it refuses."""

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.schedule import create_schedule


def test_factor_is_the_inner_extent(matmul, nest, golden):
    outer, inner = matmul.s[matmul.C].split(matmul.i, factor=2)
    assert (outer.extent, inner.extent) == (2, 2)
    golden("factor", nest(matmul))


def test_nparts_is_the_outer_extent(matmul, nest, golden):
    outer, inner = matmul.s[matmul.C].split(matmul.j, nparts=3)
    assert (outer.extent, inner.extent) == (3, 2)
    assert str(matmul.s.trace) == "split C j nparts=3"
    golden("nparts", nest(matmul))


def test_a_reduction_axis_splits_into_reduction_axes(matmul, nest, golden):
    outer, inner = matmul.s[matmul.C].split(matmul.k, 4)
    assert outer.kind == inner.kind == "reduce"
    golden("reduction", nest(matmul))


def test_what_does_not_divide_gets_a_predicate(matmul, nest, golden):
    matmul.s[matmul.C].split(matmul.j, 4)
    matmul.s[matmul.C].split(matmul.k, nparts=3)
    golden("not_dividing", nest(matmul))


def test_nested_splits_that_do_not_divide_never_repeat_an_iteration(matmul, nest, golden):
    _, inner = matmul.s[matmul.C].split(matmul.j, 4)
    matmul.s[matmul.C].split(inner, 3)
    golden("nested_not_dividing", nest(matmul))


@pytest.mark.parametrize("factor", [6, 7, 2**70, 1e300])
def test_a_factor_beyond_the_extent_is_clipped(matmul, factor):
    outer, inner = matmul.s[matmul.C].split(matmul.j, factor)
    assert (outer.extent, inner.extent) == (1, 6)


def test_nparts_beyond_the_extent_is_clipped(matmul):
    outer, inner = matmul.s[matmul.C].split(matmul.j, nparts=10**400)
    assert (outer.extent, inner.extent) == (6, 1)


@pytest.mark.parametrize("factor", [2.0, np.int64(2), np.float32(2), np.uint8(2)])
def test_whole_numbers_of_other_types_are_taken(matmul, factor):
    outer, _ = matmul.s[matmul.C].split(matmul.j, factor)
    assert outer.extent == 3
    assert str(matmul.s.trace) == "split C j 2"


@pytest.mark.parametrize("factor", [0, -3])
def test_refuses_less_than_one(matmul, refusal, factor):
    assert refusal(matmul.s[matmul.C].split, matmul.i, factor) == (
        f"split C.i: factor must be at least 1\n  got       {factor}"
    )


@pytest.mark.parametrize(
    ("factor", "got"),
    [
        (True, "True (bool)"),
        (2.5, "2.5 (float)"),
        (float("nan"), "nan (float)"),
        (float("inf"), "inf (float)"),
        ("4", "'4' (str)"),
        ([4], "[4] (list)"),
        (np.bool_(True), "np.True_ (bool)"),
    ],
)
def test_refuses_a_factor_that_is_no_integer(matmul, refusal, factor, got):
    assert refusal(matmul.s[matmul.C].split, matmul.i, factor) == (
        f"split C.i: factor must be an integer\n  got       {got}"
    )


def test_refuses_an_expression_as_a_factor(matmul, refusal):
    assert refusal(matmul.s[matmul.C].split, matmul.i, matmul.A[0, 0]) == (
        "split C.i: factor must be an integer\n  got       TensorLoad(A[0, 0]) (TensorLoad)"
    )


def test_refuses_bad_nparts_by_its_name(matmul, refusal):
    assert refusal(matmul.s[matmul.C].split, matmul.i, nparts=0) == (
        "split C.i: nparts must be at least 1\n  got       0"
    )


@pytest.mark.parametrize(("factor", "nparts"), [(None, None), (2, 2)])
def test_refuses_both_or_neither(matmul, refusal, factor, nparts):
    assert refusal(matmul.s[matmul.C].split, matmul.i, factor, nparts) == (
        "split C.i: exactly one of factor and nparts must be given\n"
        f"  got       factor={factor}, nparts={nparts}\n"
        "  hint      factor is the extent of the inner loop, nparts that of the outer one"
    )


def test_refuses_an_axis_that_was_split(matmul, refusal):
    matmul.s[matmul.C].split(matmul.i, 2)
    assert refusal(matmul.s[matmul.C].split, matmul.i, 2) == (
        "split C.i: it was split into i.outer and i.inner\n"
        "  got       axis i of stage C\n"
        "  hint      the loops are now: i.outer, i.inner, j, k"
    )


def test_refuses_an_axis_that_was_fused(matmul, refusal):
    matmul.s[matmul.C].fuse(matmul.i, matmul.j)
    assert refusal(matmul.s[matmul.C].split, matmul.j, 2) == (
        "split C.j: it was fused into i.j.fused\n"
        "  got       axis j of stage C\n"
        "  hint      the loops are now: i.j.fused, k"
    )


def test_refuses_an_axis_of_another_stage(chain, refusal):
    assert refusal(chain.s[chain.D].split, chain.Q.op.axis[0], 2) == (
        "split D.i: the axis does not belong to stage D\n"
        "  got       axis i of stage Q\n"
        "  hint      the loops of D are: i"
    )


def test_refuses_an_axis_of_another_expression(matmul, chain, refusal):
    assert refusal(matmul.s[matmul.C].split, chain.D.op.axis[0], 2) == (
        "split C.i: the axis does not belong to stage C\n"
        "  got       axis i of another expression\n"
        "  hint      the loops of C are: i, j, k"
    )


def test_refuses_an_axis_of_another_schedule(matmul, refusal):
    other = create_schedule(matmul.C.op)
    outer, _ = other[matmul.C].split(matmul.i, 2)
    assert refusal(matmul.s[matmul.C].split, outer, 2) == (
        "split C.i.outer: the axis belongs to another schedule\n"
        "  got       axis i.outer\n"
        "  hint      take the axes from this schedule's own stages and steps"
    )


def test_refuses_an_axis_of_an_undone_step_until_it_is_redone(matmul, refusal):
    outer, _ = matmul.s[matmul.C].split(matmul.i, 2)
    matmul.s.undo()
    assert refusal(matmul.s[matmul.C].split, outer, 2) == (
        "split C.i.outer: the axis was made by an undone step\n"
        "  got       axis i.outer, made by: split C i 2\n"
        "  hint      s.redo() brings it back"
    )
    matmul.s.redo()
    matmul.s[matmul.C].split(outer, 2)


def test_names_the_state_of_an_axis_that_redo_does_not_reach(matmul, refusal):
    outer, _ = matmul.s[matmul.C].split(matmul.i, 2)
    id = matmul.s.state.id
    matmul.s.undo()
    matmul.s[matmul.C].unroll(matmul.i)
    assert refusal(matmul.s[matmul.C].split, outer, 2) == (
        "split C.i.outer: the axis was made by an undone step\n"
        "  got       axis i.outer, made by: split C i 2\n"
        f"  hint      s.jump('{id[:8]}') brings it back"
    )
    matmul.s.jump(id[:8])
    matmul.s[matmul.C].split(outer, 2)


@pytest.mark.parametrize(
    ("axis", "got"), [("i", "'i' (str)"), (None, "None (NoneType)"), (3, "3 (int)")]
)
def test_refuses_what_is_not_an_axis(matmul, refusal, axis, got):
    assert refusal(matmul.s[matmul.C].split, axis, 2) == (
        f"split C: not an axis\n  got       {got}\n  hint      pass one of s[C].leaf_iter_vars"
    )


def test_refuses_the_variable_of_an_axis(matmul, refusal):
    assert refusal(matmul.s[matmul.C].split, matmul.i.var, 2) == (
        "split C: not an axis\n  got       Var(i) (Var)\n"
        "  hint      pass one of s[C].leaf_iter_vars"
    )


@pytest.mark.parametrize("kind", ["vectorized", "parallel", "unrolled"])
def test_refuses_a_loop_that_would_lose_its_kind(matmul, refusal, kind):
    stage = matmul.s[matmul.C]
    {"vectorized": stage.vectorize, "parallel": stage.parallel, "unrolled": stage.unroll}[kind](
        matmul.i
    )
    assert refusal(stage.split, matmul.i, 2) == (
        f"split C.i: the loop is {kind} already, and would lose that\n"
        f"  got       C.i, {kind}\n"
        f"  hint      undo that step, and make the new loop {kind} afterwards"
    )


def test_refuses_an_input(matmul, refusal):
    assert refusal(matmul.s[matmul.A].split, matmul.i, 2) == (
        "split A.i: A is an input: it has no loops"
    )


def test_refuses_an_inlined_stage(chain, refusal):
    chain.s[chain.Q].compute_inline()
    assert refusal(chain.s[chain.Q].split, chain.Q.op.axis[0], 2) == (
        "split Q.i: Q is inlined: it has no loops of its own\n"
        "  hint      call s[Q].compute_root() first"
    )


def test_refuses_more_loops_than_passes_can_walk(matmul, refusal):
    axis = matmul.i
    for _ in range(97):
        axis, _ = matmul.s[matmul.C].split(axis, 1)
    assert refusal(matmul.s[matmul.C].split, axis, 1).split(": ", 1)[1] == (
        "C would be computed inside 101 loops\n"
        "  hint      fuse loops or attach it further out; at most 100 loops"
    )


class Knob:
    """Something that stands for a number, as the value of a knob."""

    def __index__(self):
        return 3


@pytest.mark.parametrize("factor", [3, 3.0, np.int64(3), te.const(3), Knob()])
def test_whatever_stands_for_a_whole_number_is_a_factor(matmul, factor):
    matmul.s[matmul.C].split(matmul.j, factor)
    assert matmul.s.trace.steps[0].args == {"axis": "j", "factor": 3}


@pytest.mark.parametrize("sign", [1, -1])
def test_refuses_a_factor_that_a_trace_cannot_print(matmul, refusal, sign):
    """A trace holds the number as text, which Python refuses to make of thousands of digits."""
    text = refusal(matmul.s[matmul.C].split, matmul.i, factor=sign * 10**5000)
    assert text == (
        "split C.i: factor is out of range\n"
        "  got       an integer of 16610 bits\n"
        "  expected  ±10^4000 at most"
    )
