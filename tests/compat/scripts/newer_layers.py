"""Layers of networks by topi, scheduled by hand; a convolution in the layout hwcn."""

import numpy as np
import tvm
import tvm.testing
from tvm import te, topi
from tvm.topi.testing import conv2d_nchw_python
from tvm.topi.utils import get_const_tuple


def run(out, inputs, arrays, schedule=lambda s: None):
    s = te.create_schedule(out.op)
    schedule(s)
    print(tvm.lower(s, [*inputs, out], simple_mode=True))
    func = tvm.build(s, [*inputs, out], "llvm")
    result = tvm.nd.empty(get_const_tuple(out.shape), out.dtype)
    func(*map(tvm.nd.array, arrays), result)
    return result.numpy()


N, H, W, CO, CI, KH, KW = 1, 14, 14, 8, 4, 3, 3
data = te.placeholder((N, CI, H, W), name="data")
kernel = te.placeholder((CO, CI, KH, KW), name="kernel")
bias = te.placeholder((1, CO, 1, 1), name="bias")
conv = topi.nn.conv2d_nchw(data, kernel, (1, 1), (1, 1), dilation=1, out_dtype="float32")
out = topi.nn.relu(conv + bias)

a = np.random.uniform(-1, 1, size=get_const_tuple(data.shape)).astype("float32")
w = np.random.uniform(-1, 1, size=get_const_tuple(kernel.shape)).astype("float32")
b = np.random.uniform(-1, 1, size=get_const_tuple(bias.shape)).astype("float32")
wanted = np.maximum(conv2d_nchw_python(a, w, (1, 1), (1, 1)) + b, 0)


def fused(s):
    n, c, y, x = s[out].op.axis
    yo, xo, yi, xi = s[out].tile(y, x, 7, 7)
    s[out].parallel(s[out].fuse(c, yo))
    added = out.op.input_tensors[0]
    s[added].compute_inline()
    s[conv].compute_at(s[out], xo)
    s[conv].vectorize(s[conv].op.axis[3])


for schedule in (lambda s: None, fused):
    tvm.testing.assert_allclose(
        run(out, [data, kernel, bias], [a, w, b], schedule), wanted, rtol=1e-4, atol=1e-5
    )

x = te.placeholder((5, 10), name="x")
values = np.random.normal(size=(5, 10)).astype("float32")
powers = np.exp(values - values.max(axis=1, keepdims=True))
tvm.testing.assert_allclose(
    run(topi.nn.softmax(x), [x], [values]), powers / powers.sum(axis=1, keepdims=True), rtol=1e-5
)
tvm.testing.assert_allclose(
    run(topi.sum(x, axis=1), [x], [values]), values.sum(axis=1), rtol=1e-4, atol=1e-5
)

p, q = te.placeholder((4, 6), name="p"), te.placeholder((4, 6), name="q")
c, d = (np.random.uniform(1, 2, size=(4, 6)).astype("float32") for _ in range(2))
tvm.testing.assert_allclose(run(topi.elemwise_sum([p, q]), [p, q], [c, d]), c + d)
tvm.testing.assert_allclose(run(p + q * 2, [p, q], [c, d]), c + d * 2, rtol=1e-6)
tvm.testing.assert_allclose(
    run(topi.divide(p, q) - topi.exp(p), [p, q], [c, d]), c / d - np.exp(c), rtol=1e-4
)
