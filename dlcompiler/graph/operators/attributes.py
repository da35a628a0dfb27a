"""Attributes of operators: their kinds, their defaults, and how values are checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from dlcompiler import dtypes
from dlcompiler.errors import ExpressionError, GraphError, shown_number
from dlcompiler.graph.ir.attributes import AttrValue
from dlcompiler.ops.layouts import layout_of


@final
class Required:
    """Stands for the default of an attribute that a call must give."""

    def __repr__(self) -> str:
        return "required"


REQUIRED: Final = Required()


@dataclass(frozen=True, slots=True)
class Kind:
    """What an attribute may be."""

    expected: str
    """Says it, in errors and in the documentation."""
    normal: Callable[[Any], AttrValue]
    """Returns the normal form of a value; raises TypeError or ValueError for another one."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of an operator."""

    name: str
    kind: Kind
    """What it may be; it also gives the normal form: ``strides=1`` is ``(1, 1)``."""
    default: AttrValue | Required = REQUIRED
    doc: str = ""
    """What it means, with its unit."""


def completed(
    operation: str, attributes: Sequence[Attribute], given: Mapping[str, AttrValue]
) -> dict[str, Any]:
    """Return all attributes in their normal form, those that are left out with their default.

    Raises
    ------
    GraphError
        If one is unknown, missing, or has a wrong value.
    """
    known = {attribute.name: attribute for attribute in attributes}
    for name in given:
        if name not in known:
            raise GraphError(
                operation, f"no attribute {name}", got=f"{name}={given[name]!r}",
                expected=", ".join(known) or "no attributes",
            )  # fmt: skip
    return {name: _value(operation, attribute, given) for name, attribute in known.items()}


def _value(operation: str, attribute: Attribute, given: Mapping[str, AttrValue]) -> AttrValue:
    value = given.get(attribute.name, attribute.default)
    if isinstance(value, Required):
        raise GraphError(
            operation, f"attribute {attribute.name} is missing", expected=attribute.kind.expected
        )
    if value is attribute.default and value is None:
        return None
    try:
        return attribute.kind.normal(value)
    except (TypeError, ValueError, OverflowError, ExpressionError):
        raise GraphError(
            operation, f"attribute {attribute.name} has a wrong value",
            got=shown_number(value) if isinstance(value, int) else repr(value),
            expected=attribute.kind.expected,
        ) from None  # fmt: skip


# -- kinds ----------------------------------------------------------------------------------------


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError
    number = int(value.__index__())
    if not -(2**63) <= number < 2**63:
        raise ValueError
    return number


def _at_least(least: int) -> Callable[[Any], int]:
    def normal(value: Any) -> int:
        if (number := _integer(value)) < least:
            raise ValueError
        return number

    return normal


def _real(value: Any) -> float:
    if isinstance(value, bool | str):
        raise TypeError
    return float(value)


def _finite(value: Any) -> float:
    if not math.isfinite(number := _real(value)):
        raise ValueError
    return number


def _bound(value: Any) -> float:
    if math.isnan(number := _real(value)):
        raise ValueError
    return number


def _number(value: Any) -> int | float:
    return _integer(value) if hasattr(value, "__index__") else _real(value)


def _numbers(value: Any) -> tuple[float, ...]:
    return tuple(_finite(item) for item in (value if isinstance(value, list | tuple) else [value]))


def _lengths(value: Any) -> tuple[int, ...]:
    found = _integers(value)
    if min(found, default=0) < 0:
        raise ValueError
    return found


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool | int) or value not in (0, 1):
        raise TypeError
    return bool(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _dtype(value: Any) -> str:
    name = dtypes.as_dtype(value)
    if dtypes.is_index(name) or dtypes.lanes(name) > 1:
        raise ValueError
    return name


def _integers(value: Any) -> tuple[int, ...]:
    items = value if isinstance(value, list | tuple) else (value,)
    return tuple(_integer(item) for item in items)


def _sections(value: Any) -> int | tuple[int, ...]:
    return _integers(value) if isinstance(value, list | tuple) else _integer(value)


def _layout(value: Any) -> str:
    return layout_of(_text(value)).text


def optional(kind: Kind) -> Kind:
    """Return the kind of the attributes that may also be None."""
    return Kind(f"{kind.expected}, or None", lambda v: None if v is None else kind.normal(v))


def one_of(*words: str) -> Kind:
    """Return the kind of the attributes that are one of some words."""

    def normal(value: Any) -> str:
        if value not in words:
            raise ValueError
        return str(value)

    return Kind(f"one of {', '.join(map(repr, words))}", normal)


def extents(rank: int, least: int = 1) -> Kind:
    """Return the kind of the attributes with a number for each spatial dimension."""

    def normal(value: Any) -> tuple[int, ...]:
        found = _integers(value)
        found = found * rank if len(found) == 1 else found
        if len(found) != rank or min(found, default=least) < least:
            raise ValueError
        return found

    return Kind(f"an integer of at least {least}, or {rank} of them", normal)


def padding(rank: int) -> Kind:
    """Return the kind of the attributes that pad spatial dimensions: before each, after each."""

    def normal(value: Any) -> tuple[int, ...]:
        found = _integers(value)
        if len(found) in (1, rank):
            found = found * (2 * rank // len(found))
        if len(found) != 2 * rank or min(found) < 0:
            raise ValueError
        return found

    return Kind(
        f"one number of at least 0, {rank} for both sides of each dimension, "
        f"or {2 * rank}: before each dimension, then after each",
        normal,
    )


def _pairs(value: Any) -> tuple[tuple[int, int], ...]:
    found = [_integers(pair) for pair in value]
    if any(len(pair) != 2 or min(pair) < 0 for pair in found):
        raise ValueError
    return tuple((first, last) for first, last in found)


integer = Kind("an integer", _integer)
positive = Kind("an integer of at least 1", _at_least(1))
non_negative = Kind("an integer of at least 0", _at_least(0))
number = Kind("an integer or a number", _number)
real = Kind("a number", _real)
bound = Kind("a number, which may be infinite", _bound)
finite = Kind("a finite number", _finite)
boolean = Kind("True or False", _boolean)
text = Kind("a text", _text)
dtype = Kind("a dtype such as float32", _dtype)
index_dtype = one_of("int32", "int64")
dtype_or_same = Kind("a dtype, or '' for that of the input", lambda v: "" if v == "" else _dtype(v))
layout = Kind("a layout such as NCHW or NCHW16c", _layout)
layout_or_same = Kind(
    "a layout, or '' for that of the data", lambda v: "" if v == "" else _layout(v)
)
integers = Kind("an integer, or a list of integers", _integers)
numbers = Kind("a finite number, or a list of them", _numbers)
lengths = Kind("an integer of at least 0, or a list of them", _lengths)
pairs = Kind("a pair of integers of at least 0 for each dimension", _pairs)
axis_or_all = Kind("an axis, a list of axes, or None for all", optional(integers).normal)
axis_or_flat = Kind("an axis, or None for all elements in order", optional(integer).normal)
sections = Kind("a number of equal sections, or a list of places to cut at", _sections)
