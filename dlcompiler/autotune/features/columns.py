"""Columns of features: a name, and a formula of knobs."""

from __future__ import annotations

from dataclasses import dataclass

from dlcompiler.autotune.features.numbers import Num


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One feature of the configs of a skeleton."""

    name: str
    value: Num
    is_logarithmic: bool
    """Whether models see ``log2(1 + value)``: what is multiplied by knobs."""


def logarithmic(name: str, value: Num) -> Column:
    """Return a column that models see by its logarithm."""
    return Column(name, value, True)


def plain(name: str, value: Num) -> Column:
    """Return a column that models see as it is."""
    return Column(name, value, False)
