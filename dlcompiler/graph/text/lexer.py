"""Cut the text form into tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from dlcompiler.errors import GraphError

_TOKENS = re.compile(
    r"""
    (?P<space>\s+|/\*.*?\*/|//[^\n]*)
  | (?P<header>\#\[[^\]\n]*\])
  | (?P<numbered>%\d+)(?![A-Za-z_])
  | (?P<local>%(?:[A-Za-z_][A-Za-z0-9_]*|"(?:[^"\\\n]|\\.)*"))
  | (?P<global>@(?:[A-Za-z_][A-Za-z0-9_.]*|"(?:[^"\\\n]|\\.)*"))
  | (?P<field>\.\d+)
  | (?P<number>-?(?:\d+\.?\d*(?:[eE][-+]?\d+)?(?:f64|f16|bf16|f|[iu]\d+)?|inff|nanf)(?![A-Za-z_]))
  | (?P<text>"(?:[^"\\\n]|\\.)*")
  | (?P<name>[A-Za-z_][A-Za-z0-9_.]*)
  | (?P<mark>->|[(){}\[\],;:=?])
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token with its place."""

    kind: str
    """The group of the token, or ``"end"``."""
    text: str
    start: int


METADATA = "#[metadata]"
"""Begins the section of constants, which is JSON."""


def tokens_of(source: str) -> Iterator[Token]:
    """Yield the tokens before the metadata; spaces and comments are left out.

    The last token has the kind ``"end"``. Its place is where the metadata begins, or the end.

    Raises
    ------
    GraphError
        At a character that begins no token.
    """
    place = 0
    while place < len(source):
        match = _TOKENS.match(source, place)
        if match is None:
            fail(source, place, "no token begins here", source[place])
        if match[0] == METADATA:
            break
        if match.lastgroup != "space":
            yield Token(str(match.lastgroup), match[0], place)
        place = match.end()
    yield Token("end", "", place)


def fail(
    source: str, place: int, problem: str, got: object = None, expected: object = None
) -> NoReturn:
    """Refuse a text, with the line and the column.

    Raises
    ------
    GraphError
        Always.
    """
    line = source.count("\n", 0, place) + 1
    begin = source.rfind("\n", 0, place) + 1
    shown = source[begin : source.find("\n", place) if "\n" in source[place:] else len(source)]
    column = place - begin + 1
    error = GraphError(
        f"parse a graph, line {line}, column {column}", problem, got=got, expected=expected,
        excerpt=shown[max(0, column - 60) : column + 60],
    )  # fmt: skip
    error.place = (line, column)
    raise error
