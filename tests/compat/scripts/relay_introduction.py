"""Graphs by hand: a small network, its text, its passes one by one, as sequences, and as a build."""

import numpy as np
import tvm
from tvm import relay
from tvm.contrib import graph_executor

BATCH, FEATURES, CLASSES = 2, 8, 3


def network():
    data = relay.var("data", shape=(BATCH, FEATURES))
    weight = relay.var("weight", shape=(CLASSES, FEATURES))
    bias = relay.var("bias", relay.TensorType((CLASSES,), "float32"))
    scores = relay.nn.bias_add(relay.nn.dense(data, weight), bias, axis=-1)
    return relay.Function([data, weight, bias], relay.nn.softmax(relay.nn.relu(scores)))


func = network()
mod = tvm.IRModule.from_expr(func)
text = mod.astext(show_meta_data=False)
assert "def @main(%data: Tensor[(2, 8), float32]" in text and "nn.dense" in text
assert isinstance(mod["main"].body, relay.Call) and mod["main"].body.op.name == "nn.softmax"
assert isinstance(mod["main"].body.op, tvm.ir.Op)
assert tuple(func.body.checked_type.shape) == (BATCH, CLASSES)
assert [v.name_hint for v in relay.analysis.free_vars(func.body)] == ["data", "weight", "bias"]
assert tvm.ir.structural_equal(tvm.parser.parse(mod.astext()), mod)
assert "let" not in text

# The values of a model, by three ways.
rng = np.random.default_rng(0)
params = {
    "weight": tvm.nd.array(rng.uniform(-1, 1, (CLASSES, FEATURES)).astype("float32")),
    "bias": tvm.nd.array(rng.uniform(-1, 1, (CLASSES,)).astype("float32")),
}
data = rng.uniform(-1, 1, (BATCH, FEATURES)).astype("float32")
scores = np.maximum(data @ params["weight"].numpy().T + params["bias"].numpy(), 0)
expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)

run = relay.create_executor("debug", mod, tvm.cpu(0), "llvm").evaluate()
found = run(data, params["weight"], bias=params["bias"])
tvm.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)

with tvm.transform.PassContext(opt_level=3):
    lib = relay.build(mod, target="llvm", params=params)
dev = tvm.cpu(0)
model = graph_executor.GraphModule(lib["default"](dev))
model.set_input("data", data)
model.run()
assert model.get_num_outputs() == 1
tvm.testing.assert_allclose(model.get_output(0).numpy(), expected, rtol=1e-5)

out = tvm.nd.empty((BATCH, CLASSES))
model.set_input(**params)  # constants of the model: the same values are accepted
model.run(data=data * 2)
model.get_output(0, out)
assert not np.array_equal(out.numpy(), expected)

# The oldest form of the same.
graph, library, weights = relay.build(mod, "llvm", params=params)
older = graph_executor.create(graph, library, dev)
older.load_params(relay.save_param_dict(weights))
older.run(data=data)
tvm.testing.assert_allclose(older.get_output(0).asnumpy(), expected, rtol=1e-5)

# Functions that call themselves, branches, and names.
n, total = relay.var("n", shape=(), dtype="int32"), relay.var("total", shape=(), dtype="int32")
add_up = relay.GlobalVar("add_up")
recursive = tvm.IRModule()
recursive[add_up] = relay.Function(
    [n, total],
    relay.If(
        relay.equal(n, relay.const(0)),
        total,
        add_up(relay.subtract(n, relay.const(1)), relay.add(total, n)),
    ),
    relay.scalar_type("int32"),
)
count = relay.var("count", shape=(), dtype="int32")
named = relay.var("named")
recursive["main"] = relay.Function([count], relay.Let(named, relay.const(0), add_up(count, named)))
assert int(relay.create_executor("debug", recursive).evaluate()(np.int32(10)).numpy()) == 55

# Results that are tuples.
x = relay.var("x", shape=(2, 6))
a, b, c = relay.split(x, 3, axis=1)
joined = relay.Function([x], relay.Tuple([relay.concatenate([c, b, a], axis=1), a]))
values = np.arange(12, dtype="float32").reshape(2, 6)
swapped, first = relay.create_executor("graph", tvm.IRModule.from_expr(joined)).evaluate()(values)
assert np.array_equal(swapped.numpy(), values[:, [4, 5, 2, 3, 0, 1]])
assert first.shape == (2, 2)
