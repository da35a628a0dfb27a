"""Knobs: named choices with the values that they may take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from dlcompiler.errors import TuningError

Kind: TypeAlias = Literal["split", "reorder", "annotate", "option"]
Value: TypeAlias = bool | int | str | tuple[int, ...] | tuple[str, ...]
"""A value of a knob: data that JSON can hold, tuples as lists."""


@dataclass(frozen=True, slots=True)
class Knob:
    """A choice.

    Examples
    --------
    >>> Knob("unroll_k", (1, 2, 4))
    Knob(name='unroll_k', values=(1, 2, 4))
    """

    name: str
    """A Python identifier, unique in its space."""
    values: tuple[Any, ...]
    """The possible values (each a `Value`), in order, each once."""
    is_by_cores: bool = field(default=False, repr=False)
    """Whether the best value depends on how many cores there are."""
    kind: Kind = field(default="option", repr=False)
    """The kind of its values: sizes of a ``split``, positions of a ``reorder``, words or positions
    of an ``annotate``; or an ``option``."""

    def __post_init__(self) -> None:
        where = f"knob {self.name}"
        if not self.name.isidentifier():
            raise TuningError(where, "the name is not an identifier", got=repr(self.name))
        if not self.values:
            raise TuningError(where, "there are no values to choose from")
        for value in self.values:
            if not is_value(value):
                raise TuningError(
                    where, "a value is not data", got=repr(value),
                    expected="bool, int, str, or a tuple of int or of str",
                )  # fmt: skip
        if len({value_key(value) for value in self.values}) != len(self.values):
            raise TuningError(where, "a value is given twice", got=repr(self.values))

    def index(self, value: object) -> int:
        """Return the position of a value; ``True`` is not 1.

        Raises
        ------
        TuningError
            If the knob does not have it.
        """
        for number, own in enumerate(self.values):
            if value_key(own) == value_key(value):
                return number
        raise TuningError(
            f"knob {self.name}", "not one of its values", got=repr(value),
            expected=", ".join(map(repr, self.values)),
        )  # fmt: skip

    def has(self, value: object) -> bool:
        """Tell whether a value is one of the knob's values."""
        return any(value_key(own) == value_key(value) for own in self.values)


def is_value(value: object) -> bool:
    """Tell whether something can be a value of a knob.

    Examples
    --------
    >>> is_value((4, 2)), is_value(("vec", "unroll")), is_value((1, True)), is_value(1.5)
    (True, True, False, False)
    """
    if isinstance(value, tuple):
        kinds = {type(item) for item in value}
        return kinds <= {int} or kinds <= {str}
    return isinstance(value, bool | int | str)


def as_value(data: Any) -> Any:
    """Return the value that was written as JSON: a list was a tuple before."""
    return tuple(data) if isinstance(data, list) else data


def value_key(value: object) -> tuple[str, object]:
    """Return a key that differs for values of different types: ``True`` is not 1."""
    return type(value).__name__, value


def divisors(number: int, largest: int | None = None) -> tuple[int, ...]:
    """Return the divisors of a positive number up to `largest`, in ascending order.

    Examples
    --------
    >>> divisors(12), divisors(12, largest=4)
    ((1, 2, 3, 4, 6, 12), (1, 2, 3, 4))
    """
    limit = number if largest is None else min(largest, number)
    return tuple(n for n in range(1, limit + 1) if number % n == 0)


def parallel_knob(cores: int) -> Knob:
    """Return the knob ``parallel``: whether several cores share the work, if there are several.

    Examples
    --------
    >>> parallel_knob(2), parallel_knob(1).values
    (Knob(name='parallel', values=(False, True)), (False,))
    """
    return Knob("parallel", (False, True) if cores > 1 else (False,), is_by_cores=True)


def split_knob(
    name: str,
    extent: int,
    candidates: Sequence[int] | None = None,
    *,
    largest: int | None = None,
) -> Knob:
    """Return the knob of a split's factor: the divisors of an extent, or given factors.

    Parameters
    ----------
    name
        Name of the knob.
    extent
        Extent of the axis; 0 counts as 1.
    candidates
        Factors to choose from instead of the divisors; those above the extent are left out,
        except for the smallest.
    largest
        Largest divisor.

    Examples
    --------
    >>> split_knob("tile_k", 12, largest=4).values, split_knob("tile_i", 6, (4, 8, 16)).values
    ((1, 2, 3, 4), (4,))
    """
    extent = max(extent, 1)
    if candidates is None:
        return Knob(name, divisors(extent, largest))
    ordered = sorted(set(candidates))
    fitting: list[Any] = [factor for factor in ordered if factor <= extent]
    return Knob(name, tuple(fitting or ordered[:1]))
