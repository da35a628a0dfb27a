"""Classic code that calls code from outside: the tutorial "extern", BLAS, loop IR by hand."""

import numpy as np
import pytest

from dlcompiler import te as own
from dlcompiler.compat import tvm
from dlcompiler.compat.tvm import te
from dlcompiler.compat.tvm.contrib import cblas
from dlcompiler.errors import ExpressionError, UserError


def _nd(*shape):
    return tvm.nd.array(np.random.default_rng(0).uniform(size=shape).astype("float32"))


@pytest.mark.parametrize("is_short", [False, True])
def test_the_tutorial(is_short):
    n, k, m = 24, 13, 9
    bias = te.var("bias", dtype="float32")
    A, B = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    if is_short:
        C = cblas.matmul(A, B)
    else:
        C = te.extern(
            (n, m),
            [A, B],
            lambda ins, outs: tvm.tir.call_packed(
                "tvm.contrib.cblas.matmul", ins[0], ins[1], outs[0], False, False
            ),
            name="C",
        )
    D = te.compute(C.shape, lambda i, j: C[i, j] + bias, name="D")
    f = tvm.build(te.create_schedule(D.op), [A, B, D, bias], "llvm")
    a, b, d = _nd(n, k), _nd(k, m), _nd(n, m)
    f(a, b, d, 10.0)
    np.testing.assert_allclose(d.numpy(), np.dot(a.numpy(), b.numpy()) + 10, rtol=1e-5)
    assert f.time_evaluator(f.entry_name, tvm.cpu(0), number=2)(a, b, d, 1.0).mean > 0


def test_a_function_gets_arrays_of_classic_code():
    @tvm.register_func("tvm.contrib.my_tvm_addone", override=True)
    def my_tvm_addone(x, y):
        assert isinstance(x, tvm.nd.NDArray)
        tvm.nd.array(x.asnumpy() + 1).copyto(y)

    assert tvm.get_global_func("tvm.contrib.my_tvm_addone") is my_tvm_addone
    A = te.placeholder((7,), name="A")
    B = te.extern(
        A.shape,
        [A],
        lambda ins, outs: tvm.tir.call_packed("tvm.contrib.my_tvm_addone", ins[0], outs[0]),
    )
    a, b = _nd(7), tvm.nd.empty((7,))
    tvm.build(te.create_schedule(B.op), [A, B], "llvm")(a, b)
    np.testing.assert_array_equal(b.numpy(), a.numpy() + 1)
    assert tvm.get_global_func("tvm.contrib.nothing", allow_missing=True) is None
    with pytest.raises(UserError, match="not a function"):
        tvm.register_func("tvm.contrib.none", 3)


def test_version_0_6_has_the_names_at_the_top():
    assert tvm.extern is own.extern
    assert tvm.call_packed is tvm.tir.call_packed
    assert isinstance(tvm.ir_builder.create(), tvm.tir.ir_builder.IRBuilder)


@pytest.mark.parametrize("transa", [False, True])
@pytest.mark.parametrize("transb", [False, True])
def test_products_of_turned_matrices(transa, transb):
    a, b = np.random.default_rng(1).random((2, 3, 5, 4), "float32")[:, :, :, :]
    left = a.swapaxes(-1, -2).copy() if transa else a
    right = b if transb else b.swapaxes(-1, -2).copy()
    A, B = te.placeholder(left.shape, name="A"), te.placeholder(right.shape, name="B")
    C = cblas.batch_matmul(A, B, transa, transb)
    np.testing.assert_allclose(own.evaluate(C, [left, right]), a @ b.swapaxes(-1, -2), rtol=1e-5)
    A2, B2 = te.placeholder(left.shape[1:]), te.placeholder(right.shape[1:])
    assert cblas.matmul(A2, B2, transa, transb).shape == (5, 5)


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (((3, 4), (3, 4)), "the shapes do not match"),
        (
            ((3, 4, 1), (4, 3)),
            "it needs two tensors of one dtype, with the right number of dimensions",
        ),
    ],
)
def test_products_that_do_not_fit(shapes, text):
    with pytest.raises(ExpressionError, match=text):
        cblas.matmul(*(te.placeholder(shape) for shape in shapes))


def test_loop_ir_by_hand():
    def code(ins, outs):
        ib = tvm.tir.ir_builder.create()
        a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 10, name="i", kind="parallel") as i:
            with ib.if_scope(ib.likely(i % 2 == 0)):
                b[i] = a[i]
            with ib.else_scope():
                b[i] = tvm.tir.const(0, "float32")
        return ib.get()

    A = te.placeholder((10,), name="A")
    B = te.extern((10,), [A], code, dtype="float32", name="B")
    a, b = _nd(10), _nd(10)
    tvm.build(te.create_schedule(B.op), [A, B], "llvm")(a, b)
    expected = a.numpy()
    expected[1::2] = 0
    np.testing.assert_array_equal(b.numpy(), expected)


def test_what_a_builder_lacks_says_so():
    ib = tvm.tir.ir_builder.create()
    with pytest.raises(UserError, match=r"IRBuilder.scope_attr is not part of dlcompiler yet"):
        ib.scope_attr(None, "thread_extent", 4)
