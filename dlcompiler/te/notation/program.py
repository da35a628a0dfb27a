"""Programs in one text: statements of notation, and lines that declare their names.

::

    C[i, j] += A[i, k] * B[k, j]
    A: float32[512, 512]
    B: float32[512, 512]
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NoReturn

from dlcompiler import dtypes
from dlcompiler.errors import ExpressionError
from dlcompiler.te.notation.extents import read_formula
from dlcompiler.te.notation.printer import notation_arguments, notation_text
from dlcompiler.te.notation.reader import notation
from dlcompiler.te.notation.source import MAX_LENGTH, WHERE
from dlcompiler.te.tensor import PlaceholderOp, Tensor, post_order

_DECLARATION = re.compile(r"\s*([^\W\d]\w*)\s*:\s*([^=#]*?)\s*(?:#.*)?")
_TENSOR = re.compile(r"([^\W\d]\w*)?\s*\[(.*)\]")
_RANGE = re.compile(r"(?:(-?\d{1,18})\s*\.\.\s*)?(\S(?:.*\S)?)")


@dataclass(frozen=True)
class Program:
    """The tensors that a text defines."""

    outputs: tuple[Tensor, ...]
    """The tensors that no other statement reads."""
    args: tuple[Tensor, ...]
    """Parameters of its function: inputs in the order of their lines, then the outputs."""


def read_program(text: str, /, **declarations: Any) -> Program:
    r"""Read a program: statements and declarations in one text, which is never run as Python.

    Parameters
    ----------
    text : str
        Statements as for `te.notation`, and declarations in lines of their own, in any order:
        ``A: float32[512, 512]`` for a tensor (by default float32), ``k: 8`` or ``k: 2 .. 5`` for
        the values of an axis (the end is excluded), and ``a: float32`` for a number that the caller
        gives. ``#`` begins a comment.
    **declarations
        Further declarations, as for `te.notation`.

    Returns
    -------
    Program

    Raises
    ------
    ExpressionError
        If the text cannot be read. Its ``place`` is the line and the column in the text, if known.

    Examples
    --------
    >>> program = read_program("C[i] += A[i, k]\nA: float64[4, n]")
    >>> program.outputs, program.args
    ((Tensor(C: float64[4]),), (Tensor(A: float64[4, n]), Tensor(C: float64[4])))
    >>> read_program("C[i] = (A[i] * 2\nA: [3]")
    Traceback (most recent call last):
    dlcompiler.errors.ExpressionError: te.notation: not readable: '(' was never closed
      excerpt   C[i] = (A[i] * 2
                       ^
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            WHERE, "the text is too long", got=f"{len(text)} characters",
            expected=f"at most {MAX_LENGTH}",
        )  # fmt: skip
    lines = re.split(r"\r\n|\r|\n", text)
    declared, places = _declarations(lines)
    known = {**declarations, **declared}
    # A declaration becomes a comment: the statements stay in their lines.
    rest = [line.strip() if n not in places.values() else "" for n, line in enumerate(lines)]
    try:
        read = notation("\n".join(line or "#" for line in rest), **known)
    except ExpressionError as error:
        error.hint = _as_lines(error.hint)
        _place(error, lines, places)
        raise
    return _program(read if isinstance(read, tuple) else (read,), known)


def program_text(*outputs: Tensor) -> str:
    r"""Write the program of tensors: statements, then a line for each name; see `read_program`.

    Examples
    --------
    >>> print(program_text(*read_program("C[i] += A[k + i]\nA: [9]\nk: 3\ni: 7").outputs))
    C[i] += A[k + i]
    A: float32[9]
    i: 0 .. 7
    k: 0 .. 3
    """
    lines = [notation_text(*outputs)]
    for name, declared in notation_arguments(*outputs).items():
        match declared:
            case (tuple() as shape, str(dtype)):
                lines.append(f"{name}: {dtype}[{', '.join(map(str, shape))}]")
            case (first, end):
                lines.append(f"{name}: {first} .. {end}")
            case str(dtype):
                lines.append(f"{name}: {dtype}")
    return "\n".join(lines)


