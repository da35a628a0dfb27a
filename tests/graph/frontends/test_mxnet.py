"""Models of MXNet compute what MXNet itself computed, or are refused with a reason."""

import json
import math
import struct
from functools import partial
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from dlcompiler import graph
from dlcompiler.errors import GraphError

FOLDER = Path(__file__).parent / "files" / "mxnet"
BF16, F16, F32, F64, I32, U8 = (
    partial(np.asarray, dtype=kind)
    for kind in (ml_dtypes.bfloat16, "float16", "float32", "float64", "int32", "uint8")
)  # fmt: skip
NETWORKS = ["mobilenet", "resnet", "squeezenet", "texts"]
OPERATORS = ["attention", "deconvolutions", "elementwise", "images", "recurrent", "shapes"]


def paths(name):
    return FOLDER / f"{name}-symbol.json", FOLDER / f"{name}-0000.params"


def values(name):
    """Return what goes into a model, by the names of its inputs, and what MXNet computed."""
    with np.load(FOLDER / f"{name}.npz") as file:
        arrays = dict(file)
    count = sum(key.startswith("output_") for key in arrays)
    return arrays, [arrays.pop(f"output_{n}") for n in range(count)]


def imported(name):
    arrays, expected = values(name)
    shapes = {key: array.shape for key, array in arrays.items()}
    module = graph.from_mxnet(*paths(name), shapes=shapes)
    return module, [arrays[param.name] for param in module.main.params], expected


def assert_same(found, expected, names):
    outputs = found if isinstance(found, tuple) else (found,)
    for name, got, want in zip(names, outputs, expected, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape), name
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("name", NETWORKS + OPERATORS)
def test_a_model_computes_the_same(name):
    module, arrays, expected = imported(name)
    symbol = json.loads(paths(name)[0].read_text())
    names = [symbol["nodes"][head[0]]["name"] for head in symbol["heads"]]
    assert_same(graph.evaluate(module, *arrays), expected, names)


@pytest.mark.campaign
@pytest.mark.parametrize("name", NETWORKS)
def test_a_compiled_model_computes_the_same(name):
    module, arrays, expected = imported(name)
    assert_same(graph.build(module)(*arrays), expected, [name])


def test_calls_have_the_names_of_nodes():
    module, _, _ = imported("squeezenet")
    names = {call.name for call in module.calls().values()}
    assert {"conv1", "fire2", "pool_last", "softmax"} <= names
    assert [param.name for param in module.main.params] == ["data"], "a label is no input"


# -- other ways to write a model -------------------------------------------------------------------


def test_the_json_of_old_versions():
    """Before version 0.9, attributes were `param`, and moments were no operands."""
    new, arrays, expected = imported("squeezenet")
    symbol = json.loads(paths("squeezenet")[0].read_text())
    for node in symbol["nodes"]:
        node["param"] = node.pop("attrs", {})
        node["attr"] = {"mood": "good"}
        node["backward_source_id"] = -1
        node["inputs"] = [entry[:2] for entry in node["inputs"]]
        if node["op"] == "BatchNorm":
            node["inputs"] = node["inputs"][:3]
    symbol["heads"] = [head[:2] for head in symbol["heads"]]
    text = json.dumps(symbol).encode()
    old = graph.from_mxnet(text, paths("squeezenet")[1], shapes={"data": arrays[0].shape})
    assert_same(graph.evaluate(old, *arrays), expected, ["old"])
    assert graph.modules_equal(old, new)


def symbol_of(op, attrs=None, inputs=1, **keys):
    """Return the JSON of one operator on variables `x0`, `x1`, …."""
    variables = [{"op": "null", "name": f"x{n}", "inputs": []} for n in range(inputs)]
    node = {"op": op, "name": "it", "attrs": attrs or {}, "inputs": [[n, 0] for n in range(inputs)]}
    return json.dumps({"nodes": [*variables, node], "heads": [[inputs, 0]], **keys}).encode()


@pytest.mark.parametrize(
    ("name", "expected"),
    [("_Plus", 7), ("_plus", 7), ("_Minus", 3), ("_Mul", 10), ("_Maximum", 5), ("_Power", 25)],
)
def test_names_of_old_versions(name, expected):
    module = graph.from_mxnet(symbol_of(name, inputs=2), shapes={"x0": (1,), "x1": (1,)})
    five, two = np.asarray([5], "float32"), np.asarray([2], "float32")
    assert graph.evaluate(module, five, two) == expected


