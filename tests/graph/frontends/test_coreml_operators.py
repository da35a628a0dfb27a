"""Layers and operations of CoreML compute what NumPy computes."""

import numpy as np
import pytest

from dlcompiler import graph
from tests.graph.frontends.coreml_models import (
    feature,
    image,
    layer,
    network,
    old_network,
    one,
    operation,
    program,
    value,
    value_type,
    weights,
)


def run(data, *arrays):
    """Return what a model of one output computes; compiled, it computes the same."""
    module = graph.from_coreml(data)
    given = [np.asarray(array, "float32") for array in arrays]
    found = graph.evaluate(module, *given)
    np.testing.assert_allclose(graph.build(module)(*given), found, rtol=1e-5, atol=1e-5)
    return found


NUMBERS = np.random.default_rng(0)


def floats(*shape):
    return NUMBERS.uniform(-2, 2, shape).astype("float32")


# -- networks of the first versions ----------------------------------------------------------------


def softmax(x, axis):
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


X = floats(4, 6, 5)
"""An image: channels, height, width."""
W = floats(3, 120)
OLD = {
    "innerProduct": (
        {"inputChannels": 120, "outputChannels": 3, "hasBias": True, "weights": weights(W),
         "bias": weights([1, 2, 3])}, W @ X.reshape(-1) + [1, 2, 3],
    ),
    "softmax": ({}, softmax(X, 0)),
    "flatten": ({"mode": 1}, X.transpose(1, 2, 0).reshape(-1)),
    "permute": ({"axis": [0, 2, 3, 1]}, X.transpose(1, 2, 0)),
    "reshape": ({"targetShape": [2, 10, 6]}, X.reshape(2, 10, 6)),
    "add": ({"alpha": 1.5}, X + 1.5),
    "multiply": ({"alpha": 1.5}, X * 1.5),
    "slice": ({"startIndex": 1, "endIndex": -1, "stride": 2, "axis": 1}, X[:, 1:-1:2]),
    "crop": ({"cropAmounts": {"borderAmounts": [
        {"startEdgeSize": 1, "endEdgeSize": 2}, {"startEdgeSize": 0, "endEdgeSize": 3}]}},
        X[:, 1:4, :2]),
    "padding": ({"replication": {}, "paddingAmounts": {"borderAmounts": [
        {"startEdgeSize": 1, "endEdgeSize": 2}, {"startEdgeSize": 0, "endEdgeSize": 3}]}},
        np.pad(X, ((0, 0), (1, 2), (0, 3)), "edge")),
    "reduce": ({"mode": 1, "axis": 1}, X.mean((1, 2))),
    "scale": ({"shapeScale": [4], "scale": weights([1, 2, 3, 4]), "hasBias": True,
               "shapeBias": [1], "bias": weights([5])},
              X * np.arange(1, 5).reshape(4, 1, 1) + 5),
    "bias": ({"shape": [4, 6, 5], "bias": weights(np.arange(120))},
             X + np.arange(120).reshape(4, 6, 5)),
    "unary": ({"type": 3, "alpha": 2, "scale": 3, "shift": 1}, (3 * X + 1) ** 2),
    "mvn": ({"normalizeVariance": True, "epsilon": 1e-5},
            (X - X.mean((1, 2), keepdims=True)) / np.sqrt(X.var((1, 2), keepdims=True) + 1e-5)),
    "l2normalize": ({"epsilon": 1e-5}, X / np.sqrt((X**2).sum() + 1e-5)),
    "lrn": ({"alpha": 0.3, "beta": 0.75, "localSize": 3, "k": 1.5}, X / (1.5 + 0.1 * np.stack(
        [(X[max(c - 1, 0) : c + 2] ** 2).sum(0) for c in range(4)])) ** 0.75),
    "pooling": ({"type": 1, "globalPooling": True}, X.mean((1, 2))),
    "upsample": ({"scalingFactor": [2, 3]}, X.repeat(2, 1).repeat(3, 2)),
    "reorganizeData": ({"mode": 1, "blockSize": 2}, X.reshape(2, 2, 1, 6, 5).transpose(
        2, 3, 0, 4, 1).reshape(1, 12, 10)),
    "activation": ({"PReLU": {"alpha": weights([0.1, 0.2, 0.3, 0.4])}},
                   np.where(X < 0, X * np.array([0.1, 0.2, 0.3, 0.4]).reshape(4, 1, 1), X)),
}  # fmt: skip
"""Layer -> its parameters, and what it makes of `X`."""


