"""Evaluate formulas of knobs for many configs at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dlcompiler.autotune.features.columns import Column
from dlcompiler.autotune.features.numbers import Num, Number, Op

Values = npt.NDArray[np.float64]
Digits = npt.NDArray[np.int64]
Matrix = npt.NDArray[np.float32]

Tables: TypeAlias = dict[tuple[tuple[int, ...], Num, bool], Matrix]
"""(knobs, formula, whether it is scaled) -> its values for all combinations of the knobs."""


def _where(condition: Values, a: Values, b: Values) -> Values:
    result: Values = np.where(condition != 0, a, b)
    return result


_FUNCTIONS: Mapping[Op, Callable[..., Values]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "floordiv": lambda a, b: np.floor(np.divide(a, b)),
    "mod": lambda a, b: np.subtract(a, np.multiply(np.floor(np.divide(a, b)), b)),
    "gcd": lambda a, b: np.gcd(a.astype(np.int64), b).astype(np.float64),
    "min": np.minimum,
    "max": np.maximum,
    "le": np.less_equal,
    "eq": np.equal,
    "select": _where,
}


class Program:
    """Formulas in topological order: each comes after its operands.

    Parameters
    ----------
    results : sequence of Num
        The formulas to evaluate.
    """

    def __init__(self, results: Sequence[Num]) -> None:
        nodes = _ordered(value for value in results if isinstance(value, Number))
        leaves = [node for node in nodes if node.op == "knob"]
        formulas = [node for node in nodes if node.op != "knob"]
        self._constants: list[float] = []
        place = {node: n for n, node in enumerate((*leaves, *formulas))}
        self._leaves = [(node.knob, np.asarray(node.table, np.float64)) for node in leaves]
        self._steps = [
            (_FUNCTIONS[node.op], tuple(self._place(arg, place) for arg in node.args))
            for node in formulas
        ]
        self._results = [self._place(value, place) for value in results]

    def _place(self, value: Num, place: Mapping[Number, int]) -> int:
        """Return where a value is in `evaluate`: a formula from 0 on, a constant from -1 down."""
        if isinstance(value, Number):
            return place[value]
        self._constants.append(value)
        return -len(self._constants)

    def evaluate(self, digits: Digits) -> list[Values | float]:
        """Return the values for configs.

        Parameters
        ----------
        digits : array of int64, shape (n, knobs)
            Position of each knob's value.

        Returns
        -------
        list of array of float64, shape (n,), or number
            A number where the result does not depend on knobs.
        """
        columns = np.ascontiguousarray(digits.T)
        count = len(self._leaves)
        known: list[Any] = [None] * (count + len(self._steps)) + self._constants[::-1]
        for n, (knob, table) in enumerate(self._leaves):
            known[n] = table[columns[knob]]
        with np.errstate(divide="ignore", invalid="ignore"):
            for n, (function, places) in enumerate(self._steps, count):
                known[n] = function(*[known[place] for place in places])
        return [known[place] if place >= 0 else float(known[place]) for place in self._results]


def _ordered(results: Iterable[Number]) -> tuple[Number, ...]:
    found: set[Number] = set()
    stack = list(results)
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack.extend(arg for arg in node.args if isinstance(arg, Number))
    return tuple(sorted(found, key=lambda node: node.position))


class ColumnProgram:
    """Evaluates the features of one skeleton into rows of a matrix.

    Parameters
    ----------
    columns : sequence of Column
        Its features.
    names : sequence of str
        Columns of the matrix; those that the skeleton does not have are NaN.
    radices : sequence of int
        How many values each knob has.
    tables : dict, optional
        Values of features that were evaluated before; skeletons of one space share them.

    Notes
    -----
    A feature depends on few knobs. Once enough configs have been evaluated, features of the same
    knobs are computed for all combinations of their values, and looked up from then on.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        names: Sequence[str],
        radices: Sequence[int] = (),
        tables: Tables | None = None,
    ) -> None:
        tables = {} if tables is None else tables
        place = {name: number for number, name in enumerate(names)}
        self._row = np.full(len(names), np.nan, np.float32)
        groups: dict[frozenset[int], list[Column]] = {}
        for column in columns:
            if column.name not in place:
                continue
            if isinstance(column.value, Number):
                groups.setdefault(column.value.knobs, []).append(column)
            else:
                value = np.array([[column.value]], np.float64)
                self._row[place[column.name]] = _scaled([column], value).item()
        self._groups = [
            _Group(tuple(sorted(knobs)), members, place, radices, tables)
            for knobs, members in _merged(groups, radices).items()
        ]

    def rows(self, digits: Digits) -> Matrix:
        """Return the features of configs, shape ``(n, len(names))``."""
        result = np.empty((len(self._row), len(digits)), np.float32)
        result[:] = self._row[:, None]
        for group in self._groups:
            result[group.places] = group.values(digits)
        return result.T


