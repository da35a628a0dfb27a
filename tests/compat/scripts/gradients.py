"""te.gradient as classic scripts call it: a list or one tensor, with and without a head."""

import numpy as np
import tvm
from tvm import te, topi

X = te.placeholder((2, 3, 8, 8), name="X")
W = te.placeholder((4, 3, 3, 3), name="W")
R = topi.nn.relu(topi.nn.conv2d_nchw(X, W, 1, 0, 1))
S = topi.sum(R)

[dX, dW] = te.gradient(S, [X, W])
s = te.create_schedule([dX.op, dW.op])
f = tvm.build(s, [X, W, dX, dW], target="llvm")

rng = np.random.default_rng(0)
x, w = (
    rng.normal(size=(2, 3, 8, 8)).astype("float32"),
    rng.normal(size=(4, 3, 3, 3)).astype("float32"),
)
out = [tvm.nd.array(np.zeros(a.shape, "float32")) for a in (x, w)]
f(tvm.nd.array(x), tvm.nd.array(w), *out)

windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
is_on = (np.einsum("ncyxrs,fcrs->nfyx", windows, w) >= 0).astype("float32")
np.testing.assert_allclose(
    out[1].numpy(), np.einsum("ncyxrs,nfyx->fcrs", windows, is_on), rtol=1e-3, atol=1e-3
)
expected = np.zeros_like(x)
for r in range(3):
    for c in range(3):
        expected[:, :, r : r + 6, c : c + 6] += np.einsum("nfyx,fc->ncyx", is_on, w[:, :, r, c])
np.testing.assert_allclose(out[0].numpy(), expected, rtol=1e-3, atol=1e-3)

A = te.placeholder((4, 5), name="A")
T = topi.nn.softmax(A)
head = te.placeholder((2, 4, 5), name="head")
grads = te.gradient(T, A, head=head)
assert len(grads) == 1
assert [int(n) for n in grads[0].shape] == [2, 4, 5]
jacobian = te.gradient(T, A)[0]
assert [int(n) for n in jacobian.shape] == [4, 5, 4, 5]
