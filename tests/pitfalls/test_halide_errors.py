"""Halide's error tests that apply here: each is refused with a reason, or simply right."""

import re
from pathlib import Path

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.codegen import emit
from dlcompiler.pipeline import build, lower, races
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve
from tests.pitfalls.index import HALIDE_NOT_HERE, HALIDE_TESTED


def test_the_index_names_every_test():
    text = Path(__file__).read_text(encoding="utf-8")
    named = re.findall(r"Halide (\w+(?:, \w+)*):", text)
    assert sorted(name for names in named for name in names.split(", ")) == list(HALIDE_TESTED)
    assert not set(HALIDE_TESTED) & set(HALIDE_NOT_HERE)


@pytest.fixture
def vector():
    A = te.placeholder((13,), "int32", name="A")
    C = te.compute((13,), lambda i: A[i] * 2, name="C")
    return create_schedule(C.op), A, C


def _sums(where=False):
    A = te.placeholder((5, 13), "int32", name="A")
    k = te.reduce_axis((0, 13), name="k")
    guard = {"where": k >= 3} if where else {}
    return te.compute((5,), lambda i: te.sum(A[i, k], axis=k, **guard), name="C")


@pytest.mark.parametrize("where", [False, True])
def test_parallel_update(refused, where):
    """Halide race_condition, rdom_where_races: a predicate does not make an update independent."""
    C = _sums(where)
    s = create_schedule(C.op)
    assert "cannot be parallel" in refused(s[C].parallel, C.op.reduce_axis[0])


def test_tails_of_parallel_and_vectorized_loops(computes, vector):
    """Halide round_up_and_blend_race, shift_inwards_and_blend_race: no two tiles share elements."""
    s, A, C = vector
    outer, inner = s[C].split(C.op.axis[0], factor=4)
    s[C].parallel(outer)
    s[C].vectorize(inner)
    assert "all safe" in str(races(s, [A, C]))
    computes(s)


def test_order_that_does_not_matter(computes):
    """Halide rvar_fuse_reorder: legal where the reducer is associative and commutative."""
    A = te.placeholder((3, 4, 5), "int32", name="A")
    k, q = te.reduce_axis((0, 4), name="k"), te.reduce_axis((0, 5), name="q")
    C = te.compute((3,), lambda i: te.max(A[i, k, q], axis=[k, q]), name="C")
    s = create_schedule(C.op)
    s[C].reorder(q, k)
    fused = s[C].fuse(q, k)
    outer, inner = s[C].split(fused, factor=3)
    s[C].reorder(inner, outer)
    computes(s)


def test_order_that_matters(refused):
    """Halide bad_rvar_order, rfactor_inner_dim_non_commutative: refused with a witness."""
    last = te.comm_reducer(
        lambda x, y: (te.select(y[1] > 0, y[0], x[0]), te.maximum(x[1], y[1])),
        lambda a, b: (te.const(0, a), te.const(0, b)),
        name="last",
    )
    A = te.placeholder((3, 4, 5), "int32", name="A")
    k, q = te.reduce_axis((0, 4), name="k"), te.reduce_axis((0, 5), name="q")
    C, _ = te.compute((3,), lambda i: last((A[i, k, q], A[i, k, q]), axis=[k, q]), name="C")
    s = create_schedule(C.op)
    for text in (refused(s[C].reorder, q, k), refused(s.rfactor, C, q)):
        assert "the reducer last of C is not commutative: another order gives another" in text


def test_nested_splits_do_not_repeat_iterations(computes):
    """Halide split_inner_wrong_tail_strategy: a sum would count what two tiles share twice."""
    C = _sums()
    s = create_schedule(C.op)
    outer, inner = s[C].split(C.op.reduce_axis[0], factor=8)
    s[C].split(inner, factor=3)
    s[C].split(outer, nparts=4)
    computes(s)


@pytest.mark.parametrize("factor", [16, 40, 1000])
def test_vector_longer_than_the_loop(computes, vector, factor):
    """Halide vectorize_too_much: a factor beyond the extent is clipped to it."""
    s, _, C = vector
    _, inner = s[C].split(C.op.axis[0], factor=factor)
    s[C].vectorize(inner)
    computes(s)


@pytest.mark.parametrize("factor", [0, -4])
def test_vector_of_no_lanes(refused, vector, factor):
    """Halide vectorize_too_little: a factor below 1."""
    s, _, C = vector
    assert "factor must be at least 1" in refused(s[C].split, C.op.axis[0], factor=factor)


def test_vector_of_unknown_length(refused, vector):
    """Halide vectorize_dynamic: a factor that is no number when the schedule is made."""
    s, A, C = vector
    text = refused(s[C].split, C.op.axis[0], factor=A[0])
    assert "factor must be an integer" in text