@pytest.mark.campaign
@pytest.mark.parametrize("kind", OLD)
def test_a_layer_of_the_first_versions(kind):
    params, expected = OLD[kind]
    found = run(old_network(kind, (4, 6, 5), expected.shape, **params), X)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def column(values):
    return np.reshape(values, (4, 1, 1))


MOMENTS = {"channels": 4, "gamma": weights([1, 2, 3, 4]), "beta": weights([0, 1, 0, 1]),
           "mean": weights([0, 0, 1, 1]), "variance": weights([1, 1, 1, 0])}  # fmt: skip
DEFAULTS = {
    "batchnorm": (
        {**MOMENTS, "instanceNormalization": True},
        (X - column([0, 0, 1, 1])) / np.sqrt(column([1, 1, 1, 0]) + 1e-5)
        * column([1, 2, 3, 4]) + column([0, 1, 0, 1]),
    ),
    "unary": ({"type": 1}, 1 / np.sqrt(X * 0 + 1e-6)),
    "l2normalize": ({}, X * 0),
    "mvn": ({"normalizeVariance": True}, X * 0),
    "lrn": ({"alpha": 0.0, "beta": 2.0, "localSize": 3}, X),
    "reduce": ({"mode": 3, "axis": 1}, np.log(np.abs(X) + 1e-6).sum((1, 2))),
}  # fmt: skip
"""Layer -> its parameters without small numbers, and what it makes of an image."""


@pytest.mark.parametrize("kind", DEFAULTS)
def test_a_number_that_is_left_out_has_its_default(kind):
    params, expected = DEFAULTS[kind]
    image = {"unary": X * 0, "l2normalize": X * 0, "mvn": X * 0, "reduce": np.abs(X)}.get(kind, X)
    found = run(old_network(kind, (4, 6, 5), expected.shape, **params), image)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", [0, 1])
def test_a_transposed_convolution_of_the_same_size_has_no_dilation(mode):
    x = floats(1, 5, 1)
    params = {"outputChannels": 1, "kernelChannels": 1, "kernelSize": [3, 1], "stride": [2, 1],
              "dilationFactor": [2, 2], "isDeconvolution": True, "same": {"asymmetryMode": mode},
              "weights": weights([1, 2, 3])}  # fmt: skip
    full = np.zeros(11)
    for h in range(5):
        full[2 * h : 2 * h + 3] += x[0, h, 0] * np.array([1, 2, 3])
    found = run(old_network("convolution", x.shape, (1, 10, 1), **params), x)
    np.testing.assert_allclose(found.reshape(-1), full[mode:][:10], rtol=1e-5, atol=1e-6)


def test_quantized_weights_of_a_transposed_convolution_have_a_scale_for_each_output():
    numbers = NUMBERS.integers(0, 255, (2, 2))
    linear = {"scale": [1, 2], "bias": [3, 4]}
    params = {"outputChannels": 2, "kernelChannels": 2, "kernelSize": [1, 1], "valid": {},
              "isDeconvolution": True, "weights": {
                  "rawValue": numbers.astype("uint8").tobytes(),
                  "quantization": {"numberOfBits": 8, "linearQuantization": linear}}}  # fmt: skip
    x = floats(2, 1, 1)
    found = run(old_network("convolution", x.shape, x.shape, **params), x)
    expected = (numbers * [1, 2] + [3, 4]).T @ x.reshape(-1)
    np.testing.assert_allclose(found.reshape(-1), expected, rtol=1e-4)


