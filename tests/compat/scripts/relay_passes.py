"""Passes by hand, in sequences, by levels, of one's own, and what looks at them."""

import numpy as np
import tvm
from tvm import relay
from tvm.ir.instrument import PassTimingInstrument, pass_instrument


def example():
    shape = (1, 8, 12, 12)
    data = relay.var("data", relay.TensorType(shape, "float32"))
    weight = relay.var("weight", shape=(4, 8, 3, 3))
    constant = relay.const(np.ones((1, 4, 1, 1), "float32"))
    product = relay.nn.conv2d(data, weight, kernel_size=(3, 3), channels=4)
    shift = relay.multiply(relay.add(constant, constant), relay.const(2.0))
    moved = relay.add(product, shift)
    same, again = relay.add(moved, constant), relay.add(moved, constant)
    return relay.Function([data, weight], relay.add(same, again))


mod = tvm.IRModule.from_expr(example())
rng = np.random.default_rng(0)
inputs = [rng.uniform(-1, 1, s).astype("float32") for s in ((1, 8, 12, 12), (4, 8, 3, 3))]
expected = relay.create_executor("debug", mod).evaluate()(*inputs).numpy()


def check(module):
    found = relay.create_executor("debug", module).evaluate()(*inputs).numpy()
    tvm.testing.assert_allclose(found, expected, rtol=1e-4)
    return module


def ops(module):
    return relay.analysis.list_op_freqs(module)


# One after another.
assert ops(mod) == {"nn.conv2d": 1, "add": 5, "multiply": 1}
folded = check(relay.transform.FoldConstant()(mod))
assert ops(folded) == {"nn.conv2d": 1, "add": 4}
once = check(relay.transform.EliminateCommonSubexpr()(folded))
assert ops(once)["add"] == 3
fused = check(relay.transform.FuseOps(fuse_opt_level=2)(relay.transform.InferType()(once)))
assert str(fused).count("Primitive=1") == 1
assert str(mod).count("Primitive=1") == 0  # a pass makes another module
alone = check(relay.transform.FuseOps(fuse_opt_level=0)(once))
assert str(alone).count("Primitive=1") == 4

# A sequence leaves out what is above the level of the context.
seq = tvm.transform.Sequential(
    [
        relay.transform.FoldConstant(),
        relay.transform.EliminateCommonSubexpr(),
        relay.transform.FuseOps(fuse_opt_level=2),
    ]
)
assert ops(check(seq(mod)))["add"] == 4
with tvm.transform.PassContext(opt_level=3):
    assert ops(check(seq(mod)))["add"] == 3
with tvm.transform.PassContext(opt_level=3, disabled_pass=["EliminateCommonSubexpr"]):
    assert ops(check(seq(mod)))["add"] == 4
with tvm.transform.PassContext(opt_level=1, required_pass=["FoldConstant"]):
    assert "multiply" not in ops(check(seq(mod)))
    assert tvm.transform.PassContext.current().opt_level == 1
assert seq.info.name == "sequential" and relay.transform.FoldConstant().info.opt_level == 2


# A pass of one's own, as a class and as a function.
@relay.transform.function_pass(opt_level=1)
class Scale:
    def __init__(self, factor):
        self.factor = factor

    def transform_function(self, func, module, context):
        owner = self

        class Each(relay.ExprMutator):
            def visit_constant(self, const):
                return relay.multiply(owner.factor, const)

        return Each().visit(func)


scale = Scale(relay.const(3.0))
assert scale.info.name == "Scale" and scale.info.opt_level == 1
assert ops(scale(mod))["multiply"] == 3


@tvm.transform.module_pass(opt_level=2)
def without_weights(module, context):
    module["main"] = relay.Function(module["main"].params, module["main"].body)
    return module


tvm.ir.assert_structural_equal(without_weights(mod), mod)


class Count(relay.ExprVisitor):
    calls = 0

    def visit_call(self, call):
        self.calls += 1
        super().visit_call(call)


counter = Count()
counter.visit(mod["main"])
assert counter.calls == 7
seen = []
relay.analysis.post_order_visit(mod["main"], lambda node: seen.append(type(node).__name__))
assert seen.count("Call") == 7 and seen[-1] == "Function"


# What looks at passes.
@pass_instrument
class Names:
    def __init__(self):
        self.before, self.after = [], []

    def should_run(self, module, info):
        return info.name != "EliminateCommonSubexpr"

    def run_before_pass(self, module, info):
        self.before.append(info.name)

    def run_after_pass(self, module, info):
        self.after.append(info.name)


names, timing = Names(), PassTimingInstrument()
with tvm.transform.PassContext(opt_level=3, instruments=[names, timing]):
    check(seq(mod))
    profile = timing.render()
assert names.before == ["sequential", "FoldConstant", "FuseOps"]
assert names.after == ["FoldConstant", "FuseOps", "sequential"]
assert profile.splitlines()[0].startswith("sequential: ") and "    FoldConstant: " in profile
tvm.transform.PrintIR("after all")(mod)
