"""Each thing that the verifier refuses, and a function that it accepts."""

import pytest

from dlcompiler.errors import InternalError
from dlcompiler.ir import (
    Allocate,
    Axis,
    Binary,
    Broadcast,
    Buffer,
    Cast,
    Compare,
    Const,
    For,
    If,
    IfThenElse,
    Load,
    Logical,
    Not,
    PrimFunc,
    Ramp,
    Reduce,
    Reducer,
    Select,
    Seq,
    StepRef,
    Stmt,
    Store,
    TensorLoad,
    Var,
    const,
    index_const,
    verify_func,
)

A = Buffer("A", (8,), "float32")
B = Buffer("B", (8,), "float32")
M = Buffer("M", (8, 8), "float32")
T = Buffer("T", (8,), "float32")
N = Buffer("N", (8,), "int32")
i, j = Var("i"), Var("j")
ZERO, ONE = index_const(0), index_const(1)
zero = const(0, "float32")
a = Load(A, (i,))
ramp = Ramp(ZERO, ONE, 8)


def _loop(body, var=i, extent=8):
    return For(var, index_const(extent), "serial", body)


def _func(body, axes=None):
    return PrimFunc("f", (A, M, N, B), (B,), body, axes or {})


def _store(value=zero, indices=(i,), origin=()):
    return Store(B, indices, value, origin)


def _of(value):
    """Store `value` to B[i] in a loop over i."""
    return _loop(_store(value))


def test_a_good_function_passes():
    vector = Store(B, (ramp,), Binary("add", Load(A, (ramp,)), Broadcast(zero, 8)))
    local = Allocate(T, Seq((Store(T, (i,), a), _store(Load(T, (i,))))))
    verify_func(_func(Seq((_loop(local), vector, _loop(If(i < 3, _store()))))))


def test_the_message_names_the_pass_and_shows_the_function():
    with pytest.raises(InternalError) as error:
        verify_func(_func(_store()), after="fuse loops")
    assert str(error.value) == (
        "verify f after fuse loops: variable i is used outside its loop\n"
        "  hint      this is a bug in dlcompiler: please report it with this text\n"
        "  excerpt   def f(A: float32[8], M: float32[8, 8], N: int32[8], B: float32[8]):\n"
        "                B[i] = 0.0\n"
        "            "
    )


class Unknown(Stmt):
    __slots__ = ()


FAILURES = {
    "variable i is used outside its loop": _store(),
    "variable j is used outside its loop": _of(Load(A, (j,))),
    "loop variable i is bound twice": _loop(_loop(_store())),
    "loop x is not of dtype index": For(Var("x", "int32"), ONE, "serial", _store(indices=(ZERO,))),
    "loop i is not of dtype index": For(i, const(8, "int32"), "serial", _store()),
    "condition A[i] has dtype float32": _loop(If(a, _store())),
    "store to T, which is not allocated here": _loop(Store(T, (i,), zero)),
    "load of T, which is not allocated here": _of(Load(T, (i,))),
    "buffer A is allocated twice": Allocate(A, Seq(())),
    "store to A, which is not an output": _loop(Store(A, (i,), zero)),
    "store to B with 2 indices": _loop(_store(indices=(i, i))),
    "load of M with 1 indices": _of(Load(M, (i,))),
    "store to B with an index N[i] of dtype int32": _loop(_store(indices=(Load(N, (i,)),))),
    "load of A with an index N[i] of dtype int32": _of(Load(A, (Load(N, (i,)),))),
    "load of M with an index 0 : +4 of 4 lanes": Store(
        B, (ramp,), Load(M, (Ramp(ZERO, ONE, 4), ramp))
    ),
    "B[i] = N[i] stores int32, not float32": _of(Load(N, (i,))),
    "B[0 : +8] = 0.0 stores float32, not float32x8": _store(indices=(ramp,)),
    "A[i] + N[i] mixes float32 and int32": _of(Binary("add", a, Load(N, (i,)))),
    "A[i] < N[i] mixes float32 and int32": _loop(If(Compare("lt", a, Load(N, (i,))), _store())),
    "select(i < 3, A[i], N[i]) mixes float32 and int32": _of(Select(i < 3, a, Load(N, (i,)))),
    "if_then_else(N[i], A[i], A[i]) is decided by int32": _of(IfThenElse(Load(N, (i,)), a, a)),
    "True + True computes add of bool": _loop(
        If(Binary("add", Const(True, "bool"), Const(True, "bool")), _store())
    ),
    "A[i] % A[i] computes floormod of float32": _of(Binary("floormod", a, a)),
    "i and i joins index": _loop(If(Cast(Logical("and", i, i), "bool"), _store())),
    "not A[i] joins float32": _loop(If(Cast(Not(a), "bool"), _store())),
    "0 : +4:A[i] is a ramp of index and float32": _of(Ramp(ZERO, a, 4)),
    "broadcast(0 : +8, 8) broadcasts indexx8": _of(Broadcast(ramp, 8)),
    "int32(0 : +8) changes the lanes of indexx8": _of(Cast(ramp, "int32")),
    "A[i] is left over from the tensor expression": _of(TensorLoad(A, (i,))),
    "sum(A[i], axis=[k]) is left over from the tensor expression": _of(
        Reduce(Reducer("sum", "add"), (a,), (Axis("k", 8, "reduce"),))
    ),
    "unknown statement Unknown": Unknown(),
}


@pytest.mark.parametrize("problem", FAILURES)
def test_failure(problem):
    with pytest.raises(InternalError) as error:
        verify_func(_func(FAILURES[problem]))
    assert error.value.problem == problem


def test_an_output_must_be_a_parameter():
    with pytest.raises(InternalError, match="output T is not a parameter"):
        verify_func(PrimFunc("f", (A,), (T,), Seq(())))


def test_a_buffer_is_not_known_beside_its_allocation():
    load = _store(Load(T, (ZERO,)), indices=(ZERO,))
    with pytest.raises(InternalError, match="load of T, which is not allocated here"):
        verify_func(_func(Seq((Allocate(T, load), load))))


STAGE = StepRef("s0", "B")
AXIS = StepRef("s0", "B", "i")


def test_a_store_must_reach_its_axes():
    axes = {STAGE: frozenset({AXIS})}
    lost = _loop(_store(origin=(STAGE,)))
    with pytest.raises(InternalError, match=r"B\[i\] = 0.0 lost its axes B.i"):
        verify_func(_func(lost, axes))
    verify_func(_func(For(i, index_const(8), "serial", _store(origin=(STAGE,)), (AXIS,)), axes))
    verify_func(_func(_loop(_store(origin=(STAGE, AXIS))), axes))
