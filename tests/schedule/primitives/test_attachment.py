"""compute_at, compute_inline, compute_root: the nests they make, and what they refuse."""

import pytest

from dlcompiler import te
from dlcompiler.pipeline import lower
from dlcompiler.schedule import LEGAL, create_schedule

# -- compute_at -----------------------------------------------------------------------------------


def test_compute_at_computes_the_part_that_one_iteration_reads(chain, nest, golden):
    chain.s[chain.Q].compute_at(chain.s[chain.D], chain.D.op.axis[0])
    golden("compute_at", nest(chain))


def test_compute_at_of_a_stencil_computes_the_halo_too(chain, nest, golden):
    outer, _ = chain.s[chain.D].split(chain.D.op.axis[0], 4)
    chain.s[chain.Q].compute_at(chain.s[chain.D], outer)
    chain.s[chain.P].compute_at(chain.s[chain.D], outer)
    golden("compute_at_halo", nest(chain))


def test_compute_at_a_loop_of_an_attached_stage(chain, nest, golden):
    outer, _ = chain.s[chain.D].split(chain.D.op.axis[0], 4)
    chain.s[chain.Q].compute_at(chain.s[chain.D], outer)
    chain.s[chain.P].compute_at(chain.s[chain.Q], chain.Q.op.axis[0])
    golden("compute_at_chain", nest(chain))


def test_compute_at_a_reduction_loop(nest, golden):
    A = te.placeholder((4, 8), name="A")
    P = te.compute((4, 8), lambda i, j: A[i, j] * 2.0, name="P")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((4,), lambda i: te.sum(P[i, k], axis=k), name="C")
    s = create_schedule(C.op)
    s[P].compute_at(s[C], k)
    golden("compute_at_reduction", str(lower(s, [A, C], simple_mode=True)))


def test_compute_at_owes_that_the_loop_stays(chain, refusal):
    d = chain.D.op.axis[0]
    verdict = chain.s.can("compute_at", chain.s[chain.Q], chain.s[chain.D], d)
    assert verdict.obligation == "D.i must stay a loop"
    chain.s[chain.Q].compute_at(chain.s[chain.D], d)
    assert chain.s.obligations == ()

    _, inner = chain.s[chain.D].split(d, 4)
    text = (
        "Q is attached at D.i, which is no longer a loop: it will be computed at D.i.inner "
        "(attached by: compute_at Q D i)"
    )
    assert [str(item) for item in chain.s.obligations] == [text]
    lower(chain.s, chain.args)
    assert chain.s.can("unroll", inner) == LEGAL


def test_a_loop_that_was_split_and_fused_stands_for_its_inner_half(nest, golden, computes):
    A = te.placeholder((7, 5), name="A")
    P = te.compute((7, 5), lambda i, j: A[i, j] * 2.0, name="P")
    D = te.compute((7, 5), lambda i, j: P[i, j] + 1.0, name="D")
    s = create_schedule(D.op)
    i, j = D.op.axis
    s[P].compute_at(s[D], j)
    jo, _ = s[D].split(j, 3)
    s[D].fuse(i, jo)
    golden("settled", str(lower(s, [A, D], simple_mode=True)))
    assert "it will be computed at D.j.inner" in str(s.obligations[0])
    computes(s)


def test_an_outer_loop_that_was_fused_must_be_attached_again(refusal):
    A = te.placeholder((7, 5), name="A")
    P = te.compute((7, 5), lambda i, j: A[i, j] * 2.0, name="P")
    D = te.compute((7, 5), lambda i, j: P[i, j] + 1.0, name="D")
    s = create_schedule(D.op)
    s[P].compute_at(s[D], D.op.axis[0])
    verdict = s.can("fuse", *D.op.axis)
    broken = "P is attached at D.i, which is no longer a loop (attached by: compute_at P D i)"
    assert verdict.obligation == broken
    fused = s[D].fuse(*D.op.axis)
    assert [str(item) for item in s.obligations] == [broken]
    assert refusal(lower, s, [A, D], name="twice") == (
        f"lower twice: {broken}\n"
        "  hint      attach it again: s[P].compute_at(s[D], …), or compute_root()"
    )
    s[P].compute_at(s[D], fused)
    assert s.obligations == ()
    lower(s, [A, D])


