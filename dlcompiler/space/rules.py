"""Filters: rules on combinations of knobs, evaluated for many points at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dlcompiler.space.knob import Knob
from dlcompiler.space.numbering import Indices, Numbering

Values: TypeAlias = Mapping[str, Any]
Mask: TypeAlias = npt.NDArray[np.bool_]

_MOST_KEPT = 1 << 24
"""Cached answers of a filter, at most."""
_UNKNOWN, _YES = -1, 1


@dataclass(frozen=True, slots=True)
class Filter:
    """A rule that combinations of knobs must keep.

    Filters exclude combinations that are known to be useless or impossible. Combinations that a
    schedule refuses need no filter.
    """

    rule: str
    """The rule in words: a part of the space's fingerprint."""
    allows: Callable[[Values], bool]
    """Tells whether the values of all knobs satisfy the rule. It reads only those values."""


class Verdicts:
    """Cached answers of a filter: each combination of values is evaluated once.

    A filter reads only a few of the knobs, and its reads are recorded. Points with equal values of
    these knobs have the same answer. So the rule is evaluated once for each combination of these
    few knobs, not for each point.

    Parameters
    ----------
    knobs : sequence of Knob
        All knobs of the space.
    filter : Filter
        A rule on them.
    """

    def __init__(self, knobs: Sequence[Knob], filter: Filter) -> None:
        self._knobs = tuple(knobs)
        self._filter = filter
        self._known = _Known(self._knobs, ())

    def __call__(self, digits: Indices) -> Mask:
        """Tell which rows of digits, shape ``(n, knobs)``, satisfy the rule."""
        known = self._known
        while True:
            keys = known.keys(digits)
            missing = np.flatnonzero(known.answers(keys) == _UNKNOWN)
            if not len(missing):
                mask: Mask = known.answers(keys) == _YES
                return mask
            _, firsts = np.unique(keys[missing], return_index=True)
            known = self._known = self._asked(known, keys, digits, missing[firsts])

    def _asked(self, known: _Known, keys: Indices, digits: Indices, rows: Indices) -> _Known:
        """Evaluate the filter on some rows; return a new, larger table if it reads another knob."""
        for row in rows:
            values = {
                knob.name: knob.values[digit]
                for knob, digit in zip(self._knobs, digits[row], strict=True)
            }
            watched = _Watched(values)
            answer = bool(self._filter.allows(watched))
            if not watched.read <= known.names:
                return _Known(self._knobs, known.names | watched.read)
            known.keep(int(keys[row]), answer)
        return known


class _Known:
    """Table of answers, indexed by the values of the knobs that the filter reads."""

    def __init__(self, knobs: Sequence[Knob], names: Sequence[str] | set[str]) -> None:
        self.names = set(names)
        self._columns = [n for n, knob in enumerate(knobs) if knob.name in self.names]
        self._numbering = Numbering([len(knobs[n].values) for n in self._columns])
        self._table: npt.NDArray[np.int8] | dict[int, int] = {}
        if self._numbering.size <= _MOST_KEPT:
            self._table = np.full(self._numbering.size, _UNKNOWN, np.int8)

    def keys(self, digits: Indices) -> Indices:
        return self._numbering.points(digits[:, self._columns])

    def answers(self, keys: Indices) -> npt.NDArray[np.int8]:
        if isinstance(self._table, dict):
            return np.array([self._table.get(key, _UNKNOWN) for key in keys.tolist()], np.int8)
        return self._table[keys]

    def keep(self, key: int, answer: bool) -> None:
        self._table[key] = int(answer)


class _Watched(Mapping[str, Any]):
    """Mapping from knobs to values that records which knobs are read."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        value = self._values[name]
        self.read.add(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
