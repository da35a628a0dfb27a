"""Vector addition of a known size, with the helper module, as a first chapter has it."""

import d2ltvm
import numpy as np
import tvm
from tvm import te

np.random.seed(0)
n = 100
a = np.random.normal(size=n).astype(np.float32)
b = np.random.normal(size=n).astype(np.float32)
c = a + b


def vector_add(n):
    """TVM expression for vector add"""
    A = te.placeholder((n,), name="a")
    B = te.placeholder((n,), name="b")
    C = te.compute(A.shape, lambda i: A[i] + B[i], name="c")
    return A, B, C


A, B, C = vector_add(n)
assert type(A) is type(C)
assert (A.dtype, A.shape) == ("float32", (n,))
print((A.op, C.op))
assert A.op.name == "a" and A.op != C.op
assert [t.name for t in C.op.input_tensors] == ["a", "b"]
assert C.op.axis[0].dom is not None

s = te.create_schedule(C.op)
print(type(s), type(s[C]))
print(tvm.lower(s, [A, B, C], simple_mode=True))
mod = tvm.build(s, [A, B, C])
print(type(mod))


def get_abc(shape, constructor=None):
    a = np.random.normal(size=shape).astype(np.float32)
    b = np.random.normal(size=shape).astype(np.float32)
    c = np.empty_like(a)
    if constructor:
        a, b, c = (constructor(x) for x in (a, b, c))
    return a, b, c


a, b, c = get_abc(100, tvm.nd.array)
mod(a, b, c)
np.testing.assert_array_equal(a.asnumpy() + b.asnumpy(), c.asnumpy())

try:
    a, b, c = get_abc(200, tvm.nd.array)
    mod(a, b, c)
except tvm.TVMError as e:
    print(e)
else:
    raise AssertionError("a wrong shape was taken")

try:
    a, b, c = get_abc(100, tvm.nd.array)
    a = tvm.nd.array(a.asnumpy().astype("float64"))
    mod(a, b, c)
except tvm.TVMError as e:
    print(e)
else:
    raise AssertionError("a wrong dtype was taken")

import os
import tempfile

with tempfile.TemporaryDirectory() as folder:
    mod_fname = os.path.join(folder, "vector-add.tar")
    mod.export_library(mod_fname)
    loaded_mod = tvm.runtime.load_module(mod_fname)
    a, b, c = get_abc(100, tvm.nd.array)
    loaded_mod(a, b, c)
    np.testing.assert_array_equal(a.asnumpy() + b.asnumpy(), c.asnumpy())

target = "llvm -mcpu=skylake-avx512"


def default(n):
    A, B, C = d2ltvm.vector_add(n)
    s = te.create_schedule(C.op)
    return s, (A, B, C)


def parallel(n):
    s, (A, B, C) = default(n)
    s[C].parallel(C.op.axis[0])
    return s, (A, B, C)


def vectorized(n):
    s, (A, B, C) = default(n)
    outer, inner = s[C].split(C.op.axis[0], factor=8)
    s[C].parallel(outer)
    s[C].vectorize(inner)
    return s, (A, B, C)


for schedule in (default, parallel, vectorized):
    s, args = schedule(1003)
    print(tvm.lower(s, args, simple_mode=True))
    mod = tvm.build(s, args, target)
    ctx = tvm.context(target, 0)
    a, b, c = d2ltvm.get_abc(1003, lambda x: tvm.nd.array(x, ctx=ctx))
    mod(a, b, c)
    np.testing.assert_array_equal(a.asnumpy() + b.asnumpy(), c.asnumpy())
    timer = mod.time_evaluator(mod.entry_name, ctx=ctx, number=3)
    assert timer(a, b, c).mean > 0
