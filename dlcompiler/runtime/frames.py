"""Frames of JSON and raw bytes: the messages between a process and its worker.

A frame is two big-endian lengths (4 and 8 bytes), a JSON object, and bytes. Both lengths are
checked before memory is reserved, so that a damaged message cannot exhaust it.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from typing import Any

_LENGTHS = struct.Struct(">IQ")
MAX_HEADER_BYTES = 16 << 20
MAX_DATA_BYTES = 256 << 20


class FrameError(Exception):
    """The bytes are not a frame."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message."""

    header: dict[str, Any]
    data: bytes = b""


def encode(frame: Frame) -> bytes:
    """Return the bytes of a frame.

    Raises
    ------
    FrameError
        The header is not JSON (NaN is not), or the frame is too large.
    """
    try:
        header = json.dumps(frame.header, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise FrameError(f"not JSON: {error}") from error
    _check_lengths(len(header), len(frame.data))
    return _LENGTHS.pack(len(header), len(frame.data)) + header + frame.data


@dataclass(slots=True)
class Decoder:
    """A decoder that collects bytes and returns complete frames."""

    _received: bytearray = field(default_factory=bytearray)

    def feed(self, piece: bytes) -> None:
        """Add bytes."""
        self._received += piece

    def take(self) -> Frame | None:
        """Return the next frame, or ``None`` while it is not complete.

        Raises
        ------
        FrameError
            The bytes are not a frame.
        """
        if len(self._received) < _LENGTHS.size:
            return None
        header_bytes, data_bytes = _LENGTHS.unpack_from(self._received)
        _check_lengths(header_bytes, data_bytes)
        end = _LENGTHS.size + header_bytes + data_bytes
        if len(self._received) < end:
            return None
        middle = _LENGTHS.size + header_bytes
        header = _parse(bytes(self._received[_LENGTHS.size : middle]))
        data = bytes(self._received[middle:end])
        del self._received[:end]
        return Frame(header, data)


def _parse(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"not JSON: {error}") from error
    if not isinstance(header, dict):
        raise FrameError("the header is not an object")
    return header


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _check_lengths(header_bytes: int, data_bytes: int) -> None:
    if header_bytes > MAX_HEADER_BYTES or data_bytes > MAX_DATA_BYTES:
        raise FrameError(f"too large: {header_bytes} bytes of JSON, {data_bytes} of data")
