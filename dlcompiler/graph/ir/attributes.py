"""Attributes of calls and functions: a mapping that does not change, with access by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from dlcompiler.errors import GraphError, shown_number
from dlcompiler.registry import Registry

AttrValue: TypeAlias = bool | int | float | str | tuple["AttrValue", ...] | None
"""A value of an attribute."""
Attrs: TypeAlias = Mapping[str, AttrValue]

#: How the attributes of an operator that a call leaves out are found.
LATER: Registry[Callable[[str, Attrs], Attrs]] = Registry(
    "tool of attributes", {"all": "dlcompiler.graph.operators:all_attributes"}
)


class FrozenAttrs(dict[str, AttrValue]):
    """Attributes that cannot change.

    As a mapping they are those that were given. By name, as in Relay, one that was left out has its
    default: ``call.attrs.strides``.
    """

    __slots__ = ("_operator",)

    def __init__(self, values: Mapping[str, AttrValue], operator: str) -> None:
        super().__init__(values)
        self._operator = operator

    if not TYPE_CHECKING:  # else every attribute would be one for the type checker

        def __getattr__(self, name: str) -> Any:
            if name in self:
                return self[name]
            known = {}
            if self._operator and not name.startswith("_"):
                known = LATER["all"](self._operator, self)
            if name in known:
                return known[name]
            of = f"a call of {self._operator}" if self._operator else "this"
            raise AttributeError(
                f"{of} has no attribute {name!r}; it has {', '.join(known or self) or 'none'}"
            )

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("attributes of a graph cannot be changed")

    __setitem__ = __delitem__ = __ior__ = _refuse
    update = setdefault = pop = popitem = clear = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenAttrs, (dict(self), self._operator)


def frozen_attrs(attrs: Attrs, operator: str = "") -> Attrs:
    """Return attributes that cannot change: lists become tuples, NumPy's numbers Python's.

    Parameters
    ----------
    attrs : mapping
        The attributes.
    operator : str
        Name of the operator whose attributes they are; "" for those of a function.

    Raises
    ------
    GraphError
        If a value is not of an allowed type.
    """
    if not attrs:
        return no_attrs(operator)
    if isinstance(attrs, FrozenAttrs):
        return attrs if attrs._operator == operator else FrozenAttrs(attrs, operator)
    return FrozenAttrs({str(name): _attr(name, v) for name, v in attrs.items()}, operator)


@cache
def no_attrs(operator: str = "") -> Attrs:
    """Return the attributes of a call that leaves all out; the same object for each operator."""
    return FrozenAttrs({}, operator)


def _attr(name: str, value: object) -> AttrValue:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        return _attr(name, value.item())
    if isinstance(value, int) and value.bit_length() > 64:
        raise GraphError(f"attribute {name}", "beyond 64 bits", got=shown_number(value))
    if isinstance(value, int | float):
        return value
    if isinstance(value, list | tuple):
        return tuple(_attr(name, item) for item in value)
    raise GraphError(
        f"attribute {name}", "not a value that an attribute can have", got=repr(value),
        expected="None, a bool, a number, a text, or a list of these",
    )  # fmt: skip
