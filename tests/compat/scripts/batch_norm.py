"""Batch normalization, from operators on whole tensors."""

import d2ltvm
import numpy as np
import tvm
from tvm import te

target = "llvm"


def batch_norm(c, n, eps=1e-5):
    """batch normalization

    c : number of channels
    N : input width and height
    eps : small positive value to prevent divide 0
    """
    X = te.placeholder((c, n, n), name="X")
    Mean = te.placeholder((c, 1, 1), name="Mean")
    Var = te.placeholder((c, 1, 1), name="Var")
    Gamma = te.placeholder((c, 1, 1), name="Gamma")
    Beta = te.placeholder((c, 1, 1), name="Beta")
    C1 = X - Mean
    C2 = tvm.topi.sqrt(Var + eps)
    Y = C1 / C2 * Gamma + Beta
    return X, Mean, Var, Gamma, Beta, Y


def check(sch, args, c, n):
    mod = tvm.build(sch, args, target)
    data, mean, var, gamma, beta, out = d2ltvm.get_bn_data(c, n, tvm.nd.array)
    mod(data, mean, var, gamma, beta, out)
    arrays = d2ltvm.get_bn_data_mxnet(c, n)
    d2ltvm.batch_norm_mxnet(*arrays)
    np.testing.assert_allclose(arrays[-1][0].asnumpy(), out.asnumpy(), atol=1e-4)


for make in (batch_norm, d2ltvm.batch_norm):
    X, Mean, Var, Gamma, Beta, Y = make(8, 7)
    sch = te.create_schedule(Y.op)
    print(tvm.lower(sch, [X, Mean, Var, Gamma, Beta, Y], simple_mode=True))
    check(sch, [X, Mean, Var, Gamma, Beta, Y], 8, 7)


def default_bn(size):
    c, n = size[:]
    X, Mean, Var, Gamma, Beta, Y = d2ltvm.batch_norm(c, n)
    sch = te.create_schedule(Y.op)
    return sch, (X, Mean, Var, Gamma, Beta, Y)


def optimized_bn(size):
    sch, (X, Mean, Var, Gamma, Beta, Y) = default_bn(size)
    te.schedule.AutoInlineInjective(sch)
    c, h, w = Y.op.axis[0:3]
    fused = sch[Y].fuse(c, h)
    sch[Y].parallel(fused)
    sch[Y].vectorize(w)
    return sch, (X, Mean, Var, Gamma, Beta, Y)


sch, args = optimized_bn((8, 28))
print(tvm.lower(sch, args, simple_mode=True))
check(sch, args, 8, 28)
