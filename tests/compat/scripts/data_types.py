"""Data types: what arrays and expressions hold, and conversions."""

import numpy as np
import tvm
from tvm import te

n = 100


def tvm_vector_add(dtype):
    A = te.placeholder((n,), dtype=dtype)
    B = te.placeholder((n,), dtype=dtype)
    C = te.compute(A.shape, lambda i: A[i] + B[i])
    print("expression dtype:", A.dtype, B.dtype, C.dtype)
    s = te.create_schedule(C.op)
    return tvm.build(s, [A, B, C])


def test_mod(mod, dtype):
    a = np.random.uniform(0, 100, size=n).astype(dtype)
    b = np.random.uniform(0, 100, size=n).astype(dtype)
    c = np.empty_like(a)
    a, b, c = (tvm.nd.array(x) for x in (a, b, c))
    print("tensor dtype:", a.dtype, b.dtype, c.dtype)
    assert a.dtype == dtype
    mod(a, b, c)
    np.testing.assert_array_equal(c.asnumpy(), a.asnumpy() + b.asnumpy())


for dtype in ("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16"):
    test_mod(tvm_vector_add(dtype), dtype)
test_mod(tvm_vector_add("float16"), "float16")

mod = tvm_vector_add("int32")
try:
    test_mod(mod, "float32")
except tvm.TVMError as e:
    print(e)
else:
    raise AssertionError("a wrong data type was taken")

# Converting Elements Data Types
A = te.placeholder((n,), dtype="float32")
B = te.placeholder((n,), dtype="float32")
C = te.compute(A.shape, lambda i: A[i].astype("float16") + B[i].astype("float16"))
s = te.create_schedule(C.op)
print(tvm.lower(s, [A, B, C], simple_mode=True))
mod = tvm.build(s, [A, B, C])
a, b = (np.random.normal(size=n).astype("float32") for _ in range(2))
c = tvm.nd.empty((n,), "float16")
mod(tvm.nd.array(a), tvm.nd.array(b), c)
np.testing.assert_array_equal(c.asnumpy(), a.astype("float16") + b.astype("float16"))

A = te.placeholder((n,), dtype="float32")
B = te.compute(A.shape, lambda i: A[i].astype("int32").astype("float32"))
C = te.compute(A.shape, lambda i: A[i] > 0)
s = te.create_schedule([B.op, C.op])
mod = tvm.build(s, [A, B, C])
b, c = tvm.nd.empty((n,)), tvm.nd.empty((n,), "bool")
mod(tvm.nd.array(a * 10), b, c)
np.testing.assert_array_equal(b.asnumpy(), np.trunc(a * 10))
np.testing.assert_array_equal(c.asnumpy(), a > 0)
