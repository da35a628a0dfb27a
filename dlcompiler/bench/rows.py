"""Measure the works of a suite one by one, so that one that fails does not end the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeAlias, TypeVar

Work = TypeVar("Work")
Say: TypeAlias = Callable[[str], None]


def measured_rows(
    works: Mapping[str, Work],
    measure: Callable[[str, Work], Any],
    say: Say,
    failed: dict[str, str],
) -> list[dict[str, Any]]:
    """Measure works; return the rows of those that did not fail, as JSON values.

    Parameters
    ----------
    works : mapping
        What is measured, by its label.
    measure : callable
        Gets a label and its work; returns a row, a dataclass.
    say : callable
        Gets the text of a row, or of an error, as soon as it is known.
    failed : dict
        Gets the errors by the labels of the works.
    """
    rows = []
    for label, work in works.items():
        try:
            row = measure(label, work)
        except Exception as error:
            failed[label] = f"{type(error).__name__}: {error}"
            say(f"{label}: {failed[label]}")
            continue
        say(str(row))
        rows.append(asdict(row))
    return rows
