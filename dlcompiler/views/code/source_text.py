"""Generated source code in any language, such as C, line by line."""

from __future__ import annotations

import itertools
import re

from dlcompiler.codegen import Source
from dlcompiler.ir import PrimFunc
from dlcompiler.views.code.code_text import Code, CodeLine
from dlcompiler.views.code.program import Token
from dlcompiler.views.loops.line_keys import source_lines

_NO_LINE = "these lines belong to the whole function"
_INDENT = 4
_LOCATION = re.compile(r"\s+\.loc\b")
"""A directive of assembly: the lines know their locations."""
_PIECES = re.compile(r"(?P<comment>//.*|/\*.*)|(?P<keyword>\b(?:for|if|else|return)\b)")


def source_code(source: Source, func: PrimFunc, name: str | None = None) -> Code:
    """Return a text of a program, with the loops that its lines come from.

    Parameters
    ----------
    source
        What `codegen.emit` returned, in a language that is written line by line for people.
    func
        The program that it was made from.
    name
        The text; by default the one that a device loads.

    Raises
    ------
    TargetError
        The program cannot be written in the language of the text.

    Examples
    --------
    >>> from dlcompiler import te
    >>> from dlcompiler.pipeline import emit_source
    >>> from dlcompiler.schedule import create_schedule
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    >>> code = source_code(*emit_source(create_schedule(B.op), [A, B], "c"))
    >>> [code.keys(line) for line in code.lines if "for (" in line.text]
    [['B', 'B/i']]
    """
    made = source.texts[next(iter(source.texts)) if name is None else name]
    texts = made.text.splitlines()
    program = source_lines(func)
    numbers = (number if 0 < number <= len(program) else None for number in made.lines)
    pairs = zip(texts, itertools.chain(numbers, itertools.repeat(None)), strict=False)
    shown = {
        place: _line(text, number)
        for place, (text, number) in enumerate(pairs, 1)
        if not _LOCATION.match(text)
    }
    return Code(tuple(shown.values()), tuple(shown), program, _tokens, _NO_LINE)


def _line(text: str, number: int | None) -> CodeLine:
    plain = text.expandtabs(_INDENT)
    return CodeLine(plain.strip(), number, (len(plain) - len(plain.lstrip())) // _INDENT)


def _tokens(text: str) -> list[Token]:
    tokens: list[Token] = []
    end = 0
    for match in _PIECES.finditer(text):
        tokens.append({"kind": "text", "text": text[end : match.start()]})
        kind = "comment" if match["comment"] else "keyword"
        tokens.append({"kind": kind, "text": match[0]})  # type: ignore[typeddict-item]
        end = match.end()
    tokens.append({"kind": "text", "text": text[end:]})
    return [token for token in tokens if token["text"]]