@pytest.mark.parametrize(
    ("name", "expected"), [("_PlusScalar", 7), ("_RMinusScalar", -3), ("_RDivScalar", 0.4)]
)
def test_names_of_old_operators_with_a_number(name, expected):
    module = graph.from_mxnet(symbol_of(name, {"scalar": "2"}), shapes={"x0": (1,)})
    np.testing.assert_allclose(graph.evaluate(module, np.asarray([5], "float32")), expected)


def test_shapes_and_dtypes_of_inputs():
    plain = symbol_of("_copy")
    module = graph.from_mxnet(plain, shapes={"x0": (2, 3)}, dtypes={"x0": "int32"})
    assert str(graph.type_of(module.main.body)) == str(graph.TensorType((2, 3), "int32"))
    noted = json.loads(plain)
    noted["nodes"][0]["attrs"] = {"__shape__": "(4, 5)", "__dtype__": "1"}
    module = graph.from_mxnet(json.dumps(noted).encode())
    assert str(graph.type_of(module.main.body)) == str(graph.TensorType((4, 5), "float64"))


@pytest.mark.parametrize("name", ["mobilenet", "resnet", "squeezenet"])
def test_the_batch_may_be_open(name):
    arrays, expected = values(name)
    shape = (graph.ANY, *arrays["data"].shape[1:])
    module = graph.from_mxnet(*paths(name), shapes={"data": shape})
    assert_same(graph.evaluate(module, arrays["data"]), expected, [name])


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("name", "attrs", "inputs", "expected"),
    [
        ("broadcast_mod", {}, [F32([1, -3, 5]), F32([0, 0, -3])], F32([0, 0, -1])),
        ("_rmod_scalar", {"scalar": "3"}, [F32([0, 2])], F32([0, 1])),
        ("_mod_scalar", {"scalar": "0"}, [F32([2, INF])], F32([0, 0])),
        ("_mul_scalar", {}, [F32([2])], F32([2])),
        ("_mul_scalar", {"scalar": "2", "is_int": "False"}, [I32([3])], F64([6])),
        ("clip", {"a_min": "0.5", "a_max": "2.5"}, [I32([-3, 7])], I32([0, 2])),
        ("amp_cast", {"dtype": "float16"}, [I32([3])], I32([3])),
        ("round", {}, [F32([0.49999997, 8388609, -2.5])], F32([0, 8388609, -3])),
        ("rint", {}, [F32([8388609, -0.49999997, 0.5, 1.5])], F32([8388609, 0, 0, 1])),
        ("sign", {}, [F32([NAN, -2, INF])], F32([0, -1, 1])),
        ("softmax", {"use_length": "True"}, [F32([1, 1, 5]), I32([2])], F32([0.5, 0.5, 0])),
        ("softmax", {"dtype": "float32"}, [F16([0, 1])], F32([0.26894143, 0.7310586])),
        ("argmax", {"axis": "0"}, [F64([1, 3, 2])], F64([1])),
        ("softmax", {}, [BF16([3, 3])], BF16([0.5, 0.5])),
        ("clip", {"a_min": "-1", "a_max": "inf"}, [U8([0, 255])], U8([0, 255])),
        ("argmax_channel", {}, [F16([[1, 3, 2]])], F16([1])),
        ("pick", {}, [F32([1, 3, 2]), F32([1])], F32([3])),
        ("slice_like", {"axes": "(-1,)"}, [F32([[1, 2, 3]]), F32([[[0, 0]]])], F32([[1]])),
        ("Pooling", {"pool_type": "lp", "p_value": "1", "kernel": "(2,)"},
         [F32([[[1, -3, 2]]])], F32([[[-2, -1]]])),
        ("Pooling", {"pool_type": "avg", "pooling_convention": "full", "kernel": "(1,)",
                     "stride": "(3,)"}, [F32([[[1, 2, 3, 4, 5]]])], F32([[[1, 4, 0]]])),
        ("_contrib_BilinearResize2D", {"height": "1", "width": "1", "align_corners": "False"},
         [F32([[[[1, 2, 3], [4, 5, 6]]]])], F32([[[[1]]]])),
    ],
)  # fmt: skip
def test_what_mxnet_does_at_the_edges(name, attrs, inputs, expected):
    """The expected values are those of MXNet 1.9.1."""
    values = {f"x{n}": value for n, value in enumerate(inputs)}
    module = graph.from_mxnet(
        symbol_of(name, attrs, len(inputs)),
        shapes={key: value.shape for key, value in values.items()},
        dtypes={key: str(value.dtype) for key, value in values.items()},
    )
    found = graph.evaluate(module, *(values[param.name] for param in module.main.params))
    assert_same(found, [expected], [name])


