"""The source of a hybrid script as a syntax tree, and errors that name its lines."""

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
    """The source of a user's function."""

    tree: ast.FunctionDef
    lines: tuple[str, ...]
    file: str
    first: int
    """Number of its first line in the file."""

    @property
    def name(self) -> str:
        """Name of the function."""
        return self.tree.name

    def wrong(self, node: Any, problem: str, **parts: Any) -> HybridError:
        """Return the error for a node of the source; `parts` are those of the error's text."""
        line = getattr(node, "lineno", 1)
        where = f"te.hybrid {self.name}, line {self.first + line - 1} of {self.file}"
        return HybridError(where, problem, **{"excerpt": self.lines[line - 1].strip(), **parts})


class HybridError(ExpressionError):
    """Error for something in a script that is not supported, or not valid; it names the line."""


def read_source(function: Callable[..., Any]) -> Source:
    """Parse the source of a function.

    Raises
    ------
    ExpressionError
        If it is not a Python function defined by ``def``, or its source is not available.
    """
    where = f"te.hybrid.script {getattr(function, '__name__', function)!s}"
    if not inspect.isfunction(function):
        raise ExpressionError(where, "not a Python function", got=repr(function))
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise ExpressionError(
            where,
            "the source of the function is not available",
            got=str(error),
            hint="define it in a file, or in a cell of a notebook",
        ) from error
    text = textwrap.dedent("".join(lines))
    try:
        tree = ast.parse(text).body[0]
    except SyntaxError as error:
        raise ExpressionError(
            where, "the source of the function cannot be parsed by itself", got=str(error)
        ) from error
    if not isinstance(tree, ast.FunctionDef):
        raise ExpressionError(
            where, "not a function that is defined by def", got=text.splitlines()[0]
        )
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.arg | ast.FunctionDef):
            checked_label(getattr(node, "id", getattr(node, "arg", tree.name)), where)
    file = Path(inspect.getsourcefile(function) or "").name
    return Source(tree, tuple(text.splitlines()), file, first)
