"""Calls of the functions that a user gives: of the elements, of a combination, of statements."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from dlcompiler.errors import ExpressionError, UserError


def call_given(function: Callable[..., Any], args: Sequence[Any], where: str, expected: str) -> Any:
    """Call a function that a user gives, or say what it should have been.

    Parameters
    ----------
    function : callable
        What was given; refused if it is no function.
    args : sequence
        What it is called with.
    where : str
        What begins the error.
    expected : str
        How it is called, for the error: ``"f(x, y), of two values"``.

    Raises
    ------
    ExpressionError
        If it takes other arguments, or does with them what they cannot do, such as to index or to
        unpack a value. The error of Python is its cause, with the line in the user's code.
    """
    if not callable(function):
        raise ExpressionError(where, "not a function", got=repr(function), expected=expected)
    try:
        return function(*args)
    except UserError:  # some are a ValueError too
        raise
    except (TypeError, IndexError, ValueError) as error:
        raise ExpressionError(
            where, "the call of the given function fails",
            got=f"{type(error).__name__}: {error}", expected=expected,
        ) from error  # fmt: skip


def signature_of(function: Callable[..., Any], where: str) -> inspect.Signature:
    """Return the parameters of a function that a user gives; those built into Python have none."""
    try:
        return inspect.signature(function)
    except ValueError as error:
        raise ExpressionError(
            where, "the parameters of the function are not known", got=repr(function),
            because="it is built into Python", hint="write a lambda around it",
        ) from error  # fmt: skip