def test_a_reader_may_be_attached_later(refusal, computes):
    A = te.placeholder((9,), name="A")
    P = te.compute((9,), lambda i: A[i] * 2.0, name="P")
    Q = te.compute((8,), lambda i: P[i] + P[i + 1], name="Q")
    D = te.compute((8,), lambda i: Q[i] + 1.0, name="D")
    s = create_schedule(D.op)
    outer, _ = s[D].split(D.op.axis[0], 4)
    text = (
        "P is computed at D.i.outer, and its reader Q is not there yet "
        "(attached by: compute_at P D i.outer)"
    )
    s[P].compute_at(s[D], outer)
    assert [str(item) for item in s.obligations] == [text]
    assert refusal(lower, s, [A, D]) == (
        f"lower main: {text}\n  hint      attach Q inside D.i.outer, or P further out"
    )
    s[Q].compute_at(s[D], outer)
    assert s.obligations == ()
    computes(s)


@pytest.mark.parametrize("dimension", [0, 1])
def test_at_a_vectorized_loop_it_is_computed_around_it(nest, golden, computes, dimension):
    A = te.placeholder((6, 8), name="A")
    P = te.compute((6, 8), lambda i, j: A[i, j] * 2.0, name="P")
    D = te.compute((6, 8), lambda i, j: P[i, j] + 1.0, name="D")
    s = create_schedule(D.op)
    s[D].vectorize(D.op.axis[dimension])
    s[P].compute_at(s[D], D.op.axis[1])
    place = "at D.i" if dimension else "in a loop nest of its own"
    assert f"it will be computed {place}" in str(s.obligations[0])
    golden(f"vectorized_{dimension}", str(lower(s, [A, D], simple_mode=True)))
    computes(s)


def test_the_same_step_owes_the_same_when_it_is_asked_again(chain):
    d = chain.D.op.axis[0]
    chain.s[chain.Q].compute_at(chain.s[chain.D], d)
    first = chain.s.can("split", d, 4)
    chain.s[chain.D].split(d, 4)
    chain.s.undo()
    assert chain.s.can("split", d, 4) == first


def test_compute_at_refuses_an_axis_that_is_no_loop(chain, refusal):
    d = chain.D.op.axis[0]
    chain.s[chain.D].split(d, 4)
    assert refusal(chain.s[chain.Q].compute_at, chain.s[chain.D], d) == (
        "compute_at Q at D.i: it was split into i.outer and i.inner\n"
        "  got       axis i of stage D\n"
        "  hint      the loops are now: i.outer, i.inner"
    )


def test_compute_at_refuses_a_stage_that_does_not_read(chain, refusal):
    assert refusal(chain.s[chain.Q].compute_at, chain.s[chain.P], chain.P.op.axis[0]) == (
        "compute_at Q at P.i: P does not read Q\n"
        "  got       the readers of Q are: D\n"
        "  hint      attach it at a loop of D"
    )


def test_compute_at_refuses_a_reader_outside_the_loop(refusal):
    A = te.placeholder((8,), name="A")
    P = te.compute((8,), lambda i: A[i] * 2.0, name="P")
    Q = te.compute((8,), lambda i: P[i] + 1.0, name="Q")
    R = te.compute((8,), lambda i: P[i] + Q[i], name="R")
    s = create_schedule([R.op, Q.op])
    assert refusal(s[P].compute_at, s[R], R.op.axis[0]) == (
        "compute_at P at R.i: Q reads P outside the loop R.i, where P is computed\n"
        "  because   P exists only during one iteration of R.i\n"
        "  hint      attach P further out, or Q inside R.i"
    )


def test_compute_at_refuses_a_reduction_loop_that_is_started_from_the_stage(refusal, computes):
    A = te.placeholder((4, 6), "int32", name="A")
    k = te.reduce_axis((0, 6), name="k")
    first = te.compute((4,), lambda i: A[i, 0] * 2, name="first")
    S = te.compute((4,), lambda i: te.sum(A[i, k], axis=k, init=first[i]), name="S")
    s = create_schedule(S.op)
    assert refusal(s[first].compute_at, s[S], k) == (
        "compute_at first at S.k: S starts from first outside the loop S.k, where first is "
        "computed\n"
        "  because   a reduction is initialised before its first reduction loop\n"
        "  hint      attach first at a loop outside the reduction"
    )
    s[first].compute_at(s[S], S.op.axis[0])
    assert "outside the loop S.i" in str(s.can("reorder", k, S.op.axis[0]))
    computes(s)


def test_compute_at_refuses_an_axis_of_another_stage(chain, refusal):
    assert refusal(chain.s[chain.P].compute_at, chain.s[chain.Q], chain.D.op.axis[0]) == (
        "compute_at P at Q.i: the axis does not belong to stage Q\n"
        "  got       axis i of stage D\n"
        "  hint      the loops of Q are: i"
    )


