"""Cases of the operators of graphs: shapes of the inputs, and attributes.

The generic test runs each case with all dtypes that the operator takes. A case is small, and has an
extent 0 or 1, an odd extent, or another rank than the case before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.graph.ir import TensorType, TupleType

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
ALL = (*FLOATS, *INTEGERS, "bool")


@dataclass(frozen=True)
class Given:
    """An input of a case."""

    shape: tuple[int, ...]
    dtype: str = ""
    """"" for the dtype that the test chooses."""
    low: float = -3
    """Least value."""
    high: float = 3
    """Values are below."""


@dataclass(frozen=True)
class Case:
    """A call of an operator."""

    inputs: tuple[Any, ...]
    """Shapes, `Given`, or lists of them for a tuple."""
    attrs: Mapping[str, Any] = field(default_factory=dict)
    is_smooth: bool = True
    """Whether rounding errors have a bound: not where a rounded quotient is rounded further."""


def case(*inputs: Any, is_smooth: bool = True, **attrs: Any) -> Case:
    """Return a case."""
    return Case(inputs, attrs, is_smooth)


def given(entry: Any) -> Given:
    """Return an input of a case."""
    return entry if isinstance(entry, Given) else Given(tuple(entry))


def type_of(entry: Any, dtype: str) -> TensorType | TupleType:
    """Return the type of an input of a case."""
    if isinstance(entry, list):
        return TupleType(tuple(type_of(part, dtype) for part in entry))
    found = given(entry)
    return TensorType(found.shape, found.dtype or dtype)


def value_of(entry: Any, dtype: str, generator: np.random.Generator) -> Any:
    """Return values of an input; floats have few digits, integers are small."""
    if isinstance(entry, list):
        return tuple(value_of(part, dtype, generator) for part in entry)
    found = given(entry)
    kind = found.dtype or dtype
    low, high = found.low, found.high
    if dtypes.is_bool(kind):
        return np.asarray(generator.integers(0, 2, found.shape) > 0)
    if dtypes.is_float(kind):
        return np.asarray(generator.uniform(low, high, found.shape)).astype(dtypes.to_numpy(kind))
    if dtypes.is_unsigned(kind):
        low = max(low, 0)
    numbers = generator.integers(int(low), max(int(high), int(low) + 1), found.shape)
    return np.asarray(numbers).astype(dtypes.to_numpy(kind))


def dtypes_of(entries: Sequence[Any]) -> tuple[str, ...]:
    """Return the dtypes to try with a case: one if it fixes all."""
    flat = [given(e) for entry in entries for e in (entry if isinstance(entry, list) else [entry])]
    return ALL if any(not entry.dtype for entry in flat) else ("float32",)
