"""Tensors that code from outside computes: evaluated, specialised, refused."""

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import ExpressionError, ProgramError
from dlcompiler.ir import Builder, call_extern, call_packed, decl_buffer
from dlcompiler.runtime.registry import register_func

A = te.placeholder((4, 3), name="A")
B = te.placeholder((3, 5), name="B")


@register_func("test.te.matmul", override=True)
def _matmul(a, b, c):
    np.matmul(a, b, out=c)


@register_func("test.te.divmod", override=True)
def _divmod(a, by, quotient, remainder):
    quotient[...], remainder[...] = a // by, a % by


def _product(a=A, b=B):
    return te.extern(
        (a.shape[0], b.shape[1]),
        [a, b],
        lambda ins, outs: call_packed("test.te.matmul", *ins, *outs),
        name="C",
    )


def _squares(ins, outs):
    ib = Builder()
    a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
    with ib.for_range(0, ins[0].shape[0]) as i:
        b[i] = a[i] * a[i]
    return ib.get()


def test_a_function_of_python():
    a, b = np.random.default_rng(0).random((2, 4, 5), "float32")
    a, b = a[:, :3].copy(), b[:3].copy()
    C = _product()
    D = te.compute(C.shape, lambda i, j: C[i, j] + 1.0, name="D")
    assert repr(C) == "Tensor(C: float32[4, 5])"
    assert C.op.input_tensors == (A, B)
    np.testing.assert_allclose(te.evaluate(D, {A: a, B: b}), a @ b + 1, rtol=1e-6)
    wide = te.evaluate(D, {A: a, B: b}, accumulate="float64")
    assert wide.dtype == np.float64
    assert np.all(np.abs(wide - (a @ b + 1)) <= te.tolerance(D, {A: a, B: b}))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64"])
def test_several_outputs(dtype):
    N = te.placeholder((2, 7), dtype, name="N")
    Q, R = te.extern(
        [(2, 7), (2, 7)],
        [N],
        lambda ins, outs: call_packed("test.te.divmod", ins[0], 3, *outs),
        name="QR",
        dtype=[dtype, "int32"],
    )
    assert (Q.name, R.name, R.dtype) == ("QR.v0", "QR.v1", "int32")
    n = np.arange(14).reshape(2, 7).astype(dtype)
    quotient, remainder = te.evaluate([Q, R], [n])
    assert np.array_equal(quotient, n // 3)
    assert np.array_equal(remainder, n % 3)
    assert not te.tolerance(Q, [n]).any()


@pytest.mark.parametrize("size", [0, 1, 13])
def test_statements_of_a_symbolic_shape(size):
    n = te.var("n")
    X = te.placeholder((n,), name="X")
    S = te.extern((n,), [X], _squares, name="S")
    x = np.linspace(-1, 1, size, dtype="float32")
    np.testing.assert_array_equal(te.evaluate(S, [x]), x * x)
    assert te.symbols_of([S]) == (n,)


def test_memory_of_a_symbolic_shape():
    n = te.var("n")
    X = te.placeholder((n,), name="X")

    def twice(ins, outs):
        ib = Builder()
        x, y, t = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0]), ib.allocate("float32", (n,), "t")
        with ib.for_range(0, n) as i:
            t[i] = x[i] + x[i]
        with ib.for_range(0, n) as i:
            y[i] = t[i]
        return ib.get()

    x = np.arange(6, dtype="float32")
    assert np.array_equal(te.evaluate(te.extern((n,), [X], twice), [x]), 2 * x)


def test_buffers_of_the_users_own():
    mine = decl_buffer((4,), "float32", name="mine", data_alignment=32)
    X = te.placeholder((4,), name="X")
    S = te.extern((4,), [X], _squares, in_buffers=[mine], out_buffers=decl_buffer((4,), name="o"))
    assert "o[i] = mine[i]*mine[i]" in S.op.text
    assert np.array_equal(te.evaluate(S, [np.full(4, 3, "float32")]), np.full(4, 9))


def test_one_tensor_twice():
    X = te.placeholder((3, 3), name="X")
    x = np.arange(9, dtype="float32").reshape(3, 3)
    assert np.array_equal(te.evaluate(_product(X, X), [x]), x @ x)


def test_the_oracle_checks_what_statements_do():
    def wrong(ins, outs):
        ib = Builder()
        a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 4) as i, ib.if_scope(i < 5):
            b[i] = a[i + 1]
        return ib.get()

    X = te.placeholder((4,), name="X")
    with pytest.raises(ProgramError, match=r"X\[4\] is out of bounds"):
        te.evaluate(te.extern((4,), [X], wrong), [np.zeros(4, "float32")])


def test_what_is_not_written_is_0():
    def half(ins, outs):
        ib = Builder()
        with ib.for_range(0, 4) as i, ib.if_scope(ib.buffer_ptr(ins[0])[i] > 0):
            ib.buffer_ptr(outs[0])[i] = 1.0
        return ib.get()

    X = te.placeholder((4,), name="X")
    found = te.evaluate(te.extern((4,), [X], half), [np.array([1, 0, -1, 2], "float32")])
    assert found.tolist() == [1, 0, 0, 1]


