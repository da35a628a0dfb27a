"""Operators of ONNX on awkward shapes, against the reference of the package onnx."""

import contextlib
import random

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install onnx")

import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from dlcompiler.errors import DLCompilerError, GraphError
from dlcompiler.graph import build, evaluate, from_onnx
from tests.graph.frontends.onnx_models import model_of


def model(op, inputs, attrs, outputs=1, opset=24, known=()):
    """Return a model of one node; inputs in `known` are weights, None is left out."""
    given = {f"x{n}": value for n, value in enumerate(inputs) if value is not None}
    kinds = {name: helper.np_dtype_to_tensor_dtype(x.dtype) for name, x in given.items()}
    names = [f"x{n}" if value is not None else "" for n, value in enumerate(inputs)]
    results = [f"y{n}" for n in range(outputs)]
    return model_of(
        [helper.make_node(op, names, results, **attrs)],
        [helper.make_tensor_value_info(name, kinds[name], x.shape)
         for n, (name, x) in enumerate(given.items()) if int(name[1:]) not in known],
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in results],
        [numpy_helper.from_array(x, name) for name, x in given.items() if int(name[1:]) in known],
        opset,
    )  # fmt: skip


def check(op, *inputs, known=(), outputs=1, opset=24, compiled=False, **attrs):
    """Compare the results of a node with the reference."""
    proto = model(op, inputs, attrs, outputs, opset, known)
    given = {f"x{n}": x for n, x in enumerate(inputs) if x is not None and n not in known}
    wanted = ReferenceEvaluator(proto).run(None, given)
    module = from_onnx(proto)
    found = (build(module) if compiled else evaluate_of(module))(*given.values())
    for ours, theirs in zip(found if outputs > 1 else (found,), wanted, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        close = 1e-3 if ours.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(ours, theirs, rtol=close, atol=10 * close)


def evaluate_of(module):
    return lambda *args: evaluate(module, *args)


def numbers(*shape, dtype="float32", seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def whole(*values):
    return np.array(values, "int64")


@pytest.mark.parametrize(
    ("shape", "length", "axis", "attrs"),
    [
        ((2, 7, 1), None, 1, {}),
        ((2, 7, 2), None, -2, {"inverse": 1}),
        ((3, 1, 5, 2), None, 0, {}),
        ((3, 5, 1), 8, 1, {"onesided": 1}),
        ((3, 5, 1), 3, -2, {"onesided": 1}),
        ((4, 5, 2), None, 1, {"inverse": 1, "onesided": 1}),
        ((4, 5, 2), 9, 1, {"inverse": 1, "onesided": 1}),
        ((2, 6, 2), 4, 0, {"inverse": 1}),
        ((1, 1, 1), None, 1, {}),
    ],
)
def test_dft(shape, length, axis, attrs):
    length = None if length is None else np.array(length, "int64")
    check("DFT", numbers(*shape), length, np.array(axis, "int64"), known=(1, 2), **attrs)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_dft_of_other_dtypes(dtype):
    check("DFT", numbers(2, 5, 2, dtype=dtype), compiled=True)


@pytest.mark.parametrize("has_window", [True, False])
def test_stft(has_window):
    length, window = (None, numbers(5)) if has_window else (np.array(6, "int64"), None)
    check("STFT", numbers(2, 23, 1), np.array(3, "int64"), window, length, known=(1, 3))


def test_long_transforms_are_refused():
    with pytest.raises(GraphError, match="no transform of this length"):
        from_onnx(model("DFT", [np.zeros((1, 20_000, 1), "f")], {}))


@pytest.mark.parametrize(
    ("rows", "image", "block", "attrs"),
    [
        ((1, 4, 9), (4, 4), (2, 2), {}),
        ((2, 3 * 6, 4), (5, 5), (2, 3), {"strides": [3, 2]}),
        ((1, 2 * 4, 12), (3, 5), (2, 2), {"pads": [0, 1, 1, 0], "dilations": [1, 2]}),
        ((1, 8, 8), (3, 3, 3), (2, 2, 2), {}),
    ],
)
def test_col2im(rows, image, block, attrs):
    check("Col2Im", numbers(*rows), whole(*image), whole(*block), known=(1, 2), **attrs)


def test_col2im_keeps_infinity_in_its_place():
    x = np.ones((1, 4, 9), "float32")
    x[0, 0, 0] = np.inf
    found = evaluate(from_onnx(model("Col2Im", [x, whole(4, 4), whole(2, 2)], {}, known=(1, 2))), x)
    assert np.isinf(found).sum() == 1
    assert np.isinf(found[0, 0, 0, 0])


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize(
    ("shape", "attrs"),
    [
        ((2, 3, 7), {"kernel_shape": [3], "pads": [1, 2]}),
        ((1, 2, 5, 7), {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [1, 1, 0, 1]}),
        ((1, 1, 6, 6), {"kernel_shape": [2, 2], "dilations": [2, 3], "pads": [0, 2, 2, 0]}),
        ((2, 2, 4, 3, 5), {"kernel_shape": [2, 2, 2], "pads": [1, 0, 1, 0, 1, 0]}),
        ((1, 1, 1, 1), {"kernel_shape": [1, 1]}),
    ],
)
def test_the_positions_of_the_largest(shape, attrs, order):
    x = np.random.default_rng(2).integers(-2, 2, shape).astype("float32")
    x.reshape(-1)[:2] = -np.inf
    proto = model("MaxPool", [x], {**attrs, "storage_order": order}, 2)
    values, places = evaluate(from_onnx(proto), x)
    found = x if not order else x.transpose(0, 1, *range(len(shape) - 1, 1, -1))
    np.testing.assert_array_equal(found.reshape(-1)[places], values)
    if not order:
        np.testing.assert_array_equal(places, first_largest(x, values.shape, attrs))


def first_largest(x, shape, attrs):
    """Return the flat positions of the first largest elements of the windows of images."""
    rank = len(shape) - 2
    ones = [1] * rank
    kernel, pads = attrs["kernel_shape"], attrs.get("pads", [0] * 2 * rank)
    strides, dilations = attrs.get("strides", ones), attrs.get("dilations", ones)
    found = np.zeros(shape, "int64")
    for n, c, *at in np.ndindex(*shape):
        taps = []
        for tap in np.ndindex(*kernel):
            place = [at[i] * strides[i] - pads[i] + tap[i] * dilations[i] for i in range(rank)]
            if all(0 <= p < extent for p, extent in zip(place, x.shape[2:], strict=True)):
                taps.append(np.ravel_multi_index((n, c, *place), x.shape))
        found[(n, c, *at)] = taps[int(np.argmax(x.reshape(-1)[taps]))]
    return found


@pytest.mark.parametrize("size", [None, (1, 2, 9, 8)])
def test_max_unpool(size):
    x = np.random.default_rng(1).permutation(2 * 8 * 6).reshape(1, 2, 8, 6).astype("float32")
    attrs = {"kernel_shape": [2, 2], "strides": [2, 2]}
    values, places = evaluate(from_onnx(model("MaxPool", [x], attrs, 2)), x)
    shape = None if size is None else whole(*size)
    check("MaxUnpool", values, places, shape, known=(2,), compiled=True, **attrs)


@pytest.mark.parametrize(("axis", "mode"), [(1, "linear"), (-2, "circular"), (2, "circular")])
def test_tensor_scatter(axis, mode):
    shape = [3, 5, 7]
    cache = numbers(*shape)
    shape[axis] = 2
    first = whole(0, 3, 1) if mode == "linear" else whole(6, 4, 0)
    check("TensorScatter", cache, numbers(*shape, seed=2), first, axis=axis, mode=mode)


@pytest.mark.parametrize(("axis", "size"), [(0, 2), (1, 3), (-1, 9)])
def test_scales_of_blocks(axis, size):
    x, shape = numbers(3, 7), [3, 7]
    shape[axis] = -(-shape[axis] // size)
    scale = np.abs(numbers(*shape, seed=3)) + 0.1
    zero = np.random.default_rng(1).integers(-9, 9, shape).astype("int8")
    check("QuantizeLinear", x, scale, zero, axis=axis, block_size=size)
    q = np.random.default_rng(1).integers(-128, 128, (3, 7)).astype("int8")
    check("DequantizeLinear", q, scale, zero, axis=axis, block_size=size)


@pytest.mark.parametrize("shape", [(2, 3, 5, 4), (7, 3), (4, 1, 3)])
def test_batch_norm_in_training(shape):
    rows = [np.abs(numbers(shape[1], seed=n)) for n in range(4)]
    check("BatchNormalization", numbers(*shape), *rows, outputs=3, training_mode=1, momentum=0.8)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize(
    ("shape", "sizes", "attrs"),
    [
        ((1, 1, 7, 5), (1, 1, 3, 2), {"antialias": 1}),
        ((1, 2, 6, 4), (1, 2, 2, 9), {"antialias": 1, "exclude_outside": 1}),
        ((2, 3), (1, 3), {"antialias": 1}),
        ((1, 1, 5, 7), (1, 1, 3, 4), {"coordinate_transformation_mode": "half_pixel_symmetric"}),
    ],
)
def test_resize(mode, shape, sizes, attrs):
    x = numbers(*shape)
    check("Resize", x, None, None, whole(*sizes), known=(3,), mode=mode, **attrs)


def test_resize_of_fractions():
    scales = np.array([1, 1, 0.6, 0.7], "float32")
    for name, antialias in (("half_pixel_symmetric", 1), ("half_pixel", 1), ("align_corners", 0)):
        check("Resize", numbers(1, 1, 7, 9), None, scales, known=(2,), mode="linear",
              coordinate_transformation_mode=name, antialias=antialias)  # fmt: skip


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("shift", ["half_pixel", "output_half_pixel"])
def test_roi_align(mode, shift):
    rois = np.array([[0, 0, 6, 4], [2.5, 1, 2.6, 1.2], [-9, -3, 20, 9], [5, 4, 1, 1]], "float32")
    check("RoiAlign", numbers(2, 3, 5, 7), rois, whole(0, 1, 1, 0), mode=mode, sampling_ratio=2,
          coordinate_transformation_mode=shift, output_height=3, output_width=1,
          spatial_scale=0.75)  # fmt: skip


@pytest.mark.parametrize(
    ("groups", "parts", "attrs"),
    [
        (1, 1, {"pads": [0, 1, 1, 0]}),
        (2, 1, {"strides": [2, 1], "dilations": [1, 2]}),
        (1, 2, {"pads": [1, 1, 1, 1], "strides": [1, 3]}),
    ],
)
def test_deformed_convolution(groups, parts, attrs):
    pads, strides = attrs.get("pads", [0] * 4), attrs.get("strides", [1, 1])
    dilations = attrs.get("dilations", [1, 1])
    out = [
        (extent + pads[n] + pads[n + 2] - dilations[n] * (k - 1) - 1) // strides[n] + 1
        for n, (extent, k) in enumerate(((5, 2), (6, 3)))
    ]
    x, weight = numbers(2, 4, 5, 6), numbers(2, 4 // groups, 2, 3, seed=2)
    offset, mask = numbers(2, parts * 12, *out, seed=3), numbers(2, parts * 6, *out, seed=4)
    check("DeformConv", x, weight, offset, numbers(2, seed=5), mask, group=groups,
          offset_group=parts, compiled=groups > 1, **attrs)  # fmt: skip


@pytest.mark.parametrize(
    ("source", "target"),
    [("int8", "UINT8"), ("uint64", "DOUBLE"), ("float32", "UINT32"), ("float16", "INT16")],
)
def test_bit_cast(source, target):
    x = np.array([0, 1, 127, 200, 255], "uint8").astype(source)
    check("BitCast", x, to=getattr(onnx.TensorProto, target), opset=26, compiled=True)


def test_bit_cast_refuses():
    for target, problem in (("INT32", "several sizes"), ("BFLOAT16", "not made a bfloat16")):
        attrs = {"to": getattr(onnx.TensorProto, target)}
        with pytest.raises(GraphError, match=problem):
            from_onnx(model("BitCast", [np.zeros(2, "int16")], attrs, opset=26))


@pytest.mark.parametrize("attrs", [{}, {"axis": 1}, {"axis": -2, "sorted": 0}])
def test_unique_elements_of_a_constant(attrs):
    x = np.array([[2, 1, 1, 2], [0, 3, 3, 0], [2, 1, 1, 2]], "float32")
    check("Unique", x, known=(0,), outputs=4, **attrs)


def test_unique_elements_in_their_order():
    x = np.array([[2, 1], [0, 2]], "int32")
    module = from_onnx(model("Unique", [x], {"sorted": 0}, 4, known=(0,)))
    found = [part.tolist() for part in evaluate(module)]
    assert found == [[2, 1, 0], [0, 1, 2], [0, 1, 2, 0], [2, 1, 1]]


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize(
    ("shape", "sizes", "skips"), [((3, 9), (1, 3), 0), ((11,), (2, 2), 4), ((2, 2), (1, 3), 1)]
)
def test_counts_of_grams(mode, shape, sizes, skips):
    x = np.random.default_rng(1).integers(0, 3, shape).astype("int32")
    check(
        "TfIdfVectorizer", x, mode=mode, max_skip_count=skips, min_gram_length=sizes[0],
        max_gram_length=sizes[1], ngram_counts=[0, 2, 6], ngram_indexes=[4, 0, 1, 2, 6],
        pool_int64s=[0, 2, 0, 1, 2, 2, 1, 0, 1], weights=[0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    )  # fmt: skip


def test_mel_filters():
    sizes = [np.array(n, "int64") for n in (5, 33, 8000)]
    edges = [np.array(n, "float32") for n in (20, 4000)]
    check("MelWeightMatrix", *sizes, *edges, known=range(5))


@pytest.mark.parametrize(
    ("op", "dtypes"), [("Conv", "ff"), ("ConvTranspose", "ff"), ("ConvInteger", "BB")]
)
def test_a_kernel_shape_that_contradicts_the_weights_is_refused(op, dtypes):
    arrays = [np.zeros(shape, d) for shape, d in zip([(1, 1, 4, 4), (1, 1, 2, 3)], dtypes,
                                                     strict=True)]  # fmt: skip
    with pytest.raises(GraphError, match=r"kernel_shape is not what the weights have"):
        from_onnx(model(op, arrays, {"kernel_shape": [3, 2]}))


DAMAGED = [
    ("DFT", [np.zeros((2, 5, 1), "f")], {"onesided": 1}, ()),
    ("Col2Im", [np.zeros((1, 4, 9), "f"), whole(4, 4), whole(2, 2)], {"pads": [0] * 4}, (1, 2)),
    ("MaxPool", [np.zeros((1, 1, 4, 4), "f")], {"kernel_shape": [2, 2], "pads": [1] * 4}, ()),
    ("Resize", [np.zeros((1, 1, 4, 4), "f"), None, None, whole(1, 1, 2, 3)],
     {"antialias": 1, "mode": "cubic"}, (3,)),
    ("DeformConv", [np.zeros((1, 1, 3, 3), "f"), np.zeros((1, 1, 2, 2), "f"),
                    np.zeros((1, 8, 2, 2), "f")], {"kernel_shape": [2, 2]}, ()),
    ("Split", [np.zeros((4, 2), "f")], {"num_outputs": 2, "axis": 1}, ()),
]  # fmt: skip


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(20))
def test_damaged_models_are_refused_or_import(seed):
    generator = random.Random(seed)
    for op, inputs, attrs, known in DAMAGED:
        data = model(op, inputs, attrs, 2 if op in ("MaxPool", "Split") else 1, known=known)
        for _ in range(100):
            damaged = bytearray(data.SerializeToString())
            for _ in range(generator.randint(1, 3)):
                damaged[generator.randrange(len(damaged))] ^= 1 << generator.randrange(8)
            with contextlib.suppress(DLCompilerError):
                from_onnx(bytes(damaged))
