"""Schedules as a course mixes them: layouts, caches inside tiles, several outputs, all data types."""

import numpy as np, tvm, tvm.testing
from tvm import te, topi

R = np.random.default_rng(0)
f32 = lambda *s: R.normal(size=s).astype("float32")


def run(s, args, arrays, wanted, rtol=1e-4):
    print(tvm.lower(s, args, simple_mode=True))
    f = tvm.build(s, args, "llvm", name="k")
    n = len(args) - len(arrays)
    outs = [tvm.nd.empty(tuple(t.shape), t.dtype) for t in args[-n:]]
    f(*[tvm.nd.array(x) for x in arrays], *outs)
    for o, w in zip(outs, wanted if n > 1 else [wanted]):
        tvm.testing.assert_allclose(o.numpy(), w, rtol=rtol, atol=1e-4)


# relayout idiom: cache_write after reorder
A = te.placeholder((16, 24), name="A")
B = te.compute((16, 24), lambda i, j: A[i, j] * 2, name="B")
s = te.create_schedule(B.op)
i, j = B.op.axis
io, jo, ii, ji = s[B].tile(i, j, 4, 8)
BL = s.cache_write(B, "global")
print(BL.shape)
a = f32(16, 24)
run(s, [A, B], [a], a * 2)
# dense + bias + relu, 3 level nest
X = te.placeholder((20, 30), name="X")
W = te.placeholder((40, 30), name="W")
b = te.placeholder((40,), name="b")
out = topi.nn.relu(topi.nn.dense(X, W, b))
bias = out.op.input_tensors[0]
dense = bias.op.input_tensors[0]
s = te.create_schedule(out.op)
s[bias].compute_inline()
io, jo, ii, ji = s[out].tile(*out.op.axis, 5, 8)
s[dense].compute_at(s[out], jo)
s[out].vectorize(ji)
di, dj = s[dense].op.axis
(k,) = s[dense].op.reduce_axis
ko, ki = s[dense].split(k, 4)
s[dense].reorder(ko, di, ki, dj)
s[dense].vectorize(dj)
s[dense].unroll(di)
XX = s.cache_read(X, "local", [dense])
s[XX].compute_at(s[dense], ko)
x, w, bb = f32(20, 30), f32(40, 30), f32(40)
run(s, [X, W, b, out], [x, w, bb], np.maximum(x @ w.T + bb, 0))
# conv2d NHWC with fuse/parallel, AutoInline, compute_at pad
I = te.placeholder((2, 9, 9, 4), name="I")
F = te.placeholder((3, 3, 4, 6), name="F")
c = topi.nn.conv2d_nhwc(I, F, 2, 1, 1, "float32")
s = te.create_schedule(c.op)
te.schedule.AutoInlineInjective(s)
n, y, xx, ch = c.op.axis
s[c].parallel(s[c].fuse(n, y))
s[c].reorder(*c.op.reduce_axis, ch)
s[c].vectorize(ch)
im, fl = f32(2, 9, 9, 4), f32(3, 3, 4, 6)
run(s, [I, F, c], [im, fl], topi.testing.conv2d_nhwc_python(im, fl, 2, 1))
# softmax with schedule: compute_at max/exp/sum
Z = te.placeholder((6, 50), name="Z")
sm = topi.nn.softmax(Z)
s = te.create_schedule(sm.op)
ex, su = sm.op.input_tensors
mx = [t for t in ex.op.input_tensors if t != Z][0]
for t in (su, ex, mx):
    s[t].compute_at(s[sm], sm.op.axis[0])
s[sm].parallel(sm.op.axis[0])
s[ex].vectorize(s[ex].split(ex.op.axis[1], 8)[1])
z = f32(6, 50)
run(s, [Z, sm], [z], topi.testing.softmax_python(z, 1))
# several outputs of a schedule
P = te.placeholder((10,), name="P")
q = te.compute((10,), lambda i: P[i] + 1, name="q")
r = te.compute((10,), lambda i: q[i] * 2, name="r")
s = te.create_schedule([q.op, r.op])
p = f32(10)
run(s, [P, q, r], [p], [p + 1, (p + 1) * 2])
s = te.create_schedule(r.op)
run(s, [P, q, r], [p], [p + 1, (p + 1) * 2])  # inner as argument
# argmax builtin
k = te.reduce_axis((0, 50), "k")
ai, av = te.compute((6,), lambda i: te.argmax(Z[i, k], axis=k), name="am")
s = te.create_schedule(ai.op)
run(s, [Z, ai, av], [z], [z.argmax(1), z.max(1)])
# float16, bfloat16, uint8, bool
H = te.placeholder((8,), "float16", name="H")
h2 = te.compute((8,), lambda i: H[i] * H[i] + te.const(1, "float16"), name="h2")
hv = f32(8).astype("float16")
run(te.create_schedule(h2.op), [H, h2], [hv], hv * hv + np.float16(1), rtol=1e-3)
U = te.placeholder((8,), "uint8", name="U")
u2 = te.compute((8,), lambda i: U[i] + te.const(250, "uint8"), name="u2")
uv = np.arange(8, dtype="uint8")
run(te.create_schedule(u2.op), [U, u2], [uv], uv + np.uint8(250))
u3 = te.compute((8,), lambda i: (U[i] << 2) ^ (~U[i]), name="u3")
run(te.create_schedule(u3.op), [U, u3], [uv], (uv << 2) ^ ~uv)
# two reduction axes fused, then factored
M = te.placeholder((12, 10), name="M")
k1, k2 = te.reduce_axis((0, 12), "k1"), te.reduce_axis((0, 10), "k2")
t = te.compute((1,), lambda i: te.sum(M[k1, k2], axis=[k1, k2]), name="t")
s = te.create_schedule(t.op)
kf = s[t].fuse(k1, k2)
ko, ki = s[t].split(kf, factor=16)
tf = s.rfactor(t, ki)
s[tf].vectorize(s[tf].op.axis[0])
m = f32(12, 10)
run(s, [M, t], [m], m.sum().reshape(1))
s = te.create_schedule(t.op)
ko, ki = s[t].split(k1, nparts=3)
tf = s.rfactor(t, ko)
s[tf].parallel(s[tf].op.axis[0])
run(s, [M, t], [m], m.sum().reshape(1))
