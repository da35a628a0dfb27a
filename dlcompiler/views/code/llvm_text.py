"""The LLVM IR that the code generator wrote, line by line."""

from __future__ import annotations

import re

from dlcompiler.codegen import Source
from dlcompiler.ir import PrimFunc
from dlcompiler.views.code.code_text import Code, CodeLine, code_of
from dlcompiler.views.code.program import Token
from dlcompiler.views.loops.line_keys import source_lines

_NO_LINE = "these instructions belong to the whole function"
_INSTRUCTION = re.compile(r"  +\S")
_PIECES = re.compile(
    r"(?P<before>(?:%\S+ = |@\S+ = )?)(?P<keyword>[a-z][\w.]*)(?P<text>.*?)"
    r"(?P<comment>(?:, !\w[\w.]* !\d+)*)$"
)


def llvm_code(source: Source, func: PrimFunc) -> Code:
    """Return generated LLVM IR with the loops that its instructions come from.

    Parameters
    ----------
    source
        What `codegen.emit` returned.
    func
        The program that it was made from.

    Examples
    --------
    >>> from dlcompiler import te
    >>> from dlcompiler.pipeline import emit_source
    >>> from dlcompiler.schedule import create_schedule
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    >>> code = llvm_code(*emit_source(create_schedule(B.op), [A, B]))
    >>> [line.line for line in code.lines if "fmul" in line.text]
    [3]
    """
    texts = source.text.splitlines()
    lines = [_line(text, line) for text, line in zip(texts, source.lines, strict=True)]
    return code_of(lines, source_lines(func), ";", _tokens, _NO_LINE)


def _line(text: str, line: int) -> CodeLine:
    if _INSTRUCTION.match(text):
        return CodeLine(text.strip(), line)
    return CodeLine(text, None, 0)


def _tokens(text: str) -> list[Token]:
    """Split a line into tokens: the operation, and the debug references after it."""
    match = _PIECES.match(text)
    if match is None or text.endswith(":"):
        return [{"kind": "text", "text": text}]
    pieces: list[Token] = [
        {"kind": "text", "text": match["before"]},
        {"kind": "keyword", "text": match["keyword"]},
        {"kind": "text", "text": match["text"]},
        {"kind": "comment", "text": match["comment"]},
    ]
    return [piece for piece in pieces if piece["text"]]