def test_a_reshape_of_a_sequence_keeps_its_steps():
    x = floats(3, 1, 4, 1, 1)
    found = run(old_network("reshape", x.shape, (3, 1, 2, 2, 1), targetShape=[2, 2, 1]), x)
    np.testing.assert_array_equal(found, x.reshape(3, 1, 2, 2, 1))


def test_a_transposed_convolution_and_a_pool_that_includes_the_last_pixel():
    weight = floats(4, 2, 3, 3)
    params = {"outputChannels": 2, "kernelChannels": 4, "kernelSize": [3, 3], "stride": [2, 2],
              "isDeconvolution": True, "valid": {}, "weights": weights(weight)}  # fmt: skip
    expected = np.zeros((2, 13, 11), "float32")
    for h in range(6):
        for w in range(5):
            part = np.einsum("c,cokl->okl", X[:, h, w], weight)
            expected[:, 2 * h : 2 * h + 3, 2 * w : 2 * w + 3] += part
    layers = [layer("convolution", ["x"], ["y"], **params),
              layer("pooling", ["y"], ["z"], kernelSize=[2, 2], stride=[2, 2],
                    includeLastPixel={"paddingAmounts": [0, 0]})]  # fmt: skip
    data = network(layers, [feature("x", X.shape)], [feature("z", (2, 7, 6))], is_exact=False)
    edges = np.pad(expected, ((0, 0), (0, 1), (0, 1)), "edge")
    found = run(data, X)
    np.testing.assert_allclose(found, edges.reshape(2, 7, 2, 6, 2).max((2, 4)), atol=1e-4)


@pytest.mark.parametrize("is_exact", [True, False])
def test_an_image_is_scaled_in_the_order_of_its_channels(is_exact):
    scaler = {"channelScale": 0.5, "redBias": 1.0, "greenBias": 2.0, "blueBias": 3.0}
    preprocessing = [{"featureName": "x", "scaler": scaler}]
    data = network(
        [layer("activation", ["x"], ["y"], ReLU={})], [image("x", 6, 5, 30)],
        [feature("y", (1, 3, 6, 5))], is_exact=is_exact, preprocessing=preprocessing,
    )  # fmt: skip
    pixels = np.abs(floats(1, 3, 6, 5)) * 100
    bias = np.array([3, 2, 1]).reshape(3, 1, 1)
    np.testing.assert_allclose(run(data, pixels), pixels * 0.5 + bias, rtol=1e-5)


def test_a_mean_image_is_subtracted():
    mean = floats(3, 2, 2)
    data = network(
        [layer("copy", ["x"], ["y"])], [image("x", 2, 2, 20)], [feature("y", (1, 3, 2, 2))],
        preprocessing=[{"meanImage": {"meanImage": mean.reshape(-1).tolist()}}],
    )  # fmt: skip
    pixels = np.abs(floats(1, 3, 2, 2))
    np.testing.assert_allclose(run(data, pixels), pixels - mean, rtol=1e-5, atol=1e-6)


def test_the_output_of_a_classifier_is_its_last_layer():
    data = network([layer("softmaxND", ["x"], ["y"], axis=-1)], [feature("x", (3,))],
                   [{"name": "classLabel"}], kind="neuralNetworkClassifier")  # fmt: skip
    x = floats(3)
    np.testing.assert_allclose(run(data, x), softmax(x, 0), rtol=1e-5)


@pytest.mark.parametrize("bits", [1, 3, 8])
def test_weights_of_a_few_bits(bits):
    indices = NUMBERS.integers(0, 1 << bits, (2, 4))
    table = floats(1 << bits)
    flat = np.unpackbits(indices.reshape(-1, 1).astype("uint8"), axis=1)[:, 8 - bits :].reshape(-1)
    raw = np.packbits(flat).tobytes()
    x = floats(4)
    for quantization, weight in (
        ({"lookupTableQuantization": {"floatValue": table.tolist()}}, table[indices]),
        ({"linearQuantization": {"scale": [0.5, 2], "bias": [1]}}, indices * [[0.5], [2]] + 1),
    ):
        stored = {"rawValue": raw, "quantization": {"numberOfBits": bits, **quantization}}
        params = {"inputChannels": 4, "outputChannels": 2, "weights": stored}
        data = network([layer("innerProduct", ["x"], ["y"], **params)], [feature("x", (4,))],
                       [feature("y", (2,))])  # fmt: skip
        np.testing.assert_allclose(run(data, x), weight @ x, rtol=1e-4, atol=1e-5)


