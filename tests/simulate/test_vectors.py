"""Vector operations, as the vectorizing pass leaves them."""

import numpy as np
import pytest

from dlcompiler.errors import ProgramError
from dlcompiler.ir import (
    Binary,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    IfThenElse,
    Load,
    Logical,
    Not,
    PrimFunc,
    Ramp,
    Select,
    Seq,
    Store,
    Var,
    binary,
    const,
    index_const,
)
from dlcompiler.simulate import interpret

A, B = Buffer("A", (8,), "float32"), Buffer("B", (8,), "float32")
M, N = Buffer("M", (4, 8), "float32"), Buffer("N", (4, 8), "int32")
ZERO, ONE = index_const(0), index_const(1)
ALL = Ramp(ZERO, ONE, 8)
zeros = Broadcast(const(0, "float32"), 8)
i = Var("i")


def _run(body):
    arrays = [
        np.arange(8, dtype="float32"),
        np.arange(32, dtype="float32").reshape(4, 8),
        np.zeros((4, 8), "int32"),
        np.full(8, np.nan, "float32"),
    ]
    report = interpret(PrimFunc("f", (A, M, N, B), (N, B), body), arrays)
    return arrays, report


def _b(value, indices=(ALL,)):
    arrays, _ = _run(Store(B, indices, value))
    return arrays[3].tolist()


def test_load_compute_store():
    x = Load(A, (ALL,))
    assert _b(Binary("add", Binary("mul", x, x), Broadcast(const(1, "float32"), 8))) == [
        v * v + 1 for v in range(8)
    ]


def test_counts_are_by_element(loop):
    _, report = _run(Store(B, (ALL,), Load(A, (ALL,))))
    assert (report.loads, report.stores, report.steps, report.unwritten) == (8, 8, 8, 32)


def test_strides_and_gathers():
    assert _b(Load(M, (Ramp(ZERO, ONE, 4), Ramp(ONE, ONE, 4))), (Ramp(ZERO, index_const(2), 4),))[
        ::2
    ] == [1, 10, 19, 28]
    down = Load(A, (Ramp(index_const(7), index_const(-1), 8),))
    assert _b(down) == [7, 6, 5, 4, 3, 2, 1, 0]


def test_a_scalar_index_beside_a_vector(loop):
    body = loop(i, 4, Store(N, (i, ALL), Cast(Load(M, (i, ALL)), "int32x8")))
    arrays, _ = _run(body)
    assert arrays[2].tolist() == arrays[1].tolist()


def test_conditions_by_lane():
    first = Compare("lt", ALL, Broadcast(index_const(3), 8))
    x = Load(A, (ALL,))
    assert _b(Select(first, x, zeros)) == [0, 1, 2, 0, 0, 0, 0, 0]
    assert _b(Select(Not(first), x, zeros)) == [0, 0, 0, 3, 4, 5, 6, 7]


def test_a_choice_guards_the_lanes_it_leaves_off():
    """A[i - 1] for i >= 1: lane 0 must not load, and A[i + 1] for i < 7 neither in lane 7."""
    before = Ramp(index_const(-1), ONE, 8)
    later = Compare("ge", ALL, Broadcast(ONE, 8))
    assert _b(IfThenElse(later, Load(A, (before,)), zeros)) == [0, 0, 1, 2, 3, 4, 5, 6]
    both = Logical(
        "and", later, Compare("gt", Load(A, (before,)), Broadcast(const(2, "float32"), 8))
    )
    assert _b(Cast(both, "float32x8")) == [0, 0, 0, 0, 1, 1, 1, 1]
    either = Logical("or", Not(later), Compare("gt", Load(A, (before,)), zeros))
    assert _b(Cast(either, "float32x8")) == [1, 0, 1, 1, 1, 1, 1, 1]
    never = Compare("lt", ALL, Broadcast(ZERO, 8))
    far = Ramp(index_const(100), ONE, 8)
    assert _b(IfThenElse(never, Load(A, (far,)), zeros)) == [0] * 8


