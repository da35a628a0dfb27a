"""Damage files at random, as a disk, a transfer, an editor or an attacker might."""

from __future__ import annotations

import json
import random
from typing import Any

TOKENS = (
    b"9" * 400, b"-1", b"0", b"1e400", b"1e-400", b"NaN", b"-Infinity", b"null", b"true", b"[]",
    b"{}", b'""', b"1.5", b"\\ud800", b"\\u0000", b"\x00", b"\xff", b"\xed\xa0\x80", b"\x1b[2J",
    b"\r", b"\n", b'"', b"[" * 200, b'{"a":' * 200, b"1" * 5000, b"18446744073709551616",
    "\u202e".encode(), b"\\", b",", b":", b"]", b"}",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3, 1.5, -0.0, 1e308, float("nan"), float("inf"), 2**31, 2**63,
    2**64, 10**99, 10**400, "", "x", "a" * 5000, "\x1b[31m", "a\nb", "\ud800", "\u202e", "∞", [],
    {}, [[]], [None], {"": None}, ["x"], [[[[[[1]]]]]],
)  # fmt: skip


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Return a file with a few bytes changed, cut, moved or put in."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        at = rng.randrange(len(changed) + 1)
        size = rng.choice((1, 1, 2, 4, 16, 100, 4096))
        match rng.randrange(9):
            case 0 | 1 if at < len(changed):
                changed[at] ^= 1 << rng.randrange(8)
            case 2 if at < len(changed):
                changed[at] = rng.randrange(256)
            case 3:
                del changed[at:]
            case 4:
                del changed[at : at + size]
            case 5:
                changed[at:at] = changed[at : at + size]
            case 6:
                other = rng.randrange(len(changed) + 1)
                changed[at : at + size] = changed[other : other + size]
            case 7:
                changed[at : at + rng.choice((0, 1, size))] = rng.choice(TOKENS)
            case 8:
                changed[at:at] = rng.randbytes(size)
    return bytes(changed)


def damaged_json(rng: random.Random, text: str | bytes) -> bytes:
    """Return a JSON text with a value, a key or an item changed: it still is JSON, or nearly."""
    root = [json.loads(text)]
    for _ in range(rng.choice((1, 1, 2))):
        places = list(_places(root))
        holder, key = rng.choice(places)
        match rng.randrange(6):
            case 0 | 1:
                holder[key] = rng.choice(VALUES)
            case 2:
                other, place = rng.choice(places)
                holder[key] = other[place]
            case 3:
                if holder is not root:
                    del holder[key]
            case 4 if isinstance(holder, dict):
                holder[rng.choice(("x", "", "\ud800", "name"))] = holder.pop(key)
            case 4 | 5:
                value = holder[key]
                if isinstance(value, bool | int | float):
                    holder[key] = value + rng.choice((1, -1, 0.5)) if abs(value) < 1e9 else -value
                elif isinstance(value, str):
                    holder[key] = value + rng.choice(("x", " ", "\n", "\x00", "\ud800"))
                elif isinstance(value, list):
                    value.append(rng.choice(VALUES))
    try:
        return json.dumps(root[0], ensure_ascii=rng.random() < 0.8).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):  # a value inside of itself, or too many digits to write
        return json.dumps(rng.choice(VALUES[:10])).encode()


def _places(root: list[Any]) -> list[tuple[Any, Any]]:
    """Return each value as what holds it and its key there, up to some thousands."""
    found: list[tuple[Any, Any]] = []
    level = [root]
    while level and len(found) < 5000:
        holder: Any = level.pop()
        keys = holder if isinstance(holder, dict) else range(len(holder))
        for key in list(keys):
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                level.append(holder[key])
    return found
