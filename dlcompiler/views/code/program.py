"""The lines of a lowered program, with their loops and the changes of the last step."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal, NotRequired, TypedDict, cast

from dlcompiler.ir import PrimFunc, Stmt, print_func
from dlcompiler.views.loops.line_keys import keys_of

MOST_LINES = 400
"""More lines than this are cut; a program that long was unrolled, not written."""
LONGEST_LINE = 500
"""A longer line is cut, with ``…`` at its end."""
_MOST_TOKENS = 24
"""After so many pieces, the rest of a line is one piece; this keeps a program below 1 MB."""

Status = Literal["same", "added", "removed"]
TokenKind = Literal["keyword", "kind", "number", "text", "axis", "comment"]

_TOKEN = re.compile(
    r"(?P<keyword>\b(?:def|for|in|range|if|else|pass|allocate|and|or|not)\b)"
    r"|(?P<kind>\b(?:parallel|vectorized|unrolled)\b(?=\())"
    r"|(?P<number>(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?\b)"
)


class Token(TypedDict):
    """A piece of a line."""

    kind: TokenKind
    text: str
    keys: NotRequired[list[str]]
    """For an axis in notation: the keys of the loops made from it."""


class Line(TypedDict):
    """One line of a program; a removed line belongs to the program before the step."""

    number: int | None
    """Place in the printed program, from 1; None for a removed line."""
    text: str
    depth: int
    """Levels of indentation."""
    status: Status
    keys: list[str]
    """Keys, as in the loop tree, of the loops and the stages that the line comes from."""
    tokens: list[Token]
    """The text without its indentation, in pieces."""
    within: NotRequired[list[str]]
    """For code without indentation: keys of the loops around the line, innermost first."""
    state: NotRequired[str]
    """Of a line that is a step: the id of the state that it led to."""
    about: NotRequired[str]
    """Where the line comes from, in words."""


class Program(TypedDict):
    """A program, and how it differs from another one."""

    name: str
    lines: list[Line]
    added: int
    removed: int
    left_out: int
    """Lines at the end that are not shown."""


def program(func: PrimFunc, before: PrimFunc | None = None) -> Program:
    """Return the lines of a lowered program.

    Parameters
    ----------
    func
        The program.
    before
        What to compare with: the program before the last step. Lines that only it has are
        returned too, as removed.

    Returns
    -------
    Program
        JSON-able.
    """
    printed = print_func(func)
    texts = printed.text.splitlines()
    old = texts if before is None else print_func(before).text.splitlines()
    lines = [
        _line(text, number, status, printed.statement_at.get(number or 0))
        for text, number, status in _compare(old, texts)
    ]
    return {
        "name": func.name,
        "lines": lines[:MOST_LINES],
        "added": sum(line["status"] == "added" for line in lines),
        "removed": sum(line["status"] == "removed" for line in lines),
        "left_out": max(len(lines) - MOST_LINES, 0),
    }


def _line(text: str, number: int | None, status: Status, statement: Stmt | None) -> Line:
    stripped = text.lstrip(" ")
    depth = (len(text) - len(stripped)) // 4
    if len(stripped) > LONGEST_LINE:
        stripped = stripped[: LONGEST_LINE - 1] + "…"
    return {
        "number": number,
        "text": "    " * depth + stripped,
        "depth": depth,
        "status": status,
        "keys": keys_of(statement),
        "tokens": list(tokens(stripped)),
    }


def _compare(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, int | None, Status]]:
    """Yield (text, number in `new`, status) for all lines of both programs, in diff order."""
    first, last = _common_ends(old, new)
    left, right = old[first : len(old) - last], new[first : len(new) - last]
    # Comparing takes time in the product of the lengths; programs this long are mostly copies.
    codes = (
        difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
        if len(left) * len(right) <= MOST_LINES**2
        else [("replace", 0, len(left), 0, len(right))]
    )
    for n in range(first):
        yield new[n], n + 1, "same"
    for code, start, end, new_start, new_end in codes:
        if code != "equal":
            for text in left[start:end]:
                yield text, None, "removed"
        for n in range(new_start, new_end):
            yield right[n], first + n + 1, "same" if code == "equal" else "added"
    for n in range(len(new) - last, len(new)):
        yield new[n], n + 1, "same"


def _common_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Return the length of the common prefix, and of the common suffix of the remaining lines."""
    shorter = min(len(old), len(new))
    first = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    rest = shorter - first
    last = next((n for n in range(rest) if old[-1 - n] != new[-1 - n]), rest)
    return first, last


def tokens(text: str) -> Iterator[Token]:
    """Split a line of a printed program into pieces, for colouring.

    Examples
    --------
    >>> [piece["text"] for piece in tokens("for i in range(4):")]
    ['for', ' i ', 'in', ' ', 'range', '(', '4', '):']
    """
    return pieces(text, islice(_TOKEN.finditer(text), _MOST_TOKENS // 2))


def pieces(text: str, matches: Iterable[re.Match[str]]) -> Iterator[Token]:
    """Split a text into tokens; the name of a match's group is the kind of its token."""
    end = 0
    for match in matches:
        if match.start() > end:
            yield {"kind": "text", "text": text[end : match.start()]}
        yield {"kind": cast(TokenKind, match.lastgroup), "text": match[0]}
        end = match.end()
    if end < len(text):
        yield {"kind": "text", "text": text[end:]}
