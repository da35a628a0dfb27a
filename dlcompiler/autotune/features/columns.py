"""Columns of a feature matrix: each has a name and a formula of knobs."""

from __future__ import annotations

from dataclasses import dataclass

from dlcompiler.autotune.features.numbers import Num


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One feature of the configs of a skeleton."""

    name: str
    value: Num
    is_logarithmic: bool
    """Whether models get ``log2(1 + value)``: for values that knobs multiply."""


def logarithmic(name: str, value: Num) -> Column:
    """Return a column that models receive as ``log2(1 + value)``."""
    return Column(name, value, True)


def plain(name: str, value: Num) -> Column:
    """Return a column that models receive unchanged."""
    return Column(name, value, False)
