"""Large weights are stored as floats of 16 bits; kernels convert them as they read them."""

import numpy as np
import pytest

from dlcompiler import dtypes
from dlcompiler.errors import GraphError
from dlcompiler.graph import build, evaluate, op, optimize, var
from dlcompiler.graph.execution.build import load_model
from dlcompiler.graph.ir import Constant, Module
from dlcompiler.graph.passes import PassContext, store_weights
from dlcompiler.graph.passes.store_weights import WEIGHTS

NARROW = ("float16", "bfloat16")
RNG = np.random.default_rng(0)


def drawn(*shape):
    return RNG.uniform(-1, 1, shape).astype("float32")


CASES = {
    "dense": (lambda w: op.nn.relu(op.nn.dense(var("x", (1, 70)), *w)), [(131, 70)],
              {"x": (1, 70)}),
    "dense, rows": (lambda w: op.nn.dense(var("x", (13, 70)), *w), [(131, 70)], {"x": (13, 70)}),
    "conv2d": (lambda w: op.nn.relu(op.nn.conv2d(var("x", (1, 7, 9, 9)), *w, padding=(1, 1))),
               [(67, 7, 3, 3)], {"x": (1, 7, 9, 9)}),
    "NHWC": (lambda w: op.nn.conv2d(var("x", (1, 9, 9, 16)), *w, data_layout="NHWC",
                                    kernel_layout="HWIO"), [(3, 3, 16, 48)], {"x": (1, 9, 9, 16)}),
    "matmul": (lambda w: op.nn.matmul(var("x", (5, 70)), *w), [(70, 131)], {"x": (5, 70)}),
    "batch_matmul": (lambda w: op.nn.batch_matmul(var("x", (3, 5, 70)), *w), [(3, 61, 70)],
                     {"x": (3, 5, 70)}),
}  # fmt: skip


@pytest.mark.campaign
@pytest.mark.parametrize("target", ["cpu", "c", "gpu"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", NARROW)
def test_sums_are_those_of_the_rounded_weights(case, dtype, target):
    make, shapes, inputs = CASES[case]
    weights = [drawn(*shape) for shape in shapes]
    given = [drawn(*shape) for shape in inputs.values()]
    model = build(Module.from_expr(make(weights)), target, store=dtype)
    rounded = [w.astype(dtypes.to_numpy(dtype)).astype("float32") for w in weights]
    expected = evaluate(Module.from_expr(make(rounded)), *given)
    np.testing.assert_allclose(model(*given), expected, rtol=1e-5, atol=1e-4)
    stored = [d for d in model.module.decisions() if d.made_by == "store_weights"]
    assert [d.verdict for d in stored] == ["rewritten"] * len(weights)


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn"])
def test_recurrent_layers(name):
    gates, states = {"lstm": (4, 2), "gru": (3, 1), "rnn": (1, 1)}[name]
    zero = np.zeros((1, 77), "float32")
    weights = [drawn(gates * 77, 61) / 8, drawn(gates * 77, 77) / 8]
    data = drawn(2, 1, 61)

    def module(ws):
        made = getattr(op.nn, name)(var("x", (2, 1, 61)), *[zero] * states, *ws)
        return Module.from_expr(made)

    model = build(module(weights), store="bfloat16")
    assert [k.operator for k in model.kernels] == [name]
    kinds = [p.dtype for p in model.kernels[0].params if p.name.startswith("weight")]
    assert kinds == ["bfloat16"] * 2
    rounded = [w.astype(dtypes.to_numpy("bfloat16")).astype("float32") for w in weights]
    expected = evaluate(module(rounded), data)
    for got, right in zip(model(data), expected, strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-5, atol=1e-5)


def test_a_saved_model_takes_half_the_memory(tmp_path):
    weight, data = drawn(512, 256), drawn(1, 256)
    module = Module.from_expr(op.nn.dense(var("x", (1, 256)), weight))
    sizes, results = [], []
    for store in ("", "bfloat16"):
        path = tmp_path / f"model{store}"
        model = build(module, store=store)
        model.save(path)
        sizes.append(path.stat().st_size)
        results.append(load_model(path)(data))
        np.testing.assert_array_equal(results[-1], model(data))
    assert sizes[0] - sizes[1] > 0.9 * weight.nbytes / 2
    assert 0 < np.abs(results[0] - results[1]).max() <= 2**-9 * np.abs(data) @ np.abs(weight).max(0)


def test_rows_of_a_table():
    table, tokens = drawn(101, 64), np.array([3, 100, 3], "int32")
    module = Module.from_expr(op.take(table, var("i", (3,), "int32"), axis=0))
    got = build(module, store="float16")(tokens)
    np.testing.assert_array_equal(got, table[tokens].astype("float16").astype("float32"))


def test_what_stays_as_it_is():
    large, small = drawn(131, 70), drawn(5, 7)
    too_large = large * np.float32(1e5)
    for weight, dtype in ((small, "bfloat16"), (too_large, "float16"), (large, "")):
        x = var("x", (1, weight.shape[1]))
        module = optimize(Module.from_expr(op.nn.dense(x, weight)))
        after = store_weights(module, dtype=dtype)
        assert after.functions == module.functions
    stored = store_weights(optimize(Module.from_expr(op.nn.dense(x, too_large))), dtype="float16")
    (decision,) = (d for d in stored.decisions() if d.made_by == "store_weights")
    assert (decision.verdict, decision.rule) == ("not rewritten", "too large")


def test_a_weight_that_two_kernels_read_is_stored_once():
    weight = Constant(drawn(128, 128))
    hidden = op.nn.relu(op.nn.dense(var("x", (1, 128)), weight))
    model = build(Module.from_expr(op.nn.dense(hidden, weight)), store="float16")
    assert model.weight_bytes == weight.value.nbytes // 2


def test_options_of_the_context():
    x, table = var("x", (2, 128)), drawn(128, 128)
    module = Module.from_expr(op.nn.dense(x, table))
    options = {"store_weights": {"dtype": "float16", "operators": ("take",)}}
    for store in ("", "bfloat16"):  # `take` is the only operator whose weights are stored
        model = build(module, context=PassContext(3, config=options), store=store)
        assert model.weight_bytes == table.nbytes


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"dtype": "int8"}, "not stored in this dtype"),
        ({"dtype": "float16", "operators": ("nn.softmax",)}, "whose weights stay as they are"),
        ({"dtype": "float16", "operators": "take"}, "operators is no list of names"),
        ({"dtype": "float16", "operators": None}, "operators is no list of names"),
        ({"dtype": "float16", "least_bytes": "1"}, "least_bytes is no number of bytes"),
    ],
)
def test_refusals(options, problem):
    with pytest.raises(GraphError, match=problem):
        store_weights(Module.from_expr(var("x", (2,))), **options)


def test_options_that_are_no_mapping_are_refused():
    context = PassContext(config={"store_weights": 5})
    with pytest.raises(GraphError, match="wrong options of store_weights"):
        build(Module.from_expr(op.nn.relu(var("x", (2,)))), context=context, store="float16")


def test_all_operators_are_known():
    assert set(WEIGHTS) <= set(dir(op)) | {f"nn.{name}" for name in dir(op.nn)}
