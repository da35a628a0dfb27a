"""Small habits of classic code: names, calls and attributes in every spelling."""

import numpy as np
import tvm
import tvm.contrib.utils
import tvm.te as te_by_module
from tvm import nd, runtime, target, te, tir, topi
from tvm.contrib import cc, utils
from tvm.runtime import load_module
from tvm.te import compute, placeholder
from tvm.topi import nn
from tvm.topi.utils import get_const_tuple

assert te_by_module is te is tvm.te and compute is te.compute and utils is tvm.contrib.utils

# Unnamed tensors, elements by call, numbers of NumPy
n, m = 6, 5
A = placeholder((n, m), "float32", "A")
B = te.compute((n, m), lambda i, j: A[i, j] * np.float32(3))
C = te.compute((n, m), lambda i, j: B[i, j] + B(i, j))
D = te.compute(C.shape, lambda *i: C[i] - 1)
s = te.create_schedule([D.op])
print(s, A, B.op, C.op.axis, D.op.tag, B.op.body)
print(tvm.lower(s, [A, D], simple_mode=True, name="x"))

axis = s[D].op.axis[0]
assert (axis.dom.min, axis.dom.extent, axis.var.name) == (0, n, "i0")
assert [stage.op.name for stage in s.stages][0] == "A"
assert len(s[D].leaf_iter_vars) == len(D.op.axis) == D.ndim
assert get_const_tuple(A.shape) == (n, m)

with tvm.target.Target("llvm"):
    f = tvm.build(s, [A, D])
a = nd.array(np.random.rand(n, m).astype("float32"), tvm.cpu(0))
d = nd.array(np.zeros((n, m), "float32"), device=tvm.cpu())
f(a, d)
np.testing.assert_allclose(d.numpy(), a.asnumpy() * 6 - 1, rtol=1e-5)
tvm.build(tvm.lower(s, [A, D], name="named"), target="llvm")["named"](a, d)

# An unnamed reduction axis, and an annotation that is repeated
k = te.reduce_axis((0, m))
E = te.compute((n,), lambda i: te.sum(A[i, k], k))
s = te.create_schedule(E.op)
assert E.op.reduce_axis[0] == k and k in s[E].leaf_iter_vars
s[E].unroll(k)
s[E].unroll(k)
f = tvm.build(s, [A, E], name="rowsum")
e = nd.empty((n,))
f(a, e)
np.testing.assert_allclose(e.numpy(), a.numpy().sum(1), rtol=1e-5)
times = f.time_evaluator("rowsum", tvm.cpu(0), number=2, repeat=2, min_repeat_ms=1)(a, e)
assert times.mean > 0 and len(times.results) == 2
print(times)

# Tensors without dimensions, and extents that are integral floats
z = te.placeholder((), name="z")
w = te.compute((), lambda: z() * 2 + 1, name="w")
f = tvm.build(te.create_schedule(w.op), [z, w])
result = nd.empty(())
f(nd.array(np.array(3, "float32")), result)
assert result.numpy() == 7

P = te.compute((12 / 4, 4), lambda i, j: i * 4 + j, name="P")
f = tvm.build(te.create_schedule(P.op), [P])
p = nd.empty((3, 4), "int32")
f(p)
assert p.numpy().ravel().tolist() == list(range(12))

# A split by an integral float, and by a number of NumPy
s = te.create_schedule(D.op)
outer, inner = s[D].split(s[D].op.axis[1], factor=10 / 5)
s[D].split(inner, np.int64(1))
tvm.build(s, [A, D])

# All axes fused, however many there are, and a program printed without its output
s = te.create_schedule(E.op)
assert s[E].fuse(*s[E].op.axis) == s[E].op.axis[0]
s[E].reorder(s[E].op.axis[0])
print(tvm.lower(s, [A], simple_mode=True))

# What is here and what is not can be asked for
assert hasattr(tvm, "context") and not hasattr(tvm, "auto_scheduler")
dev = tvm.gpu(0) if hasattr(tvm, "gpu") else tvm.cpu(0)
assert dev.exist and str(dev) == "cuda(0)"

# Version 0.6
X = tvm.placeholder((4,), name="X")
Y = tvm.compute((4,), lambda i: X[i] + tvm.const(1, "float32"))
s = tvm.create_schedule(Y.op)
with tvm.transform.PassContext(opt_level=3):
    f = tvm.build(s, [X, Y], "llvm")
with tvm.build_config(auto_unroll_max_step=8):
    f = tvm.build(s, [X, Y], "llvm")
y = nd.empty((4,))
f(nd.array(np.arange(4, dtype="float32")), y)
assert y.numpy().tolist() == [1, 2, 3, 4]
print(f.get_source("asm"))
