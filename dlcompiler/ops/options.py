"""Options of functions as the text that a workload holds: ``"low=0.0,high=6.0"``.

A workload holds numbers and texts only, so that it can be a key of records. An option that has its
default value is not in the text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dlcompiler import dtypes
from dlcompiler.errors import TuningError


def options_text(
    given: Mapping[str, Any] | str, known: Mapping[str, float | str], where: str
) -> str:
    """Return the text of the options that differ from their defaults.

    Parameters
    ----------
    given : mapping, or str
        Values by name; a text is only checked.
    known : mapping
        All options with their defaults: a number, or the name of a dtype.
    where : str
        The operation, for errors.

    Raises
    ------
    TuningError
        An option is unknown, or its value is not valid.

    Examples
    --------
    >>> options_text({"high": 1}, {"low": 0.0, "high": 6.0}, "clip")
    'high=1.0'
    """
    values = _split(given, where) if isinstance(given, str) else dict(given)
    unknown = [str(name) for name in values if name not in known]
    if unknown:
        raise TuningError(
            where, "no such option", got=", ".join(unknown), expected=", ".join(known) or "none"
        )
    checked = {n: _checked(values[n], known[n], f"{where}: {n}") for n in known if n in values}
    return ",".join(f"{name}={v}" for name, v in checked.items() if v != known[name])


def options_of(text: str, known: Mapping[str, float | str]) -> dict[str, float | str]:
    """Return all options from the text of a workload.

    Examples
    --------
    >>> options_of("high=1.0", {"low": 0.0, "high": 6.0})
    {'low': 0.0, 'high': 1.0}
    """
    values = _split(text, "options")
    return {
        name: _checked(values.get(name, default), default, name) for name, default in known.items()
    }


def _split(text: str, where: str) -> dict[str, Any]:
    pairs = [part.partition("=") for part in text.split(",") if part]
    if any(not equals for _, equals, _ in pairs):
        raise TuningError(
            where,
            "the options are not names with values",
            got=repr(text),
            expected="'low=0,high=6'",
        )
    return {name: value for name, _, value in pairs}


def _checked(value: Any, default: float | str, where: str) -> float | str:
    if isinstance(default, str):
        return dtypes.as_dtype(value)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise TuningError(where, "not a number", got=repr(value)) from None
    if math.isnan(number):
        raise TuningError(where, "the number is NaN", got=repr(value))
    return number
