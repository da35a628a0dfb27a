"""The source of a function as a syntax tree, and errors that name its lines."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlcompiler.errors import ExpressionError
from dlcompiler.ir.names import checked_label


@dataclass(frozen=True)
class Source:
    """A function of the user's."""

    tree: ast.FunctionDef
    lines: tuple[str, ...]
    file: str
    first: int
    """Number of its first line in the file."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.tree.name

    def wrong(self, node: Any, problem: str, **parts: Any) -> HybridError:
        """Return the error about a place in the source."""
        line = getattr(node, "lineno", 1)
        where = f"te.hybrid {self.name}, line {self.first + line - 1} of {self.file}"
        return HybridError(where, problem, **{"excerpt": self.lines[line - 1].strip(), **parts})


class HybridError(ExpressionError):
    """Something in a script is not part of the subset, or not well formed; it names the line."""


def read_source(function: Callable[..., Any]) -> Source:
    """Return the source of a function, parsed."""
    where = f"te.hybrid.script {getattr(function, '__name__', function)!s}"
    if not inspect.isfunction(function):
        raise ExpressionError(where, "not a function of Python", got=repr(function))
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise ExpressionError(
            where, "its source is not there", got=str(error), hint="write it in a file or a cell"
        ) from error
    text = textwrap.dedent("".join(lines))
    try:
        tree = ast.parse(text).body[0]
    except SyntaxError as error:
        raise ExpressionError(where, "its source cannot be read alone", got=str(error)) from error
    if not isinstance(tree, ast.FunctionDef):
        raise ExpressionError(
            where, "not a function that is defined by def", got=text.splitlines()[0]
        )
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.arg | ast.FunctionDef):
            checked_label(getattr(node, "id", getattr(node, "arg", tree.name)), where)
    file = Path(inspect.getsourcefile(function) or "").name
    return Source(tree, tuple(text.splitlines()), file, first)
