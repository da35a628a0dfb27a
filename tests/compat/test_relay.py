"""Relay's names: arguments and results as there, and errors of what is not here."""

import numpy as np
import pytest

from dlcompiler import graph
from dlcompiler.compat import CompatNote, tvm
from dlcompiler.compat.missing import MissingName
from dlcompiler.compat.relay.operators import DIFFERENT, names
from dlcompiler.compat.tvm import relay
from dlcompiler.compat.tvm.contrib import graph_executor, graph_runtime
from dlcompiler.errors import CallError, GraphError, UserError
from dlcompiler.graph.operators import REGISTRY
from dlcompiler.graph.passes import FusionOptions

RNG = np.random.default_rng(0)
DATA = RNG.uniform(-1, 1, (2, 4)).astype("float32")
WEIGHT = RNG.uniform(-1, 1, (3, 4)).astype("float32")


def value(expr, *args):
    """Compute an expression of `x` and other variables."""
    made = relay.Function(relay.analysis.free_vars(expr), expr)
    return relay.create_executor("debug").evaluate(made)(*args)


@pytest.fixture
def x():
    return relay.var("x", shape=(2, 4))


@pytest.fixture
def module(x):
    w = relay.var("w", shape=(3, 4))
    return tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w))))


@pytest.fixture
def built(module):
    return relay.build(module, "llvm", params={"w": WEIGHT})


# -- expressions -----------------------------------------------------------------------------------


def test_constructors_make_nodes_of_graphs(x):
    one = relay.const(1.0)
    call = relay.Call(relay.op.get("add"), [x, one])
    assert isinstance(call, relay.Call)
    assert isinstance(call, graph.Call)
    assert not isinstance(call, relay.Var)
    assert isinstance(call, relay.Expr)
    assert isinstance(call.op, tvm.ir.Op)
    assert relay.Tuple([x, call])[1] is call
    assert relay.TupleGetItem(relay.Tuple([x, call]), 0).tuple_value.fields == (x, call)
    chosen = relay.If(relay.const(True), x, call)
    assert (chosen.cond.data.item(), chosen.true_branch, chosen.false_branch) == (True, x, call)
    assert relay.Function([x], call).ret_type is None
    assert relay.GlobalVar("f").name_hint == "f"
    assert relay.Constant(tvm.nd.array(DATA)).data.shape == (2, 4)
    lets = [relay.Let(relay.var(name), one, x) for name in "vu"]
    assert graph.structural_equal(*lets)


def test_types():
    kind = relay.TensorType((1, relay.Any()), "int8")
    assert isinstance(kind, relay.TensorType)
    assert str(relay.var("a", kind).type_annotation) == "Tensor[(1, ?), int8]"
    assert relay.var("a", (3,)).type_annotation == relay.TensorType((3,))
    assert relay.TupleType([kind]).fields == (kind,)
    assert relay.FuncType([kind], relay.scalar_type("bool")).result.rank == 0


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda x: relay.var("a", relay.TensorType((1,)), shape=(1,)), "both a type and a shape"),
        (lambda x: relay.Function([x], x, None, ["T"]), "type parameters are not part of"),
        (lambda x: relay.op.get("nn.conv2e"), "did you mean 'nn.conv2d'"),
        (lambda x: relay.Expr(), "is not made itself"),
        (lambda x: relay.nn.conv2d(x), "the number of arguments is wrong"),
        (lambda x: relay.nn.conv2d(x, x, chanels=3), "chanels"),
        (lambda x: tvm.parser.parse("def @main("), "line 1"),
        (lambda x: tvm.IRModule({"main": 3})["other"], "no function has this name"),
        (lambda x: relay.testing.resnet.get_net(image_shape=(3, 8, 9)), r"expected  \(3, n, n\)"),
        (lambda x: relay.testing.vgg.get_workload(1, num_layers=12), "there is no such depth"),
        (lambda x: relay.testing.squeezenet.get_workload(version="1.0"), "version is not built"),
        (lambda x: tvm.transform.Sequential([relay.transform.FoldConstant]), "made by a call"),
        (lambda x: relay.transform.FoldConstant()(tvm.lower), "not an expression"),
        (lambda x: relay.create_executor("fast"), "unknown kind of executor"),
        (lambda x: graph_executor.GraphModule(3), "not a built model"),
    ],
)  # fmt: skip
def test_a_mistake_is_explained(x, make, text):
    with pytest.raises(GraphError, match=text):
        make(x)


