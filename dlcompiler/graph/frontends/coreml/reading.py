"""Read CoreML models and their weights from files that somebody else wrote.

A model is a specification, which is one message, or a package: a folder with a manifest that names
the specification. Large weights of a package are in a blob file, which the specification names.
Only files inside the package are read.

Source of the layout of blob files: ``StorageFormat.hpp`` of coremltools, version 2.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.coreml.fields import TABLES
from dlcompiler.graph.frontends.coreml.messages import OPERATION, Message, damaged, read_message
from dlcompiler.graph.frontends.files import MOST_BYTES, array_of, bytes_of, checked_shape
from dlcompiler.graph.ir import TensorType
from dlcompiler.graph.operators.base import Array
from dlcompiler.json_text import JsonError, parse

MOST_MANIFEST_BYTES = 1 << 20


@dataclass(frozen=True)
class Stored:
    """How elements of a type of MIL are stored."""

    dtype: str
    """What the elements are here; ``text`` for texts."""
    bits: int
    blob: int = 0
    """Number of the type in blob files; 0: there are none."""


_TYPES = {
    1: Stored("bool", 8), 2: Stored("text", 0), 10: Stored("float16", 16, 1),
    11: Stored("float32", 32, 2), 12: Stored("float64", 64), 13: Stored("bfloat16", 16, 5),
    21: Stored("int8", 8, 4), 22: Stored("int16", 16, 6), 23: Stored("int32", 32, 14),
    24: Stored("int64", 64), 25: Stored("int8", 4, 8), 31: Stored("uint8", 8, 3),
    32: Stored("uint16", 16, 7), 33: Stored("uint32", 32, 15), 34: Stored("uint64", 64),
    35: Stored("uint8", 4, 11), 36: Stored("uint8", 2, 10), 37: Stored("uint8", 1, 9),
    38: Stored("uint8", 6, 13), 39: Stored("uint8", 3, 12),
}  # fmt: skip
"""Number of a type of MIL -> how it is stored."""
BGR = 30
"""Number of the color space whose channels are blue, green and red."""
_SENTINEL = 0xDEADBEEF
_ALIGNMENT = 64
"""Of the data of a blob [byte]."""
_METADATA = struct.Struct("<IIQQ")
"""Of a blob: sentinel, dtype, size of its data [byte], place of its data [byte]."""


@dataclass
class Package:
    """A specification, and the files beside it."""

    model: Message
    folder: Path | None
    """Folder of the specification in a package; None: the model is no package."""
    files: dict[PurePosixPath, bytes] = field(default_factory=dict)
    """Blob files that were read."""

    def blob(self, name: str, offset: int, kind: Stored) -> bytes:
        """Return the data of a blob.

        Raises
        ------
        GraphError
            The file lies outside of the package or cannot be read, or there is no such blob.
        """
        path = PurePosixPath(name.removeprefix("@model_path/"))
        if path not in self.files:
            self.files[path] = _read_inside(self.folder, path, MOST_BYTES)
        data = self.files[path]
        if not 0 <= offset <= len(data) - _METADATA.size:
            raise damaged(f"a blob at {offset} of {len(data)} bytes")
        sentinel, number, size, place = _METADATA.unpack_from(data, offset)
        is_inside = place % _ALIGNMENT == 0 and place <= len(data) - size
        if (sentinel, number) != (_SENTINEL, kind.blob) or not is_inside:
            raise damaged(f"no blob of {kind.dtype} at {offset}")
        return data[place : place + size]


def read_model(source: Any) -> Package:
    """Return a model.

    Raises
    ------
    GraphError
        It cannot be read, or is no model.
    """
    folder = None
    if isinstance(source, str | Path):
        path = Path(source)
        if path.is_dir():
            place = _specification(path)
            source = _read_inside(path, place, MOST_BYTES)
            folder = (path / place).parent
    data = bytes_of(source, OPERATION, expected="the path of a .mlmodel or .mlpackage, or bytes")
    model = read_message(data, "Model", TABLES)
    if not {"specificationVersion", "description"} <= model.keys():
        raise GraphError(OPERATION, "not a CoreML file",
                         got="a message without a description")  # fmt: skip
    return Package(model, folder)


def _specification(package: Path) -> PurePosixPath:
    """Return where the manifest of a package says that the specification is."""
    try:
        manifest = parse(_read_inside(package, PurePosixPath("Manifest.json"), MOST_MANIFEST_BYTES))
        item = manifest["itemInfoEntries"][manifest["rootModelIdentifier"]]
        return "Data" / PurePosixPath(item["path"])
    except (JsonError, KeyError, TypeError) as error:
        raise GraphError(OPERATION, "the manifest of the package is damaged",
                         got=f"{type(error).__name__}: {error}"[:200]) from None  # fmt: skip


def _read_inside(folder: Path | None, name: PurePosixPath, largest: int) -> bytes:
    """Return a file inside a folder."""
    if folder is None:
        raise GraphError(OPERATION, "its weights are in another file", got=str(name)[:200],
                         hint="import the model by the path of its .mlpackage")  # fmt: skip
    try:
        path = (folder / name).resolve()
        is_inside = ".." not in name.parts and path.is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # a null byte, a circle of links
        is_inside = False
    if not is_inside:
        raise GraphError(OPERATION, "a file lies outside of the package", got=str(name)[:200])
    return bytes_of(path, OPERATION, largest)


def unpacked(data: bytes, bits: int, count: int, what: str, *, is_low_first: bool = False) -> Array:
    """Return numbers of a few bits, which are packed one after the other.

    Raises
    ------
    GraphError
        There are too few, or too many.
    """
    if not 1 <= bits <= 8 or len(data) != -(-count * bits // 8):
        raise GraphError(OPERATION, f"{what} has another number of elements",
                         got=f"{len(data)} bytes for {count} numbers of {bits} bits")  # fmt: skip
    order: Literal["little", "big"] = "little" if is_low_first else "big"
    flat = np.unpackbits(np.frombuffer(data, np.uint8), bitorder=order)[: count * bits]
    places = np.arange(bits, dtype=np.uint8)
    moved = flat.reshape(count, bits) << (places if is_low_first else places[::-1])
    return np.asarray(moved.sum(1, dtype=np.uint8))


def type_of(value: Message | None, what: str) -> tuple[Stored, tuple[int | None, ...]]:
    """Return how a ``ValueType`` is stored, and its extents; None: an open extent.

    Raises
    ------
    GraphError
        It is no tensor of a known type, or no tensor has such a shape.
    """
    tensor = None if value is None else value["tensorType"]
    if tensor is None:
        raise GraphError(OPERATION, f"{what} is no tensor")
    if tensor["dataType"] not in _TYPES:
        raise GraphError(OPERATION, f"{what} has an unknown dtype",
                         got=f"type {tensor['dataType']}")  # fmt: skip
    extents = tuple(
        each["constant"]["size"] if each["constant"] is not None else None
        for each in tensor["dimensions"]
    )
    checked_shape(tuple(n for n in extents if n is not None), OPERATION, what)
    return _TYPES[tensor["dataType"]], extents


def value_of(package: Package, given: Message, what: str) -> Array | str:
    """Return a value of MIL, which is in the specification or in a blob file.

    Raises
    ------
    GraphError
        It is damaged, or no tensor and no text.
    """
    kind, extents = type_of(given["type"], what)
    shape = tuple(n for n in extents if n is not None)
    if len(shape) < len(extents):
        raise GraphError(OPERATION, f"{what} has an open extent")
    blob, immediate = given["blobFileValue"], given["immediateValue"]
    if blob is not None:
        return _stored(package.blob(blob["fileName"], blob["offset"], kind), shape, kind, what)
    tensor = None if immediate is None else immediate["tensor"]
    name = None if tensor is None else tensor.chosen()
    if tensor is None or name is None:
        raise GraphError(OPERATION, f"{what} has no elements")
    values = tensor[name]["values"]
    if name == "bytes":
        return _stored(values, shape, kind, what)
    if (name == "strings") != (kind.dtype == "text") or len(values) != math.prod(shape):
        raise GraphError(OPERATION, f"{what} has other elements than its type",
                         got=f"{len(values)} {name}", expected=f"{kind.dtype} {shape}")  # fmt: skip
    if kind.dtype == "text":
        if shape:
            raise GraphError(OPERATION, f"{what} is a list of texts")
        return str(values[0])
    return np.asarray(values.astype(dtypes.to_numpy(kind.dtype)).reshape(shape))


def _stored(data: bytes, shape: tuple[int, ...], kind: Stored, what: str) -> Array:
    """Return elements that are stored as bytes."""
    if kind.bits == 0:
        raise GraphError(OPERATION, f"{what} has other elements than its type")
    if kind.bits >= 8:
        return array_of(data, shape, kind.dtype, OPERATION, what)
    numbers = unpacked(data, kind.bits, math.prod(shape), what, is_low_first=True)
    if kind.dtype == "int8":
        numbers = (numbers ^ 8).astype(np.int8) - np.int8(8)  # the highest of four bits is a sign
    return numbers.reshape(shape)


def is_gray(color: int) -> bool:
    """Tell whether a color space has one channel."""
    return color in (10, 40)


def feature_type(feature: Message) -> TensorType | None:
    """Return the type of an input or output by the description; None: it has none, or is open.

    Images are ``(1, channels, height, width)``.
    """
    kind = feature["type"]
    array, image = (kind[name] if kind else None for name in ("multiArrayType", "imageType"))
    if image:
        channels = 1 if is_gray(image["colorSpace"]) else 3
        size = (1, channels, image["height"], image["width"])
        return TensorType(checked_shape(size, OPERATION, "an image"), "float32")
    if not array or not len(array["shape"]):
        return None
    dtype = _FEATURES.get(array["dataType"])
    shape = checked_shape(tuple(map(int, array["shape"])), OPERATION, "a feature")
    return None if dtype is None else TensorType(shape, dtype)


_FEATURES: Mapping[int, str] = {
    65552: "float16", 65568: "float32", 65600: "float64", 131104: "int32", 131080: "int8",
}  # fmt: skip
"""Number of a type of features -> dtype."""
