"""Types of parameters that follow from the data and the attributes, as in Relay."""

import pytest

from dlcompiler import graph
from dlcompiler.errors import GraphError
from dlcompiler.graph import ANY, op

v = graph.var


def types(expr):
    """Return the types of the free variables of an expression, by name."""
    main = graph.infer_types(graph.Module.from_expr(expr)).main
    return {param.name: repr(param.type) for param in main.params}


def test_a_small_convolutional_network():
    x = v("x", (ANY, 3, 32, 32))
    y = op.nn.conv2d(x, v("w1"), channels=8, kernel_size=3, padding=1)
    y = op.nn.bias_add(y, v("b1"))
    y = op.nn.batch_norm(y, v("gamma"), v("beta"), v("mean"), v("var"))[0]
    y = op.nn.conv2d(op.nn.relu(y), v("w2"), channels=8, kernel_size=(1, 5), groups=4)
    y = op.nn.prelu(y, v("alpha"))
    y = op.nn.batch_flatten(op.nn.adaptive_avg_pool2d(y, output_size=2))
    y = op.nn.softmax(op.nn.bias_add(op.nn.dense(y, v("w3"), units=10), v("b3")))
    assert repr(graph.type_of(y)) == "Tensor[(?, 10), float32]"
    channels = "Tensor[(8), float32]"
    assert types(y) == {
        "x": "Tensor[(?, 3, 32, 32), float32]",
        "w1": "Tensor[(8, 3, 3, 3), float32]", "b1": channels, "gamma": channels,
        "beta": channels, "mean": channels, "var": channels,
        "w2": "Tensor[(8, 2, 1, 5), float32]", "alpha": channels,
        "w3": "Tensor[(10, 32), float32]", "b3": "Tensor[(10), float32]",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("expr", "name", "wanted"),
    [
        (lambda: op.nn.conv2d_transpose(v("x", (1, 6, 4, 4)), v("w"), channels=4, kernel_size=3,
                                        groups=2), "w", "Tensor[(6, 2, 3, 3), float32]"),
        (lambda: op.nn.conv2d(v("x", (1, 4, 4, 6), "int8"), v("w"), channels=4, kernel_size=3,
                              data_layout="NHWC", kernel_layout="HWIO", out_dtype="int32"), "w",
         "Tensor[(3, 3, 6, 4), int8]"),
        (lambda: op.nn.conv1d(v("x", (1, 2, 9, 4)), v("w"), channels=4, kernel_size=3,
                              data_layout="NCW4c", kernel_layout="OIW4i2o"), "w",
         "Tensor[(2, 2, 3, 4, 2), float32]"),
        (lambda: op.nn.matmul(v("x", (2, 3)), v("w"), units=5), "w", "Tensor[(3, 5), float32]"),
        (lambda: op.nn.layer_norm(v("x", (2, 3, 4)), v("g"), v("b"), axis=1), "g",
         "Tensor[(3), float32]"),
        (lambda: op.nn.rms_norm(v("x", (2, 3, 4), "float16"), v("g")), "g", "Tensor[(4), float16]"),
        (lambda: op.nn.lstm(v("x", (7, 2, 3)), v("h", (2, 4)), v("c"), v("wi"), v("wh"), v("b")),
         "wh", "Tensor[(16, 4), float32]"),
        (lambda: op.nn.gru_cell(v("x", (2, 3)), v("h"), v("wi", (12, 3)), v("wh")), "h",
         "Tensor[(2, 4), float32]"),
        (lambda: op.image.grid_sample(v("x", (1, 3, 4, 4)), v("g", (1, 2, 5, 6))), "g",
         "Tensor[(1, 2, 5, 6), float32]"),
        (lambda: op.nn.nll_loss(v("x", (3, 5)), v("t", (3,), "int64"), v("w")), "w",
         "Tensor[(5), float32]"),
    ],
)  # fmt: skip
def test_a_parameter_gets_its_type(expr, name, wanted):
    assert types(expr())[name] == wanted


@pytest.mark.parametrize(
    "make",
    [
        lambda: op.nn.dense(v("x", (2, 3)), v("w")),
        lambda: op.nn.conv2d(v("x", (1, 3, 8, 8)), v("w"), channels=4),
        lambda: op.nn.batch_matmul(v("x", (1, 3, 8)), v("w")),
        lambda: op.nn.lstm_cell(v("x", (2, 3)), v("h"), v("c"), v("w"), v("r")),
    ],
)
def test_a_parameter_whose_type_does_not_follow(make):
    with pytest.raises(GraphError, match="is not known"):
        types(make())
