"""Two layers of a graph convolutional network, written with relay.nn on a small graph."""

import numpy as np
import tvm
from tvm import relay
from tvm.contrib import graph_executor

NODES, FEATURES, HIDDEN, CLASSES = 12, 5, 8, 3
rng = np.random.default_rng(0)

# The adjacency with loops of its own, normalised on both sides.
edges = rng.random((NODES, NODES)) < 0.25
adjacency = (edges | edges.T | np.eye(NODES, dtype=bool)).astype("float32")
degrees = adjacency.sum(axis=1)
norm = adjacency / np.sqrt(degrees[:, None] * degrees[None])


def layer(name, feats, width, units, activation=None):
    weight = relay.var(f"{name}.weight", shape=(width, units))
    bias = relay.var(f"{name}.bias", shape=(units,))
    product = relay.nn.dense(feats, relay.transpose(weight))
    spread = relay.nn.dense(relay.const(norm), relay.transpose(product))
    output = relay.nn.bias_add(spread, bias, axis=-1)
    return output if activation is None else activation(output)


feats = relay.var("feats", shape=(NODES, FEATURES))
hidden = layer("layers.0", feats, FEATURES, HIDDEN, relay.nn.relu)
output = layer("layers.1", hidden, HIDDEN, CLASSES)
func = relay.Function(relay.analysis.free_vars(output), output)
names = [param.name_hint for param in func.params]
assert sorted(names) == sorted(
    ["feats", "layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"]
)

params = {}
for param in func.params:
    if param.name_hint != "feats":
        shape = tuple(param.type_annotation.shape)
        params[param.name_hint] = rng.uniform(-1, 1, shape).astype("float32")

bound = relay.build_module.bind_params_by_name(func, params)
assert len(bound.params) == 1
mod = tvm.IRModule.from_expr(func)
with tvm.transform.PassContext(opt_level=3):
    lib = relay.build(mod, "llvm", params=params)
model = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
values = rng.uniform(-1, 1, (NODES, FEATURES)).astype("float32")
model.set_input("feats", values)
model.run()

first = np.maximum(norm @ values @ params["layers.0.weight"] + params["layers.0.bias"], 0)
expected = norm @ first @ params["layers.1.weight"] + params["layers.1.bias"]
tvm.testing.assert_allclose(model.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-5)