def _declarations(lines: list[str]) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the declarations in lines, and the number of the line of each, from 0."""
    declared: dict[str, Any] = {}
    places: dict[str, int] = {}
    for number, line in enumerate(lines):
        if not (match := _DECLARATION.fullmatch(line)):
            continue
        name = match[1]
        if name in places:
            _fail(lines, number, match.start(1), f"{name} is declared twice")
        declared[name] = _declared(lines, number, match)
        places[name] = number
    return declared, places


def _declared(lines: list[str], number: int, match: re.Match[str]) -> Any:
    text, column = match[2], match.start(2)
    if tensor := _TENSOR.fullmatch(text):
        dtype = tensor[1] or "float32"
        if dtype not in dtypes.SCALARS:
            _fail(lines, number, column, f"no such dtype: {dtype}",
                  expected=", ".join(dtypes.SCALARS))  # fmt: skip
        parts = _parts(tensor[2])
        if not all(part.strip() for part in parts):
            _fail(lines, number, column, "an extent is missing", expected="float32[512, 512]")
        return tuple(_extent(lines, number, column, part) for part in parts), dtype
    if text in dtypes.SCALARS:
        return text
    if values := _RANGE.fullmatch(text):
        end = _extent(lines, number, column, values[2])
        return (int(values[1]), end) if values[1] else (0, end)
    _fail(
        lines, number, column, f"the declaration of {match[1]} cannot be read",
        expected="float32[512, 512] for a tensor, 8 or 2 .. 5 for an axis, float32 for a number",
    )  # fmt: skip


def _extent(lines: list[str], number: int, column: int, text: str) -> int | str:
    """Return an extent as a number or as a formula of symbols."""
    text = text.strip()
    if re.fullmatch(r"\d{1,18}", text):
        return int(text)
    try:
        read_formula(text, WHERE)
    except ExpressionError as error:
        _fail(lines, number, column, f"{error.problem}: {text[:40]}", expected=error.expected)
    return text


def _parts(text: str) -> list[str]:
    """Split a text at the commas outside parentheses; a comma at the end is allowed."""
    parts, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts[:-1] if not parts[-1].strip() else parts


def _program(results: tuple[Tensor, ...], known: dict[str, Any]) -> Program:
    read = {tensor for result in results for tensor in result.op.input_tensors}
    outputs = tuple(tensor for tensor in results if tensor not in read)
    order = list(known)
    inputs = [op.output(0) for op in post_order(outputs) if isinstance(op, PlaceholderOp)]
    inputs.sort(key=lambda tensor: order.index(tensor.name) if tensor.name in order else -1)
    return Program(outputs, (*inputs, *outputs))


# -- errors ---------------------------------------------------------------------------------------


def _as_lines(hint: str | None) -> str | None:
    """Rewrite a hint about arguments of `te.notation` to one about lines of the text."""
    if hint is None:
        return None
    hint = re.sub(r'te\.notation\(…, (\w+)=\(\(…\), "float32"\)\), or a Tensor',
                  r"a line such as \1: float32[512, 512]", hint)  # fmt: skip
    return re.sub(r"te\.notation\(…, (\w+)=n\)", r"a line such as \1: 8", hint)


def _place(error: ExpressionError, lines: list[str], places: dict[str, int]) -> None:
    """Convert the place of an error in the statements to its place in the whole text."""
    for name, number in places.items():
        is_of_line = error.place is None and error.problem.startswith(f"{name} ")
        if error.operation.endswith(f", {name}") or is_of_line:
            text = lines[number]
            return _point(error, lines, number, len(text) - len(text.lstrip()))
    if error.place:
        line, column = error.place
        text = lines[line - 1]
        error.place = line, column + len(text) - len(text.lstrip())
    return None


def _fail(
    lines: list[str], number: int, column: int, problem: str, expected: object = None
) -> NoReturn:
    error = ExpressionError(WHERE, problem, expected=expected)
    _point(error, lines, number, column)
    raise error


def _point(error: ExpressionError, lines: list[str], number: int, column: int) -> None:
    error.place = number + 1, column + 1
    error.excerpt = f"{lines[number]}\n{' ' * column}^"