@pytest.mark.parametrize(
    ("find", "text"),
    [
        (lambda: relay.frontend, r"tvm\.relay\.frontend is not part.*\n.*import of models comes"),
        (lambda: relay.quantize, "quantization comes in a later version"),
        (lambda: relay.nn.conv2dd, r"did you mean tvm\.relay\.nn\.conv2d\?"),
        (lambda: relay.mutliply, r"did you mean tvm\.relay\.multiply\?"),
        (lambda: relay.transform.FoldConstants, r"did you mean tvm\.relay\.transform\.FoldCon"),
        (lambda: relay.transform.PartitionGraph, r"passes\.partition_for_device does these steps"),
        (lambda: relay.testing.inception_v3, "builds one block"),
        (lambda: relay.op.register_alter_op_layout, "in a later version"),
    ],
)  # fmt: skip
def test_a_missing_name_is_explained(find, text):
    with pytest.raises(MissingName, match=text):
        find()


# -- operators -------------------------------------------------------------------------------------


def test_each_operator_has_its_function():
    for name in REGISTRY:
        if "." not in name:
            assert getattr(relay, name)
    for part in ("nn", "image", "annotation"):
        assert names(f"{part}.") == dir(getattr(relay, part))
        assert all(callable(getattr(getattr(relay, part), name)) for name in names(f"{part}."))
    assert relay.op.nn is relay.nn
    assert all(callable(each) for each in DIFFERENT.values())


def test_results_that_are_tuples(x):
    a, b = relay.split(x, 2, axis=1)
    assert np.array_equal(value(b, DATA).numpy(), DATA[:, 2:])
    assert len(relay.split(x, [1, 2], axis=1)) == 3
    values, where = relay.topk(x, k=2)
    assert value(where, DATA).shape == (2, 2)
    assert isinstance(relay.topk(x, k=1, ret_type="values"), relay.Call)
    parts = relay.split(x, 4, axis=1)
    assert np.array_equal(value(relay.concatenate(parts.astuple(), 1), DATA).numpy(), DATA)
    assert np.array_equal(value(relay.concatenate(parts, axis=1), DATA).numpy(), DATA)
    with pytest.raises(IndexError, match="field 4 of a tuple of 4"):
        parts[4]
    assert a.checked_type.shape == (2, 2)
    assert values.index == 0


def test_functions_with_another_order_of_arguments(x):
    padded = value(relay.nn.pad(x, [(1, 0), (0, 2)], 7.0), DATA).numpy()
    assert np.array_equal(padded, np.pad(DATA, [(1, 0), (0, 2)], constant_values=7))
    where = np.array([[0, 3], [1, 1]], "int32")
    taken = value(relay.gather(x, 1, relay.const(where)), DATA).numpy()
    assert np.array_equal(taken, np.take_along_axis(DATA, where, 1))
    tvm.testing.assert_allclose(value(relay.variance(x, 1), DATA).numpy(), DATA.var(1), rtol=1e-5)
    tvm.testing.assert_allclose(
        value(relay.std(x, axis=0, unbiased=True), DATA).numpy(), DATA.std(0, ddof=1), rtol=1e-5
    )
    mean, var = relay.mean_variance(x, axis=1, keepdims=True)
    tvm.testing.assert_allclose(value(mean, DATA).numpy(), DATA.mean(1, keepdims=True), rtol=1e-5)
    assert value(var, DATA).shape == (2, 1)
    ones = relay.const(np.ones((2, 1), "float32"))
    zero = relay.const(np.zeros((2, 1), "int32"))
    added = value(relay.scatter_add(x, zero, ones, 1), DATA).numpy()
    assert np.array_equal(added, DATA + np.array([1, 0, 0, 0], "float32"))
    assert np.array_equal(value(relay.scatter(x, zero, ones, 1), DATA).numpy()[:, 0], [1, 1])
    assert np.array_equal(value(relay.nn.dropout(x, rate=0.3), DATA).numpy(), DATA)
    assert np.array_equal(value(relay.arange(relay.const(3), dtype="int32")).numpy(), [0, 1, 2])


