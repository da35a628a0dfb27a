"""Races: what the verdicts say, loop by loop, on programs written by hand."""

import pytest

from dlcompiler import te
from dlcompiler.analysis import analyze_races
from dlcompiler.errors import InternalError, ScheduleError
from dlcompiler.ir import (
    Allocate,
    Binary,
    Broadcast,
    Buffer,
    Compare,
    For,
    If,
    IfThenElse,
    Let,
    Load,
    PrimFunc,
    Ramp,
    Seq,
    StepRef,
    Store,
    Var,
    cast,
    const,
    index_const,
    rewrite,
)
from dlcompiler.passes import Pass
from dlcompiler.pipeline import lower, races
from dlcompiler.pipeline.checks import NESTS, check_program
from dlcompiler.schedule import create_schedule

i, j, k = Var("i"), Var("j"), Var("k")
A = Buffer("A", (8, 8), "float32")
C = Buffer("C", (64,), "float32")
I = Buffer("I", (8,), "int32")  # noqa: E741
ONE = const(1.0, "float32")


def func(body, symbols=()):
    return PrimFunc("main", (A, I, C), (A, C), body, symbols=symbols)


def loop(var, extent, body, kind="parallel"):
    extent = index_const(extent) if isinstance(extent, int) else extent
    return For(var, extent, kind, body)


def status(body, symbols=()):
    return analyze_races(func(body, symbols)).status


def test_a_reduction_over_a_parallel_loop(golden):
    init = Store(C, (i,), const(0.0, "float32"), (StepRef("", "C", "(init)"),))
    update = Store(C, (i,), Load(C, (i,)) + Load(A, (i, k)), (StepRef("", "C"),))
    own = For(k, index_const(8), "parallel", update, (StepRef("", "C", "k"),))
    program = For(i, index_const(8), "parallel", Seq((init, own)), (StepRef("", "C", "i"),))
    report = analyze_races(func(program))
    golden("reduction", f"{func(program)}\n{report}")
    (verdict,) = report.violations
    witness = verdict.conflict.witness
    assert witness.element == (0,)
    assert [witness.first[verdict.loop], witness.second[verdict.loop]] == [0, 1]


def test_no_concurrent_loop():
    report = analyze_races(func(loop(i, 8, Store(C, (index_const(0),), ONE), "serial")))
    assert report.status == "safe"
    assert str(report) == "races of main: no parallel or vectorized loop"


def test_an_allocation_inside_the_loop_is_private():
    T = Buffer("T", (4,), "float32")
    body = Seq((Store(T, (index_const(0),), ONE), Store(C, (i,), Load(T, (index_const(0),)))))
    assert status(loop(i, 8, Allocate(T, body))) == "safe"
    assert status(Allocate(T, loop(i, 8, body))) == "violated"


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (i * 4 + j, "safe"),
        (i * 3 + j, "violated"),
        (i + j * 8, "safe"),
        (i + j * 7, "violated"),
        ((i * 4 + j) // 4, "safe"),
        ((i * 4 + j) // 5, "violated"),
        ((i * 5 + j) % 40, "safe"),
        ((i * 5 + j) % 38, "violated"),
        (63 - i * 4 - j, "safe"),
        (Binary("min", i, index_const(6)), "violated"),
        (Binary("min", i, index_const(7)), "safe"),
    ],
)
def test_indices_in_a_mixed_radix(index, expected):
    assert status(loop(i, 8, loop(j, 4, Store(C, (index,), ONE), "serial"))) == expected


