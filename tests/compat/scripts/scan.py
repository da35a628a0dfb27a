"""Recurrences: the classic tutorial's scans, of one stage, of two, and of two states."""

import numpy as np
import tvm
import tvm.testing
from tvm import te

m = te.var("m")
n = te.var("n")
X = te.placeholder((m, n), name="X")
s_state = te.placeholder((m, n))
s_init = te.compute((1, n), lambda _, i: X[0, i])
s_update = te.compute((m, n), lambda t, i: s_state[t - 1, i] + X[t, i])
s_scan = tvm.te.scan(s_init, s_update, s_state, inputs=[X])

s = te.create_schedule(s_scan.op)
num_thread = 256
block_x = te.thread_axis("blockIdx.x")
thread_x = te.thread_axis("threadIdx.x")
xo, xi = s[s_init].split(s_init.op.axis[1], factor=num_thread)
s[s_init].bind(xo, block_x)
s[s_init].bind(xi, thread_x)
xo, xi = s[s_update].split(s_update.op.axis[1], factor=num_thread)
s[s_update].bind(xo, block_x)
s[s_update].bind(xi, thread_x)
print(tvm.lower(s, [X, s_scan], simple_mode=True))

fscan = tvm.build(s, [X, s_scan], "cuda", name="myscan")
dev = tvm.cuda(0)
n = 1024
m = 10
a_np = np.random.uniform(size=(m, n)).astype(s_scan.dtype)
a = tvm.nd.array(a_np, dev)
b = tvm.nd.array(np.zeros((m, n), dtype=s_scan.dtype), dev)
fscan(a, b)
tvm.testing.assert_allclose(b.numpy(), np.cumsum(a_np, axis=0), rtol=1e-5)

# all steps in one launch: the threads of a block meet after each
n_hidden, batch, steps = 32, 4, 6
X = te.placeholder((steps, batch, n_hidden), name="X")
Whh = te.placeholder((n_hidden, n_hidden), name="Whh")
s_state = te.placeholder((steps, batch, n_hidden))
s_init = te.compute((1, batch, n_hidden), lambda _, i, j: 0.0)
kh = te.reduce_axis((0, n_hidden), name="kh")
s_dot = te.compute(
    (steps, batch, n_hidden),
    lambda t, i, j: te.sum(s_state[t - 1, i, kh] * Whh[j, kh], axis=kh),
    name="dot",
)
s_update = te.compute(
    (steps, batch, n_hidden), lambda t, i, j: te.tanh(s_dot[t, i, j] + X[t, i, j]), name="update"
)
s_scan = te.scan(s_init, s_update, s_state, inputs=[X, Whh])
s = te.create_schedule(s_scan.op)
block_x = te.thread_axis((0, batch), "blockIdx.x")
thread_x = te.thread_axis((0, n_hidden), "threadIdx.x")
s[s_scan].env_threads([block_x, thread_x])
for stage in (s_init, s_update):
    s[stage].bind(stage.op.axis[1], block_x)
    s[stage].bind(stage.op.axis[2], thread_x)
WL = s.cache_read(Whh, "local", [s_dot])
s[WL].compute_at(s[s_scan], thread_x)
SS = s.cache_read(s_state, "shared", [s_dot])
s[SS].bind(s[SS].op.axis[2], thread_x)
rnn = tvm.build(s, [X, Whh, s_scan], "cuda")
print(rnn.imported_modules[0].get_source())
x = np.random.uniform(-1, 1, size=(steps, batch, n_hidden)).astype("float32")
w = np.random.uniform(-0.1, 0.1, size=(n_hidden, n_hidden)).astype("float32")
out = tvm.nd.array(np.zeros_like(x), dev)
rnn(tvm.nd.array(x, dev), tvm.nd.array(w, dev), out)
h = np.zeros((batch, n_hidden))
for t in range(1, steps):
    h = np.tanh(h @ w.T + x[t])
    tvm.testing.assert_allclose(out.numpy()[t], h, rtol=1e-4, atol=1e-5)

# multi-stage scan cell
m = te.var("m")
n = te.var("n")
X = te.placeholder((m, n), name="X")
s_state = te.placeholder((m, n))
s_init = te.compute((1, n), lambda _, i: X[0, i])
s_update_s1 = te.compute((m, n), lambda t, i: s_state[t - 1, i] * 2, name="s1")
s_update_s2 = te.compute((m, n), lambda t, i: s_update_s1[t, i] + X[t, i], name="s2")
s_scan = tvm.te.scan(s_init, s_update_s2, s_state, inputs=[X])

s = te.create_schedule(s_scan.op)
xo, xi = s[s_update_s2].split(s_update_s2.op.axis[1], factor=32)
s[s_update_s1].compute_at(s[s_update_s2], xo)
print(tvm.lower(s, [X, s_scan], simple_mode=True))
fscan = tvm.build(s, [X, s_scan], "llvm")
x = np.random.randint(-3, 4, size=(5, 100)).astype("float32")
out = tvm.nd.array(np.zeros_like(x))
fscan(tvm.nd.array(x), out)
expected = x.copy()
for t in range(1, 5):
    expected[t] += 2 * expected[t - 1]
np.testing.assert_array_equal(out.numpy(), expected)

# multiple states
m = te.var("m")
n = te.var("n")
l = te.var("l")  # noqa: E741
X = te.placeholder((m, n), name="X")
s_state1 = te.placeholder((m, n))
s_state2 = te.placeholder((m, l))
s_init1 = te.compute((1, n), lambda _, i: X[0, i])
s_init2 = te.compute((1, l), lambda _, i: 0.0)
s_update1 = te.compute((m, n), lambda t, i: s_state1[t - 1, i] + X[t, i])
s_update2 = te.compute((m, l), lambda t, i: s_state2[t - 1, i] + s_state1[t - 1, 0])
s_scan1, s_scan2 = tvm.te.scan(
    [s_init1, s_init2], [s_update1, s_update2], [s_state1, s_state2], inputs=[X]
)
s = te.create_schedule(s_scan1.op)
print(tvm.lower(s, [X, s_scan1, s_scan2], simple_mode=True))
func = tvm.build(s, [X, s_scan1, s_scan2])
one, two = tvm.nd.array(np.zeros_like(x)), tvm.nd.array(np.zeros((5, 7), "float32"))
func(tvm.nd.array(x), one, two)
sums = np.cumsum(x, axis=0)
np.testing.assert_array_equal(one.numpy(), sums)
np.testing.assert_array_equal(two.numpy()[1:], np.repeat(np.cumsum(sums[:-1, :1], axis=0), 7, 1))
