"""Correctness tests of candidates: inputs, and the limits of each element of the outputs.

A result is right if each element is between its least and its greatest right value. The limits
are computed once, in the output's dtype, so that checking a candidate is one comparison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.measurement.equality import as_integers, as_numbers

Array = npt.NDArray[Any]
Wide = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Limits:
    """The least and the greatest right value of each element of an output."""

    low: Array
    """In the output's dtype; -inf where any value is right, NaN where only NaN is."""
    high: Array
    """In the output's dtype; inf where any value is right."""

    @classmethod
    def around(cls, expected: Array, bound: Wide, dtype: str) -> Limits:
        """Return the limits of values that differ from `expected` by at most `bound`.

        `expected` has floats in float64, and integers and truth values in their dtypes, or in
        float64 if they are below 2**53.
        """
        if not dtypes.is_float(dtype):
            exact = as_integers(expected, dtypes.to_numpy(dtype))
            return cls(*_around_integers(as_numbers(exact), bound))
        with np.errstate(invalid="ignore", over="ignore"):
            free = np.isposinf(bound)
            low = np.where(free, -np.inf, np.where(bound == 0, expected, expected - bound))
            high = np.where(free, np.inf, np.where(bound == 0, expected, expected + bound))
            return cls(_rounded(low, dtype, up=True), _rounded(high, dtype, up=False))

    def difference(self, name: str, got: Array) -> str:
        """Describe the first wrong element of an output; '' if all are right."""
        got = as_numbers(got)
        with np.errstate(invalid="ignore"):
            right = (got >= self.low) & (got <= self.high)
        if right.all():
            return ""
        right |= _is_free(self)
        if self.low.dtype.kind == "f":
            right |= np.isnan(self.low) & np.isnan(got)
        wrong = ~right
        if not wrong.any():
            return ""
        index = tuple(int(n) for n in np.unravel_index(np.argmax(wrong), wrong.shape))
        low, high = _text(self.low[index]), _text(self.high[index])
        expected = low if low == high else f"{low} to {high}"
        return (
            f"{name}{list(index)} is {_text(got[index])}, expected {expected};"
            f" {np.count_nonzero(wrong)} of {wrong.size} elements are wrong"
        )


@dataclass(frozen=True, slots=True)
class Case:
    """Inputs with the limits of the outputs."""

    inputs: Mapping[str, Array]
    """Arrays by the names of the parameters."""
    outputs: Mapping[str, Limits]
    """Limits by the names of the parameters."""

    @classmethod
    def of(
        cls,
        inputs: Mapping[str, Array],
        expected: Mapping[str, Array],
        bound: Mapping[str, Wide],
        kinds: Mapping[str, str],
    ) -> Case:
        """Make a case from inputs and expected outputs.

        Parameters
        ----------
        inputs : mapping of str to array
            By the names of the parameters.
        expected, bound : mapping of str to array
            The right outputs, as of `Limits.around`, and the largest difference allowed for each
            element; 0 means equality.
        kinds : mapping of str to str
            Dtypes of the outputs.
        """
        made = {
            name: Limits.around(value, bound[name], kinds[name]) for name, value in expected.items()
        }
        return cls(inputs, made)


@dataclass(frozen=True, slots=True)
class CorrectnessTest:
    """The cases that a candidate must pass before it is timed."""

    cases: Sequence[Case]
    """All are checked; then the candidate is timed on the inputs of the first."""

    @property
    def nbytes(self) -> int:
        """Size of all arrays [byte]."""
        return sum(array.nbytes for array in self.arrays().values())

    def arrays(self) -> dict[str, Array]:
        """Return all arrays by name; in case 0: ``0:input:A``, ``0:low:C``, ``0:high:C``."""
        found: dict[str, Array] = {}
        for number, case in enumerate(self.cases):
            for name, array in case.inputs.items():
                found[f"{number}:input:{name}"] = array
            for name, limits in case.outputs.items():
                found[f"{number}:low:{name}"] = limits.low
                found[f"{number}:high:{name}"] = limits.high
        return found

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> CorrectnessTest:
        """Make a test from the arrays that `arrays` returned."""
        count = 1 + max(int(name.partition(":")[0]) for name in arrays)
        inputs: list[dict[str, Array]] = [{} for _ in range(count)]
        limits: list[dict[str, Limits]] = [{} for _ in range(count)]
        for key, array in arrays.items():
            number, kind, name = key.split(":", 2)
            if kind == "input":
                inputs[int(number)][name] = array
            elif kind == "low":
                limits[int(number)][name] = Limits(array, arrays[f"{number}:high:{name}"])
        return cls([Case(*parts) for parts in zip(inputs, limits, strict=True)])


def _is_free(limits: Limits) -> Array:
    """Return a mask of the elements that may have any value."""
    if limits.low.dtype.kind != "f":
        return np.zeros(limits.low.shape, np.bool_)
    return np.isneginf(limits.low) & np.isposinf(limits.high)


def _around_integers(exact: Array, bound: Wide) -> tuple[Array, Array]:
    """Return the least and the greatest integers that differ from `exact` by at most `bound`."""
    facts = np.iinfo(exact.dtype)
    room = np.minimum(np.floor(np.nan_to_num(bound, nan=0.0)), float(facts.max) / 2)
    reach = np.broadcast_to(room, exact.shape).astype(exact.dtype)
    low = np.where(exact < facts.min + reach, facts.min, exact - reach)
    high = np.where(exact > facts.max - reach, facts.max, exact + reach)
    return low.astype(exact.dtype), high.astype(exact.dtype)


def _text(value: Any) -> str:
    return str(int(value)) if value.dtype.kind in "iu" else f"{float(value):.9g}"


def _rounded(wide: Wide, dtype: str, *, up: bool) -> Array:
    """Round limits to float16 or float32, inwards: no value outside the wide limits is allowed."""
    kind: Any = dtypes.to_numpy(dtype)
    if dtype not in ("float16", "float32"):
        return wide
    near = wide.astype(kind)
    outside = near < wide if up else near > wide
    return np.where(outside, np.nextafter(near, np.array(np.inf if up else -np.inf, kind)), near)
