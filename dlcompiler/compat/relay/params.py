"""Arrays by name as bytes, in TVM's format: `save_param_dict` and `load_param_dict`.

All numbers are little-endian: the magic number of a list, a reserved one, the number of names and
each name, the number of arrays and each array. An array has a magic number, a reserved one, its
device, its rank, its dtype, its extents, the number of bytes, and the bytes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from dlcompiler import dtypes
from dlcompiler.compat.arrays import NDArray, array
from dlcompiler.errors import GraphError, UserError

LIST_MAGIC = 0xF7E58D4F05049CB7
ARRAY_MAGIC = 0xDD5E40F096B4A13F
CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4}
"""Kind of a dtype -> its number in DLPack."""
MAX_RANK = 32


def save_param_dict(params: Mapping[str, Any]) -> bytearray:
    """Return arrays by name as bytes.

    Parameters
    ----------
    params : mapping
        The arrays.
    """
    names = [str(name).encode() for name in params]
    parts = [struct.pack("<QQQ", LIST_MAGIC, 0, len(names))]
    parts += [struct.pack("<Q", len(name)) + name for name in names]
    parts.append(struct.pack("<Q", len(names)))
    parts += [_array_bytes(value) for value in params.values()]
    return bytearray(b"".join(parts))


def _array_bytes(value: Any) -> bytes:
    data = np.ascontiguousarray(value.data if isinstance(value, NDArray) else value)
    data = data.reshape(np.shape(value.data if isinstance(value, NDArray) else value))
    name = dtypes.from_numpy(data.dtype)
    bits = data.dtype.itemsize * 8
    code = CODES["uint"] if name == "bool" else CODES[name.rstrip("0123456789")]
    head = struct.pack("<QQiii", ARRAY_MAGIC, 0, 1, 0, data.ndim)
    head += struct.pack("<BBH", code, 1 if name == "bool" else bits, 1)
    return head + struct.pack(f"<{data.ndim}qq", *data.shape, data.nbytes) + data.tobytes()


def load_param_dict(param_bytes: Any) -> dict[str, NDArray]:
    """Read what `save_param_dict` or TVM wrote.

    Parameters
    ----------
    param_bytes : bytes
        The bytes; they may come from anywhere.

    Raises
    ------
    GraphError
        If they are damaged, or an array has a dtype that is not known here.
    """
    reader = _Reader(bytes(param_bytes))
    magic, _ = reader.take("<QQ")
    if magic != LIST_MAGIC:
        reader.fail("no list of arrays begins here", f"{magic:#x}")
    names = [reader.text() for _ in range(reader.count(8))]
    if reader.count(40) != len(names):
        reader.fail("the number of arrays is not that of the names", f"{len(names)} names")
    found = {name: reader.array(name) for name in names}
    if len(found) != len(names):
        reader.fail("a name stands twice")
    if reader.place != len(reader.data):
        reader.fail("more bytes follow the last array", f"{len(reader.data) - reader.place} bytes")
    return found


class _Reader:
    """Bytes, and how many of them were read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    def fail(self, problem: str, got: object = None) -> NoReturn:
        """Refuse the bytes."""
        raise GraphError("load_param_dict", problem, got=got, excerpt=f"at byte {self.place:,}")

    def bytes(self, size: int) -> bytes:
        """Return the next bytes."""
        if size < 0 or size > len(self.data) - self.place:
            self.fail("the bytes end too early", f"{len(self.data):,} bytes")
        self.place += size
        return self.data[self.place - size : self.place]

    def take(self, form: str) -> tuple[Any, ...]:
        """Return the next numbers."""
        return struct.unpack(form, self.bytes(struct.calcsize(form)))

    def count(self, least: int) -> int:
        """Return a number of entries of at least so many bytes [byte]."""
        (number,) = self.take("<Q")
        if number * least > len(self.data) - self.place:
            self.fail("there cannot be so many entries", f"{number:,}")
        return int(number)

    def text(self) -> str:
        """Return a name."""
        raw = self.bytes(self.count(1))
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.fail("a name is not UTF-8", repr(raw[:40]))

    def array(self, name: str) -> NDArray:
        """Return an array."""
        magic, _, _, _, rank = self.take("<QQiii")
        code, bits, lanes = self.take("<BBH")
        if magic != ARRAY_MAGIC or not 0 <= rank <= MAX_RANK or lanes != 1:
            self.fail(f"array {name!r} is damaged")
        dtype = self.dtype(code, bits, name)
        *shape, size = self.take(f"<{rank}qq")
        if min(shape, default=0) < 0 or size != math.prod(shape) * dtype.itemsize:
            self.fail(f"array {name!r} has another size than its shape", f"{shape}, {size} bytes")
        return array(np.frombuffer(self.bytes(size), dtype).reshape(shape))

    def dtype(self, code: int, bits: int, name: str) -> np.dtype[Any]:
        """Return the dtype of an array."""
        kind = {number: kind for kind, number in CODES.items()}.get(code)
        try:
            text = "bool" if (kind, bits) == ("uint", 1) else f"{kind}{bits}"
            return np.dtype(dtypes.to_numpy(dtypes.as_dtype(text)))
        except UserError:
            self.fail(f"array {name!r} has an unknown dtype", f"code {code}, {bits} bits")
