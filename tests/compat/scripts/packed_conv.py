"""Convolution whose channels are packed, so that the vector runs over them."""

import d2ltvm
import numpy as np
import tvm
from tvm import te

target = "llvm"


def conv_pack(oc, ic, nh, nw, kh, kw, ph, pw, toc, tic):
    """Pack data and weight for convolution

    oc, ic : output and input channels
    toc, tic : the tiling sizes of the output and input channels
    """
    X = te.placeholder((ic, nh, nw), name="X")
    K = te.placeholder((oc, ic, kh, kw), name="K")
    PaddedX = d2ltvm.padding(X, ph, pw) if ph * pw != 0 else X
    # pack X and K
    assert ic % tic == 0 and oc % toc == 0
    PackedX = te.compute(
        (ic // tic, nh + ph * 2, nw + pw * 2, tic),
        lambda ic_out, x, y, ic_in: PaddedX[ic_out * tic + ic_in, x, y],
        name="PackedX",
    )
    PackedK = te.compute(
        (oc // toc, ic // tic, kh, kw, tic, toc),
        lambda oc_out, ic_out, x, y, ic_in, oc_in: K[
            oc_out * toc + oc_in, ic_out * tic + ic_in, x, y
        ],
        name="PackedK",
    )
    return X, K, PaddedX, PackedX, PackedK


def conv(oc, ic, nh, nw, kh, kw, ph, pw, sh, sw, toc, tic):
    X, K, PaddedX, PackedX, PackedK = conv_pack(oc, ic, nh, nw, kh, kw, ph, pw, toc, tic)
    # reduction axes
    ric_in = te.reduce_axis((0, tic), name="ric_in")
    ric_out = te.reduce_axis((0, ic // tic), name="ric_out")
    rkh = te.reduce_axis((0, kh), name="rkh")
    rkw = te.reduce_axis((0, kw), name="rkw")
    # output height and weights
    oh = d2ltvm.conv_out_size(nh, kh, ph, sh)
    ow = d2ltvm.conv_out_size(nw, kw, pw, sw)
    # Compuated Y in the packed layout
    PackedY = te.compute(
        (oc // toc, oh, ow, toc),
        lambda oc_out, x, y, oc_in: te.sum(
            PackedX[ric_out, x * sh + rkh, y * sw + rkw, ric_in]
            * PackedK[oc_out, ric_out, rkh, rkw, ric_in, oc_in],
            axis=[ric_out, rkh, rkw, ric_in],
        ),
        name="Y",
    )
    # Unpack the result
    Y = te.compute((oc, oh, ow), lambda oc, x, y: PackedY[oc // toc, x, y, oc % toc], name="Y")
    return X, K, Y, PaddedX, PackedX, PackedK, PackedY


def check(s, args, oc, ic, n, k, p, st):
    mod = tvm.build(s, args, target)
    data, weight, out = d2ltvm.get_conv_data(oc, ic, n, k, p, st, tvm.nd.array)
    mod(data, weight, out)
    data, weight, bias, out_mx = d2ltvm.get_conv_data_mxnet(oc, ic, n, k, p, st)
    d2ltvm.conv_mxnet(data, weight, bias, out_mx, k, p, st)
    np.testing.assert_allclose(out_mx[0].asnumpy(), out.asnumpy(), atol=1e-4)


oc, ic, n, k, p, st = 4, 6, 12, 3, 1, 1
X, K, Y, _, _, _, _ = conv(oc, ic, n, n, k, k, p, p, st, st, 2, 3)
s = te.create_schedule(Y.op)
check(s, [X, K, Y], oc, ic, n, k, p, st)

tic, toc, tw = 4, 8, 4


def cached_block(oc, ic, n, k, p, s):
    X, K, Y, PaddedX, PackedX, PackedK, PackedY = conv(oc, ic, n, n, k, k, p, p, s, s, toc, tic)
    s = te.create_schedule(Y.op)
    CachedY = s.cache_write(PackedY, "local")
    oc_out, h, w, oc_in = s[PackedY].op.axis
    oc_out_h = s[PackedY].fuse(oc_out, h)
    # Parallel on the first two dimensions oc_out and h
    s[PackedY].parallel(oc_out_h)
    # Optimize the computation of a cached output block
    w_out, w_in = s[PackedY].split(w, factor=tw)  # Split the columns
    s[CachedY].compute_at(s[PackedY], w_out)
    _, _, cw, oc_in = CachedY.op.axis
    ric_out, rkh, rkw, ric_in = CachedY.op.reduce_axis
    s[CachedY].reorder(ric_out, rkh, rkw, ric_in, cw, oc_in)
    s[CachedY].unroll(ric_in)
    s[CachedY].unroll(cw)
    s[CachedY].vectorize(oc_in)
    # Schedule the padding by adding thread-level parallelism
    if PaddedX != X:
        s[PaddedX].parallel(PaddedX.op.axis[0])
    # Optimize the packing of X and K
    s[PackedX].parallel(s[PackedX].fuse(*PackedX.op.axis[0:2]))
    s[PackedX].unroll(PackedX.op.axis[-1])
    s[PackedK].parallel(s[PackedK].fuse(*PackedK.op.axis[0:2]))
    s[PackedK].unroll(PackedK.op.axis[-1])
    # Optimize the unpacking of Y
    s[Y].parallel(s[Y].fuse(*Y.op.axis[0:2]))
    s[Y].unroll(Y.op.axis[-1])
    return s, (X, K, Y)


for size in ((16, 8, 10, 3, 1, 1), (8, 4, 9, 3, 0, 1), (8, 8, 9, 3, 1, 2)):
    s, args = cached_block(*size)
    print(tvm.lower(s, args, simple_mode=True))
    check(s, args, *size)
