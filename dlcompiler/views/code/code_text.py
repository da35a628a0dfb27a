"""Lines of LLVM IR and assembly with their loops, which are found by debug line numbers.

Above each group of instructions, a heading shows the line of the program that they implement. If
the code is long, only the part around the chosen loop is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from dlcompiler.views.code.program import Line, Token
from dlcompiler.views.loops.line_keys import SourceLine

MOST_SHOWN = 600
"""Lines of code that are shown at once."""
LARGEST_BYTES = 600_000
"""Text that is shown at once, with what is known of it; [byte]."""
_BEFORE = 15
_LONGEST_LINE = 400
_LONGEST_HEADING = 110
_LINE_BYTES = 240
"""About what a line takes beside its text, as JSON."""


@dataclass(frozen=True)
class CodeLine:
    """A line of generated code."""

    text: str
    line: int | None
    """The line of the program that it carries out, from 1; 0 where LLVM says that there is no
    single one; None for what is no instruction."""
    depth: int = 1
    """Levels of indentation."""


class CodeText(TypedDict):
    """The lines of generated code that are shown."""

    lines: list[Line]
    before: int
    """Lines that are left out above."""
    left_out: int
    """Lines that are left out below."""


@dataclass(frozen=True)
class Code:
    """Generated code with the program that it was made from."""

    lines: tuple[CodeLine, ...]
    """The generated lines, with headings between them."""
    numbers: tuple[int | None, ...]
    """The number of each line in the generated code, from 1; None for a heading."""
    program: Sequence[SourceLine]
    tokens: Callable[[str], list[Token]]
    no_line: str
    """Explanation of instructions that come from no single line."""

    def keys(self, line: CodeLine) -> list[str]:
        """Return the keys of the loops and stages that a line comes from."""
        return list(self.program[line.line - 1].keys) if line.line else []

    def first_of(self, key: str | None, start: int = 0, end: int | None = None) -> int | None:
        """Return the index of the first line in [start, end) that comes from a loop or stage."""
        own = {n for n, line in enumerate(self.program, 1) if key in line.keys}
        places = range(start, len(self.lines) if end is None else min(end, len(self.lines)))
        return next((n for n in places if self.lines[n].line in own), None)


def code_of(
    lines: Sequence[CodeLine],
    program: Sequence[SourceLine],
    comment: str,
    tokens: Callable[[str], list[Token]],
    no_line: str,
) -> Code:
    """Insert a heading into the code wherever the instructions of another program line begin.

    Parameters
    ----------
    lines
        The code.
    program
        The program whose lines the code names.
    comment
        What begins a comment in the code's language.
    tokens
        Splits a line of code, without its indentation, into pieces.
    no_line
        Explanation of instructions that come from no single line.
    """
    result: list[CodeLine] = []
    numbers: list[int | None] = []
    last: int | None = None
    for number, line in enumerate(lines, 1):
        if line.line is not None and line.line != last:
            last = line.line
            about = f"{last}: {program[last - 1].text}" if last else no_line
            result.append(CodeLine(f"{comment} {about}", last))
            numbers.append(None)
        result.append(line)
        numbers.append(number)
    return Code(tuple(result), tuple(numbers), program, tokens, no_line)


def place_of(code: Code, chosen: str | None, first: int = 0) -> int:
    """Return the index of the first line to show; 0 if all lines fit.

    Parameters
    ----------
    code
        The code.
    chosen
        Key of the chosen loop or stage.
    first
        First line that was shown before: it is kept while a line of the chosen loop is visible.
    """
    if len(code.lines) <= _fitting(code, 0):
        return 0
    if code.first_of(chosen, first, first + _fitting(code, first)) is not None:
        return first
    found = code.first_of(chosen)
    return min(first, len(code.lines) - 1) if found is None else max(found - _BEFORE, 0)


def code_text(code: Code, first: int = 0) -> CodeText:
    """Return as many lines from `first` on as fit the size limit.

    Returns
    -------
    CodeText
        JSON-able, less than 1 MB.
    """
    size = _fitting(code, first)
    shown = list(zip(code.lines, code.numbers, strict=True))[first : first + size]
    return {
        "lines": [_line(code, line, number) for line, number in shown],
        "before": first,
        "left_out": len(code.lines) - first - len(shown),
    }


def _fitting(code: Code, first: int) -> int:
    """Return the number of lines from `first` on that fit the size limit."""
    size = 0
    for count, line in enumerate(code.lines[first : first + MOST_SHOWN]):
        size += _LINE_BYTES + 2 * min(len(line.text), _LONGEST_LINE)
        if size > LARGEST_BYTES:
            return count
    return MOST_SHOWN


def _line(code: Code, line: CodeLine, number: int | None) -> Line:
    text = _short(line.text, _LONGEST_LINE if number else _LONGEST_HEADING)
    source = code.program[line.line - 1] if line.line else None
    pieces: list[Token] = code.tokens(text) if number else [{"kind": "comment", "text": text}]
    return {
        "number": number,
        "text": "    " * line.depth + text,
        "depth": line.depth,
        "status": "same",
        "keys": code.keys(line),
        "tokens": pieces,
        "within": list(source.within) if source else [],
        "about": _about(code, line),
    }


def _about(code: Code, line: CodeLine) -> str:
    if line.line is None:
        return ""
    return f"line {line.line} of the program after all passes" if line.line else code.no_line


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
