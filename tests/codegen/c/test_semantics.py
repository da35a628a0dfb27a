"""What C leaves undefined, what nests deeply, and what runs at the same time."""

import numpy as np
import pytest

from dlcompiler.codegen import emit
from dlcompiler.errors import InternalError, OutOfMemory, ProgramError, TargetError
from dlcompiler.ir import (
    Allocate,
    Assert,
    Barrier,
    Binary,
    Buffer,
    Call,
    Cast,
    Compare,
    Const,
    ExternCall,
    For,
    If,
    IfThenElse,
    Let,
    Load,
    Logical,
    Prefetch,
    PrimFunc,
    Ramp,
    Seq,
    Store,
    Var,
    compare,
    const,
    index_const,
)
from dlcompiler.simulate import interpret
from dlcompiler.target import resolve
from tests.scalars.agreement import DATA, INTEGERS, agree, pairs

I, J = Var("i"), Var("j")  # noqa: E741


def number(value, dtype="float32"):
    return const(value, dtype)


def buffer(name, *shape, dtype="float32"):
    return Buffer(name, shape, dtype)


def func(body, *params, outputs=1):
    return PrimFunc("kernel", params, tuple(params[len(params) - outputs :]), body)


def loop(var, extent, body, kind="serial"):
    return For(var, index_const(extent), kind, body)


# -- numbers ---------------------------------------------------------------------------------------


@pytest.mark.campaign
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", ["floordiv", "floormod", "truncdiv", "truncmod", "shl", "shr"])
def test_operations_that_c_leaves_open(op, dtype, build):
    a, b = pairs(dtype, dtype)
    x, y, z = (buffer(name, len(a), dtype=dtype) for name in "XYZ")
    value = Binary(op, Load(x, (I,)), Load(y, (I,)))
    program = func(loop(I, len(a), Store(z, (I,), value)), x, y, z)
    got, right = np.zeros_like(a), np.zeros_like(a)
    build(program)(a, b, got)
    interpret(program, [a, b, right])
    np.testing.assert_array_equal(got, right)


def test_indices_are_divided_toward_minus_infinity(build):
    y = buffer("Y", 41, 4, dtype="int64")
    divisions = ("floordiv", "floormod", "truncdiv", "truncmod")
    stores = [
        Store(y, (I, index_const(n)), Cast(Binary(op, I - 20, index_const(6)), "int64"))
        for n, op in enumerate(divisions)
    ]
    program = func(loop(I, 41, Seq(tuple(stores))), y)
    got, right = np.zeros((2, 41, 4), "int64")
    build(program)(got)
    interpret(program, [right])
    np.testing.assert_array_equal(got, right)