EXACT = {
    "reduceLogSumExp": ({"axes": [-1], "keepDims": True}, lambda x: np.log(
        np.exp(x).sum(-1, keepdims=True))),
    "reduceL1": ({"reduceAll": True}, lambda x: abs(x).sum()),
    "sliceStatic": ({"beginIds": [0, 1], "endIds": [0, 2], "strides": [1, 2],
                     "beginMasks": [1, 0], "endMasks": [1, 1], "squeezeMasks": [0, 0]},
                    lambda x: x[:, 1::2]),
    "concatND": ({"axis": 1, "interleave": True}, None),
    "splitND": ({"axis": 1, "numSplits": 2}, None),
    "tile": ({"reps": [2, 1]}, lambda x: np.tile(x, (2, 1))),
    "reverse": ({"reverseDim": [True, False]}, lambda x: x[::-1]),
    "argMax": ({"axis": 1, "removeDim": True}, lambda x: x.argmax(1)),
    "constantPad": ({"value": 2.0, "padAmounts": [1, 0, 0, 2]},
                    lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=2)),
    "greaterThan": ({"alpha": 0.5}, lambda x: x > 0.5),
    "logicalNot": ({}, lambda x: x == 0),
    "clip": ({"minVal": -1.0, "maxVal": 0.5}, lambda x: x.clip(-1, 0.5)),
    "clampedReLU": ({"alpha": 0.2, "beta": 1.0},
                    lambda x: np.minimum(np.where(x < 0, 0.2 * x, x), 1)),
    "flattenTo2D": ({"axis": 1}, lambda x: x),
    "expandDims": ({"axes": [0, -1]}, lambda x: x[None, ..., None]),
    "rankPreservingReshape": ({"targetShape": [0, -1]}, lambda x: x),
    "batchedMatmul": ({"weightMatrixFirstDimension": 4, "weightMatrixSecondDimension": 3,
                       "weights": weights(W[:, :4])}, lambda x: x @ W[:, :4].T),
    "broadcastToStatic": ({"targetShape": [2, 3, 4]}, lambda x: np.broadcast_to(x, (2, 3, 4))),
}  # fmt: skip
"""Layer -> its parameters, and what it makes of (3, 4) elements."""


