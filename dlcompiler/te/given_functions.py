"""Calls of functions that a user passes, such as `fcompute`, with errors that explain failures."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from dlcompiler.errors import DLCompilerError, ExpressionError


class GivenFunctionError(ExpressionError):
    """A user's function raised an error, which is the cause; `got` is its text."""


def call_given(function: Callable[..., Any], args: Sequence[Any], where: str, expected: str) -> Any:
    """Call a user's function; replace Python's errors by errors with an explanation.

    Parameters
    ----------
    function : callable
        The function; anything that cannot be called is refused.
    args : sequence
        The arguments of the call.
    where : str
        Names the operation in errors.
    expected : str
        How the function is called, for the error: ``"f(x, y), of two values"``.

    Returns
    -------
    object
        What the function returns.

    Raises
    ------
    ExpressionError
        If it is no function.
    GivenFunctionError
        If the call raises an error, for example because the function has other parameters, or
        indexes a single value. Python's error is the cause, with the line in the user's code.
    """
    if not callable(function):
        raise ExpressionError(where, "not a function", got=repr(function), expected=expected)
    try:
        return function(*args)
    except DLCompilerError:  # it explains itself
        raise
    except Exception as error:
        raise GivenFunctionError(
            where, "the call of the given function fails",
            got=f"{type(error).__name__}: {error}", expected=expected,
        ) from error  # fmt: skip


def signature_of(function: Callable[..., Any], where: str) -> inspect.Signature:
    """Return the signature of a function that a user passes; refuse a builtin, which has none."""
    try:
        return inspect.signature(function)
    except ValueError as error:
        raise ExpressionError(
            where, "the parameters of the function are not known", got=repr(function),
            because="it is built into Python", hint="write a lambda around it",
        ) from error  # fmt: skip
