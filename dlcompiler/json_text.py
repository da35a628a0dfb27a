"""Strict reader of JSON from files, links and logs.

Python's reader accepts more than JSON allows, and values that later code cannot handle: ``NaN``,
numbers that become infinite, objects with two equal keys, halves of surrogate pairs (which UTF-8
cannot encode), and values that are nested too deeply for recursion. `parse` refuses all of these.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NoReturn

DEEPEST = 64
"""Default limit of the nesting of lists and objects; [1]."""
LONGEST_INTEGER = 100
"""Most digits of an integer: each such number is in the range of a float; [1]."""


class JsonError(ValueError):
    """Error for a text that is not JSON, or that `parse` refuses; its message is one line."""


def parse(text: str | bytes, *, deepest: int = DEEPEST) -> Any:
    """Return the value of a JSON text.

    Parameters
    ----------
    text : str or bytes
        JSON; bytes are UTF-8.
    deepest : int
        Limit of the nesting of lists and objects.

    Returns
    -------
    object
        Dicts, lists, texts, numbers, booleans and None.

    Raises
    ------
    JsonError
        If the text is not valid JSON, or a value is refused.

    Examples
    --------
    >>> parse('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    >>> parse('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    dlcompiler.json_text.JsonError: the key 'a' stands twice in an object
    """
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        value = json.loads(
            decoded,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_integer,
            object_pairs_hook=_object,
        )
    except JsonError:
        raise
    except UnicodeDecodeError as error:
        raise JsonError(f"not UTF-8 at byte {error.start}") from error
    except RecursionError:
        raise JsonError(f"nested more than {deepest} levels deep") from None
    except (TypeError, ValueError) as error:
        raise JsonError(str(error)) from error
    _check(value, deepest)
    return value


def is_encodable(text: str) -> bool:
    r"""Tell whether a text can be encoded as UTF-8: it has no half of a surrogate pair.

    Examples
    --------
    >>> is_encodable("Größe"), is_encodable("\ud800")
    (True, False)
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _refuse_constant(name: str) -> NoReturn:
    raise JsonError(f"{name} is not a number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise JsonError(f"the number {text[:20]} is too large")
    return value


def _integer(text: str) -> int:
    if len(text) > LONGEST_INTEGER:
        raise JsonError(f"an integer of {len(text)} digits")
    return int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise JsonError(f"the key {twice[:80]!r} stands twice in an object")
    return found


def _check(value: Any, deepest: int) -> None:
    """Refuse texts that cannot be encoded, and values that are nested too deeply."""
    level, depth = [value], 0
    while level:
        if depth > deepest:
            raise JsonError(f"nested more than {deepest} levels deep")
        below: list[Any] = []
        for item in level:
            match item:
                case str() if not is_encodable(item):
                    raise JsonError(f"half of a surrogate pair in the text {item[:80]!r}")
                case dict():
                    below += item
                    below += item.values()
                case list():
                    below += item
        level, depth = below, depth + 1