def test_compute_at_refuses_an_output(chain, refusal):
    assert refusal(chain.s[chain.D].compute_at, chain.s[chain.Q], chain.Q.op.axis[0]) == (
        "compute_at D at Q.i: D is an output of the schedule\n"
        "  because   all of it must be stored, exactly once\n"
        "  hint      compute the consumer inside D's loops instead"
    )


def test_compute_at_refuses_an_input(chain, refusal):
    assert refusal(chain.s[chain.A].compute_at, chain.s[chain.P], chain.P.op.axis[0]) == (
        "compute_at A at P.i: A is an input: it is not computed"
    )


def test_compute_at_refuses_itself(chain, refusal):
    assert refusal(chain.s[chain.Q].compute_at, chain.s[chain.Q], chain.Q.op.axis[0]) == (
        "compute_at Q at Q.i: a stage cannot be computed inside itself"
    )


def test_compute_at_refuses_hosts_without_loops(chain, refusal):
    assert refusal(chain.s[chain.P].compute_at, chain.s[chain.A], chain.Q.op.axis[0]) == (
        "compute_at P at A.i: A has no loops"
    )
    chain.s[chain.Q].compute_inline()
    assert refusal(chain.s[chain.P].compute_at, chain.s[chain.Q], chain.Q.op.axis[0]) == (
        "compute_at P at Q.i: Q has no loops"
    )


@pytest.mark.parametrize("parent", ["tensor", "text"])
def test_compute_at_refuses_what_is_no_stage(chain, refusal, parent):
    value = chain.D if parent == "tensor" else "D"
    assert refusal(chain.s[chain.Q].compute_at, value, chain.D.op.axis[0]) == (
        "compute_at Q: not a stage of this schedule\n"
        f"  got       {value!r}\n"
        "  expected  s[consumer]"
    )


def test_compute_at_refuses_a_stage_of_another_schedule(chain, refusal):
    other = create_schedule(chain.D.op)
    assert refusal(chain.s[chain.Q].compute_at, other[chain.D], chain.D.op.axis[0]) == (
        "compute_at Q: not a stage of this schedule\n"
        "  got       Stage(D: i)\n"
        "  expected  s[consumer]"
    )


# -- compute_inline -------------------------------------------------------------------------------


def test_compute_inline_substitutes(chain, nest, golden):
    chain.s[chain.P].compute_inline()
    chain.s[chain.Q].compute_inline()
    golden("compute_inline", nest(chain))


def test_compute_inline_into_a_reduction(golden):
    A = te.placeholder((4, 8), name="A")
    P = te.compute((8, 4), lambda i, j: A[j, i] * 2.0, name="P")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((4,), lambda i: te.sum(P[k, i], axis=k), name="C")
    s = create_schedule(C.op)
    s[P].compute_inline()
    golden("compute_inline_reduction", str(lower(s, [A, C], simple_mode=True)))


def test_compute_inline_refuses_a_reduction(refusal):
    A = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="C")
    E = te.compute((4,), lambda i: C[i] + 1.0, name="E")
    s = create_schedule(E.op)
    assert refusal(s[C].compute_inline) == (
        "compute_inline C: a reduction cannot be inlined\n"
        "  got       C = sum(A[i, k], axis=[k])\n"
        "  because   its value is complete only after the last iteration of its loops\n"
        "  hint      use s[C].compute_at(…) to compute it where it is read"
    )


def test_compute_inline_refuses_an_output_and_an_input(chain, refusal):
    assert refusal(chain.s[chain.D].compute_inline) == (
        "compute_inline D: D is an output: it must be stored\n"
        "  hint      inline the stages that it reads"
    )
    assert refusal(chain.s[chain.A].compute_inline) == (
        "compute_inline A: A is an input: there is nothing to substitute"
    )


def test_compute_inline_refuses_a_stage_that_holds_another(chain, refusal):
    chain.s[chain.P].compute_at(chain.s[chain.Q], chain.Q.op.axis[0])
    assert refusal(chain.s[chain.Q].compute_inline) == (
        "compute_inline Q: P is attached at Q.i, and Q would have no loops\n"
        "  hint      move P first: s[P].compute_root()"
    )