def test_quotient_and_remainder_of_a_fused_loop():
    f = i * 8 + j
    inner = loop(j, 8, Store(A, (f // 5, f % 5), ONE), "serial")
    assert status(loop(i, 5, inner)) == "safe"
    assert status(loop(i, 5, loop(j, 8, Store(A, (f // 5, f % 4), ONE), "serial"))) == "violated"


def test_a_guard_makes_iterations_distinct():
    store = Store(C, (i * 4 + j,), ONE)
    assert status(loop(i, 8, loop(j, 5, store, "serial"))) == "violated"
    assert status(loop(i, 8, loop(j, 5, If(j < 4, store), "serial"))) == "safe"
    assert status(loop(i, 8, loop(j, 5, If(j > 3, ONE_STORE, store), "serial"))) == "violated"


ONE_STORE = Store(C, (index_const(0),), ONE)


def test_a_load_that_is_not_chosen_does_not_conflict():
    own = IfThenElse(j < 1, Load(C, (i,)), ONE)
    neighbour = IfThenElse(j < 1, Load(C, (i + j,)), ONE)
    far = IfThenElse(j < 1, ONE, Load(C, (i + j,)))
    for value, expected in ((own, "safe"), (neighbour, "safe"), (far, "violated")):
        assert status(loop(i, 8, loop(j, 2, Store(C, (i,), value), "serial"))) == expected


def test_a_wide_program_is_proved_without_a_search():
    store = Store(C, (i * 2**20 + j,), ONE)
    assert status(loop(i, 2**20, loop(j, 2**20, store, "serial"))) == "safe"
    assert status(loop(i, 2**20, loop(j, 2**20 + 1, store, "serial"))) == "violated"


def test_what_depends_on_data_is_unknown():
    row = cast(Load(I, (i,)), "index")
    report = analyze_races(func(loop(i, 8, Store(C, (row,), ONE))))
    assert report.status == "unknown"
    assert "iterations of i may touch one element of C: it depends on I[i]" in str(report)
    guarded = If(Compare("gt", Load(I, (i,)), const(0, "int32")), ONE_STORE)
    assert status(loop(i, 8, guarded)) == "unknown"
    assert status(loop(i, 8, Store(A, (i, row), ONE))) == "safe"


def test_let_stands_for_its_value():
    x, y = Var("x"), Var("y")
    store = Store(C, (y + j,), ONE)
    body = Let(x, i * 2, Let(y, x * 2, loop(j, 4, store, "serial")))
    assert status(loop(i, 8, body)) == "safe"
    body = Let(x, i * 2, Let(y, x + 1, loop(j, 4, store, "serial")))
    assert status(loop(i, 8, body)) == "violated"


def test_lanes_of_a_vector_store():
    def lanes(index, predicate=None):
        return Store(C, (index,), Broadcast(ONE, 4), (), predicate)

    lane = Ramp(index_const(0), index_const(1), 4)
    assert status(loop(i, 8, lanes(Ramp(i * 4, index_const(1), 4)))) == "safe"
    assert status(loop(i, 8, lanes(Ramp(i * 3, index_const(1), 4)))) == "violated"
    report = analyze_races(func(lanes(Binary("floordiv", lane, Broadcast(index_const(2), 4)))))
    assert "lanes of C[(0 : +4)//broadcast(2, 4)]" in str(report) or report.status == "violated"
    some = Compare("lt", lane, Broadcast(index_const(3), 4))
    assert status(loop(i, 8, lanes(Ramp(i * 3, index_const(1), 4), some))) == "safe"


def test_symbolic_extents():
    n, m, f = Var("n"), Var("m"), Var("f")
    tail = loop(i, (n + 7) // 8, loop(j, 8, If(i * 8 + j < n, Store(C, (i * 8 + j,), ONE))))
    assert status(tail, (n,)) == "safe"
    part = (n + 3) // 4
    middle = loop(j, part, loop(i, 2, If(i * part + j < n, Store(C, (i * part + j,), ONE))))
    assert status(middle, (n,)) == "safe"
    assert status(loop(i, 4, loop(j, part, Store(C, (i * part + j,), ONE))), (n,)) == "safe"
    assert status(loop(i, n, Store(C, (i,), Load(C, (i + n,)))), (n,)) == "safe"
    assert status(loop(i, n, Store(C, (i,), Load(C, (i + 1,)))), (n,)) == "violated"
    flat = loop(i, n, loop(j, m, Store(C, (i * m + j,), ONE), "serial"))
    assert status(flat, (n, m)) == "safe"
    assert status(loop(f, n * m, Store(A, (f // m, f % m), ONE)), (n, m)) == "safe"
    assert status(loop(i, n, loop(j, m, Store(C, (i + j,), ONE), "serial")), (n, m)) == "violated"
    report = analyze_races(func(loop(i, n, ONE_STORE), (n,)))
    (verdict,) = report.violations
    assert verdict.conflict.witness.symbols == {n: 2}
    assert "where n=2" in verdict.reason


# -- in the pipeline ------------------------------------------------------------------------------


def row_sums():
    X = te.placeholder((4, 8), name="X")
    r = te.reduce_axis((0, 8), name="r")
    Y = te.compute((4,), lambda i: te.sum(X[i, r], axis=r), name="Y")
    s = create_schedule(Y.op)
    s[Y].parallel(Y.op.axis[0])
    return s, [X, Y]


def test_a_schedule_can_be_asked():
    s, args = row_sums()
    assert str(races(s)) == "races of main: 1 loop, all safe\n  parallel i (Y): safe"
    assert str(races(lower(s, args))) == str(races(s))
    with pytest.raises(ScheduleError, match="neither a schedule nor a lowered function"):
        races(args)


def parallelised(program):
    """A mistake: every loop is parallel."""

    def rule(node):
        if isinstance(node, For):
            return For(node.var, node.extent, "parallel", node.body, node.origin)
        return node

    return program.with_body(rewrite(program.body, rule))


def test_a_race_that_a_pass_made_is_an_internal_error():
    s, args = row_sums()
    with pytest.raises(InternalError) as caught:
        lower(s, args, passes=[Pass("parallelise", parallelised)])
    text = str(caught.value)
    assert "lower main: parallelise: iterations of parallel r (Y) depend on each other" in text
    assert "Y[0] is written at i=0, r=0\n" in text
    assert "Trace.from_json('{" in text
    assert '"primitive": "parallel"' in text


def shortened(program):
    """A mistake: the outermost loop ends too early."""
    head = program.body
    extent = index_const(head.extent.value - 1)
    return program.with_body(For(head.var, extent, head.kind, head.body, head.origin))


def test_an_output_that_is_not_written_in_full_is_an_internal_error():
    s, args = row_sums()
    with pytest.raises(InternalError) as caught:
        lower(s, args, passes=[Pass("shorten", shortened)])
    text = str(caught.value)
    assert "lower main: shorten: Y is not written in full before it is needed" in text
    assert "because   Y[3] is never written" in text


def test_what_cannot_be_shown_is_refused():
    s, _ = row_sums()
    program = func(loop(i, 8, Store(C, (cast(Load(I, (i,)), "index"),), ONE)))
    with pytest.raises(ScheduleError) as caught:
        check_program(program, s, NESTS)
    text = str(caught.value)
    assert "the iterations of parallel i could not be shown to be independent" in text
    assert "leave i serial" in text


@pytest.mark.parametrize("shape", [(97, 300, 300), (5, 64, 8, 255), (1021, 36, 1000)])
@pytest.mark.parametrize("factor", [16, 12, 60])
def test_indices_of_a_fused_loop_that_was_split(shape, factor):
    # A divisor that the factor divides is of the outer loop: f // 90000 is outer // 5625.
    A = te.placeholder(shape, name="A")
    B = te.compute(shape, lambda *index: A[index], name="B")
    s = te.create_schedule(B.op)
    outer, _ = s[B].split(s[B].fuse(*B.op.axis), factor=factor)
    s[B].parallel(outer)
    assert analyze_races(lower(s, [A, B])).status == "safe"


@pytest.mark.parametrize(
    ("shape", "count", "factor", "nparts"),
    [
        ((97, 36, 7, 36), 3, 12, None),  # the quotient stands still
        ((255, 64, 16, 36), 4, 128, 4),  # the quotient is a sum
    ],
)
def test_loops_inside_a_fused_loop_are_independent(shape, count, factor, nparts):
    A = te.placeholder(shape, name="A")
    B = te.compute(shape, lambda *index: A[index], name="B")
    s = te.create_schedule(B.op)
    loop_ = s[B].fuse(*B.op.axis[:count])
    outer, inner = s[B].split(loop_, factor=factor)
    if nparts:
        inner, _ = s[B].split(inner, nparts=nparts)
    s[B].parallel(inner)
    assert analyze_races(lower(s, [A, B])).status == "safe"
    s.undo()
    s[B].parallel(outer)
    assert analyze_races(lower(s, [A, B])).status == "safe"


def test_a_quotient_that_is_not_of_the_same_number_joins_nothing():
    x = i * 16 + j  # i // 5625 is x // 90000 while j is below 16, and no more
    indices = i // 5625, x // 300 % 300, x % 300
    assert status(loop(i, 16875, loop(j, 16, Store(WIDE, indices, ONE), "serial"))) == "safe"
    assert status(loop(i, 16875, loop(j, 17, Store(WIDE, indices, ONE), "serial"))) == "violated"
    indices = i // 5626, x // 300 % 300, x % 300
    assert status(loop(i, 16875, loop(j, 16, Store(WIDE, indices, ONE), "serial"))) == "violated"


WIDE = Buffer("W", (4, 300, 300), "float32")
