"""The classic `decl_tensor_intrin`; a script of the tutorial's shape runs with the others."""

import ctypes

import numpy as np
import pytest

import dlcompiler
from dlcompiler.compat import tvm
from dlcompiler.errors import ExpressionError


def doubled():
    te = tvm.te
    a = te.placeholder((4, 4), name="a")
    return a, te.compute((4, 4), lambda i, j: a[i, j] * 2.0, name="c")


def test_tensors_without_a_buffer_are_compact():
    a, c = doubled()
    intrin = tvm.te.decl_tensor_intrin(c.op, lambda ins, outs: "any", name="twice")
    assert intrin.strides == {a: (4, 1), c: (4, 1)}
    A = tvm.te.placeholder((8, 8), name="A")
    C = tvm.te.compute((8, 8), lambda i, j: A[i, j] * 2.0, name="C")
    s = tvm.te.create_schedule(C.op)
    *_, i, _ = s[C].tile(*C.op.axis, 4, 4)
    with pytest.raises(tvm.TVMError, match="the elements of C lie too far apart"):
        s[C].tensorize(i, intrin)


def test_buffers_and_their_parameters():
    a, c = doubled()
    given = tvm.tir.decl_buffer((4, 4), name="a", strides=[tvm.te.var("s"), 1], offset_factor=4)
    intrin = tvm.te.decl_tensor_intrin(
        c.op,
        lambda ins, outs: "any",
        name="twice",
        binds={a: given},
        default_buffer_params={"offset_factor": 2},
    )
    assert intrin.strides[a] == (None, 1)
    assert intrin.offset_factors == {a: 4, c: 2}


def test_scalar_parameters_are_refused():
    _, c = doubled()
    with pytest.raises(ExpressionError) as error:
        tvm.te.decl_tensor_intrin(c.op, lambda ins, outs: "any", scalar_params=["x"])
    assert str(error.value) == (
        "decl_tensor_intrin tensor_intrin: scalar_params= is not supported\n"
        "  got       ['x']\n"
        "  hint      read the numbers from a tensor"
    )


POINTER, INTEGER = ctypes.c_void_p, ctypes.c_int64


@ctypes.CFUNCTYPE(None, POINTER, POINTER, POINTER, INTEGER, INTEGER, INTEGER)
def gemv_update(c, a, b, m, n, stride):
    floats = ctypes.POINTER(ctypes.c_float)
    out = np.ctypeslib.as_array(ctypes.cast(c, floats), (m,))
    vector = np.ctypeslib.as_array(ctypes.cast(a, floats), (n,))
    matrix = np.ctypeslib.as_array(ctypes.cast(b, floats), ((m - 1) * stride + n,))
    for row in range(m):
        out[row] += (vector * matrix[row * stride : row * stride + n]).sum()


@ctypes.CFUNCTYPE(None, POINTER, INTEGER)
def gemv_reset(c, m):
    np.ctypeslib.as_array(ctypes.cast(c, ctypes.POINTER(ctypes.c_float)), (m,))[:] = 0


def test_the_tutorials_calls_of_c():
    dlcompiler.register_extern("gemv_update", gemv_update, override=True)
    dlcompiler.register_extern("gemv_reset", gemv_reset, override=True)
    te, tir = tvm.te, tvm.tir
    a, b = te.placeholder((8,), name="a"), te.placeholder((16, 8), name="b")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute((16,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
    binds = {
        a: tir.decl_buffer(a.shape, a.dtype, name="A", offset_factor=1, strides=[1]),
        b: tir.decl_buffer(b.shape, b.dtype, name="B", offset_factor=1, strides=[te.var("s1"), 1]),
        c: tir.decl_buffer(c.shape, c.dtype, name="C", offset_factor=1, strides=[1]),
    }

    def intrin_func(ins, outs):
        (aa, bb), (cc,) = ins, outs

        def call(name, *args):
            ib = tir.ir_builder.create()
            ib.emit(tir.call_extern("int32", name, cc.access_ptr("w"), *args))
            return ib.get()

        pointers = aa.access_ptr("r"), bb.access_ptr("r")
        update = call("gemv_update", *pointers, 16, 8, bb.strides[0])
        return None, call("gemv_reset", 16), update

    A, B = te.placeholder((8, 32), name="A"), te.placeholder((32, 32), name="B")
    r = te.reduce_axis((0, 32), name="k")
    C = te.compute((8, 32), lambda i, j: te.sum(A[i, r] * B[j, r], axis=r), name="C")
    s = te.create_schedule(C.op)
    (x, y), (z,) = C.op.axis, C.op.reduce_axis
    yo, yi = s[C].split(y, factor=16)
    zo, zi = s[C].split(z, factor=8)
    s[C].reorder(x, yo, zo, yi, zi)
    s[C].tensorize(yi, te.decl_tensor_intrin(c.op, intrin_func, name="gemv", binds=binds))
    func = tvm.build(s, [A, B, C], target="llvm", name="gemv")
    rng = np.random.default_rng(0)
    left, right = rng.random((8, 32), "float32"), rng.random((32, 32), "float32")
    result = np.zeros((8, 32), "float32")
    func(left, right, result)
    np.testing.assert_allclose(result, left @ right.T, rtol=1e-5)
