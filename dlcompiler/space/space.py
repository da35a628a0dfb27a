"""Spaces: all knobs of a template for one workload."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dlcompiler.display import render
from dlcompiler.errors import TuningError
from dlcompiler.space.config import Config
from dlcompiler.space.knob import Knob, Value
from dlcompiler.space.workload import Workload

Values: TypeAlias = Mapping[str, Any]

# Below this many points a sample is drawn from the list of all that the filters allow.
_ENUMERATED = 1 << 16
_TRIES_PER_POINT = 200


@dataclass(frozen=True, slots=True)
class Filter:
    """A rule that combinations of knobs must keep.

    Filters leave out what is known to be useless or impossible; what a schedule refuses need not be
    listed.
    """

    rule: str
    """The rule in words: a part of the space's fingerprint."""
    allows: Callable[[Values], bool]
    """Tells whether the values of all knobs keep it."""


class Space:
    """The configs that a tuner may try for a workload.

    Points are numbered: an index is the digits of the knobs' positions in mixed radix, the first
    knob being the fastest. Not every index is allowed by the filters.

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
        self.size = math.prod(len(knob.values) for knob in self.knobs)
        """Number of points, allowed or not."""
        self.fingerprint = _fingerprint(workload.op, self.knobs, self.filters)
        """What configs of this space carry: a hash of the operator, knobs, values and rules."""
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
        values = {}
        for knob in self.knobs:
            index, digit = divmod(index, len(knob.values))
            values[knob.name] = knob.values[digit]
        return values

    def index_of(self, config: Config) -> int:
        """Return the index of a config of this space."""
        adopted = self.adopt(config)
        index = 0
        for knob in reversed(self.knobs):
            index = index * len(knob.values) + knob.index(adopted[knob.name])
        return index

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
                "make a config", "the values do not go together", got=str(config), expected=rule
            )
        return config

    def _from_values(self, values: Values, operation: str) -> Config:
        names = [knob.name for knob in self.knobs]
        if set(values) != set(names):
            raise TuningError(
                operation, "not a value for each knob",
                got=", ".join(values) or "none", expected=", ".join(names),
            )  # fmt: skip
        for knob in self.knobs:
            knob.index(values[knob.name])
        return Config({name: values[name] for name in names}, self.fingerprint)

    def adopt(self, config: Config, *, remap: bool = False) -> Config:
        """Return a config as one of this space.

        Parameters
        ----------
        config
            A config, perhaps a stored one.
        remap
            Accept one of another space, if it has the same knobs and this space has every value:
            they are taken by name.

        Raises
        ------
        TuningError
            If it belongs to another space. A position is never taken for a value.
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
        """Return the rule that a config breaks, or None."""
        return self._broken_rule(config.values)

    def _broken_rule(self, values: Values) -> str | None:
        return next((item.rule for item in self.filters if not item.allows(values)), None)

    def _is_allowed(self, index: int) -> bool:
        return not self.filters or self._broken_rule(self._values_at(index)) is None

    def allowed(self) -> Iterator[int]:
        """Yield every allowed index in ascending order."""
        return (index for index in range(self.size) if self._is_allowed(index))

    # -- samples -----------------------------------------------------------------------------

    def sample(
        self, count: int, seed: int | random.Random, exclude: Collection[int] = ()
    ) -> tuple[int, ...]:
        """Draw different allowed points at random.

        Parameters
        ----------
        count
            How many; fewer come back when there are no more (or, in a large space, when allowed
            ones are too rare to be found).
        seed
            Equal seeds give equal samples; a generator goes on from where it is.
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
            choices = [index for index in self.allowed() if index not in excluded]
            return tuple(generator.sample(choices, min(count, len(choices))))
        found: dict[int, None] = {}
        for _ in range(count * _TRIES_PER_POINT):
            if len(found) == count:
                break
            index = generator.randrange(self.size)
            if index not in excluded and index not in found and self._is_allowed(index):
                found[index] = None
        return tuple(found)


def _fingerprint(op: str, knobs: Sequence[Knob], filters: Sequence[Filter]) -> str:
    parts = [op, [[knob.name, list(knob.values)] for knob in knobs], [f.rule for f in filters]]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