def test_code_of_c_has_no_oracle():
    X = te.placeholder((4,), name="X")
    Y = te.extern(
        (4,), [X], lambda i, o: call_extern("int32", "f", o[0].access_ptr("w"), i[0].access_ptr(1))
    )
    with pytest.raises(ProgramError, match="the interpreter cannot run f, a C function"):
        te.evaluate(Y, [np.zeros(4, "float32")])


def test_what_a_function_raises_goes_through():
    @register_func("test.te.raises", override=True)
    def raises(*_):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        te.evaluate(
            te.extern((4,), [A], lambda i, o: call_packed("test.te.raises", *i, *o)),
            [np.zeros((4, 3), "float32")],
        )


def _stored(at):
    def code(ins, outs):
        ib = Builder()
        with ib.for_range(0, 4) as i:
            ib.buffer_ptr(outs[0])[at(i)] = 1.0
        return ib.get()

    return code


def _call(*args):
    return lambda ins, outs: call_packed("f", *(arg(ins, outs) for arg in args))


OUT = lambda ins, outs: outs[0]  # noqa: E731 - short where it is used


@pytest.mark.parametrize(
    ("code", "options", "text"),
    [
        (lambda i, o: None, {}, "does not return statements"),
        (lambda i, o: o[0].vload((0,)), {}, "does not return statements"),
        (_call(lambda i, o: i[0]), {}, "nothing writes E"),
        (_call(OUT, lambda i, o: i[0].access_ptr("rw")), {}, "the code writes its input A"),
        (_call(OUT, lambda i, o: A[0, 0]), {}, "left over from the tensor expression"),
        (_call(OUT, lambda i, o: te.reduce_axis((0, 3)).var), {}, "used outside its loop"),
        (_call(lambda i, o: decl_buffer((4,)).access_ptr("w")), {}, "which is not allocated here"),
        (_stored(lambda i: i + 1), {}, r"uses an element outside its buffer"),
        (_stored(lambda i: 3 * i - 6), {}, r"E\[3\*i - 6\], -6 in dimension 0 of extent 4"),
        (_call(lambda i, o: o[0].region((2,), (3,))), {}, "uses an element outside its buffer"),
        (_call(OUT), {"dtype": ["int8", "int8"]}, "wrong number of dtypes"),
        (_call(OUT), {"dtype": "index"}, "not the dtype of a tensor"),
        (_call(OUT), {"in_buffers": []}, "wrong number of in_buffers"),
        (
            _call(OUT),
            {"out_buffers": [decl_buffer((5,))]},
            "the buffer given for E does not fit it",
        ),
        (_call(OUT), {"out_buffers": [decl_buffer((4,), strides=[2])]}, "does not fit it"),
        (_call(OUT), {"name": "a b"}, "not usable as a name"),
    ],
)
def test_what_is_refused(code, options, text):
    with pytest.raises(ExpressionError, match=text):
        te.extern((4,), [A], code, **{"name": "E", **options})


def test_inputs_that_are_none_or_mixed():
    with pytest.raises(ExpressionError, match="an input is not a tensor"):
        te.extern((4,), ["A"], _call(OUT))
    with pytest.raises(ExpressionError, match="the dtype of the result is not given"):
        te.extern((4,), [], _call(OUT))
    N = te.placeholder((4,), "int8", name="N")
    with pytest.raises(ExpressionError, match="the inputs have the dtypes float32 and int8"):
        te.extern((4,), [A, N], _call(OUT))


def test_code_from_outside_has_no_notation():
    with pytest.raises(
        ExpressionError, match=r"write C as notation: a tensor computed by te\.extern has no"
    ):
        te.notation_text(_product())
    with pytest.raises(ExpressionError, match=r"s.trace.to_python"):
        te.notation_python(_product())


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32"])
def test_a_function_that_leaves_out_an_element_is_refused(dtype):
    @register_func("test.te.leaves_out", override=True)
    def leaves_out(a, b):
        b[...] = a
        b[2, 1] = before

    for before in (0, 1):
        X = te.placeholder((4, 3), dtype, name="X")
        Y = te.extern((4, 3), [X], lambda i, o: call_packed("test.te.leaves_out", *i, *o), name="Y")
        assert te.evaluate(Y, [np.ones((4, 3), dtype)])[2, 1] == before

    @register_func("test.te.leaves_out", override=True)
    def leaves_out_for_real(a, b):
        b[:2] = a[:2]
        b[2, 0], b[2, 2], b[3] = 0, 0, 0

    for value in (0, 1):
        with pytest.raises(ProgramError) as caught:
            te.evaluate(Y, [np.full((4, 3), value, dtype)])
        assert caught.value.index == (2, 1)
        assert str(caught.value).splitlines()[:2] == [
            "evaluate Y: 1 elements of its outputs are never written",
            "  got       the first is Y[2, 1]",
        ]