def test_divisions_of_what_is_not_negative_are_plain(source):
    y = buffer("Y", 64)
    text = source(func(loop(I, 64, Store(y, (I // 8 * 8 + I % 8,), number(1.0))), y)).text
    assert "Y[i/8*8 + i%8] = 1.0f;" in text


def test_large_indices_are_no_int(build):
    y = buffer("Y", 3, dtype="int64")
    big = index_const(2**31 - 1)
    choice = IfThenElse(I < 1, index_const(70_000), index_const(80_000))
    values = (big * 4 + I, choice * 70_000, Binary("mul", I + 1, index_const(2**40)))
    body = Seq(tuple(Store(y, (index_const(n),), Cast(v, "int64")) for n, v in enumerate(values)))
    got = np.zeros(3, "int64")
    build(func(loop(I, 1, body), y))(got)
    assert got.tolist() == [(2**31 - 1) * 4, 70_000 * 70_000, 2**40]


@pytest.mark.campaign
@pytest.mark.parametrize("dtype", DATA)
def test_conversions(dtype, compiler):
    del compiler
    (values,) = pairs(dtype)
    agree({name: lambda x, t=name: x.astype(t) for name in DATA}, [values], ways=("c",))


@pytest.mark.parametrize("op", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons_that_are_decided(op, build):
    a, c = buffer("A", 4, dtype="uint8"), buffer("C", 3, 4, dtype="bool")
    x = Load(a, (I,))
    shared = x * x + x * x * x
    pairs_ = ((shared, shared), (x, number(0, "uint8")), (number(255, "uint8"), x))
    stores = [
        Store(c, (index_const(n), I), Compare(op, left, right))
        for n, (left, right) in enumerate(pairs_)
    ]
    program = func(loop(I, 4, Seq(tuple(stores))), a, c)
    _runs(program, build, np.array([0, 1, 254, 255], "uint8"), np.zeros((3, 4), bool))


def test_the_bits_of_16_bit_floats_are_copied(build):
    a, b = buffer("A", 4, dtype="float16"), buffer("B", 4, dtype="float16")
    program = func(loop(I, 4, Store(b, (I,), Load(a, (I,)))), a, b)
    bits = np.array([0x7D01, 0xFE55, 0x0001, 0x8000], "uint16")
    got = np.zeros(4, "uint16")
    build(program)(bits.view("float16"), got.view("float16"))
    assert got.tolist() == bits.tolist()


# -- large expressions -----------------------------------------------------------------------------


def _runs(program, build, *arrays):
    got, right = ([*map(np.copy, arrays)] for _ in range(2))
    build(program)(*got)
    interpret(program, right)
    for a, b in zip(got, right, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.campaign
def test_a_sum_of_thousands(build):
    a, c = buffer("A", 3000, dtype="int32"), buffer("C", 1, dtype="int32")
    value = Load(a, (index_const(0),))
    for n in range(1, 3000):
        value = value + Load(a, (index_const(n),))
    program = func(Store(c, (index_const(0),), value), a, c)
    got = np.zeros(1, "int32")
    build(program)(np.arange(3000, dtype="int32"), got)
    assert got == 2999 * 1500


def test_shared_parts_are_written_once(build, source):
    a, c = buffer("A", 4, dtype="uint32"), buffer("C", 4, dtype="uint32")
    value = Load(a, (I,)) + number(3, "uint32")
    for _ in range(60):  # a tree of 2**60
        value = Binary("bitxor", Binary("mul", value, value), Binary("add", value, value))
    program = func(loop(I, 4, Store(c, (I,), value)), a, c)
    assert len(source(program).text) < 20_000
    _runs(program, build, np.arange(4, dtype="uint32"), np.zeros(4, "uint32"))


def test_what_is_shared_on_a_chosen_side_stays_there(build, source):
    a, c = buffer("A", 4), buffer("C", 6)
    inner = Call("sqrt", (Load(a, (I - 1,)) + number(9.0),), "float32")
    inside = Logical("and", I >= 1, I < 5)
    value = IfThenElse(inside, inner * inner + inner, number(-1.0))
    positive = Logical("and", inside, compare("gt", inner * inner + inner, number(13.0)))
    stores = Seq((Store(c, (I,), value), If(positive, Store(c, (I,), number(7.0)))))
    program = func(loop(I, 6, stores), a, c)
    text = source(program).text
    assert text.index("if (i >= 1 && i < 5) {") < text.index("const float v_1 = sqrtf(A[i - 1]")
    _runs(program, build, np.array([0, 7, 16, 27], "float32"), np.zeros(6, "float32"))


# -- statements ------------------------------------------------------------------------------------


def test_every_statement(build):
    a, c, t = buffer("A", 8), buffer("C", 8), buffer("T", 8)
    k, one = Var("k"), Var("unread", "float32")
    body = Seq(
        (
            Let(k, I + 1, Store(t, (I,), Load(a, (k - 1,)), predicate=I < 7)),
            Let(one, number(1.0), Store(t, (index_const(7),), number(2.0))),
            Prefetch(a, (I,)),
            Barrier(),
            Allocate(buffer("unread", 2), Store(c, (I,), Load(t, (I,), predicate=I < 7))),
        )
    )
    program = func(Allocate(t, loop(I, 8, body)), a, c)
    got = np.full(8, 77, "float32")
    build(program)(np.arange(8, dtype="float32"), got)
    assert got.tolist() == [0, 1, 2, 3, 4, 5, 6, 0]


def test_nothing_to_do(build, source):
    a, n = buffer("A", 0), Var("n", is_symbol=True)
    program = PrimFunc("nothing", (a, n), (a,), loop(I, 0, Seq(())))
    assert "(void)n;" in source(program).text
    build(program)(np.zeros(0, "float32"), 3)


def test_assignments_to_the_element_itself(source):
    c, d = buffer("C", 4), buffer("D", 4, dtype="int32")
    at, next_ = (I,), (I + 1,)
    stores = [
        Store(c, at, Load(c, at) * number(2.0)),
        Store(c, at, Load(c, next_) - number(2.0)),
        Store(d, at, Load(d, at) + number(2, "int32")),
    ]
    text = source(func(loop(I, 3, Seq(tuple(stores))), c, d, outputs=2)).text
    assert "C[i] *= 2.0f;" in text
    assert "C[i] = C[i + 1] - 2.0f;" in text
    assert "D[i] = dlc_add_i32(D[i], 2);" in text


def test_a_temporary_of_each_parallel_iteration(build, source):
    a, c, t = buffer("A", 6, 5000), buffer("C", 6, 5000), buffer("T", 5000)
    inner = Seq(
        (
            loop(J, 5000, Store(t, (J,), Load(a, (I, J))), "parallel"),
            loop(J, 5000, Store(c, (I, J), Load(t, (4999 - J,)))),
        )
    )
    program = func(loop(I, 6, Allocate(t, inner), "parallel"), a, c)
    made = source(program)
    assert made.uses_threads
    assert made.text.count("#pragma omp parallel for") == 1
    assert made.messages == ("not enough memory for temporaries: T",)
    a_values, got = np.random.default_rng(1).random((6, 5000), "float32"), np.zeros((6, 5000), "f4")
    build(program)(a_values, got)
    np.testing.assert_array_equal(got, a_values[:, ::-1])


def test_the_first_that_fails_is_told_and_memory_is_freed(build):
    a, c, t = buffer("A", 4, dtype="int32"), buffer("C", 4, dtype="int32"), buffer("T", 5000)
    positive = Assert(compare("gt", Load(a, (I,)), number(0, "int32")), "A is */ not positive")
    small = Assert(compare("lt", Load(a, (I,)), number(9, "int32")), "A is large")
    last = Store(c, (I,), Load(a, (I,)))
    body = loop(I, 4, Allocate(t, Seq((positive, small, last))), "parallel")
    kernel = build(func(Allocate(buffer("U", 6000), body), a, c))
    assert "/* A is * / not positive */" in kernel.header
    assert kernel.messages[1:] == ("A is */ not positive", "A is large")
    out = np.zeros(4, "int32")
    kernel(np.arange(1, 5, dtype="int32"), out)
    assert out.tolist() == [1, 2, 3, 4]
    for values, message in (([1, 10, 0, 1], "A is large"), ([1, 0, 10, 1], r"not positive")):
        with pytest.raises(ProgramError, match=message):
            kernel(np.array(values, "int32"), out)


def test_the_extents_are_checked_in_c_too(build):
    n = Var("n", is_symbol=True)
    c = Buffer("C", (n,), "float32")
    body = For(I, n, "serial", Store(c, (I,), number(1.0)))
    checks = ((Compare("ge", n, index_const(2)), "C has less than 2 elements"),)
    kernel = build(PrimFunc("ones", (c,), (c,), body, symbols=(n,), checks=checks))
    assert "if (!(n >= 2)) {  /* C has less than 2 elements */" in kernel.source()
    out = np.zeros(3, "float32")
    kernel(out)
    assert out.all()


def test_sizes_beyond_all_memory(build):
    n = Var("n", is_symbol=True)
    c, t = buffer("C", 1), Buffer("T", (n, n, n, n), "float64")
    zero = index_const(0)
    body = Allocate(t, Store(c, (zero,), number(1.0)))
    kernel = build(PrimFunc("big", (n, c), (c,), body))
    for extent in (2**16, 2**30):
        with pytest.raises(OutOfMemory):
            kernel(extent, np.zeros(1, "float32"))


# -- refusals --------------------------------------------------------------------------------------


def test_vectors_are_refused():
    a = buffer("A", 8)
    store = Store(a, (Ramp(index_const(0), index_const(1), 8),), Const(0.0, "float32x8"))
    with pytest.raises(TargetError) as caught:
        emit(func(store, a), resolve("c"))
    assert str(caught.value) == (
        "generate C code for kernel: C has no vectors\n"
        "  got       an expression of dtype indexx8\n"
        "  hint      lower(s, args, target='c') keeps loops in their place"
    )


def test_threads_of_a_device_are_refused():
    a = buffer("A", 8)
    with pytest.raises(TargetError) as caught:
        emit(func(loop(I, 8, Store(a, (I,), number(0.0)), "threadIdx.x"), a), resolve("c"))
    assert str(caught.value).startswith(
        "generate C code for kernel: a CPU has no device threads\n"
        "  got       i, bound to threadIdx.x\n"
    )


def test_a_temporary_whose_size_varies_is_refused():
    a, t = buffer("A", 8), Buffer("T", (I + 1,), "float32")
    body = loop(I, 8, Allocate(t, Store(a, (I,), number(0.0))))
    with pytest.raises(TargetError) as caught:
        emit(func(body, a), resolve("c"))
    assert str(caught.value) == (
        "generate C code for the temporary T: its size is known only inside a loop\n"
        "  got       i + 1, where i varies\n"
        "  hint      attach the stage where its size does not depend on a loop"
    )


def test_a_call_of_code_from_outside_is_refused():
    a = buffer("A", 8)
    with pytest.raises(TargetError) as caught:
        emit(func(ExternCall("sgemm", "c", ()), a), resolve("c"))
    assert str(caught.value) == (
        "generate C code: a call of a registered function, which needs machine code\n"
        "  got       sgemm\n"
        "  hint      target='cpu'"
    )


def test_an_unknown_function_is_a_bug():
    a = buffer("A")
    call = Call("gamma", (number(1.0),), "float32")
    with pytest.raises(InternalError, match=r"unknown function gamma"):
        emit(func(Store(a, (), call), a), resolve("c"))
