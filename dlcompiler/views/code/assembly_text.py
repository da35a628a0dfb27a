"""Assembly printed by LLVM, without assembler directives; each instruction has its loops.

LLVM writes ``.loc file line column`` where the line of the program changes; the lines of the
program are those of the debug information. Kept are instructions, the labels that they name and the
constants behind these; directives go, as in Compiler Explorer.

**Source:** GNU as manual, section "Loc" (``.loc``); the DWARF standard, section 6.2.2: line 0 is
given to instructions that can be attributed to no line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dlcompiler.ir import PrimFunc
from dlcompiler.views.code.code_text import Code, CodeLine, code_of
from dlcompiler.views.code.program import Token
from dlcompiler.views.loops.line_keys import source_lines

_NO_LINE = "LLVM merged or moved these instructions, or they belong to the whole function"
_LABEL = re.compile(r'("[^"]*"|[\w.$@-]+):\s*(?:[#@;].*|//.*)?$')
_LOCATION = re.compile(r"\s+\.loc\s+\d+\s+(\d+)\b")
_DATA = re.compile(
    r"\s+\.(?:byte|[248]byte|short|hword|long|word|quad|xword|int\d+|float|double|zero|ascii|asciz|space)\b"
)
_SECTION = re.compile(r"\s+\.(?:section|text|data)\b")
_NAMES = re.compile(r'"[^"]*"|[\w.$@]+')
_PIECES = re.compile(r"(\S+)(\s*)(.*)", re.DOTALL)


def assembly_code(text: str, func: PrimFunc, triple: str = "") -> Code:
    """Return assembly with the loops that its instructions come from.

    Parameters
    ----------
    text
        What LLVM printed for a module with line tables.
    func
        The program that the module was made from.
    triple
        LLVM's name of the machine; decides how a comment begins.
    """
    lines = list(_instructions(text))
    named = {name for line in lines if line.line is not None for name in _NAMES.findall(line.text)}
    kept = list(_needed(lines, named))
    return code_of(kept, source_lines(func), _comment(triple), _tokens, _NO_LINE)


def _comment(triple: str) -> str:
    family = triple.partition("-")[0]
    if family.startswith(("aarch64", "arm64")):
        return "//"
    return "@" if family.startswith(("arm", "thumb")) else "#"


def _instructions(text: str) -> Iterator[CodeLine]:
    """Yield labels, instructions and data; instructions with the line of their location."""
    line, is_debug, is_code = 0, False, True
    for item in text.splitlines():
        if _SECTION.match(item):
            is_debug = "debug" in item or "DWARF" in item
            is_code = ".text" in item or "__text" in item
        elif is_debug or not item.strip():
            continue
        elif location := _LOCATION.match(item):
            line = int(location[1])
        elif label := _LABEL.match(item):
            line = line if _is_local(label[1]) else 0
            yield CodeLine(f"{label[1]}:", None, 0)
        elif _DATA.match(item) and not is_code:
            yield CodeLine(_spaced(item.strip()), None)
        elif not re.match(r"\s*[.#@]|\s*//", item):
            yield CodeLine(_spaced(item.strip()), line)


def _is_local(label: str) -> bool:
    """Tell whether LLVM generated a label, so that it names no function."""
    return label.startswith((".L", "L", "$"))


def _needed(lines: Sequence[CodeLine], named: set[str]) -> Iterator[CodeLine]:
    """Yield instructions, functions, and the labels in `named` with the data after them."""
    is_named = False
    for line in lines:
        is_label = line.depth == 0
        if is_label:
            name = line.text.removesuffix(":")
            is_named = name in named or not _is_local(name)
        elif line.line is not None:
            is_named = False
        if is_named or line.line is not None:
            yield line


def _spaced(text: str) -> str:
    """Return an instruction whose operands are padded to start in one column."""
    name, _, operands = text.partition("\t")
    return f"{name:<12} {operands}".rstrip() if operands else text


def _tokens(text: str) -> list[Token]:
    """Split a line into pieces: the operation and its operands."""
    match = _PIECES.match(text)
    if match is None or text.endswith(":"):
        return [{"kind": "text", "text": text}]
    pieces: list[Token] = [
        {"kind": "keyword", "text": match[1]},
        {"kind": "text", "text": match[2] + match[3]},
    ]
    return [piece for piece in pieces if piece["text"]]
