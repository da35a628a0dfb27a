"""More schedule primitives, of known extents: caches, pragmas, alignment, and what repeats."""

import numpy as np
import tvm
from tvm import te

n, m = 60, 44
A = te.placeholder((n, m), name="A")
B = te.compute((n, m), lambda i, j: A[i, j] + 1, name="B")
C = te.compute((n, m), lambda i, j: B[i, j] * 2, name="C")
a = np.random.uniform(size=(n, m)).astype("float32")


def run(s, args=None):
    args = [A, C] if args is None else args
    print(tvm.lower(s, args, simple_mode=True))
    mod = tvm.build(s, args, "llvm")
    c = tvm.nd.empty((n, m))
    mod(tvm.nd.array(a), c)
    np.testing.assert_allclose(c.numpy(), (a + 1) * 2, rtol=1e-6)


# cache_read
s = te.create_schedule(C.op)
AA = s.cache_read(A, "local", [B])
xo, xi = s[C].split(s[C].op.axis[0], factor=8)
s[B].compute_at(s[C], xo)
s[AA].compute_at(s[B], s[B].op.axis[0])
run(s)

# cache_write, and what both give together
s = te.create_schedule(C.op)
s[B].compute_inline()
CC = s.cache_write(C, "local")
xo, yo, xi, yi = s[C].tile(s[C].op.axis[0], s[C].op.axis[1], 16, 8)
s[CC].compute_at(s[C], yo)
s[CC].vectorize(s[CC].op.axis[1])
run(s)

# pragma, unrolling by hand
s = te.create_schedule(C.op)
xo, xi = s[C].split(s[C].op.axis[1], factor=4)
s[C].unroll(xi)
s[C].unroll(xi)
s[C].pragma(s[C].op.axis[0], "auto_unroll_max_step", 16)
s[C].pragma(s[C].op.axis[0], "unroll_explicit", True)
run(s)

# storage_align, set_scope, double_buffer, prefetch
s = te.create_schedule(C.op)
s[B].compute_at(s[C], s[C].op.axis[0])
s[B].storage_align(s[B].op.axis[0], 64, 8)
run(s)

s = te.create_schedule(C.op)
s[B].set_scope("local")
s[B].compute_at(s[C], s[C].op.axis[0])
run(s)

s = te.create_schedule(C.op)
s[B].compute_at(s[C], s[C].op.axis[0])
s[B].double_buffer()
run(s)

s = te.create_schedule(C.op)
s[B].compute_inline()
s[C].prefetch(A, s[C].op.axis[0], 1)
run(s)

# rolling_buffer, create_group, transform_layout with a separator
D = te.compute((n - 2, m), lambda i, j: B[i, j] + B[i + 2, j], name="D")
E = te.compute((n - 2, m), lambda i, j: D[i, j] + 1.0, name="E")
s = te.create_schedule(E.op)
group = s.create_group(outputs=[D], inputs=[A], include_inputs=False)
group.compute_at(s[E], s[E].op.axis[0])
s[B].transform_layout(lambda i, j: [i, te.AXIS_SEPARATOR, j])
s[B].rolling_buffer()
e = tvm.nd.empty((n - 2, m))
tvm.build(s, [A, E], "llvm")(tvm.nd.array(a), e)
np.testing.assert_allclose(e.numpy(), a[:-2] + a[2:] + 3, rtol=1e-6)

# normalize, and the list of stages
s = te.create_schedule(C.op)
s[B].compute_inline()
normalized = s.normalize()
assert len(s.stages) >= 2
run(s)
run(normalized)

# compute_at a vectorized leaf, split by an integral float
s = te.create_schedule(C.op)
xo, xi = s[C].split(s[C].op.axis[1], factor=int(m / 11))
s[C].vectorize(xi)
s[B].compute_at(s[C], xo)
run(s)

try:
    s[C].no_such_primitive()
except tvm.TVMError as e:
    assert "no_such_primitive" in str(e)
else:
    raise AssertionError("no_such_primitive")
