"""Vector addition: sizes known and symbolic, errors, saved and loaded."""

import numpy as np
import tvm
import tvm.testing
from tvm import te
from tvm.contrib import cc, utils

n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.placeholder((n,), name="B")
C = te.compute(A.shape, lambda i: A[i] + B[i], name="C")
print(type(C))

s = te.create_schedule(C.op)
print(tvm.lower(s, [A, B, C], simple_mode=True))

tgt = tvm.target.Target(target="llvm", host="llvm")
fadd = tvm.build(s, [A, B, C], tgt, name="myadd")
dev = tvm.device(tgt.kind.name, 0)

for size in (1, 10, 1024, 1000):
    a = tvm.nd.array(np.random.uniform(size=size).astype(A.dtype), dev)
    b = tvm.nd.array(np.random.uniform(size=size).astype(B.dtype), dev)
    c = tvm.nd.array(np.zeros(size, dtype=C.dtype), dev)
    fadd(a, b, c)
    tvm.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())


def evaluate_addition(func, target, optimization, log):
    dev = tvm.device(target.kind.name, 0)
    n = 32768
    a = tvm.nd.array(np.random.uniform(size=n).astype(A.dtype), dev)
    b = tvm.nd.array(np.random.uniform(size=n).astype(B.dtype), dev)
    c = tvm.nd.array(np.zeros(n, dtype=C.dtype), dev)
    evaluator = func.time_evaluator(func.entry_name, dev, number=10)
    mean_time = evaluator(a, b, c).mean
    print("%s: %f" % (optimization, mean_time))
    log.append((optimization, mean_time))


log = []
evaluate_addition(fadd, tgt, "naive", log)

s[C].parallel(C.op.axis[0])
fadd_parallel = tvm.build(s, [A, B, C], tgt, name="myadd_parallel")
fadd_parallel(a, b, c)
tvm.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())
evaluate_addition(fadd_parallel, tgt, "parallel", log)

s = te.create_schedule(C.op)
factor = 4
outer, inner = s[C].split(C.op.axis[0], factor=factor)
s[C].parallel(outer)
s[C].vectorize(inner)
fadd_vector = tvm.build(s, [A, B, C], tgt, name="myadd_parallel_vector")
for size in (1, 3, 4, 1023):
    a = tvm.nd.array(np.random.uniform(size=size).astype("float32"))
    b = tvm.nd.array(np.random.uniform(size=size).astype("float32"))
    c = tvm.nd.empty((size,))
    fadd_vector(a, b, c)
    np.testing.assert_array_equal(c.asnumpy(), a.asnumpy() + b.asnumpy())
evaluate_addition(fadd_vector, tgt, "vector", log)
print(tvm.lower(s, [A, B, C], simple_mode=True))
assert len(log) == 3 and all(t > 0 for _, t in log)

for wrong in (np.zeros(7, "float32"), np.zeros(1023, "float64")):
    try:
        fadd_vector(a, b, tvm.nd.array(wrong))
    except tvm.TVMError as e:
        print(e)
    else:
        raise AssertionError("a wrong argument was taken")

temp = utils.tempdir()
fadd.save(temp.relpath("myadd.o"))
cc.create_shared(temp.relpath("myadd.so"), [temp.relpath("myadd.o")])
print(temp.listdir())
fadd1 = tvm.runtime.load_module(temp.relpath("myadd.so"))
c = tvm.nd.empty((1023,))
fadd1(a, b, c)
np.testing.assert_array_equal(c.asnumpy(), a.asnumpy() + b.asnumpy())
