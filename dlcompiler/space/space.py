"""Spaces: all knobs of a template for one workload."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dlcompiler.display import render
from dlcompiler.errors import TuningError
from dlcompiler.space.config import Config
from dlcompiler.space.counting import Count, estimated
from dlcompiler.space.knob import Knob, Value, as_value
from dlcompiler.space.numbering import Indices, Numbering
from dlcompiler.space.rules import Filter, Mask, Values, Verdicts
from dlcompiler.space.workload import Workload

# Below this many points a sample is drawn from the list of all that the filters allow.
_ENUMERATED = 1 << 18
_COUNTED = 1 << 22
"""Up to this many points those that the filters allow are counted; of more, a sample is."""
_CHUNK = 1 << 16
_TRIES_PER_POINT = 200


class Space:
    """The configs that a tuner may try for a workload.

    Points are numbered: the positions of the knobs' values are the digits of a mixed-radix index,
    and the first knob is the least significant digit. The filters may forbid some indices.

    Parameters
    ----------
    workload : Workload
        What is tuned.
    knobs : sequence of Knob
        The choices.
    filters : sequence of Filter
        Rules on combinations.

    Examples
    --------
    >>> w = Workload.of("matmul", m=64, n=64, k=64, dtype="float32")
    >>> space = Space(w, [Knob("tile", (1, 2, 4)), Knob("pack", (False, True))])
    >>> space.size, space.at(4)
    (6, Config(tile=2, pack=True))
    >>> space.index_of(space.config(tile=2, pack=True))
    4
    """

    def __init__(
        self, workload: Workload, knobs: Sequence[Knob], filters: Sequence[Filter] = ()
    ) -> None:
        self.workload = workload
        self.knobs = tuple(knobs)
        self.filters = tuple(filters)
        self._numbering = Numbering([len(knob.values) for knob in self.knobs])
        self._verdicts = [Verdicts(self.knobs, item) for item in self.filters]
        self.size = self._numbering.size
        """Number of points, allowed or not."""
        self.fingerprint = _fingerprint(workload.op, self.knobs, self.filters)
        """A hash of the operator, knobs, values and rules; each config of this space holds it."""
        names = [knob.name for knob in self.knobs]
        if len(set(names)) != len(names):
            raise TuningError(
                f"space of {workload}", "two knobs have the same name", got=", ".join(names)
            )

    def __repr__(self) -> str:
        knobs = ", ".join(f"{knob.name}:{len(knob.values)}" for knob in self.knobs)
        return f"Space({self.workload}; {self.size:,} points: {knobs})"

    def _repr_html_(self) -> str:
        return render("space", self)

    # -- points ------------------------------------------------------------------------------

    def at(self, index: int) -> Config:
        """Return the config of an index.

        Raises
        ------
        TuningError
            If the index is outside the space.
        """
        if not 0 <= index < self.size:
            raise TuningError(
                f"point {index} of the space", "outside the space", expected=f"0 to {self.size - 1}"
            )
        return Config(self._values_at(index), self.fingerprint)

    def _values_at(self, index: int) -> dict[str, Value]:
        (digits,) = self.digits([index]).tolist()
        pairs = zip(self.knobs, digits, strict=True)
        return {knob.name: knob.values[digit] for knob, digit in pairs}

    def digits(self, points: npt.ArrayLike) -> Indices:
        """Return the position of each knob's value, for each point.

        Parameters
        ----------
        points : array of int, shape (n,)
            Indices in the space.

        Returns
        -------
        array of int64, shape (n, knobs)
        """
        return self._numbering.digits(points)

    def points_of(self, digits: npt.ArrayLike) -> Indices:
        """Return the indices, shape ``(n,)``, of points given by digits, shape ``(n, knobs)``."""
        return self._numbering.points(digits)

    def index_of(self, config: Config) -> int:
        """Return the index of a config of this space."""
        adopted = self.adopt(config)
        (index,) = self.points_of([[knob.index(adopted[knob.name]) for knob in self.knobs]])
        return int(index)

    def config(self, **values: Value) -> Config:
        """Make a config from a value for each knob.

        Raises
        ------
        TuningError
            If a knob is missing, unknown, or cannot take its value, or a filter forbids them.
        """
        config = self._from_values(values, "make a config")
        if rule := self.forbidden_by(config):
            raise TuningError(
                "make a config",
                "a rule of the space forbids this combination of values",
                got=str(config),
                expected=rule,
            )
        return config

    def _from_values(self, values: Values, operation: str) -> Config:
        names = [knob.name for knob in self.knobs]
        if set(values) != set(names):
            raise TuningError(
                operation, "not a value for each knob",
                got=", ".join(values) or "none", expected=", ".join(names),
            )  # fmt: skip
        given = {name: as_value(values[name]) for name in names}
        for knob in self.knobs:
            knob.index(given[knob.name])
        return Config(given, self.fingerprint)

    def adopt(self, config: Config, *, remap: bool = False) -> Config:
        """Return the config of this space with the same values as a given config.

        Parameters
        ----------
        config
            A config, perhaps a stored one.
        remap
            Accept a config of another space if it has the same knobs, and this space has all of
            its values. Values are matched by the names of knobs.

        Raises
        ------
        TuningError
            If it belongs to another space, and `remap` is false or impossible.
        """
        if config.fingerprint == self.fingerprint:
            return self._from_values(config.values, "read a config")
        if not remap:
            raise TuningError(
                "read a config", "it belongs to another space",
                got=f"fingerprint {config.fingerprint}", expected=self.fingerprint,
                because="the knobs or their values have changed since",
                hint="space.adopt(config, remap=True) takes its values by name",
            )  # fmt: skip
        return self._from_values(config.values, "remap a config")

    # -- rules -------------------------------------------------------------------------------

    def forbidden_by(self, config: Config) -> str | None:
        """Return the text of a rule that a config breaks; None if it satisfies all rules."""
        return self._broken_rule(config.values)

    def _broken_rule(self, values: Values) -> str | None:
        return next((item.rule for item in self.filters if not item.allows(values)), None)

    def allows(self, points: npt.ArrayLike) -> Mask:
        """Return a mask, shape ``(n,)``, of the points that satisfy all rules."""
        mask = np.ones(np.size(points), np.bool_)
        digits = self.digits(points) if self._verdicts else None
        for verdict in self._verdicts:
            assert digits is not None
            mask[mask] = verdict(digits[mask])
        return mask

    def allowed(self) -> Iterator[int]:
        """Yield every allowed index in ascending order."""
        for points in self._numbering.chunks(_CHUNK):
            yield from points[self.allows(points)].tolist()

    @cached_property
    def _all_allowed(self) -> Indices:
        """All allowed points of a space that is small enough to list them."""
        chunks = [points[self.allows(points)] for points in self._numbering.chunks(_CHUNK)]
        return np.concatenate(chunks)

    @cached_property
    def count(self) -> Count:
        """The number of points that the filters allow; an estimate if the space is large."""
        if not self.filters:
            return Count(self.size, self.size, self.size)
        if self.size <= _COUNTED:
            exact = len(self._all_allowed)
            return Count(exact, exact, exact)
        return estimated(self.size, self.allows)

    def neighbours(self, point: int) -> tuple[int, ...]:
        """Return the allowed points that differ from `point` in one knob, in the order of knobs."""
        around = self._numbering.neighbours(point)
        return tuple(around[self.allows(around)].tolist())

    # -- samples -----------------------------------------------------------------------------

    def sample(
        self, count: int, seed: int | random.Random, exclude: Collection[int] = ()
    ) -> tuple[int, ...]:
        """Draw different allowed points at random.

        Parameters
        ----------
        count
            The number of points. There are fewer in the result if the space has no more, or if
            allowed points are too rare to be found in a large space.
        seed
            Equal seeds give equal samples; a generator continues from its state.
        exclude
            Indices not to draw.

        Returns
        -------
        tuple of int
            Indices; `at` gives their configs.
        """
        generator = seed if isinstance(seed, random.Random) else random.Random(seed)
        excluded = set(exclude)
        if self.size <= _ENUMERATED:
            choices = [index for index in self._all_allowed.tolist() if index not in excluded]
            return tuple(generator.sample(choices, min(count, len(choices))))
        found: dict[int, None] = {}
        tries = count * _TRIES_PER_POINT
        while len(found) < count and tries > 0:
            drawn = [generator.randrange(self.size) for _ in range(min(max(count, 64), tries))]
            tries -= len(drawn)
            for index, is_allowed in zip(drawn, self.allows(drawn).tolist(), strict=True):
                if is_allowed and index not in excluded and len(found) < count:
                    found[index] = None
        return tuple(found)


def _fingerprint(op: str, knobs: Sequence[Knob], filters: Sequence[Filter]) -> str:
    parts = [op, [[knob.name, list(knob.values)] for knob in knobs], [f.rule for f in filters]]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