@pytest.mark.campaign
@pytest.mark.parametrize("kind", [kind for kind, case in EXACT.items() if case[1]])
def test_a_layer_with_the_dimensions_of_its_input(kind):
    params, compute = EXACT[kind]
    x = floats(3, 4)
    expected = np.asarray(compute(x))
    data = network([layer(kind, ["x"], ["y"], **params)], [feature("x", (3, 4))], [{"name": "y"}])
    found = run(data, x)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_layers_of_several_operands():
    layers = [
        layer("splitND", ["x"], ["a", "b"], **EXACT["splitND"][0]),
        layer("concatND", ["b", "a"], ["c"], **EXACT["concatND"][0]),
        layer("average", ["c", "x", "x"], ["y"]),
    ]
    x = floats(3, 4)
    expected = (x[:, [2, 0, 3, 1]] + 2 * x) / 3
    found = run(network(layers, [feature("x", (3, 4))], [{"name": "y"}]), x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


# -- programs --------------------------------------------------------------------------------------


I = NUMBERS.integers(0, 3, (3, 4))  # noqa: E741  indices
OPERATIONS = {
    "reduce_sum_square": ({"axes": [1]}, lambda x: (x**2).sum(1)),
    "reduce_log_sum_exp": ({"keep_dims": True}, lambda x: np.log(np.exp(x).sum(keepdims=True))),
    "slice_by_index": ({"begin": [2, 1], "end": [0, 0], "stride": [-1, 2],
                        "begin_mask": [False, False], "end_mask": [True, True],
                        "squeeze_mask": [False, False]}, lambda x: x[2::-1, 1::2]),
    "slice_by_size": ({"begin": [1, 0], "size": [-1, 2]}, lambda x: x[1:, :2]),
    "reshape": ({"shape": [1, 0, -1, 2]}, lambda x: x.reshape(1, 1, 6, 2)),
    "expand_dims": ({"axes": [0, -1]}, lambda x: x[None, ..., None]),
    "flatten2d": ({"axis": -1}, lambda x: x),
    "pad": ({"pad": [1, 2], "mode": "reflect"}, lambda x: np.pad(x, ((0, 0), (1, 2)), "reflect")),
    "tile": ({"reps": [1, 2]}, lambda x: np.tile(x, (1, 2))),
    "reverse": ({}, lambda x: x[::-1, ::-1]),
    "gather": ({"indices": [2, 0], "axis": 0}, lambda x: x[[2, 0]]),
    "gather from the end": ({"indices": [-1, -3], "axis": 0}, lambda x: x[[-1, -3]]),
    "slice_by_index of one": ({"begin": [-2, 1], "end": [0, 0], "stride": [-1, 2],
                               "begin_mask": [True, False], "end_mask": [False, False],
                               "squeeze_mask": [True, True]}, lambda x: x[0, 1]),
    "gather_along_axis": ({"indices": I, "axis": 0}, lambda x: np.take_along_axis(x, I, 0)),
    "gather_nd": ({"indices": np.array([[2, 1], [0, 3]])}, lambda x: x[[2, 0], [1, 3]]),
    "cumsum": ({"axis": 1, "exclusive": True, "reverse": True},
               lambda x: np.cumsum(x[:, ::-1], 1)[:, ::-1] - x),
    "band_part": ({"lower": 1, "upper": 0}, lambda x: np.tril(np.triu(x, -1))),
    "clip": ({"alpha": -0.5, "beta": 1.0}, lambda x: x.clip(-0.5, 1)),
    "rsqrt": ({"epsilon": 5.0}, lambda x: 1 / np.sqrt(x + 5)),
    "inverse": ({"epsilon": 5.0}, lambda x: 1 / (x + 5)),
    "scaled_tanh": ({"alpha": 2.0, "beta": 0.5}, lambda x: 2 * np.tanh(0.5 * x)),
    "sigmoid_hard": ({"alpha": 0.2, "beta": 0.5}, lambda x: (0.2 * x + 0.5).clip(0, 1)),
    "softsign": ({}, lambda x: x / (1 + abs(x))),
    "thresholded_relu": ({"alpha": 0.5}, lambda x: np.where(x >= 0.5, x, 0)),
    "threshold": ({"alpha": 0.5}, lambda x: np.maximum(x, 0.5)),
    "gelu": ({"mode": "SIGMOID_APPROXIMATION"}, lambda x: x / (1 + np.exp(-1.702 * x))),
    "split": ({"axis": 1, "split_sizes": [4]}, lambda x: x),
    "stack": ({"values": ["%x", "%x"], "axis": -1}, lambda x: np.stack([x, x], -1)),
    "concat": ({"values": ["%x", "%x"], "axis": -1, "interleave": True},
               lambda x: x.repeat(2, 1)),
    "einsum": ({"values": ["%x", "%x"], "equation": "ij,kj->ik"}, lambda x: x @ x.T),
    "reduce_argmax": ({"axis": 0}, lambda x: x.argmax(0).astype("int32")),
    "argsort": ({"axis": 1, "ascending": True}, lambda x: np.argsort(x, 1).astype("int32")),
    "topk": ({"k": 2, "return_indices": False}, lambda x: -np.sort(-x, 1)[:, :2]),
    "select": ({"cond": np.eye(3, 4) == 1, "a": "%x", "b": 2.0}, lambda x: np.where(
        np.eye(3, 4) == 1, x, 2)),
    "layer_norm": ({"axes": [0, 1]}, lambda x: (x - x.mean()) / np.sqrt(x.var() + 1e-5)),
}  # fmt: skip
"""Operation -> its parameters, and what it makes of (3, 4) elements."""


def parameters(given):
    """Return parameters, with lists as arrays: a list of a program holds several operands."""
    return {
        key: np.asarray(each) if isinstance(each, list) and "%x" not in each else each
        for key, each in given.items()
    }


@pytest.mark.campaign
@pytest.mark.parametrize("kind", OPERATIONS)
def test_an_operation(kind):
    inputs, compute = OPERATIONS[kind]
    x = floats(3, 4)
    expected = np.asarray(compute(x))
    dtype = "int32" if expected.dtype == "int32" else "float32"
    found = run(one(kind.split()[0], parameters(inputs), expected.shape, dtype=dtype), x)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("rule", "first"), [("same", 0), ("same_lower", 1)])