# -- modules ---------------------------------------------------------------------------------------


def test_a_module_changes_by_assignment(x, module):
    before = module.graph
    module["main"] = relay.Function([x], relay.exp(x))
    assert before is not module.graph
    assert [v.name_hint for v in module.get_global_vars()] == ["main"]
    module["twice"] = x + x
    assert len(module) == 2
    assert "twice" in module
    other = tvm.IRModule.from_expr(x * 3.0)
    module.update(other)
    assert tvm.ir.structural_equal(module["main"], other["main"])
    assert repr(module) == str(module)
    assert module._repr_html_().startswith("<div")


def test_a_lowered_schedule_is_a_module_of_another_kind():
    A = tvm.te.placeholder((4,), name="A")
    B = tvm.te.compute((4,), lambda i: A[i] + 1.0, name="B")
    lowered = tvm.lower(tvm.te.create_schedule(B.op), [A, B])
    assert isinstance(lowered, tvm.IRModule)
    assert (len(lowered), "main" in lowered, [*lowered]) == (1, True, ["main"])
    assert lowered._repr_html_().startswith("<div")
    with pytest.raises(GraphError, match="a lowered schedule is no graph"):
        relay.transform.InferType()(lowered)
    with pytest.raises(UserError, match="does not change once it is lowered"):
        lowered["main"] = lowered["main"]


def test_equality(x, module):
    y = relay.var("y", shape=(2, 4))
    assert not tvm.ir.structural_equal(x + 1.0, y + 1.0)
    assert tvm.ir.structural_equal(x + 1.0, y + 1.0, map_free_vars=True)
    assert tvm.ir.structural_equal(relay.TensorType((2,)), relay.TensorType((2,)))
    assert not tvm.ir.structural_equal(x, relay.TensorType((2,)))
    again = tvm.parser.fromtext(module.astext())
    assert tvm.ir.structural_hash(again) == tvm.ir.structural_hash(module)
    with pytest.raises(GraphError, match=r"not equal(.|\n)*got"):
        tvm.ir.assert_structural_equal(module, tvm.IRModule.from_expr(x))


def test_analyses(x):
    deep = relay.nn.relu(relay.exp(relay.nn.relu(x)))
    both = relay.Function([x], relay.add(deep, relay.nn.relu(x)))
    assert relay.analysis.count_layers(both, ["nn.relu"]) == 2
    assert relay.analysis.list_op_freqs(both) == {"nn.relu": 3, "exp": 1, "add": 1}
    assert relay.analysis.list_op_names(both) == ["add", "exp", "nn.relu"]
    assert relay.analysis.bound_vars(both) == [x]
    assert relay.analysis.all_vars(both) == [x]
    assert relay.analysis.well_formed(both)
    assert not relay.analysis.well_formed(relay.add(x, relay.var("z", shape=(3, 3))))


def test_a_visitor_that_is_too_deep_says_what_to_do(x):
    for _ in range(5000):
        x = relay.exp(x)
    with pytest.raises(GraphError, match=r"hint      dlcompiler\.graph\.ir\.rewrite"):
        relay.ExprVisitor().visit(x)


