"""Read Protocol Buffers messages by a table of their fields.

A message is a dict of its fields by their names in Apple's ``.proto`` files. A field that is absent
has its default: 0, an empty text, no elements, or None for a message. Fields that the table does
not have are skipped; their numbers are kept, so that an error can name them.

Source: the encoding of Protocol Buffers, https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dlcompiler.errors import GraphError
from dlcompiler.graph.operators.base import Array

OPERATION = "import a CoreML model"
MOST_FIELDS = 2_000_000
"""Most fields of a file; [1]."""
MOST_DEPTH = 64
"""Most messages inside each other; [1]."""
_DEFAULTS: Mapping[str, Any] = {"int": 0, "bool": False, "float": 0.0, "text": "", "bytes": b""}
_EMPTY: Mapping[str, Any] = {
    "int": np.zeros(0, np.int64), "bool": np.zeros(0, np.int64), "float": np.zeros(0, np.float32),
    "double": np.zeros(0, np.float64), "text": (), "message": (),
}  # fmt: skip
_SIZES = {1: 8, 5: 4}
"""Wire type -> size of its values [byte]."""


@dataclass(frozen=True)
class Field:
    """A field of a message."""

    name: str
    kind: str
    """``int``, ``bool``, ``float``, ``double``, ``text``, ``bytes``, or the name of a message."""
    is_repeated: bool = False
    is_map: bool = False
    """Whether its elements have texts as keys."""


Tables = Mapping[str, Mapping[int, Field]]
"""Name of a message -> numbers of its fields -> fields."""


def tables_of(text: str) -> Tables:
    """Return tables from texts ``Message: 1 name kind, 2 other kind*, 3 third {kind}``.

    A star marks a repeated field, braces a map from texts. A line that begins with spaces continues
    the one before it.
    """
    found: dict[str, dict[int, Field]] = {}
    for line in filter(None, text.replace("\n  ", " ").splitlines()):
        name, _, rest = line.partition(":")
        parts = [part.split() for part in rest.split(",") if part.strip()]
        found[name] = {
            int(number): Field(own, kind.strip("*{}"), kind.endswith("*"), kind.startswith("{"))
            for number, own, kind in parts
        }
    return found


class Message(dict[str, Any]):
    """The fields of a message that the file has, by name."""

    def __init__(self, fields: Mapping[int, Field]) -> None:
        super().__init__()
        self.fields = fields
        self.others: set[int] = set()
        """Numbers of fields that the table does not have."""

    def __missing__(self, name: str) -> Any:
        """Return the default of a field that is absent."""
        given = next(each for each in self.fields.values() if each.name == name)
        if given.is_map:
            return {}
        if given.is_repeated:
            return _EMPTY.get(given.kind, ())
        return _DEFAULTS.get(given.kind)

    def chosen(self) -> str | None:
        """Return the name of the last field that is present, for a message that is a choice."""
        return next(reversed(self), None)


@dataclass
class _Reader:
    """A file while it is read."""

    tables: Tables
    left: int = field(default=MOST_FIELDS)
    """Fields that may still be read; [1]."""

    def message(self, data: memoryview, kind: str, depth: int = 0) -> Message:
        """Return a message."""
        if depth > MOST_DEPTH:
            raise damaged(f"messages more than {MOST_DEPTH} deep")
        fields = self.tables[kind]
        found = Message(fields)
        for number, wire, value in self._fields(data):
            given = fields.get(number)
            if given is None:
                found.others.add(number)
            elif given.is_map:
                key, inner = self._entry(value, wire, given, depth)
                found.setdefault(given.name, {})[key] = inner
            elif given.is_repeated:
                found.setdefault(given.name, []).append((wire, value))
            else:
                found.pop(given.name, None)  # the last one of a choice is chosen
                found[given.name] = self._value(value, wire, given.kind, depth)
        repeated = [each for each in fields.values() if each.is_repeated] if found else []
        for given in repeated:
            if given.name in found:
                found[given.name] = self._elements(found[given.name], given, depth)
        return found

    def _fields(self, data: memoryview) -> Iterator[tuple[int, int, Any]]:
        """Yield number, wire type and value of each field."""
        place = 0
        while place < len(data):
            self.left -= 1
            if self.left < 0:
                raise GraphError(OPERATION, "the model is too large",
                                 expected=f"at most {MOST_FIELDS:,} fields")  # fmt: skip
            tag, place = _varint(data, place)
            number, wire = tag >> 3, tag & 7
            if not 0 < number < 1 << 29:
                raise damaged(f"a field with the number {number}")
            if wire == 0:
                value, place = _varint(data, place)
                yield number, wire, value
                continue
            if wire == 2:
                size, place = _varint(data, place)
            elif wire in _SIZES:
                size = _SIZES[wire]
            else:
                raise damaged(f"a field of the wire type {wire}")
            if size > len(data) - place:
                raise damaged(f"a field of {size} bytes, {len(data) - place} before its end")
            yield number, wire, data[place : place + size]
            place += size

    def _value(self, value: Any, wire: int, kind: str, depth: int) -> Any:
        """Return the value of a field."""
        expected = {"int": 0, "bool": 0, "float": 5, "double": 1}.get(kind, 2)
        if wire != expected:
            raise damaged(f"a field of the wire type {wire} in place of {expected}")
        match kind:
            case "int":
                return value - (1 << 64) if value >> 63 else value
            case "bool":
                return bool(value)
            case "float":
                return struct.unpack("<f", value)[0]
            case "double":
                return struct.unpack("<d", value)[0]
            case "text":
                return bytes(value).decode("utf-8", "replace")
            case "bytes":
                return bytes(value)
        return self.message(value, kind, depth + 1)

    def _entry(self, value: Any, wire: int, given: Field, depth: int) -> tuple[str, Any]:
        """Return an entry of a map, which is a message with the fields 1 and 2."""
        key, inner = "", None
        if wire != 2:
            raise damaged(f"an entry of the wire type {wire}")
        for number, own, part in self._fields(value):
            if number == 1:
                key = self._value(part, own, "text", depth)
            elif number == 2:
                inner = self._value(part, own, given.kind, depth + 1)
        return key, self.message(memoryview(b""), given.kind) if inner is None else inner

    def _elements(self, values: list[tuple[int, Any]], given: Field, depth: int) -> Any:
        """Return the elements of a repeated field; numbers may be packed."""
        if given.kind not in ("int", "bool", "float", "double"):
            return [self._value(value, wire, given.kind, depth) for wire, value in values]
        return np.concatenate([self._numbers(value, wire, given.kind) for wire, value in values])

    def _numbers(self, value: Any, wire: int, kind: str) -> Array:
        if wire != 2:
            return np.array([self._value(value, wire, kind, 0)], _EMPTY[kind].dtype)
        if kind in ("int", "bool"):
            return _varints(value)
        if len(value) % _EMPTY[kind].itemsize:
            raise damaged(f"{len(value)} bytes of numbers")
        return np.frombuffer(value, _EMPTY[kind].dtype)


def read_message(data: bytes, kind: str, tables: Tables) -> Message:
    """Return a message of a kind.

    Raises
    ------
    GraphError
        The data are damaged, or too large.
    """
    return _Reader(tables).message(memoryview(data), kind)


def damaged(what: str) -> GraphError:
    """Return the error for data that no writer makes."""
    return GraphError(OPERATION, "the file is damaged", got=what)


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    """Return an integer of 64 bits, of which each byte has seven, and the place behind it."""
    if place < len(data) and data[place] < 128:
        return data[place], place + 1
    found = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            raise damaged("an integer that ends with the file")
        byte = data[place]
        place += 1
        found |= (byte & 127) << shift
        if byte < 128:
            return found & (1 << 64) - 1, place
    raise damaged("an integer of more than ten bytes")


def _varints(data: memoryview) -> Array:
    """Return packed integers."""
    raw = np.frombuffer(data, np.uint8)
    if not raw.size:
        return np.zeros(0, np.int64)
    ends = np.flatnonzero(raw < 128)
    starts = np.concatenate([[0], ends[:-1] + 1])
    if not ends.size or ends[-1] != raw.size - 1 or (ends - starts).max() > 9:
        raise damaged("packed integers without an end")
    places = np.arange(raw.size) - np.repeat(starts, ends - starts + 1)
    parts = (raw & 127).astype(np.uint64) << (7 * places).astype(np.uint64)
    return np.bitwise_or.reduceat(parts, starts).view(np.int64)