def test_a_pool_with_the_same_number_of_windows(rule, first):
    x = floats(1, 1, 1, 4)
    inputs = {"kernel_sizes": np.array([1, 2]), "strides": np.array([1, 1]), "pad_type": rule,
              "exclude_padding_from_average": True, "ceil_mode": False}  # fmt: skip
    found = run(one("avg_pool", inputs, x.shape, x.shape), x).reshape(-1)
    row = np.pad(x.reshape(-1), (first, 1 - first), "edge")
    np.testing.assert_allclose(found, (row[1:] + row[:-1]) / 2, rtol=1e-5)


def test_the_result_of_a_classifier_is_its_probabilities():
    operations = [
        operation("softmax", {"x": "%x", "axis": -1}, {"p": ("float32", (3,))}),
        operation("classify", {"probabilities": "%p", "classes": np.arange(3)},
                  {"label": ("int32", ()), "all": ("float32", ())}),
    ]  # fmt: skip
    x = floats(3)
    data = program(operations, {"x": ("float32", (3,))}, ["label", "all"])
    np.testing.assert_allclose(run(data, x), softmax(x, 0), rtol=1e-5)


def test_attention_with_a_mask():
    q, k, v = floats(1, 2, 4), floats(1, 3, 4), floats(1, 3, 5)
    mask = np.array([[[True, False, True]] * 2])
    made = operation(
        "scaled_dot_product_attention",
        {"query": "%q", "key": "%k", "value": "%v", "attn_mask": mask},
        {"y": ("float32", (1, 2, 5))},
    )  # fmt: skip
    data = program([made], {name: ("float32", array.shape) for name, array in
                            (("q", q), ("k", k), ("v", v))}, ["y"])  # fmt: skip
    scores = np.where(mask, q @ k.transpose(0, 2, 1) / 2, -np.inf)
    np.testing.assert_allclose(run(data, q, k, v), softmax(scores, -1) @ v, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["UNALIGN_CORNERS", "STRICT_ALIGN_CORNERS", "DEFAULT"])
def test_a_resize_takes_its_elements_where_the_mode_says(mode):
    inputs = {"target_size_height": 1, "target_size_width": 5, "sampling_mode": mode}
    data = one("resize_bilinear", inputs, (1, 1, 1, 5), (1, 1, 1, 2))
    expected = {"UNALIGN_CORNERS": [0, 0.1, 0.5, 0.9, 1], "DEFAULT": [0, 0.4, 0.8, 1, 1],
                "STRICT_ALIGN_CORNERS": [0, 0.25, 0.5, 0.75, 1]}[mode]  # fmt: skip
    found = run(data, np.array([[[[0, 1]]]]))
    np.testing.assert_allclose(found.reshape(-1), expected, atol=1e-6)


@pytest.mark.parametrize(("mode", "first"), [("STRICT_ALIGN_CORNERS", 0), ("ALIGN_CORNERS", 1)])
def test_a_resize_to_one_element_takes_the_corner_or_the_middle(mode, first):
    inputs = {"target_size_height": 1, "target_size_width": 2, "sampling_mode": mode}
    x = floats(1, 1, 3, 4)
    found = run(one("resize_bilinear", inputs, (1, 1, 1, 2), x.shape), x)
    np.testing.assert_allclose(found.reshape(-1), x[0, 0, first, [0, 3]], rtol=1e-5)


