"""Read ONNX models and their tensors from files that somebody else wrote.

A file is limited in size, in depth and in number of nodes before anything is made of it. Tensors
outside of the file must be regular files in its folder.
"""

from __future__ import annotations

import importlib
import math
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.files import MOST_BYTES, bytes_of
from dlcompiler.graph.operators.base import Array
from dlcompiler.input_files import open_regular

OPERATION = "import an ONNX model"
LEAST_OPSET = 1
MOST_NODES = 200_000
"""Most nodes of a model, with those of its functions and branches; [1]."""
MOST_DEPTH = 32
"""Most branches inside each other; [1]."""
MOST_ELEMENTS = 2**31
"""Most elements of a tensor; [1]."""


def onnx_package() -> Any:
    """Return the module `onnx`.

    Raises
    ------
    GraphError
        It is not installed.
    """
    try:
        return importlib.import_module("onnx")
    except ImportError as error:
        raise GraphError(
            OPERATION, "the package onnx cannot be imported", got=str(error),
            hint="pip install onnx",
        ) from None  # fmt: skip


def read_model(source: Any) -> tuple[Any, Path | None]:
    """Return a ``ModelProto``, and the folder of its file if it was read from one.

    Parameters
    ----------
    source : path, bytes or ModelProto
        The model.

    Raises
    ------
    GraphError
        It cannot be read, is no model, or is too large.
    """
    onnx = onnx_package()
    folder = None
    if isinstance(source, onnx.ModelProto):
        model = source
    else:
        if isinstance(source, str | Path):
            folder = Path(source).absolute().parent
        data = bytes_of(source, OPERATION, expected="a path, bytes, or an onnx.ModelProto")
        model = onnx.ModelProto()
        try:
            model.ParseFromString(data)
        except Exception as error:  # protobuf has several classes of errors
            raise GraphError(OPERATION, "not an ONNX file", got=str(error)[:200]) from None
    if not model.HasField("graph"):
        raise GraphError(OPERATION, "not an ONNX file", got="a message without a graph")
    _check_size(model)
    return model, folder


def _check_size(model: Any) -> None:
    """Refuse a model with too many nodes, or with branches too deep inside each other."""
    count = 0
    waiting = [(model.graph.node, 0), *((f.node, 0) for f in model.functions)]
    while waiting:
        nodes, depth = waiting.pop()
        count += len(nodes)
        if count > MOST_NODES or depth > MOST_DEPTH:
            raise GraphError(
                OPERATION, "the model is too large",
                got=f"more than {MOST_NODES:,} nodes" if count > MOST_NODES else
                f"branches {depth} deep",
            )  # fmt: skip
        for node in nodes:
            for attribute in node.attribute:
                waiting += [(g.node, depth + 1) for g in (attribute.g, *attribute.graphs) if g.node]


def opsets_of(model: Any) -> dict[str, int]:
    """Return the version of each domain that a model uses.

    Raises
    ------
    GraphError
        The version of the standard operators is unknown here.
    """
    onnx = onnx_package()
    found = {domain_of(entry.domain): int(entry.version) for entry in model.opset_import}
    if "" not in found and found:
        return found
    version, newest = found.setdefault("", 1), int(onnx.defs.onnx_opset_version())
    if not LEAST_OPSET <= version <= newest:
        raise GraphError(
            OPERATION, "its operators are of an unknown version", got=f"opset {version}",
            expected=f"opset {LEAST_OPSET} to {newest}",
            hint="onnx.version_converter converts older ones" if version < LEAST_OPSET else
            "a newer package onnx knows newer ones",
        )  # fmt: skip
    return found


def domain_of(name: str) -> str:
    """Return the name of a domain; "" for that of the standard operators."""
    return "" if name == "ai.onnx" else name


def text_of(name: str | bytes) -> str:
    """Return a name of a file, which is bytes if it is no UTF-8."""
    return name if isinstance(name, str) else name.decode("utf-8", "replace")


def dtype_of(number: int) -> str:
    """Return the dtype with a number of ``TensorProto.DataType``.

    Raises
    ------
    GraphError
        There is none here: of strings, complex numbers, or floats of 8 bits.
    """
    onnx = onnx_package()
    try:
        name = str(onnx.TensorProto.DataType.Name(number)).lower()
    except ValueError:
        name = f"type {number}"
    found = {"float": "float32", "double": "float64"}.get(name, name)
    if found not in _DTYPES:
        raise GraphError(OPERATION, "its tensors have an unknown dtype", got=name,
                         expected=", ".join(_DTYPES))  # fmt: skip
    return found


_DTYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
    "bfloat16", "float32", "float64",
)  # fmt: skip


def read_tensor(tensor: Any, folder: Path | None) -> Array:
    """Return the elements of a ``TensorProto``.

    Raises
    ------
    GraphError
        Its dtype is unknown, its elements are missing, or it lies outside of the model's folder.
    """
    onnx = onnx_package()
    what = f"tensor {tensor.name!r}"
    shape = tuple(int(n) for n in tensor.dims)
    dtype = dtype_of(tensor.data_type)
    if any(n < 0 for n in shape) or math.prod(shape) > MOST_ELEMENTS:
        raise GraphError(OPERATION, f"{what} has a shape that no tensor has", got=repr(shape))
    try:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            stored = onnx.TensorProto()
            stored.CopyFrom(tensor)
            stored.ClearField("external_data")
            stored.ClearField("data_location")
            stored.raw_data = _outside(tensor, folder, what)
            tensor = stored
        array = np.asarray(onnx.numpy_helper.to_array(tensor))
    except GraphError:
        raise
    except Exception as error:  # the package raises what NumPy raises
        raise GraphError(OPERATION, f"{what} cannot be read", got=str(error)[:200]) from None
    if array.shape != shape:
        raise GraphError(OPERATION, f"{what} lacks elements", got=repr(array.shape),
                         expected=repr(shape))  # fmt: skip
    return array.astype(dtypes.to_numpy(dtype), copy=False)


def _outside(tensor: Any, folder: Path | None, what: str) -> bytes:
    """Return the bytes of a tensor that lies in a file beside the model."""
    place = {entry.key: entry.value for entry in tensor.external_data}
    name = PurePosixPath(place.get("location", ""))
    if folder is None:
        raise GraphError(OPERATION, f"{what} lies in another file", got=str(name),
                         hint="import the model by the path of its file")  # fmt: skip
    if name.is_absolute() or ".." in name.parts or not name.parts or "\\" in str(name):
        raise GraphError(OPERATION, f"{what} lies outside of the model's folder", got=str(name))
    try:
        offset, length = int(place.get("offset", 0)), int(place.get("length", -1))
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise GraphError(OPERATION, f"{what} lies outside of the model's folder", got=str(name))
        with open_regular(path) as file:
            file.seek(max(offset, 0))
            return file.read(min(length, MOST_BYTES) if length >= 0 else MOST_BYTES)
    except (OSError, ValueError) as error:
        raise GraphError(OPERATION, f"{what} cannot be read", got=str(error)[:200]) from None
