"""Depthwise convolution, plain and with packed channels."""

import d2ltvm
import numpy as np
import tvm
from tvm import te

target = "llvm"


def depthwise_conv(ic, nh, nw, kh, kw, ph=0, pw=0, sh=1, sw=1):
    rkh = te.reduce_axis((0, kh), name="rkh")
    rkw = te.reduce_axis((0, kw), name="rkw")
    oh = d2ltvm.conv_out_size(nh, kh, ph, sh)
    ow = d2ltvm.conv_out_size(nw, kw, pw, sw)
    X = te.placeholder((ic, nh, nw), name="X")
    K = te.placeholder((ic, 1, kh, kw), name="K")
    PaddedX = d2ltvm.padding(X, ph, pw) if ph * pw != 0 else X
    Y = te.compute(
        (ic, oh, ow),
        lambda c, i, j: te.sum(
            (PaddedX[c, i * sh + rkh, j * sw + rkw] * K[c, 0, rkh, rkw]), axis=[rkh, rkw]
        ),
        name="Y",
    )
    return X, K, Y, PaddedX


def reference(ic, n, k, p, s):
    data, weight, bias, out = d2ltvm.get_conv_data_mxnet(ic, ic, n, k, p, s, conv_type="depthwise")
    d2ltvm.depthwise_conv_mxnet(data, weight, bias, out, k, p, s)
    return out[0].asnumpy()


def check(sch, args, ic, n, k, p, s):
    mod = tvm.build(sch, args, target)
    data, weight, out = d2ltvm.get_conv_data(
        ic, ic, n, k, p, s, constructor=tvm.nd.array, conv_type="depthwise"
    )
    mod(data, weight, out)
    np.testing.assert_allclose(reference(ic, n, k, p, s), out.asnumpy(), atol=1e-5)


for ic, n, k, p, s in ((6, 12, 3, 1, 1), (3, 11, 5, 2, 2), (4, 9, 3, 0, 1)):
    X, K, Y, _ = depthwise_conv(ic, n, n, k, k, p, p, s, s)
    sch = te.create_schedule(Y.op)
    check(sch, [X, K, Y], ic, n, k, p, s)


def default(ic, n, k, p, s):
    X, K, Y, PaddedX = d2ltvm.depthwise_conv(ic, n, n, k, k, p, p, s, s)
    sch = te.create_schedule(Y.op)
    sch[PaddedX].compute_inline()
    c, h, w = sch[Y].op.axis
    sch[Y].parallel(c)
    return sch, (X, K, Y)


def packed(c, nh, nw, kh, kw, ph, pw, sh, sw, tc):
    X = te.placeholder((c, nh, nw), name="X")
    K = te.placeholder((c, 1, kh, kw), name="K")
    PaddedX = d2ltvm.padding(X, ph, pw) if ph * pw != 0 else X
    assert c % tc == 0
    PackedX = te.compute(
        (c // tc, nh + ph * 2, nw + pw * 2, tc),
        lambda c_out, x, y, c_in: PaddedX[c_out * tc + c_in, x, y],
        name="PackedX",
    )
    PackedK = te.compute(
        (c // tc, 1, kh, kw, 1, tc),
        lambda c_out, _, x, y, __, c_in: K[c_out * tc + c_in, 0, x, y],
        name="PackedK",
    )
    rkh = te.reduce_axis((0, kh), name="rkh")
    rkw = te.reduce_axis((0, kw), name="rkw")
    oh = d2ltvm.conv_out_size(nh, kh, ph, sh)
    ow = d2ltvm.conv_out_size(nw, kw, pw, sw)
    PackedY = te.compute(
        (c // tc, oh, ow, tc),
        lambda c_out, x, y, c_in: te.sum(
            PackedX[c_out, x * sh + rkh, y * sw + rkw, c_in] * PackedK[c_out, 0, rkh, rkw, 0, c_in],
            axis=[rkh, rkw],
        ),
        name="PackedY",
    )
    Y = te.compute((c, oh, ow), lambda c, x, y: PackedY[c // tc, x, y, c % tc], name="Y")
    return X, K, Y, PaddedX, PackedX, PackedK, PackedY


def cached_block(c, n, k, p, s, tc=8, tw=4):
    X, K, Y, PaddedX, PackedX, PackedK, PackedY = packed(c, n, n, k, k, p, p, s, s, tc)
    sch = te.create_schedule(Y.op)
    CachedY = sch.cache_write(PackedY, "global")
    c_out, h, w, c_in = sch[PackedY].op.axis
    w_out, w_in = sch[PackedY].split(w, factor=tw)
    sch[PackedY].reorder(c_out, h, w_out, w_in, c_in)
    c_out_h = sch[PackedY].fuse(c_out, h)
    sch[PackedY].parallel(c_out_h)
    sch[CachedY].compute_at(sch[PackedY], w_out)
    cc_out, ch, cw, cc_in = CachedY.op.axis
    kh, kw = CachedY.op.reduce_axis
    sch[CachedY].reorder(cc_out, ch, kh, kw, cw, cc_in)
    sch[CachedY].vectorize(cc_in)
    sch[CachedY].unroll(cw)
    if PaddedX != X:
        sch[PaddedX].compute_inline()
    sch[PackedX].parallel(sch[PackedX].fuse(*PackedX.op.axis[0:2]))
    sch[PackedK].unroll(PackedK.op.axis[-1])
    sch[Y].parallel(sch[Y].fuse(*Y.op.axis[0:2]))
    return sch, (X, K, Y)


for schedule in (default, cached_block):
    sch, args = schedule(16, 12, 3, 1, 1)
    print(tvm.lower(sch, args, simple_mode=True))
    check(sch, args, 16, 12, 3, 1, 1)
