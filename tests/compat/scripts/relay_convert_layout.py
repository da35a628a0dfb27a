"""The layout of convolutions changed, the operators behind them follow."""

import numpy as np
import tvm
from tvm import relay

data = relay.var("data", shape=(1, 8, 14, 14))
first, second = relay.var("first", shape=(16, 8, 3, 3)), relay.var("second", shape=(4, 16, 1, 1))
bias = relay.var("bias", shape=(16,))
y = relay.nn.conv2d(data, first, channels=16, kernel_size=(3, 3), padding=(1, 1))
y = relay.nn.relu(relay.nn.bias_add(y, bias))
y = relay.nn.max_pool2d(y, pool_size=(2, 2), strides=(2, 2))
y = relay.nn.conv2d(y, second, channels=4, kernel_size=(1, 1))
mod = tvm.IRModule.from_expr(relay.Function([data, first, bias, second], y))

desired = {"nn.conv2d": ["NHWC", "default"]}
seq = tvm.transform.Sequential(
    [relay.transform.RemoveUnusedFunctions(), relay.transform.ConvertLayout(desired)]
)
with tvm.transform.PassContext(opt_level=3):
    converted = seq(mod)
assert str(converted).count('data_layout="NHWC"') == 2
assert str(converted).count('layout="NHWC"') >= 3  # the pool follows
assert relay.analysis.list_op_freqs(converted)["layout_transform"] >= 2
with tvm.transform.PassContext(opt_level=2):
    tvm.ir.assert_structural_equal(seq(mod), mod)

rng = np.random.default_rng(0)
values = [
    rng.uniform(-1, 1, tuple(param.type_annotation.shape)).astype("float32")
    for param in mod["main"].params
]
before, after = (
    relay.create_executor("debug", each).evaluate()(*values).numpy() for each in (mod, converted)
)
tvm.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-5)
