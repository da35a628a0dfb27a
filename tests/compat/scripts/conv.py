"""Convolution: definition, and a schedule that tiles channels and rows."""

import d2ltvm
import numpy as np
import tvm
from tvm import te

target = "llvm -mcpu=skylake-avx512"


def padding(X, ph, pw, val=0):
    """Pad X with the given value in 2-D"""
    assert len(X.shape) >= 2
    nh, nw = X.shape[-2], X.shape[-1]
    return te.compute(
        (*X.shape[0:-2], nh + ph * 2, nw + pw * 2),
        lambda *i: te.if_then_else(
            te.any(i[-2] < ph, i[-2] >= nh + ph, i[-1] < pw, i[-1] >= nw + pw),
            val,
            X[i[:-2] + (i[-2] - ph, i[-1] - pw)],
        ),
        name="PaddedX",
    )


A = te.placeholder((2, 3, 4))
B = padding(A, 1, 2)
s = te.create_schedule(B.op)
print(tvm.lower(s, [A, B], simple_mode=True))
mod = tvm.build(s, [A, B])
a = tvm.nd.array(np.ones((2, 3, 4), dtype="float32"))
b = tvm.nd.array(np.empty((2, 5, 8), dtype="float32"))
mod(a, b)
np.testing.assert_array_equal(b.asnumpy(), np.pad(a.asnumpy(), ((0, 0), (1, 1), (2, 2))))


def conv_out_size(n, k, p, s):
    return (n - k + 2 * p) // s + 1


def conv(oc, ic, nh, nw, kh, kw, ph=0, pw=0, sh=1, sw=1):
    # reduction axes
    ric = te.reduce_axis((0, ic), name="ric")
    rkh = te.reduce_axis((0, kh), name="rkh")
    rkw = te.reduce_axis((0, kw), name="rkw")
    # output height and width
    oh = conv_out_size(nh, kh, ph, sh)
    ow = conv_out_size(nw, kw, pw, sw)
    # pad X and then compute Y
    X = te.placeholder((ic, nh, nw), name="X")
    K = te.placeholder((oc, ic, kh, kw), name="K")
    PaddedX = padding(X, ph, pw) if ph * pw != 0 else X
    Y = te.compute(
        (oc, oh, ow),
        lambda c, i, j: te.sum(
            PaddedX[ric, i * sh + rkh, j * sw + rkw] * K[c, ric, rkh, rkw], axis=[ric, rkh, rkw]
        ),
        name="Y",
    )
    return X, K, Y, PaddedX


def check(s, args, oc, ic, n, k, p, st):
    mod = tvm.build(s, args, target)
    data, weight, out = d2ltvm.get_conv_data(oc, ic, n, k, p, st, tvm.nd.array)
    mod(data, weight, out)
    data, weight, bias, out_mx = d2ltvm.get_conv_data_mxnet(oc, ic, n, k, p, st)
    d2ltvm.conv_mxnet(data, weight, bias, out_mx, k, p, st)
    np.testing.assert_allclose(out_mx[0].asnumpy(), out.asnumpy(), atol=1e-4)


for oc, ic, n, k, p, st in ((4, 6, 12, 3, 1, 1), (5, 3, 11, 5, 2, 2), (2, 2, 8, 3, 0, 1)):
    X, K, Y, _ = conv(oc, ic, n, n, k, k, p, p, st, st)
    s = te.create_schedule(Y.op)
    check(s, [X, K, Y], oc, ic, n, k, p, st)

th, tw = 8, 8  # Tile sizes for height and width


def cached_block(oc, ic, n, k, p, s):
    X, K, Y, PaddedX = d2ltvm.conv(oc, ic, n, n, k, k, p, p, s, s)
    s = te.create_schedule(Y.op)
    CachedY = s.cache_write(Y, "local")
    # Compute the output block for every output channel in parallel
    oc, h, w = Y.op.axis
    ho, wo, hi, wi = s[Y].tile(h, w, th, tw)
    ochw = s[Y].fuse(oc, ho, wo)
    s[Y].parallel(ochw)
    # Cache the output block, and move the inner height and width axes
    # to innermost, so we can vectorize and unroll them
    s[CachedY].compute_at(s[Y], ochw)
    _, ch, cw = CachedY.op.axis
    ric, rkh, rkw = CachedY.op.reduce_axis
    s[CachedY].reorder(ric, rkh, rkw, ch, cw)
    s[CachedY].vectorize(cw)
    s[CachedY].unroll(ch)
    # Schedule the padding by adding thread-level parallelism
    if PaddedX != X:
        s[PaddedX].parallel(PaddedX.op.axis[0])
    return s, (X, K, Y)


for size in ((4, 3, 16, 3, 1, 1), (4, 3, 16, 3, 0, 1), (2, 3, 17, 3, 1, 2)):
    s, args = cached_block(*size)
    print(tvm.lower(s, args, simple_mode=True))
    check(s, args, *size)
