"""Check the names of tensors, variables, axes, functions and stages, and tags."""

from __future__ import annotations

from collections.abc import Iterable

from dlcompiler.errors import ExpressionError

MAX_NAME = 200
"""Longest name: files, symbols and lines of a page contain it; [characters]."""


def checked_label(name: object, where: str, what: str = "name") -> str:
    """Return the name unchanged if it can be printed and saved; refuse it otherwise.

    Parameters
    ----------
    name : object
        What a user gives.
    where : str
        First words of the error.
    what : str
        Its kind, if it is not a name: a tag, a scope.

    Raises
    ------
    ExpressionError
        If it is not a string, too long, or has characters that cannot be printed or encoded, such
        as line breaks and lone surrogates.
    """
    if not isinstance(name, str):
        raise ExpressionError(where, f"a {what} is a text", got=repr(name))
    if len(name) > MAX_NAME:
        raise ExpressionError(
            where, f"the {what} is too long", got=f"{len(name)} characters",
            expected=f"at most {MAX_NAME}",
        )  # fmt: skip
    if not name.isprintable():  # false for surrogates, which UTF-8 cannot encode
        raise ExpressionError(
            where, f"the {what} has characters that cannot be printed", got=ascii(name)
        )
    return name


def unique_name(name: str, taken: Iterable[str]) -> str:
    """Return `name`, followed by a number if it is taken."""
    used = set(taken)
    candidate, n = name, 0
    while candidate in used:
        n += 1
        candidate = f"{name}_{n}"
    return candidate
