"""A network of relay.testing, built and run; its parameters saved and loaded."""

import numpy as np
import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay import testing

BATCH, CLASSES, SHAPE = 1, 10, (3, 32, 32)

mod, params = relay.testing.resnet.get_workload(
    num_layers=18, batch_size=BATCH, image_shape=SHAPE, num_classes=CLASSES
)
print(mod.astext(show_meta_data=False))
assert relay.analysis.list_op_freqs(mod)["nn.conv2d"] == 20

with tvm.transform.PassContext(opt_level=3):
    lib = relay.build(mod, tvm.target.Target("llvm"), params=params)
module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
data = np.random.default_rng(0).uniform(-1, 1, (BATCH, *SHAPE)).astype("float32")
module.set_input("data", data)
module.run()
out = module.get_output(0, tvm.nd.empty((BATCH, CLASSES))).numpy()
assert abs(out.sum() - 1) < 1e-5

# Without any pass the values are the same, but for rounding.
with tvm.transform.PassContext(opt_level=0):
    plain = graph_executor.GraphModule(relay.build(mod, "llvm", params=params)["default"]())
plain.run(data=data)
tvm.testing.assert_allclose(plain.get_output(0).numpy(), out, rtol=1e-3)
kernels = [str(each.ir_mod).count("Primitive=1") for each in (plain.factory, lib)]
assert kernels[0] > 2 * kernels[1] > 0

# Parameters as bytes, for a model that takes them as inputs.
loaded = relay.load_param_dict(relay.save_param_dict(params))
assert loaded.keys() == params.keys()
net = testing.mlp.get_net(batch_size=1)
small, weights = testing.create_workload(net)
free = graph_executor.GraphModule(relay.build(small, "llvm"))
free.load_params(relay.save_param_dict(weights))
free.set_input("data", np.ones((1, 1, 28, 28), "float32"))
free.run()
assert free.get_output(0).shape == (1, 10)
timing = free.benchmark(tvm.cpu(), repeat=1, number=1)
assert timing.mean > 0
