"""Send long, growing lists: an open page gets the new items, a page that opens later everything.

A list is sent as a *base* and as *parts*: ranges of the base, and items that it lacks. The parts
always refer to the base alone, so the newest pair of both is complete. The base is replaced when
the parts have become long.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

_LARGEST_NEW = 6_000
"""Characters of new items above which the base is replaced."""
_LARGEST_SHARE = 0.5
"""Least share of new items for which replacing the base is worth its size."""


class Shipment:
    """The state of one list on the page."""

    def __init__(self) -> None:
        self.base: dict[str, Any] = {"version": 0, "items": []}
        """The base, sent rarely: ``items``, and the ``version`` that parts refer to."""
        self._places: dict[str, int] = {}

    def pack(self, items: Sequence[Any]) -> dict[str, Any]:
        """Return a list as ``version`` and ``parts``; replaces `base` if the parts become long.

        Examples
        --------
        >>> shipment = Shipment()
        >>> shipment.pack([{"n": 1}])["parts"]
        [{'n': 1}]
        """
        texts = [json.dumps(item) for item in items]
        parts, new = self._parts(items, texts)
        if new > _LARGEST_NEW and new > _LARGEST_SHARE * sum(map(len, texts)) / 4:
            self._renew(items, texts)
            parts = [[0, len(items)]] if items else []
        return {"version": self.base["version"], "parts": parts}

    def _parts(self, items: Sequence[Any], texts: Sequence[str]) -> tuple[list[Any], int]:
        parts: list[Any] = []
        new = 0
        for item, text in zip(items, texts, strict=True):
            place = self._places.get(text)
            if place is None:
                parts.append(item)
                new += len(text)
            elif parts and isinstance(parts[-1], list) and parts[-1][1] == place:
                parts[-1][1] = place + 1
            else:
                parts.append([place, place + 1])
        return parts, new

    def _renew(self, items: Sequence[Any], texts: Sequence[str]) -> None:
        self.base = {"version": self.base["version"] + 1, "items": list(items)}
        self._places = {text: n for n, text in enumerate(texts)}


def unpacked(base: dict[str, Any], packed: dict[str, Any]) -> list[Any]:
    """Return the list from base and parts, like ``unpack`` in ``js/shipment.js``."""
    items = base["items"]
    found: list[Any] = []
    for part in packed["parts"]:
        found += items[part[0] : part[1]] if isinstance(part, list) else [part]
    return found
