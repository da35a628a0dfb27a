"""Hybrid script: an ordinary function of Python that is also a stage."""

import numpy as np
import tvm
from tvm import te
from tvm.te.hybrid import script


@script
def outer_product(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)  # noqa: F821
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            if i == j:
                c[i, j] = a[i] * b[j] + 1.0
            else:
                c[i, j] = a[i] * b[j]
    return c


x, y = np.random.rand(7).astype("float32"), np.random.rand(5).astype("float32")
expected = np.outer(x, y) + np.eye(7, 5, dtype="float32")
np.testing.assert_allclose(outer_product(x, y), expected, rtol=1e-6)

a = te.placeholder((7,), name="a")
b = te.placeholder((5,), name="b")
c = outer_product(a, b)
d = te.compute((7, 5), lambda i, j: c[i, j] * 2.0, name="d")
s = te.create_schedule(d.op)
print(tvm.lower(s, [a, b, d], simple_mode=True))
f = tvm.build(s, [a, b, d], "llvm")
result = tvm.nd.empty((7, 5))
f(tvm.nd.array(x), tvm.nd.array(y), result)
tvm.testing.assert_allclose(result.numpy(), 2 * expected, rtol=1e-6)