def test_tuples_of_python_2():
    module = graph.from_mxnet(
        symbol_of("Reshape", {"shape": "(0L, -1L)"}), shapes={"x0": (2, 3, 4)}
    )
    assert graph.type_of(module.main.body).shape == (2, 12)


# -- arrays ----------------------------------------------------------------------------------------


def list_of(*arrays, names=(b"arg:w",)):
    """Return a file with arrays, given as bytes."""
    texts = b"".join(struct.pack("<Q", len(name)) + name for name in names)
    return (
        struct.pack("<QQQ", 0x112, 0, len(arrays)) + b"".join(arrays)
        + struct.pack("<Q", len(names)) + texts
    )  # fmt: skip


DATA = struct.pack("<iii", 1, 0, 0) + np.asarray([1, 2, 3], "<f4").tobytes()
NEWEST = struct.pack("<IIIq", 0xF993FACA, 0, 1, 3) + DATA


@pytest.mark.parametrize(
    "array",
    [
        struct.pack("<II", 1, 3) + DATA,
        struct.pack("<IIq", 0xF993FAC8, 1, 3) + DATA,
        struct.pack("<IIIq", 0xF993FAC9, 0, 1, 3) + DATA,
        NEWEST,
    ],
    ids=["oldest", "v1", "v2", "v3"],
)
def test_arrays_of_all_versions(array):
    symbol = symbol_of("_copy").replace(b"x0", b"w")
    found = graph.evaluate(graph.from_mxnet(symbol, list_of(array)))
    np.testing.assert_array_equal(found, np.asarray([1, 2, 3], "float32"))


def test_weights_as_arrays():
    symbol = symbol_of("elemwise_add", inputs=2)
    module = graph.from_mxnet(symbol, {"arg:x1": np.ones(2, "float32")}, shapes={"x0": (2,)})
    np.testing.assert_array_equal(graph.evaluate(module, np.ones(2, "float32")), [2, 2])


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "ends too early"),
        (bytes(40), "not a file of MXNet's arrays"),
        (list_of(NEWEST, names=()), "one name for each array"),
        (list_of(NEWEST, NEWEST, names=(b"w", b"w")), "one name for each array"),
        (struct.pack("<QQQ", 0x112, 0, 2**60), "too many arrays"),
        (list_of(struct.pack("<II", 0xF993FAC9, 1)), "sparse"),
        (list_of(struct.pack("<III", 0xF993FAC9, 0, 2**30)), "damaged shape"),
        (list_of(struct.pack("<IIIq", 0xF993FAC9, 0, 1, -1) + DATA), "no tensor has"),
        (list_of(struct.pack("<IIIqq", 0xF993FAC9, 0, 2, 2**40, 2**40) + DATA), "no tensor has"),
        (list_of(struct.pack("<IIIqiii", 0xF993FAC9, 0, 1, 3, 1, 0, 99)), "unknown dtype"),
        ("no such file", "cannot be read"),
        (7, "not the arrays"),
        ({"w": np.asarray(["text"])}, "unknown dtype"),
    ],
)
def test_refusals_of_arrays(data, problem):
    with pytest.raises(GraphError, match=problem):
        graph.from_mxnet(symbol_of("_copy").replace(b"x0", b"w"), data)


# -- refusals --------------------------------------------------------------------------------------


