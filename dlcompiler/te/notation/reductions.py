"""Reader of reductions in notation, such as ``sum(value, axis=k, where=condition, init=start)``."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, cast

from dlcompiler.te.notation.statement import Statement, elements_of
from dlcompiler.te.reducers import reductions

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": reductions.sum,
    "prod": reductions.prod,
    "max": reductions.max,
    "min": reductions.min,
    "argmax": reductions.argmax,
    "argmin": reductions.argmin,
}
PLAIN = ("argmax", "argmin")
"""Reductions that take neither ``where=`` nor ``init=``."""
CHOICES = ("max", "min")
"""Names that also mean a choice between two values: ``max(a, b)``."""


def read_reduction(statement: Statement) -> None:
    """Recognise a reduction that is the whole right side, and set the parts of the statement."""
    match statement.values:
        case [ast.Call(func=ast.Name(id=name), args=[value, *others], keywords=keywords)] if (
            name in REDUCTIONS or name in statement.words.reducers
        ):
            pass
        case [ast.Tuple(elts=values)] if len(statement.targets) > 1:
            statement.values = values
            return
        case _:
            return
    if name in CHOICES and others and not keywords and not _are_axes(statement, others):
        return
    given = {keyword.arg: keyword for keyword in keywords}
    allowed = ["axis", *(() if name in PLAIN else ("where", "init"))]
    for keyword in keywords:
        if keyword.arg not in allowed or (keyword.arg == "axis" and others):
            expected = ", ".join(f"{word}=…" for word in allowed)
            statement.source.fail(keyword, "an argument that is not understood", expected=expected)
    axes = _elements_or_list(given["axis"].value) if "axis" in given else list(others)
    _read_axes(statement, name, axes)
    statement.values = elements_of(value) if name not in REDUCTIONS else [value]
    statement.reducer = name
    if "where" in given:
        statement.where = given["where"].value
    if "init" in given:
        statement.init = elements_of(given["init"].value)


def _read_axes(statement: Statement, name: str, axes: list[ast.expr]) -> None:
    source = statement.source
    for axis in axes:
        if not _is_name(statement, axis):
            source.fail(axis, f"{name} reduces over axes", expected="the name of an axis")
        if cast(ast.Name, axis).id in statement.axes:
            axis_name = cast(ast.Name, axis).id
            source.fail(axis, f"the axis {axis_name} is on the left, and cannot be reduced")
    if len({cast(ast.Name, axis).id for axis in axes}) != len(axes) or not axes:
        source.fail(
            statement.values[0], f"{name} needs axes to reduce over, each once", expected="axis=k"
        )
    statement.explicit = cast("list[ast.Name]", axes)


def _elements_or_list(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple | ast.List) else [node]


def _are_axes(statement: Statement, nodes: list[ast.expr]) -> bool:
    """Tell whether all arguments are names that must be reduction axes, as in ``max(x, k)``."""
    return all(
        _is_name(statement, node) and cast(ast.Name, node).id not in statement.axes
        for node in nodes
    )


def _is_name(statement: Statement, node: ast.expr) -> bool:
    is_free = isinstance(node, ast.Name) and node.id not in ("inf", "nan")
    return is_free and cast(ast.Name, node).id not in statement.words.symbols
