"""Small habits of classic code in `te` and `tir` that differ from this project's own."""

import numpy as np
import pytest

from dlcompiler import te as own
from dlcompiler.compat import tvm
from dlcompiler.compat.tvm import te, tir
from dlcompiler.errors import CallError, ExpressionError


def test_errors_are_runtime_errors():
    assert issubclass(tvm.TVMError, RuntimeError)
    B = te.compute((4,), lambda i: i, name="B")
    s = te.create_schedule(B.op)
    with pytest.raises(RuntimeError, match="split"):
        s[B].split(B.op.axis[0], 0)
    assert isinstance(CallError("call", "wrong"), ValueError)


def test_one_shape_in_a_list_gives_a_tensor():
    A = te.placeholder((3,), name="A")
    call = lambda ins, outs: tir.call_packed("tests.copy", ins[0], outs[0])  # noqa: E731
    made = te.extern([(3,)], [A], call, name="E")
    assert (made.name, made.shape, len(made.op.outputs)) == ("E", (3,), 1)
    two = te.extern([(3,), (3,)], [A], lambda i, o: tir.call_packed("f", *i, *o), name="F")
    assert len(two) == 2


def test_classes_of_expressions():
    n, x = te.var("n"), te.var("x", "float32")
    assert isinstance(tir.Cast("int8", n), tir.Cast)
    assert isinstance(x.astype("float64"), tir.Cast)
    assert not isinstance(x, tir.Cast)
    assert not isinstance(n, tir.Any)
    assert not isinstance(tir.any(n > 1, x > 2), tir.Any)
    with pytest.raises(ExpressionError, match=r"tir\.Any: a symbolic extent needs a name"):
        tir.Any()


@pytest.mark.parametrize(("text", "mode"), [("wr", "rw"), ("rw", "rw"), ("r", "r"), ("ww", "w")])
def test_letters_of_an_access_stand_in_any_order(text, mode):
    buffer = tir.decl_buffer((4,), "float32", name="B")
    assert buffer.access_ptr(text).mode == mode


@pytest.mark.parametrize("mask", ["", "x", "rx", 0, None])
def test_other_accesses(mask):
    buffer = tir.decl_buffer((4,), "float32", name="B")
    with pytest.raises(ExpressionError, match="access_ptr of B: no such access"):
        buffer.access_ptr(mask)


def test_tags_nest():
    with te.tag_scope("outer"):
        with te.tag_scope("inner"):
            inner = te.compute((3,), lambda i: i)
        outer = te.compute((3,), lambda i: i)
    plain = te.compute((3,), lambda i: i)
    assert (inner.op.tag, outer.op.tag, plain.op.tag) == ("inner", "outer", "")


def test_a_tag_for_a_function():
    @te.tag_scope("conv")
    def make():
        return te.compute((3,), lambda i: i)

    assert make().op.tag == make().op.tag == "conv"


@pytest.mark.parametrize("place", [te, tir, tvm])
def test_division_of_floats(place):
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: place.floordiv(A[i], 2.0), name="B")
    C = te.compute((4,), lambda i: place.floormod(A[i], 2.0), name="C")
    a = np.array([-7.5, 7.5, 4.0, -0.5], "float32")
    b, c = te.evaluate([B, C], {A: a})
    np.testing.assert_array_equal(b, [-4, 3, 2, -1])
    np.testing.assert_array_equal(c, [0.5, 1.5, 0, 1.5])
    n = te.var("n")
    assert str(place.floordiv(n, 4)) == "n // 4"
    assert str(place.floormod(n, 4)) == "n % 4"


def test_a_function_of_a_condition():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: te.exp(A[i] > 0), name="B")
    assert B.dtype == "float32"
    got = te.evaluate(B, {A: np.array([-1, 1, 0, 2], "float32")})
    np.testing.assert_allclose(got, np.exp([0, 1, 0, 1]), rtol=1e-6)


def test_select_is_a_class():
    x = te.var("x", "float32")
    zero = tir.const(0, "float32")
    made = tir.Select(condition=x > 0, true_value=x, false_value=zero)
    assert isinstance(made, tir.Select)
    assert str(made) == str(tir.Select(x > 0, x, zero)) == str(te.select(x > 0, x, zero))
    assert not isinstance(x, tir.Select)


def test_a_reducer_without_an_axis_combines():
    product = te.comm_reducer(lambda x, y: x * y, lambda kind: tir.const(1, kind), name="product")
    n, m = te.var("n"), te.var("m")
    assert str(product(n, m)) == str(n * m)
    A, k = te.placeholder((4, 3), name="A"), te.reduce_axis((0, 3), name="k")
    B = te.compute((4,), lambda i: product(A[i, k], axis=k), name="B")
    a = np.arange(12, dtype="float32").reshape(4, 3)
    np.testing.assert_array_equal(te.evaluate(B, {A: a}), a.prod(axis=1))


def test_questions_to_operations_and_expressions():
    A = te.placeholder((4,), name="A")
    B, C = te.compute((4,), lambda i: (A[i] + 1.0, A[i] * 2.0), name="B")
    assert (A.op.num_outputs, B.op.num_outputs, C.value_index) == (1, 2, 1)
    n = te.var("n")
    assert n.same_as(n)
    assert not n.same_as(te.var("n"))


@pytest.mark.parametrize("make", [tvm.tir.const, tvm.te.const, tvm.const, tvm.convert])
def test_a_literal_without_a_dtype_takes_a_wider_one_where_it_must(make):
    values = [1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**40, True, 0.5, 1e300, -1e300]
    assert [make(value).dtype for value in values] == [
        *("int32", "int32", "int64", "int32", "int64", "int64", "bool"),
        *("float32", "float64", "float64"),
    ]
    assert make(float("inf")).dtype == "float32"
    assert make(2**40).value == 2**40
    with pytest.raises(ExpressionError, match="does not fit int64"):
        make(2**63)


def test_a_wide_number_is_cast():
    wide = tvm.topi.cast(2**40, "int64")
    assert (wide.dtype, wide.value) == ("int64", 2**40)
    assert str(tvm.tir.Cast("int32", 2**40)) == "int32(1099511627776)"
    assert tvm.topi.cast(1e300, "float64").value == 1e300


def test_a_literal_of_our_own_says_how_it_is_wide():
    with pytest.raises(ExpressionError, match=r"give a dtype: te.const\(value, 'int64'\)"):
        own.const(2**40)