def test_a_file_that_ends_anywhere_is_refused():
    symbol, weights = (path.read_bytes() for path in paths("squeezenet"))
    shapes = {"data": (1, 3, 20, 20)}
    for end in range(0, len(weights), 97):
        with pytest.raises(GraphError, match="import an MXNet model"):
            graph.from_mxnet(symbol, weights[:end], shapes=shapes)
    for end in range(0, len(symbol) - 2, 97):
        with pytest.raises(GraphError, match="no JSON"):
            graph.from_mxnet(symbol[:end], weights, shapes=shapes)


@pytest.mark.parametrize(
    ("symbol", "problem"),
    [
        (7, "not the symbol"),
        ("no such file", "cannot be read"),
        (b"{", "no JSON"),
        (b"[]", "not a symbol"),
        (b'{"nodes": 1, "heads": []}', "no list"),
        (b'{"nodes": [1], "heads": []}', "no object"),
        (b'{"nodes": [{"op": "null"}], "heads": []}', "no name"),
        (b'{"nodes": [], "heads": []}', "no outputs"),
        (b'{"nodes": [], "heads": [[0, 0, 0]]}', "not computed before"),
        (symbol_of("_copy", heads=[[1, 1, 0]]), "not computed here"),
        (symbol_of("_copy", heads=[[-1, 0, 0]]), "not computed before"),
        (symbol_of("_copy").replace(b"[[0, 0]]", b"[[1, 0]]"), "not computed before"),
        (symbol_of("_copy", {"shape": 3}), "no texts"),
        (symbol_of("_foreach"), "no such operator here"),
        (symbol_of("_copy", {"shape": "3"}), "an attribute is not known here"),
        (symbol_of("_copy", inputs=0), "operand 0 is missing"),
        (symbol_of("Activation", {"act_type": "mish"}), "unknown value"),
        (symbol_of("Dropout", {"mode": "always"}), "unknown value"),
        (symbol_of("Reshape", {"shape": "(0, 0, 0, 0)"}), "more codes"),
        (symbol_of("Reshape", {"shape": "(-4, 3, 3, -2)"}), "not divided so"),
        (symbol_of("Reshape", {"shape": "(-4, 1, 2, -1, 1)"}), "-1 follows codes of several"),
        (symbol_of("Reshape", {"shape": "(5, 5)"}), "does not fit the data"),
        (symbol_of("Reshape", {"shape": f"({'9' * 30},)"}), "too large"),
        (symbol_of("Reshape", {"shape": "(x,)"}), "no list of integers"),
        (symbol_of("slice_axis", {"axis": "7", "begin": "0", "end": "1"}), "no such axis"),
        (symbol_of("Pad", {"mode": "edge", "pad_width": "(1, 1)"}), "pad_width does not fit"),
        (symbol_of("_zeros", {"shape": "(99999, 99999)"}, 0), "no tensor has such a shape"),
        (symbol_of("_mul_scalar", {"scalar": "nan"}), "no number"),
        (symbol_of("_mul_scalar", {"scalar": "1e300"}), "a number is no float32"),
        (symbol_of("clip", {"a_min": "1", "a_max": "0"}), "a_min is above a_max"),
        (symbol_of("amp_cast", {"dtype": "int8"}), "converts floats to integers"),
        (symbol_of("_eye", {"N": "9999", "M": "9999"}, 0), "no tensor has such a shape"),
        (symbol_of("_arange", {"stop": "1e12"}, 0), "no such range"),
        (symbol_of("elemwise_add", inputs=2), "'x1' has no shape, and no weights"),
        (symbol_of("UpSampling", {"scale": "2", "sample_type": "nearest"}), "do not fit"),
        (symbol_of("Pooling", {"kernel": "(2, 2)"}), "another number of dimensions"),
    ],
)
def test_refusals(symbol, problem):
    with pytest.raises(GraphError, match=problem):
        graph.from_mxnet(symbol, shapes={"x0": (2, 3)} if b"x0" in bytes_of(symbol) else None)


def bytes_of(symbol):
    return symbol if isinstance(symbol, bytes) else b""


def test_a_shape_of_an_unknown_input():
    with pytest.raises(GraphError, match="there is no such input"):
        graph.from_mxnet(symbol_of("_copy"), shapes={"data": (2, 3)})


def test_an_error_names_the_node():
    with pytest.raises(GraphError, match="import an MXNet model: softmax it"):
        graph.from_mxnet(symbol_of("softmax", {"axis": "5"}), shapes={"x0": (2, 3)})