def test_attachment_that_is_no_consumer_or_no_loop(refused, vector):
    """Halide bad_compute_at, undefined_loop_level: refused where it is called."""
    A = te.placeholder((8,), name="A")
    P = te.compute((8,), lambda i: A[i] + 1.0, name="P")
    Q = te.compute((8,), lambda i: A[i] + 2.0, name="Q")
    C = te.compute((8,), lambda i: P[i] * Q[i], name="C")
    s = create_schedule(C.op)
    assert "Q does not read P" in refused(s[P].compute_at, s[Q], Q.op.axis[0])
    s[C].split(C.op.axis[0], factor=2)
    assert "it was split into i.outer and i.inner" in refused(s[P].compute_at, s[C], C.op.axis[0])
    assert "not an axis" in refused(s[P].compute_at, s[C], None)


def test_array_smaller_than_the_shape(refused, vector):
    """Halide bad_bound: what is given must hold all that is computed."""
    s, A, C = vector
    kernel = build(s, [A, C])
    text = refused(kernel, np.zeros(13, "int32"), np.zeros(12, "int32"))
    assert "argument 2 (C): wrong shape" in text


def test_one_axis_twice(refused, vector):
    """Halide fuse_same_var: each loop may be named once."""
    s, _, C = vector
    i = C.op.axis[0]
    assert "each axis may be given once" in refused(s[C].fuse, i, i)
    assert "each axis may be given once" in refused(s[C].reorder, i, i)


def test_names_of_split_loops_stay_apart(computes):
    """Halide split_same_var_names: equal names make no equal loops."""
    A = te.placeholder((6, 6), name="A")
    C = te.compute((6, 6), lambda i, j: A[i, j] + 1.0, name="C")
    s = create_schedule(C.op)
    fused = s[C].fuse(*C.op.axis)
    outer, inner = s[C].split(fused, factor=9)
    s[C].split(outer, factor=3)
    s[C].split(inner, factor=2)
    names = [str(s[C].state.paths[leaf]) for leaf in s[C].leaf_iter_vars]
    assert len(set(names)) == len(names) == 4
    computes(s)


def test_one_reduction_axis_twice(refused):
    """Halide reused_args: the same axis given twice."""
    A = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    text = refused(te.compute, (), lambda: te.sum(A[k, k], axis=[k, k]), name="C")
    assert "each axis must be given once" in text


def test_literals_that_do_not_fit(refused):
    """Halide overflow_during_constant_folding: refused, or wrapped as the types say."""
    assert "does not fit int32" in refused(te.const, 2**31, "int32")
    top = te.const(2**31 - 1, "int32")
    C = te.compute((1,), lambda i: top + te.const(1, "int32"), name="C")
    kernel = build(create_schedule(C.op), [C])
    out = np.zeros(1, "int32")
    kernel(out)
    assert out[0] == te.evaluate(C, [])[0] == -(2**31)


def test_buffers_beyond_two_gigabytes(refused):
    """Halide buffer_larger_than_two_gigs: offsets are 64 bits wide; absurd shapes are refused."""
    n = 2**17
    A = te.placeholder((n, n), "float32", name="A")
    C = te.compute((n, n), lambda i, j: A[n - 1 - i, j] + 1.0, name="C")
    text = emit(lower(create_schedule(C.op), [A, C]), resolve("cpu")).text
    assert not re.search(r"mul nsw i32|getelementptr inbounds float, ptr %\S+, i32", text)
    assert "the tensor is too large" in refused(te.placeholder, (2**40, 2**40), name="B")


def test_reduction_beyond_its_tensor(refused):
    """Halide reduction_bounds: an axis longer than what it indexes."""
    A = te.placeholder((8,), name="A")
    k = te.reduce_axis((0, 9), name="k")
    text = refused(te.compute, (), lambda: te.sum(A[k], axis=k), name="C")
    assert "A[k] lies outside A at k=8" in text


def test_things_that_are_not_there(refused, vector):
    """Halide undefined_func_compile, undefined_pipeline_compile: no operation, no schedule."""
    assert "not an operation" in refused(create_schedule, None)
    assert "no operation given" in refused(create_schedule, [])
    s, A, C = vector
    assert "not a schedule" in refused(lower, None, [A, C])
    assert "the arguments lack A" in refused(lower, s, [C])


def test_axis_of_another_computation(refused):
    """Halide undefined_rdom_dimension: an axis that the computation does not have."""
    A = te.placeholder((8,), name="A")
    k = te.reduce_axis((0, 8), name="k")
    text = refused(te.compute, (8,), lambda i: A[k], name="C")
    assert "the axis k does not belong to this computation" in text
