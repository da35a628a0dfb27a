"""Pooling: maximum and mean, and a schedule that inlines the padding."""

import d2ltvm
import numpy as np
import tvm
from tvm import te

target = "llvm"


def pool(pool_type, c, nh, nw, kh, kw, ph=0, pw=0, sh=1, sw=1):
    rkh = te.reduce_axis((0, kh), name="rkh")
    rkw = te.reduce_axis((0, kw), name="rkw")
    oh = d2ltvm.conv_out_size(nh, kh, ph, sh)
    ow = d2ltvm.conv_out_size(nw, kw, pw, sw)
    X = te.placeholder((c, nh, nw), name="X")
    if pool_type == "max":
        PaddedX = d2ltvm.padding(X, ph, pw, val=te.min_value(X.dtype)) if ph * pw != 0 else X
        Y = te.compute(
            (c, oh, ow),
            lambda c, h, w: te.max(PaddedX[c, h * sh + rkh, w * sw + rkw], axis=[rkh, rkw]),
            tag="pool_max",
            name="PoolMax",
        )
    elif pool_type == "avg":
        PaddedX = d2ltvm.padding(X, ph, pw) if ph * pw != 0 else X
        tsum = te.compute(
            (c, oh, ow),
            lambda c, h, w: te.sum(PaddedX[c, h * sh + rkh, w * sw + rkw], axis=[rkh, rkw]),
            tag="pool_avg1",
            name="PoolSum",
        )
        Y = te.compute(
            (c, oh, ow), lambda c, h, w: tsum[c, h, w] / (kh * kw), tag="pool_avg2", name="PoolAvg"
        )
    else:
        raise ValueError("Pool type should be 'avg' or 'max'.")
    return X, Y, PaddedX


def check(sch, args, pool_type, c, n, k, p, s):
    mod = tvm.build(sch, args, target)
    data, _, out = d2ltvm.get_conv_data(c, c, n, k, p, s, tvm.nd.array)
    mod(data, out)
    data, out_mx = d2ltvm.get_pool_data_mxnet(c, n, k, p, s)
    d2ltvm.pool_mxnet(pool_type, data, out_mx, k, p, s)
    np.testing.assert_allclose(out_mx[0].asnumpy(), out.asnumpy(), atol=1e-5)


for pool_type in ("max", "avg"):
    for make in (pool, d2ltvm.pool):
        for c, n, k, p, s in ((4, 12, 3, 1, 1), (2, 13, 3, 1, 2), (3, 8, 2, 0, 2)):
            X, Y, PaddedX = make(pool_type, c, n, n, k, k, p, p, s, s)
            sch = te.create_schedule(Y.op)
            print(tvm.lower(sch, [X, Y], simple_mode=True))
            check(sch, [X, Y], pool_type, c, n, k, p, s)


def optimized_max(size):
    c, n, k = size[:]
    X, Y, _ = d2ltvm.pool("max", c, n, n, k, k, 1, 1, 1, 1)
    sch = te.create_schedule(Y.op)
    te.schedule.AutoInlineInjective(sch)
    c, h, w = Y.op.axis[0:3]
    fused = sch[Y].fuse(c, h)
    sch[Y].parallel(fused)
    sch[Y].vectorize(w)
    return sch, (X, Y)


def schedule_avg(size):
    c, n, k = size[:]
    X, Y, PaddedX = d2ltvm.pool("avg", c, n, n, k, k, 1, 1, 1, 1)
    sch = te.create_schedule(Y.op)
    te.schedule.AutoInlineInjective(sch)
    c, h, w = Y.op.axis[0:3]
    fused = sch[Y].fuse(c, h)
    sch[Y].parallel(fused)
    sch[Y].vectorize(w)
    PoolSum = Y.op.input_tensors[0]
    sch[PoolSum].compute_at(sch[Y], Y.op.axis[2])
    return sch, (X, Y)


for pool_type, schedule in (("max", optimized_max), ("avg", schedule_avg)):
    sch, args = schedule((4, 12, 3))
    print(tvm.lower(sch, args, simple_mode=True))
    check(sch, args, pool_type, 4, 12, 3, 1, 1)