def test_a_scalar_condition_chooses_whole_vectors(loop):
    value = IfThenElse(i < 0, Load(M, (i - 1, ALL)), Load(M, (i, ALL)))
    arrays, _ = _run(loop(i, 1, Store(B, (ALL,), value)))
    assert arrays[3].tolist() == list(range(8))


def test_integers_wrap_and_divide_by_zero():
    lanes = Cast(Ramp(index_const(-3), ONE, 8), "int8x8")
    for op, expected in {
        "mul": [(v * 100 + 128) % 256 - 128 for v in range(-3, 5)],
        "floordiv": [v // 2 for v in range(-3, 5)],
        "truncdiv": [-1, -1, 0, 0, 0, 1, 1, 2],
        "truncmod": [-1, 0, -1, 0, 1, 0, 1, 0],
    }.items():
        other = Broadcast(const(100 if op == "mul" else 2, "int8"), 8)
        assert _b(Cast(Binary(op, lanes, other), "float32x8")) == expected
    zero = Broadcast(const(0, "int8"), 8)
    assert _b(Cast(Binary("floordiv", lanes, zero), "float32x8")) == [0] * 8


def test_data_ramps_and_functions():
    ramp = Ramp(const(0.5, "float32"), const(0.25, "float32"), 8)
    assert _b(ramp) == [0.5 + 0.25 * n for n in range(8)]
    assert _b(Call("sqrt", (Binary("mul", ramp, ramp),), "float32x8")) == [
        0.5 + 0.25 * n for n in range(8)
    ]
    assert _b(binary("max", ramp, 1.0))[:3] == [1.0, 1.0, 1.0]


def _refusal(body):
    with pytest.raises(ProgramError) as error:
        _run(body)
    return error.value


def test_bounds_are_checked_by_lane():
    error = _refusal(Store(B, (ALL,), Load(A, (Ramp(ONE, ONE, 8),))))
    assert (error.problem, error.kind) == ("A[8] is out of bounds", "out_of_bounds")
    guarded = Compare("ge", ALL, Broadcast(ONE, 8))
    error = _refusal(
        Store(B, (ALL,), IfThenElse(guarded, Load(A, (Ramp(index_const(-2), ONE, 8),)), zeros))
    )
    assert error.problem == "A[-1] is out of bounds"
    error = _refusal(Store(N, (index_const(4), ALL), Cast(zeros, "int32x8")))
    assert error.problem == "N[4, 0] is out of bounds"


def test_two_lanes_must_not_store_to_one_element():
    error = _refusal(Store(B, (Ramp(ZERO, ZERO, 8),), zeros))
    assert str(error) == (
        "interpret f: race on B[0] between two lanes\n"
        "  because   both lanes write the element\n"
        "  excerpt   B[0 : +8:0] = broadcast(0.0, 8)"
    )


def test_lanes_read_only_what_is_written():
    half = Store(B, (Ramp(ZERO, ONE, 4),), Broadcast(const(0, "float32"), 4))
    error = _refusal(Seq((half, Store(N, (ZERO, ALL), Cast(Load(B, (ALL,)), "int32x8")))))
    assert error.problem == "B[4] is read before it is written"


def test_vector_stores_of_parallel_iterations_must_not_overlap(loop):
    overlapping = Store(B, (Ramp(i * 2, ONE, 4),), Broadcast(const(0, "float32"), 4))
    error = _refusal(loop(i, 3, overlapping, "parallel"))
    assert error.problem == "race on B[2] between iterations i=0 and i=1"


def test_a_vector_statement_loads_before_it_stores():
    shifted = Load(B, (Ramp(ZERO, ONE, 7),))
    body = Seq((Store(B, (ALL,), Load(A, (ALL,))), Store(B, (Ramp(ONE, ONE, 7),), shifted)))
    arrays, _ = _run(body)
    assert arrays[3].tolist() == [0, 0, 1, 2, 3, 4, 5, 6]