# -- passes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (relay.transform.AlterOpLayout, "no operator asks for another layout"),
        (relay.transform.Legalize, "all operators are legal"),
        (relay.transform.FastMath, "keep their accuracy"),
    ],
)
def test_a_pass_without_effect_says_so(module, make, reason):
    with pytest.warns(CompatNote, match=reason):
        assert tvm.ir.structural_equal(make()(module), module)


def test_levels_decide_what_a_build_does(module):
    sizes = {}
    for level in (0, 3):
        with tvm.transform.PassContext(opt_level=level):
            sizes[level] = str(relay.build(module, "llvm").ir_mod).count("Primitive=1")
    assert sizes == {0: 2, 3: 1}
    with tvm.transform.PassContext(opt_level=3, disabled_pass=["FuseOps"]):
        assert "Primitive" not in str(relay.build(module, "llvm").ir_mod)


def test_the_depth_of_fusion_is_an_option(x):
    chain = x
    for _ in range(6):
        chain = relay.exp(chain)
    module = tvm.IRModule.from_expr(chain)
    with tvm.transform.PassContext(config={"relay.FuseOps.max_depth": 2}):
        assert str(relay.transform.FuseOps(2)(module)).count("Primitive=1") == 3
    with pytest.raises(UserError, match="unknown option"):
        tvm.transform.PassContext(config={"relay.FuseOps.depth": 2})


BEYOND = "dlcompiler.FuseOps.options"


@pytest.mark.parametrize("given", [{"rows": True}, FusionOptions(rows=True)])
def test_fusion_beyond_the_rule_of_relay_is_an_option(x, given):
    module = tvm.IRModule.from_expr(x / relay.sum(x, axis=[-1], keepdims=True))
    assert str(relay.transform.FuseOps()(module)).count("Primitive=1") == 2
    with tvm.transform.PassContext(config={BEYOND: given}):
        assert str(relay.transform.FuseOps()(module)).count("Primitive=1") == 1
        assert str(relay.transform.FuseOps(0)(module)).count("Primitive=1") == 2
        assert str(relay.build(module, "llvm").ir_mod).count("Primitive=1") == 1


@pytest.mark.parametrize(
    ("given", "wrong"),
    [({"row": True}, "unknown option"), ({1: True}, "unknown option"),
     ({"rows": 1}, "rows is no bool"), ("rows", "not options of fusion"),
     (None, "not options of fusion")],
)  # fmt: skip
def test_wrong_options_of_fusion(x, given, wrong):
    module = tvm.IRModule.from_expr(relay.exp(x))
    with tvm.transform.PassContext(config={BEYOND: given}), pytest.raises(UserError, match=wrong):
        relay.transform.FuseOps()(module)


def test_wrong_levels_and_depths_of_fusion(x):
    with pytest.raises(UserError, match="fuse_opt_level is no integer"):
        relay.transform.FuseOps(fuse_opt_level="2")
    module = tvm.IRModule.from_expr(relay.exp(x))
    with (
        tvm.transform.PassContext(config={"relay.FuseOps.max_depth": "2"}),
        pytest.raises(UserError, match="max_depth is no positive integer"),
    ):
        relay.transform.FuseOps(fuse_opt_level=2)(module)


def test_patterns(x):
    pattern = relay.dataflow_pattern
    table = [("exp_relu", pattern.is_op("nn.relu")(pattern.is_op("exp")(pattern.wildcard())))]
    module = tvm.IRModule.from_expr(relay.nn.relu(relay.exp(x)))
    made = relay.transform.MergeComposite(table)(module)
    assert 'Composite="exp_relu"' in str(made)
    with pytest.raises(GraphError, match="a check of matches is not part of dlcompiler yet"):
        relay.transform.MergeComposite([(*table[0], lambda match: True)])


def test_combined_products(x):
    weights = [relay.var(f"w{n}", shape=(3, 4)) for n in range(3)]
    module = tvm.IRModule.from_expr(relay.Tuple([relay.nn.dense(x, w) for w in weights]))
    made = relay.transform.CombineParallelDense(min_num_branches=2)(module)
    assert relay.analysis.list_op_freqs(made)["nn.dense"] == 1
    with pytest.warns(CompatNote, match="to_batch=True has no effect"):
        relay.transform.CombineParallelDense(3, to_batch=True)


