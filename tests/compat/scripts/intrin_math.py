"""Intrinsics and mathematical functions: called by name, by one name for all targets, and one's own."""

import numpy as np
import tvm
from tvm import te

n = te.var("n")
A = te.placeholder((n,), name="A")


def run(B, expected, rtol=1e-5):
    s = te.create_schedule(B.op)
    f = tvm.build(s, [A, B], "llvm", name="myexp")
    a = tvm.nd.array(np.random.uniform(size=100).astype("float32"))
    b = tvm.nd.array(np.zeros(100, "float32"))
    f(a, b)
    np.testing.assert_allclose(b.numpy(), expected(a.numpy()), rtol=rtol)


# a function of the C library
B = te.compute(A.shape, lambda i: tvm.tir.call_pure_extern("float32", "expf", A[i]), name="B")
run(B, np.exp)

# one name for all targets
B = te.compute(A.shape, lambda i: te.exp(A[i]), name="B")
run(B, np.exp)
s = te.create_schedule(B.op)
bx, tx = s[B].split(B.op.axis[0], factor=64)
s[B].bind(bx, te.thread_axis("blockIdx.x"))
s[B].bind(tx, te.thread_axis("threadIdx.x"))
fcuda = tvm.build(s, [A, B], "cuda", name="myexp")
print(fcuda.imported_modules[0].get_source())
assert "expf(" in fcuda.imported_modules[0].get_source()


# a function of one's own, and what stands for it
def mylog(x):
    """customized log intrinsic function"""
    return tvm.tir.call_intrin(x.dtype, "tir.mylog", x)


def my_log_rule(op):
    """the rule for the CPU"""
    if op.dtype == "float32":
        return tvm.tir.call_pure_extern("float32", "logf", op.args[0])
    return op


tvm.ir.register_op_attr("tir.mylog", "TCallEffectKind", tvm.tir.CallEffectKind.Pure)
tvm.ir.register_intrin_lowering("tir.mylog", target="llvm", f=my_log_rule, level=99)
B = te.compute(A.shape, lambda i: mylog(A[i] + 1.0), name="B")
run(B, lambda x: np.log(x + 1))
