"""CoreML specifications written for tests, from dicts of the fields of their messages."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dlcompiler.graph.frontends.coreml.fields import TABLES

FLOAT16, FLOAT32, INT32, TEXT = 10, 11, 23, 2
_NUMBERS = {"float16": FLOAT16, "float32": FLOAT32, "int32": INT32, "bool": 1, "int8": 21,
            "uint8": 31, "uint16": 32, "uint32": 33}  # fmt: skip


def message(kind: str, **fields: Any) -> bytes:
    """Return a message of a kind; a field is a number, a text, bytes, a dict, or a list of them."""
    found = b""
    for number, given in TABLES[kind].items():
        if given.name not in fields:
            continue
        value = fields.pop(given.name)
        if given.is_map:
            for key, inner in value.items():
                body = _one(given.kind, inner)
                found += _delimited(number, _delimited(1, key.encode()) + _delimited(2, body))
            continue
        for each in value if given.is_repeated else [value]:
            found += _field(number, given.kind, each)
    assert not fields, fields
    return found


def _one(kind: str, value: Any) -> bytes:
    return value if isinstance(value, bytes) else message(kind, **value)


def _field(number: int, kind: str, value: Any) -> bytes:
    match kind:
        case "int" | "bool":
            return varint(number << 3) + varint(int(value) & (1 << 64) - 1)
        case "float":
            return varint(number << 3 | 5) + struct.pack("<f", value)
        case "double":
            return varint(number << 3 | 1) + struct.pack("<d", value)
        case "text":
            return _delimited(number, value.encode())
    return _delimited(number, _one(kind, value))


def _delimited(number: int, value: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    """Return an integer in groups of seven bits."""
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def feature(name: str, shape: Sequence[int]) -> dict[str, Any]:
    """Return the description of an array of float32."""
    return {"name": name, "type": {"multiArrayType": {"shape": shape, "dataType": 65568}}}


def image(name: str, height: int, width: int, color: int) -> dict[str, Any]:
    """Return the description of an image."""
    kind = {"width": width, "height": height, "colorSpace": color}
    return {"name": name, "type": {"imageType": kind}}


# -- networks --------------------------------------------------------------------------------------


def weights(array: Any) -> dict[str, Any]:
    """Return weights of 32 bits."""
    return {"floatValue": np.asarray(array, "float32").reshape(-1).tolist()}


def network(
    layers: Sequence[Mapping[str, Any]], inputs: Sequence[Mapping[str, Any]],
    outputs: Sequence[Mapping[str, Any]], *, is_exact: bool = True, kind: str = "neuralNetwork",
    **fields: Any,
) -> bytes:  # fmt: skip
    """Return a network of layers; exact: with the dimensions that its inputs have."""
    mapping = {"arrayInputShapeMapping": 1, "imageInputShapeMapping": 1} if is_exact else {}
    return message(
        "Model", specificationVersion=4, description={"input": inputs, "output": outputs},
        **{kind: {"layers": layers, **mapping, **fields}},
    )  # fmt: skip


def layer(
    kind: str, inputs: Sequence[str], outputs: Sequence[str], **params: Any
) -> dict[str, Any]:  # fmt: skip
    """Return a layer."""
    return {"name": outputs[0], "input": inputs, "output": outputs, kind: params}


def old_network(kind: str, given: Sequence[int], out: Sequence[int], **params: Any) -> bytes:
    """Return a network of one layer, whose tensors have five dimensions."""
    return network([layer(kind, ["x"], ["y"], **params)], [feature("x", given)],
                   [feature("y", out)], is_exact=False)  # fmt: skip


# -- programs --------------------------------------------------------------------------------------


def value_type(dtype: str | int, shape: Sequence[int | None]) -> dict[str, Any]:
    """Return the type of a tensor; None: an open extent."""
    number = dtype if isinstance(dtype, int) else _NUMBERS[dtype]
    dimensions = [{"unknown": {}} if n is None else {"constant": {"size": n}} for n in shape]
    return {"tensorType": {"dataType": number, "rank": len(shape), "dimensions": dimensions}}


def value(given: Any, number: int = 0) -> dict[str, Any]:
    """Return a constant: an array, or a text."""
    if isinstance(given, str):
        elements: dict[str, Any] = {"strings": {"values": [given]}}
        return {"type": value_type(TEXT, ()), "immediateValue": {"tensor": elements}}
    array = np.asarray(given)
    array = array.astype(
        {"int64": "int32", "float64": "float32"}.get(str(array.dtype), array.dtype)
    )
    kind = {"float32": "floats", "int32": "ints", "bool": "bools", "uint32": "ints"}.get(
        str(array.dtype), "bytes"
    )
    values = array.tobytes() if kind == "bytes" else array.reshape(-1).tolist()
    return {
        "type": value_type(number or str(array.dtype), array.shape),
        "immediateValue": {"tensor": {kind: {"values": values}}},
    }


def blob(name: str, offset: int, dtype: str, shape: Sequence[int]) -> dict[str, Any]:
    """Return a constant in a blob file."""
    return {"type": value_type(dtype, shape), "blobFileValue": {"fileName": name, "offset": offset}}


def operation(
    kind: str, inputs: Mapping[str, Any], outputs: Mapping[str, tuple[str, Sequence[int | None]]],
    **attributes: Any,
) -> dict[str, Any]:  # fmt: skip
    """Return an operation; an operand ``"%x"`` names a value, and a list holds several."""
    arguments = {
        key: {"arguments": [
            {"name": each[1:]} if isinstance(each, str) and each.startswith("%") else
            {"value": each if isinstance(each, dict) else value(each)}
            for each in (given if isinstance(given, list) else [given])
        ]}
        for key, given in inputs.items()
    }  # fmt: skip
    named = [{"name": name, "type": value_type(*kind)} for name, kind in outputs.items()]
    return {"type": kind, "inputs": arguments, "outputs": named, "attributes": attributes}


def program(
    operations: Sequence[Any], inputs: Mapping[str, tuple[str, Sequence[int | None]]],
    outputs: Sequence[str], described: Sequence[Mapping[str, Any]] = (),
) -> bytes:  # fmt: skip
    """Return a program of operations."""
    named = [{"name": name, "type": value_type(*kind)} for name, kind in inputs.items()]
    block = {"outputs": outputs, "operations": operations}
    function = {"inputs": named, "opset": "CoreML7", "block_specializations": {"CoreML7": block}}
    return message(
        "Model", specificationVersion=8, description={"input": described},
        mlProgram={"functions": {"main": function}},
    )  # fmt: skip


def one(
    kind: str, inputs: Mapping[str, Any], shape: Sequence[int], given: Sequence[int] = (3, 4),
    dtype: str = "float32",
) -> bytes:  # fmt: skip
    """Return a program of one operation on x."""
    made = operation(kind, {"x": "%x", **inputs}, {"y": (dtype, shape)})
    return program([made], {"x": ("float32", given)}, ["y"])


def a_program() -> bytes:
    """Return a program with weights inside, and with operands of several kinds."""
    numbers = np.random.default_rng(0).uniform(-1, 1, (4, 2, 3, 3)).astype("float32")
    kept = ("float32", (1, 4, 4, 5))
    operations = [
        {**operation("const", {}, {"w": ("float32", numbers.shape)}), "attributes": {
            "val": value(numbers)}},
        operation("conv", {"x": "%x", "weight": "%w", "pad_type": "same", "strides": np.array(
            [1, 1])}, {"a": kept}),
        operation("concat", {"values": ["%a", "%a"], "axis": 1, "interleave": False},
                  {"b": ("float32", (1, 8, 4, 5))}),
        operation("reshape", {"x": "%b", "shape": np.array([1, 8, -1])},
                  {"c": ("float32", (1, 8, 20))}),
        operation("clip", {"x": "%c", "alpha": -1.0, "beta": 0.5}, {"y": ("float32", (1, 8, 20))}),
    ]  # fmt: skip
    return program(operations, {"x": ("float32", (1, 2, 4, 5))}, ["y"])