# -- executors -------------------------------------------------------------------------------------


def test_a_model_that_runs(built):
    model = graph_executor.GraphModule(built["default"](tvm.cpu(0)))
    assert (model.get_num_inputs(), model.get_num_outputs()) == (1, 1)
    assert model.get_input_index("x") == 0
    assert model.get_input_index("w") == -1
    assert model.get_input("x") is None
    assert model.get_input_info() == ({"x": (2, 4)}, {"x": "float32"})
    model.set_input(0, DATA)
    model["run"]()
    expected = np.maximum(DATA @ WEIGHT.T, 0)
    tvm.testing.assert_allclose(model.get_output(0).numpy(), expected, rtol=1e-5)
    assert np.array_equal(model.get_input("x").numpy(), DATA)
    times = model.module.time_evaluator("run", tvm.cpu(0), number=1, repeat=2)()
    assert len(times.results) == 2
    assert built.compiled is not None


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda m: m.get_output(0), "the model was not run yet"),
        (lambda m: m.run(), "an input is not set"),
        (lambda m: m.set_input("y", DATA), r"the model has no such input\n  expected  x"),
        (lambda m: m.set_input("x", DATA.T), r"wrong shape(.|\n)*expected  Tensor\[\(2, 4\)"),
        (lambda m: m.set_input("w", WEIGHT + 1), "made this parameter a constant of another value"),
        (lambda m: (m.run(x=DATA), m.get_output(1)), "no such output"),
    ],
)
def test_a_wrong_use_of_a_model(built, act, text):
    with pytest.raises(CallError, match=text):
        act(graph_executor.GraphModule(built["default"]()))


def test_what_a_build_returns(built):
    assert np.array_equal(built.get_params()["w"].numpy(), WEIGHT)
    assert graph.modules_equal(graph.from_json(built.get_graph_json()), built.module)
    with pytest.warns(CompatNote, match="unpacked as graph, lib, params"):
        text, lib, params = built
    model = graph_runtime.create(text, lib, tvm.cpu(0))
    model.set_input(**params)
    model.run(x=DATA)
    assert model.get_output(0).shape == (2, 3)
    with pytest.raises(GraphError, match="no such model"):
        built["other"]


def test_a_model_of_several_functions(x):
    module = tvm.IRModule({"twice": relay.Function([x], x + x)})
    y = relay.var("y", shape=(2, 4))
    twice = module.get_global_var("twice")
    module["main"] = relay.Function([y], relay.Tuple([twice(y), relay.nn.relu(twice(y))]))
    model = graph_executor.GraphModule(relay.build(module, "llvm")["default"]())
    assert model.get_num_outputs() == 2
    with pytest.warns(CompatNote, match=r"relay\.build: the model runs by NumPy"):
        model.run(y=DATA)
    with pytest.warns(CompatNote, match="times of NumPy"):
        model.benchmark(repeat=1, number=1)
    assert np.array_equal(model.get_output(1).numpy(), np.maximum(2 * DATA, 0))


def test_executors(module, x):
    with pytest.warns(CompatNote, match="'graph' is the interpreter here"):
        run = relay.create_executor("graph", module, params={"w": WEIGHT}).evaluate()
    tvm.testing.assert_allclose(run(DATA).numpy(), np.maximum(DATA @ WEIGHT.T, 0), rtol=1e-5)
    executor = relay.create_executor()
    assert executor.evaluate(relay.const(2.0) + relay.const(3.0)).numpy() == 5
    found = executor.evaluate(relay.Tuple([x, x + 1.0]), {x: relay.const(DATA)})
    assert isinstance(found, list)
    assert np.array_equal(found[1].numpy(), DATA + 1)