class _Group:
    """Features that depend on the same knobs."""

    def __init__(
        self,
        knobs: tuple[int, ...],
        columns: Sequence[Column],
        place: Mapping[str, int],
        radices: Sequence[int],
        tables: Tables,
    ) -> None:
        self.places = np.array([place[column.name] for column in columns], np.int64)
        self._columns = columns
        self._knobs = list(knobs)
        self._radices = [radices[knob] for knob in knobs]
        self._count = len(radices)
        self._tables = tables
        self._table: Matrix | None = None
        self._program: Program | None = None
        self._asked = 0

    def values(self, digits: Digits) -> Matrix:
        """Return the features of configs, shape ``(features, n)``."""
        self._asked += len(digits)
        size = math.prod(self._radices)
        if self._table is None and (size > _LARGEST_TABLE or size > self._asked):
            if self._program is None:
                self._program = _program(self._columns)
            return _evaluated(self._columns, digits, self._program)
        if self._table is None:
            self._table, self._program = self._looked_up(), None
        place = np.ravel_multi_index(tuple(digits[:, self._knobs].T), self._radices)
        found: Matrix = self._table.take(place, axis=1)
        return found

    def _looked_up(self) -> Matrix:
        """Return a table: features for all values of the knobs, shape ``(features, count)``."""
        keys = [
            (tuple(self._knobs), column.value, column.is_logarithmic) for column in self._columns
        ]
        new = {
            key: column
            for key, column in zip(keys, self._columns, strict=True)
            if key not in self._tables
        }
        if new:
            every = np.zeros((math.prod(self._radices), self._count), np.int64)
            every[:, self._knobs] = np.indices(self._radices).reshape(len(self._knobs), -1).T
            made = list(new.values())
            found = _evaluated(made, every, _program(made))
            self._tables.update(zip(new, found, strict=True))
        return np.stack([self._tables[key] for key in keys])


def _program(columns: Sequence[Column]) -> Program:
    return Program([column.value for column in columns])


def _evaluated(columns: Sequence[Column], digits: Digits, program: Program) -> Matrix:
    values = np.array(program.evaluate(digits), np.float64)
    return _scaled(columns, values).astype(np.float32)


_LARGEST_TABLE = 1 << 12
"""Largest number of combinations for which features are looked up."""
_SMALL_TABLE = 1 << 6
"""Largest table of combinations that features of fewer knobs may share."""


def _merged(
    groups: Mapping[frozenset[int], list[Column]], radices: Sequence[int]
) -> dict[frozenset[int], list[Column]]:
    """Merge small groups into larger groups that contain their knobs and fit a lookup table."""

    def size(knobs: frozenset[int]) -> int:
        return math.prod(radices[knob] for knob in knobs)

    result: dict[frozenset[int], list[Column]] = {}
    for knobs in sorted(groups, key=lambda knobs: (-size(knobs), sorted(knobs))):
        hosts = [other for other in result if knobs <= other and size(other) <= _LARGEST_TABLE]
        host = hosts[-1] if hosts and size(knobs) <= _SMALL_TABLE else knobs
        result.setdefault(host, []).extend(groups[knobs])
    return result


def _scaled(columns: Sequence[Column], values: Values) -> Values:
    """Apply the logarithm to the logarithmic columns, shape ``(len(columns), n)``."""
    logarithmic = np.array([column.is_logarithmic for column in columns])
    with np.errstate(divide="ignore", invalid="ignore"):
        values[logarithmic] = np.log2(1 + values[logarithmic])
    return values
