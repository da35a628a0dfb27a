"""The text of notation: parsed within limits of length and depth, and quoted in errors."""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from dlcompiler.errors import ExpressionError
from dlcompiler.ir.names import checked_label

WHERE = "te.notation"
MAX_LENGTH = 10_000
MAX_DEPTH = 140
SHOWN = 88  # characters of a line that an excerpt shows
_SAID = {
    r"'.' was never closed|unmatched '.'|too many nested parentheses": r"\g<0>",
    r"closing parenthesis '(.)' does not match .* '(.)'.*": r"'\2' is closed by '\1'",
    r"invalid \w+ literal|invalid digit .*|leading zeros .*": "this is not a number",
    r"unterminated .*": "the closing quote is missing",
    r".*null (?:bytes|characters).*": "there is a null character in the text",
    r".*surrogates not allowed": "there is half of a character in the text",
    r"Exceeds the limit .*": "a number has too many digits",
}
"""What Python says of a text that it cannot parse, as a pattern, and the same in plain words."""
_UNKNOWN = "something is missing before this place, or does not belong here"


class Source:
    """Statements as text, and their syntax trees, which are never run."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise ExpressionError(WHERE, "not a text", got=type(text).__name__)
        if len(text) > MAX_LENGTH:
            raise ExpressionError(
                WHERE, "the text is too long", got=f"{len(text)} characters",
                expected=f"at most {MAX_LENGTH}",
            )  # fmt: skip
        self.text = inspect.cleandoc(text).strip()
        self.lines = re.split(r"\r\n|\r|\n", self.text)
        self.statements = self._parse()

    def _parse(self) -> list[ast.stmt]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Python's remarks on what is refused here anyway
                statements = ast.parse(self.text).body
        except (MemoryError, RecursionError):
            raise self.too_deep() from None
        except SyntaxError as error:
            line, column = error.lineno or 1, (error.offset or 1) - 1
            refused = ExpressionError(
                WHERE, f"not readable: {_in_words(error.msg)}", excerpt=self._quote(line, column)
            )
            refused.place = min(line, len(self.lines)), column + 1
            raise refused from None
        except ValueError as error:  # a null character
            raise ExpressionError(WHERE, f"not readable: {_in_words(str(error))}") from None
        if not statements:
            raise ExpressionError(
                WHERE, "no statement", got=self.text or "nothing",
                expected="one or several, such as C[i, j] += A[i, k] * B[k, j]",
            )  # fmt: skip
        if any(map(_is_deep, statements)):
            raise self.too_deep()
        for node in (each for statement in statements for each in ast.walk(statement)):
            if isinstance(node, ast.Name):
                checked_label(node.id, WHERE)
        return statements

    def too_deep(self) -> ExpressionError:
        """Return the error for text that is nested more deeply than Python can parse."""
        return ExpressionError(
            WHERE,
            "nested too deeply",
            expected=f"at most {MAX_DEPTH} levels",
            hint="split it into several statements",
        )

    # -- errors -----------------------------------------------------------------------------------

    def fail(
        self,
        node: ast.AST,
        problem: str,
        *,
        got: object = None,
        expected: object = None,
        hint: str | None = None,
    ) -> NoReturn:
        """Raise an error that points at `node`."""
        error = ExpressionError(WHERE, problem, got=got, expected=expected, hint=hint)
        self._point(error, node)
        raise error

    @contextmanager
    def pointing_at(self, node: ast.AST | None) -> Iterator[None]:
        """Add the place of `node` to errors that are raised inside the block."""
        try:
            yield
        except ExpressionError as error:
            if not error.excerpt:
                self._point(error, node)
            raise

    def _point(self, error: ExpressionError, node: ast.AST | None) -> None:
        """Add the place of a node to an error."""
        error.excerpt = self.excerpt(node)
        if node is not None:
            line, column = self._place(node)
            error.place = line, column + 1

    def excerpt(self, node: ast.AST | None) -> str:
        """Return the line of a node with a caret under its place; the first line for no node."""
        return self.lines[0][:SHOWN] if node is None else self._quote(*self._place(node))

    def _place(self, node: ast.AST) -> tuple[int, int]:
        """Return the line of a node, from 1, and the column, from 0, that a caret points at."""
        match node:
            case ast.Attribute(value=before) | ast.BinOp(left=before):
                return self._after(before)
        line = getattr(node, "lineno", 1)
        return line, self._column(line, getattr(node, "col_offset", 0))

    def _column(self, line: int, offset: int) -> int:
        """Convert the parser's offset, which counts bytes of UTF-8, to a column."""
        return len(self.lines[line - 1].encode()[:offset].decode(errors="ignore"))

    def _after(self, node: ast.expr) -> tuple[int, int]:
        """Return the place of the operator or dot that follows an operand."""
        line = node.end_lineno or 1
        column = self._column(line, node.end_col_offset or 0)
        rest = self.lines[line - 1][column:]
        return line, column + len(rest) - len(rest.lstrip(" )"))

    def _quote(self, line: int, column: int) -> str:
        text = self.lines[min(line, len(self.lines)) - 1].replace("\t", " ")
        first = max(0, column - SHOWN // 2) if len(text) > SHOWN else 0
        return f"{text[first : first + SHOWN]}\n{' ' * (column - first)}^"


def _in_words(said: str) -> str:
    """Return what is wrong with a text, from what Python says of it."""
    for pattern, words in _SAID.items():
        if found := re.fullmatch(pattern, said):
            return found.expand(words)
    return _UNKNOWN


def _is_deep(node: ast.AST) -> bool:
    level = [node]
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in ast.iter_child_nodes(parent)]
        if not level:
            return False
    return True