def test_a_target_that_is_none_is_refused(module):
    with pytest.raises(UserError, match="unknown kind of target"):
        relay.build(module, "no_such_target")


# -- parameters as bytes ---------------------------------------------------------------------------

PARAMS = {
    "a": DATA, "scalar": np.float32(2.5), "b": np.arange(3, dtype="int64"),
    "flags": np.array([True, False]), "half": np.ones((1, 2), "float16"),
    "": np.zeros((0, 3), "uint8"),
}  # fmt: skip


def test_parameters_come_back():
    found = relay.load_param_dict(relay.save_param_dict(PARAMS))
    assert found.keys() == PARAMS.keys()
    for name, array in found.items():
        assert array.dtype == np.asarray(PARAMS[name]).dtype.name
        assert np.array_equal(array.numpy(), PARAMS[name])
        assert array.shape == np.shape(PARAMS[name])


def test_the_format_of_parameters_is_tvms():
    head = bytes(relay.save_param_dict({"w": np.array([1, 2], "float32")}))
    assert head[:8] == bytes.fromhex("b79c04054f8de5f7")
    assert head[16:33] == (1).to_bytes(8, "little") + (1).to_bytes(8, "little") + b"w"
    assert head[41:49] == bytes.fromhex("3fa1b496f0405edd")
    assert head[69:73] == bytes([2, 32, 1, 0])
    assert head[-16:-8] == (8).to_bytes(8, "little")


def test_damaged_parameters_are_refused():
    good = bytes(relay.save_param_dict(PARAMS))
    for end in range(0, len(good), 3):
        with pytest.raises(GraphError, match="load_param_dict"):
            relay.load_param_dict(good[:end])
    with pytest.raises(GraphError, match="more bytes follow"):
        relay.load_param_dict(good + b"x")
    rng = np.random.default_rng(1)
    for _ in range(300):
        bad = bytearray(good)
        bad[rng.integers(len(bad))] ^= 1 << rng.integers(8)
        try:
            relay.load_param_dict(bad)
        except GraphError:
            continue


# -- models ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "convolutions"),
    [
        ("mlp", {"batch_size": 2}, 0),
        ("resnet", {"num_layers": 34, "image_shape": (3, 32, 32), "num_classes": 10}, 36),
        ("mobilenet", {"image_shape": (3, 32, 32), "num_classes": 10}, 27),
        ("squeezenet", {"image_shape": (3, 64, 64), "num_classes": 10}, 26),
        ("dqn", {"batch_size": 1}, 3),
        ("lstm", {"iterations": 2, "num_hidden": 8}, 0),
    ],
)
def test_models_have_types_and_weights(name, options, convolutions):
    module, params = getattr(relay.testing, name).get_workload(**options)
    assert relay.analysis.list_op_freqs(module).get("nn.conv2d", 0) == convolutions
    free = [param.name_hint for param in module["main"].params if param.name_hint not in params]
    assert free == ["data"]
    assert relay.analysis.well_formed(module)


def test_weights_for_a_model_of_ones_own():
    layers = relay.testing.layers
    data = relay.var("data", shape=(1, 3, 8, 8))
    made = layers.conv2d(data, kernel_size=3, channels=4, name="conv")
    made = layers.batch_norm_infer(made, name="bn")
    made = layers.dense_add_bias(relay.nn.batch_flatten(made), units=2, name="fc")
    net = relay.Function(relay.analysis.free_vars(made), made)

    def ones(name, array):
        array[:] = 1

    _, params = relay.testing.create_workload(net, ones)
    assert params["conv_weight"].shape == (4, 3, 3, 3)
    assert set(params) >= {"bn_gamma", "bn_moving_var", "fc_weight", "fc_bias"}
    assert all((array.numpy() == 1).all() for array in params.values())
    assert relay.testing.run_infer_type(net).ret_type.shape == (1, 2)
    folded = relay.testing.run_opt_pass(net, relay.transform.SimplifyInference())
    assert "batch_norm" not in str(folded)