@pytest.mark.parametrize(
    ("is_aligned", "has_centers", "expected"),
    [(False, None, [0, 0.25, 0.75, 1]), (False, False, [0, 0.5, 1, 1]),
     (True, False, [0, 1 / 3, 2 / 3, 1])],
)  # fmt: skip
def test_an_upsampling_puts_pixels_where_its_flags_say(is_aligned, has_centers, expected):
    inputs = {"scale_factor_width": 2, "align_corners": is_aligned}
    if has_centers is not None:
        inputs["half_pixel_centers"] = has_centers
    data = one("upsample_bilinear", inputs, (1, 1, 1, 4), (1, 1, 1, 2))
    found = run(data, np.array([[[[0, 1]]]]))
    np.testing.assert_allclose(found.reshape(-1), expected, atol=1e-6)


def test_compressed_weights():
    data = NUMBERS.integers(0, 255, (3, 4)).astype("uint8")
    indices = NUMBERS.integers(0, 4, 12)
    table = floats(4)
    raw = np.array([sum(int(n) << 2 * k for k, n in enumerate(indices[i : i + 4]))
                    for i in range(0, 12, 4)], "uint8")  # fmt: skip
    rows = ("float32", (3, 4))
    mask = np.array([0b10100101, 0b00001000], "uint8")
    sparse = np.zeros(12, "float32")
    sparse[[0, 2, 5, 7, 11]] = table[0]
    tables = floats(3, 1, 4, 1)
    own = indices.reshape(3, 4).astype("uint8")
    operations = [
        operation("constexpr_affine_dequantize", {}, {"a": rows}, quantized_data=value(data),
                  zero_point=value(np.uint8(7)), scale=value(floats(3) * 0 + [[1, 2, 3]][0]),
                  axis=value(0)),
        operation("constexpr_lut_to_dense", {}, {"b": rows}, indices=value(raw), lut=value(table),
                  shape=value(np.array([3, 4], "uint32"))),
        operation("constexpr_sparse_to_dense", {}, {"c": rows}, mask=value(mask),
                  nonzero_data=value(np.repeat(table[:1], 5)),
                  shape=value(np.array([3, 4], "uint32"))),
        operation("constexpr_lut_to_dense", {"indices": value(own), "lut": value(tables)},
                  {"d": rows}),
        operation("constexpr_blockwise_shift_scale", {
            "data": value(data), "scale": value(np.array([[1, 2]], "float32"))}, {"e": rows}),
        *(operation("add", {"x": f"%{x}", "y": f"%{y}"}, {f"{x}{y}": rows})
          for x, y in (("x", "a"), ("xa", "b"), ("xab", "c"), ("xabc", "d"), ("xabcd", "e"))),
    ]  # fmt: skip
    made = program(operations, {"x": rows}, ["xabcde"])
    scale = np.array([[1], [2], [3]])
    expected = (
        scale * (data.astype(int) - 7) + table[indices].reshape(3, 4) + sparse.reshape(3, 4)
        + np.take_along_axis(tables.reshape(3, 4), own.astype(int), 1) + data * [1, 1, 2, 2]
    )  # fmt: skip
    np.testing.assert_allclose(run(made, np.zeros((3, 4))), expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", [25, 35])
def test_numbers_of_four_bits(dtype):
    raw = np.array([0x1F, 0x80], "uint8")
    given = {"type": value_type(dtype, (4,)), "immediateValue": {
        "tensor": {"bytes": {"values": raw.tobytes()}}}}  # fmt: skip
    made = [operation("cast", {"x": given, "dtype": "fp32"}, {"c": ("float32", (4,))}),
            operation("add", {"x": "%x", "y": "%c"}, {"y": ("float32", (4,))})]  # fmt: skip
    expected = [-1, 1, 0, -8] if dtype == 25 else [15, 1, 0, 8]
    data = program(made, {"x": ("float32", (4,))}, ["y"])
    np.testing.assert_array_equal(run(data, np.zeros(4)), expected)
