"""Tensorize: a matrix-vector product as the intrinsic of a matrix product."""

import numpy as np
import tvm
from tvm import te

N, M, L = 64, 32, 48
A = te.placeholder((N, L), name="A")
B = te.placeholder((M, L), name="B")
k = te.reduce_axis((0, L), name="k")
C = te.compute((N, M), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")


def intrin_gemv(m, l, with_parts):
    a = te.placeholder((l,), name="a")
    b = te.placeholder((m, l), name="b")
    k = te.reduce_axis((0, l), name="k")
    c = te.compute((m,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
    Ab = tvm.tir.decl_buffer(a.shape, a.dtype, name="A", offset_factor=1, strides=[1])
    Bb = tvm.tir.decl_buffer(b.shape, b.dtype, name="B", offset_factor=1, strides=[te.var("s1"), 1])
    Cb = tvm.tir.decl_buffer(c.shape, c.dtype, name="C", offset_factor=1, strides=[1])

    def intrin_func(ins, outs):
        aa, bb = ins
        cc = outs[0]

        def reset(ib):
            out = ib.buffer_ptr(cc)
            with ib.for_range(0, m, name="r") as r:
                out[r] = 0.0

        def update(ib):
            out, vector, matrix = ib.buffer_ptr(cc), ib.buffer_ptr(aa), ib.buffer_ptr(bb)
            with ib.for_range(0, m, name="r") as r:
                with ib.for_range(0, l, name="c") as column:
                    out[r] = out[r] + vector[column] * matrix[r, column]

        def written(*parts):
            ib = tvm.tir.ir_builder.create()
            for part in parts:
                part(ib)
            return ib.get()

        body = written(reset, update)
        return (body, written(reset), written(update)) if with_parts else body

    return te.decl_tensor_intrin(c.op, intrin_func, name="gemv", binds={a: Ab, b: Bb, c: Cb})


def check(s):
    func = tvm.build(s, [A, B, C], target="llvm", name="gemv")
    dev = tvm.device("cpu", 0)
    a = np.random.uniform(size=(N, L)).astype("float32")
    b = np.random.uniform(size=(M, L)).astype("float32")
    c = tvm.nd.array(np.zeros((N, M), dtype="float32"), dev)
    func(tvm.nd.array(a, dev), tvm.nd.array(b, dev), c)
    tvm.testing.assert_allclose(c.numpy(), np.dot(a, b.T), rtol=1e-3)


factor = 16
s = te.create_schedule(C.op)
x, y = C.op.axis
(z,) = C.op.reduce_axis
yo, yi = s[C].split(y, factor=factor)
s[C].reorder(x, yo, yi, z)
gemv = intrin_gemv(factor, L, with_parts=False)
s[C].tensorize(yi, gemv)
print(tvm.lower(s, [A, B, C], simple_mode=True))
check(s)

# part of the reduction
s = te.create_schedule(C.op)
yo, yi = s[C].split(y, factor=factor)
zo, zi = s[C].split(z, factor=16)
s[C].reorder(x, yo, zo, yi, zi)
try:
    s[C].tensorize(yi, intrin_gemv(factor, 16, with_parts=False))
except tvm.TVMError as error:
    assert "has no update" in str(error)
else:
    raise AssertionError("a reduction without an update")
s[C].tensorize(yi, intrin_gemv(factor, 16, with_parts=True))
check(s)
