"""Attributes of operators: their kinds, their defaults, and how values are checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

from dlcompiler import dtypes
from dlcompiler.errors import ExpressionError, GraphError, shown_number
from dlcompiler.graph.ir.nodes import AttrValue


@final
class Required:
    """Stands for the default of an attribute that a call must give."""

    def __repr__(self) -> str:
        return "required"


REQUIRED: Final = Required()
Kind: TypeAlias = Callable[[Any], AttrValue]
"""Returns a value in its normal form; raises TypeError or ValueError for another one."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of an operator."""

    name: str
    kind: Kind
    """Returns the normal form of a value: ``strides=1`` is ``(1, 1)``."""
    default: AttrValue | Required = REQUIRED
    doc: str = ""
    """What it means, with its unit."""

    @property
    def expected(self) -> str:
        """What a value must be, in words."""
        return (self.kind.__doc__ or self.kind.__name__).splitlines()[0].rstrip(".").lower()


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
            operation, f"attribute {attribute.name} is missing", expected=attribute.expected
        )
    if value is attribute.default and value is None:
        return None
    try:
        return attribute.kind(value)
    except (TypeError, ValueError, OverflowError, ExpressionError):
        raise GraphError(
            operation, f"attribute {attribute.name} has a wrong value",
            got=shown_number(value) if isinstance(value, int) else repr(value),
            expected=attribute.expected,
        ) from None  # fmt: skip


# -- kinds ----------------------------------------------------------------------------------------


def integer(value: Any) -> int:
    """An integer."""
    if isinstance(value, bool):
        raise TypeError
    number = int(value.__index__()) if hasattr(value, "__index__") else _whole(value)
    if not -(2**63) <= number < 2**63:
        raise ValueError
    return number


def _whole(value: Any) -> int:
    raise TypeError


def positive(value: Any) -> int:
    """A positive integer."""
    if (number := integer(value)) < 1:
        raise ValueError
    return number


def non_negative(value: Any) -> int:
    """An integer that is not negative."""
    if (number := integer(value)) < 0:
        raise ValueError
    return number


def real(value: Any) -> float:
    """A number."""
    if isinstance(value, bool | str):
        raise TypeError
    return float(value)


def finite(value: Any) -> float:
    """A finite number."""
    if not math.isfinite(number := real(value)):
        raise ValueError
    return number


def boolean(value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool | int) or value not in (0, 1):
        raise TypeError
    return bool(value)


def text(value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise TypeError
    return value


def dtype(value: Any) -> str:
    """A dtype such as float32."""
    name = dtypes.as_dtype(value)
    if dtypes.is_index(name) or dtypes.lanes(name) > 1:
        raise ValueError
    return name


def dtype_or_same(value: Any) -> str:
    """A dtype, or '' for that of the input."""
    return "" if value == "" else dtype(value)


def integers(value: Any) -> tuple[int, ...]:
    """An integer or a list of integers."""
    if isinstance(value, list | tuple):
        return tuple(integer(item) for item in value)
    return (integer(value),)


def axis_or_all(value: Any) -> tuple[int, ...] | None:
    """An axis, a list of axes, or None for all."""
    return None if value is None else integers(value)


def one_of(*words: str) -> Kind:
    """Return the kind of the attributes that are one of some words."""

    def kind(value: Any) -> str:
        if value not in words:
            raise ValueError
        return str(value)

    kind.__doc__ = f"One of {', '.join(map(repr, words))}."
    return kind


def extents(rank: int, least: int = 1) -> Kind:
    """Return the kind of the attributes with a number for each spatial dimension."""

    def kind(value: Any) -> tuple[int, ...]:
        found = integers(value)
        found = found * rank if len(found) == 1 else found
        if len(found) != rank or min(found, default=least) < least:
            raise ValueError
        return found

    kind.__doc__ = f"An integer of at least {least}, or {rank} of them."
    return kind


def padding(rank: int) -> Kind:
    """Return the kind of the attributes that pad spatial dimensions; before all, then after all."""

    def kind(value: Any) -> tuple[int, ...]:
        found = integers(value)
        if len(found) == 1:
            found = found * (2 * rank)
        elif len(found) == rank:
            found = found * 2
        if len(found) != 2 * rank or min(found) < 0:
            raise ValueError
        return found

    kind.__doc__ = (
        f"One number that is not negative, {rank} (for both sides of each dimension), "
        f"or {2 * rank} (before each dimension, then after each)."
    )
    return kind
