"""Features that are the values of the knobs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dlcompiler.autotune.models.base import Indices, Matrix
from dlcompiler.space import Space


class KnobFeatures:
    """Knob values as numbers: a `FeatureSource` for any space.

    A whole number becomes ``log2(1 + value)``, since most knobs are factors. A bool becomes 0 or 1.
    Other values get a column each (one-hot). The items of a tuple are encoded one by one.

    Parameters
    ----------
    space : Space
        Whose points are described.

    Examples
    --------
    >>> from dlcompiler.space import Knob, Workload
    >>> knobs = [Knob("tile", (1, 3)), Knob("order", ("ij", "ji"))]
    >>> features = KnobFeatures(Space(Workload.of("x"), knobs))
    >>> features.columns, features.rows(np.array([1, 2])).tolist()
    (('tile', 'order=ij', 'order=ji'), [[2.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    """

    def __init__(self, space: Space) -> None:
        made = [_table(knob.name, knob.values) for knob in space.knobs]
        self._space = space
        self._tables = [table for _, table in made]
        self.columns: tuple[str, ...] = tuple(name for names, _ in made for name in names)
        """Name of each column."""

    def rows(self, points: Indices) -> Matrix:
        """Return a row for each point, shape ``(len(points), len(columns))``."""
        digits = self._space.digits(points)
        parts = [table[digits[:, n]] for n, table in enumerate(self._tables)]
        return np.concatenate([np.empty((len(digits), 0), np.float32), *parts], axis=1)


def _table(name: str, values: Sequence[Any]) -> tuple[list[str], Matrix]:
    """Return the names of a knob's columns, and their entries for each of its values."""
    if all(isinstance(value, bool | int) for value in values):
        return [name], np.array([[_number(value)] for value in values], np.float32)
    lengths = {len(value) if isinstance(value, tuple) else 0 for value in values}
    if len(lengths) == 1 and lengths != {0}:
        items = [_table(f"{name}[{n}]", item) for n, item in enumerate(zip(*values, strict=True))]
        names = [column for columns, _ in items for column in columns]
        return names, np.concatenate([table for _, table in items], axis=1)
    distinct = list(dict.fromkeys(values))
    chosen = [distinct.index(value) for value in values]
    return [f"{name}={value}" for value in distinct], np.eye(len(distinct), dtype=np.float32)[
        chosen
    ]


def _number(value: bool | int) -> float:
    if isinstance(value, bool):
        return float(value)
    return math.copysign(math.log2(1 + abs(value)), value)