def test_a_reader_brought_outside_the_loop_is_owed():
    A = te.placeholder((8,), name="A")
    P = te.compute((8,), lambda i: A[i] * 2.0, name="P")
    Q = te.compute((8,), lambda i: P[i] + 1.0, name="Q")
    R = te.compute((8,), lambda i: Q[i] + 1.0, name="R")
    T = te.compute((8,), lambda i: Q[i] + R[i], name="T")
    s = create_schedule(T.op)
    s[R].compute_at(s[T], T.op.axis[0])
    s[Q].compute_at(s[T], T.op.axis[0])
    s[P].compute_at(s[T], T.op.axis[0])
    s[Q].compute_inline()
    assert s.can("compute_root", R).obligation == (
        "P is computed at T.i, and its reader R is not there yet (attached by: compute_at P T i)"
    )


def test_compute_inline_refuses_to_lose_the_check_of_an_index(refusal):
    A, index = te.placeholder((9,), name="A"), te.placeholder((4,), "int64", "index")
    P = te.compute((8,), lambda i: A[i] + A[i + 1], name="P")
    Q = te.compute((4,), lambda i: P[index[i].astype("index")], name="Q")
    s = create_schedule(Q.op)
    assert refusal(s[P].compute_inline) == (
        "compute_inline P: it is not proved that P[index(index[i])] is inside P\n"
        "  because   a program checks it when it runs, if P is in memory\n"
        "  hint      use s[P].compute_at(…), or limit the index: te.minimum(te.maximum(index, 0), "
        "extent - 1)"
    )


def test_compute_inline_keeps_the_check_of_an_index_in_what_the_stage_reads():
    A, index = te.placeholder((8,), name="A"), te.placeholder((4,), "int64", "index")
    P = te.compute((8,), lambda i: A[i] + 1.0, name="P")
    Q = te.compute((4,), lambda i: P[index[i].astype("index")], name="Q")
    s = create_schedule(Q.op)
    s[P].compute_inline()
    assert "A[index(index[i])] is outside A" in str(lower(s, [A, index, Q]))


def test_compute_inline_refuses_an_expression_that_doubles_too_often(refusal):
    A = te.placeholder((1 << 14,), name="A")
    stages = [A]
    for n in range(1, 15):
        stages.append(pairs(stages[-1], f"T{n}"))
    s = create_schedule(stages[-1].op)
    for stage in stages[1:10]:
        s[stage].compute_inline()
    assert refusal(s[stages[10]].compute_inline) == (
        "compute_inline T10: the expression of T11 would become too large\n"
        "  got       8202 operations, 37 levels\n"
        "  because   every place that reads T10 gets a copy, here 2\n"
        "  hint      use s[T10].compute_at(…), or inline fewer stages: at most 8192 operations "
        "and 128 levels"
    )


def test_compute_inline_refuses_an_expression_that_becomes_too_deep(refusal):
    A = te.placeholder((8,), name="A")
    P = te.compute((8,), lambda i: nested(A[i], 80), name="P")
    Q = te.compute((8,), lambda i: nested(P[i], 80), name="Q")
    s = create_schedule(Q.op)
    assert refusal(s[P].compute_inline) == (
        "compute_inline P: the expression of Q would become too large\n"
        "  got       324 operations, 164 levels\n"
        "  because   every place that reads P gets a copy, here 1\n"
        "  hint      use s[P].compute_at(…), or inline fewer stages: at most 8192 operations and "
        "128 levels"
    )


def pairs(T, name):
    return te.compute((T.shape[0] // 2,), lambda i: T[2 * i] + T[2 * i + 1], name=name)


def nested(value, levels):
    for _ in range(levels):
        value = value + 1.0
    return value


# -- compute_root ---------------------------------------------------------------------------------


def test_compute_root_undoes_an_attachment_and_an_inlining(chain, nest):
    plain = nest(chain)
    chain.s[chain.Q].compute_at(chain.s[chain.D], chain.D.op.axis[0])
    chain.s[chain.P].compute_inline()
    assert nest(chain) != plain
    chain.s[chain.Q].compute_root()
    chain.s[chain.P].compute_root()
    assert nest(chain) == plain


def test_compute_root_owes_what_it_breaks(chain):
    outer, _ = chain.s[chain.D].split(chain.D.op.axis[0], 4)
    chain.s[chain.Q].compute_at(chain.s[chain.D], outer)
    chain.s[chain.P].compute_at(chain.s[chain.D], outer)
    assert chain.s.can("compute_root", chain.Q).obligation == (
        "P is computed at D.i.outer, and its reader Q is not there yet "
        "(attached by: compute_at P D i.outer)"
    )


def test_compute_root_refuses_an_input(chain, refusal):
    assert refusal(chain.s[chain.A].compute_root) == (
        "compute_root A: A is an input: it is not computed"
    )
