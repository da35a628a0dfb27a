"""Read the two files of an MXNet model: the symbol, which is JSON, and the arrays of `mx.nd.save`.

Both may have been written by somebody else: sizes, counts and shapes are limited, and an operator
may read only results of operators before it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler import dtypes, json_text
from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.files import bytes_of
from dlcompiler.graph.operators.base import Array

OPERATION = "import an MXNet model"
MOST_SYMBOL_BYTES = 1 << 26
"""Largest file of a symbol; [byte]."""
MOST_PARTS = 100_000
"""Most nodes of a symbol, and most arrays of a file; [1]."""
MOST_ELEMENTS = 2**31
"""Most elements of a tensor; [1]."""
MOST_RANK = 32
MOST_NAME = 4096
"""Longest name of an array; [byte]."""
DTYPES = (
    "float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool", "int16", "uint16",
    "uint32", "uint64", "bfloat16",
)  # fmt: skip
"""The dtypes, in the order of their numbers in files."""

_LIST_MAGIC = 0x112
_V1_MAGIC, _V2_MAGIC, _V3_MAGIC = 0xF993FAC8, 0xF993FAC9, 0xF993FACA


@dataclass(frozen=True)
class SymbolNode:
    """A node of a symbol: a variable, if its operator is ``null``."""

    op: str
    name: str
    inputs: tuple[tuple[int, int], ...]
    """Each operand: the number of a node before, and which of its results."""
    attrs: Mapping[str, str]


@dataclass(frozen=True)
class Symbol:
    """A graph of MXNet."""

    nodes: Sequence[SymbolNode]
    heads: Sequence[tuple[int, int]]
    """The outputs, as a node has its operands."""


# -- symbols ---------------------------------------------------------------------------------------


def read_symbol(source: Any) -> Symbol:
    """Return a symbol from a file or from bytes.

    Raises
    ------
    GraphError
        It is no symbol, is damaged, or is too large.
    """
    text = bytes_of(source, OPERATION, MOST_SYMBOL_BYTES, what="the symbol")
    try:
        found = json_text.parse(text)
    except json_text.JsonError as error:
        raise GraphError(OPERATION, "the symbol is no JSON", got=str(error)[:200]) from None
    if not isinstance(found, dict) or "nodes" not in found or "heads" not in found:
        raise GraphError(OPERATION, "not a symbol of MXNet", got=repr(found)[:100],
                         expected="an object with nodes and heads")  # fmt: skip
    items = _listed(found["nodes"], "the nodes")
    if len(items) > MOST_PARTS:
        raise GraphError(OPERATION, "the model is too large", got=f"{len(items):,} nodes",
                         expected=f"at most {MOST_PARTS:,}")  # fmt: skip
    nodes = [_node(item, n) for n, item in enumerate(items)]
    return Symbol(nodes, _entries(found["heads"], len(nodes), "the outputs"))


def _node(item: Any, number: int) -> SymbolNode:
    what = f"node {number}"
    if not isinstance(item, dict):
        raise GraphError(OPERATION, f"{what} is no object", got=repr(item)[:100])
    op, name = item.get("op"), item.get("name")
    if not isinstance(op, str) or not isinstance(name, str):
        raise GraphError(OPERATION, f"{what} has no operator or no name", got=repr(item)[:100])
    inputs = _entries(item.get("inputs", []), number, f"the operands of {op} {name}")
    # Before version 0.9, `param` had the attributes, and `attr` what a user noted at the node.
    key = next((key for key in ("param", "attrs", "attr") if key in item), "attrs")
    attrs = item.get(key, {})
    if not isinstance(attrs, dict) or not all(isinstance(v, str) for v in attrs.values()):
        raise GraphError(OPERATION, f"{op} {name} has attributes that are no texts",
                         got=repr(attrs)[:100])  # fmt: skip
    return SymbolNode(op, name, inputs, attrs)


def _entries(found: Any, count: int, what: str) -> tuple[tuple[int, int], ...]:
    """Return references to results of the first `count` nodes."""
    entries = []
    for item in _listed(found, what):
        match item:
            case [int(node), int(result), *_] if 0 <= node < count and result >= 0:
                entries.append((int(node), int(result)))
            case _:
                raise GraphError(OPERATION, f"{what} name a result that is not computed before",
                                 got=repr(item)[:100])  # fmt: skip
    return tuple(entries)


def _listed(found: Any, what: str) -> list[Any]:
    if not isinstance(found, list):
        raise GraphError(OPERATION, f"{what} are no list", got=repr(found)[:100])
    return found


# -- arrays ----------------------------------------------------------------------------------------


def read_arrays(source: Any) -> dict[str, Array]:
    """Return arrays by their names, without the prefixes ``arg:`` and ``aux:``.

    Parameters
    ----------
    source : path, bytes or mapping
        What `mx.nd.save` wrote, or the arrays themselves.

    Raises
    ------
    GraphError
        The file is damaged, has no names, or has arrays that are sparse.
    """
    if isinstance(source, Mapping):
        return {_plain(str(name)): _given(name, value) for name, value in source.items()}
    reader = _Reader(bytes_of(source, OPERATION, what="the arrays"))
    magic, _ = reader.numbers("QQ")
    if magic != _LIST_MAGIC:
        raise GraphError(OPERATION, "not a file of MXNet's arrays", got=f"first number {magic:#x}",
                         expected=f"{_LIST_MAGIC:#x}")  # fmt: skip
    arrays = [reader.array(f"array {n}") for n in range(reader.count("arrays"))]
    names = [reader.name() for _ in range(reader.count("names"))]
    if len(names) != len(arrays) or len(set(names)) != len(names):
        raise GraphError(
            OPERATION, "the file has not one name for each array",
            got=f"{len(arrays)} arrays, {len(set(names))} names",
            hint="mx.nd.save(path, {name: array})",
        )  # fmt: skip
    pairs = zip(names, arrays, strict=True)
    return {_plain(name): array for name, array in pairs if array is not None}


def _plain(name: str) -> str:
    return name.removeprefix("arg:").removeprefix("aux:")


def _given(name: Any, value: Any) -> Array:
    array = np.asarray(value)
    if array.dtype not in [dtypes.to_numpy(dtype) for dtype in DTYPES]:
        raise GraphError(OPERATION, f"array {name!r} has an unknown dtype", got=str(array.dtype),
                         expected=", ".join(DTYPES))  # fmt: skip
    return array


@dataclass
class _Reader:
    """The bytes of a file, and how many of them were read."""

    data: bytes
    place: int = 0

    def numbers(self, form: str) -> tuple[int, ...]:
        """Return little-endian integers by their letters of `struct`."""
        return struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}")))

    def take(self, count: int) -> memoryview:
        """Return the next bytes."""
        end = self.place + count
        if end > len(self.data):
            raise GraphError(OPERATION, "the file of arrays is damaged: it ends too early",
                             got=f"{len(self.data)} bytes", expected=f"{end} or more")  # fmt: skip
        found = memoryview(self.data)[self.place : end]
        self.place = end
        return found

    def count(self, what: str) -> int:
        """Return how many things follow."""
        (count,) = self.numbers("Q")
        if count > MOST_PARTS:
            raise GraphError(OPERATION, f"the file has too many {what}", got=f"{count:,}",
                             expected=f"at most {MOST_PARTS:,}")  # fmt: skip
        return count

    def name(self) -> str:
        """Return a name."""
        (length,) = self.numbers("Q")
        if length > MOST_NAME:
            raise GraphError(OPERATION, "the name of an array is too long", got=f"{length:,} bytes",
                             expected=f"at most {MOST_NAME:,}")  # fmt: skip
        return bytes(self.take(length)).decode("utf-8", "replace")

    def array(self, what: str) -> Array | None:
        """Return an array; None for one without a shape, which has no elements in the file."""
        (magic,) = self.numbers("I")
        if magic in (_V2_MAGIC, _V3_MAGIC):
            (storage,) = self.numbers("i")
            if storage:
                raise GraphError(OPERATION, f"{what} is sparse", got=f"storage {storage}",
                                 expected="dense arrays")  # fmt: skip
        is_plain = magic not in (_V1_MAGIC, _V2_MAGIC, _V3_MAGIC)  # the oldest: it is the rank
        (rank,) = (magic,) if is_plain else self.numbers("i")
        if rank == (-1 if magic == _V3_MAGIC else 0):
            return None
        if not 0 <= rank <= MOST_RANK:
            raise GraphError(OPERATION, f"{what} has a damaged shape", got=f"{rank} dimensions",
                             expected=f"at most {MOST_RANK}")  # fmt: skip
        shape = self.numbers(("I" if is_plain else "q") * rank)
        _, _, number = self.numbers("iii")  # of its device, and of its dtype
        if not 0 <= number < len(DTYPES):
            raise GraphError(OPERATION, f"{what} has an unknown dtype", got=f"number {number}",
                             expected=f"0 to {len(DTYPES) - 1}")  # fmt: skip
        if min(shape, default=0) < 0 or math.prod(shape) > MOST_ELEMENTS:
            raise GraphError(OPERATION, f"{what} has a shape that no tensor has", got=repr(shape))
        dtype = dtypes.to_numpy(DTYPES[number])
        raw = self.take(math.prod(shape) * dtype.itemsize)
        return np.frombuffer(raw, np.uint8).view(dtype).reshape(shape).copy()
