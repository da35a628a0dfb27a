"""Functions that make calls of the operators in the table.

::

    from dlcompiler.graph import op

    y = op.nn.relu(op.nn.conv2d(x, w, padding=1))

``op.NAME`` is the operator of that name; a part before a dot is an attribute: ``op.nn.conv2d``.
``op.add?`` shows what an operator takes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from dlcompiler.graph.ir import Call, Span
from dlcompiler.graph.operators import REGISTRY
from dlcompiler.graph.operators.functions import call, parameters_text, signature, signature_text
from dlcompiler.registry import changes


class OperatorFunction:
    """The function that makes calls of an operator, or the prefix of other names: ``op.nn``."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        if name in REGISTRY:
            operator = REGISTRY[name]
            self.__doc__ = f"{operator.doc}\n\n{parameters_text(operator)}"
            self.__signature__ = signature(operator)

    def __call__(self, *args: Any, name: str = "", span: Span | None = None, **attrs: Any) -> Call:
        """Make a call; inputs may be given by their names.

        Parameters
        ----------
        *args
            Expressions, numbers, arrays, or lists of them; then attributes by position.
        name : str
            Name of the call in decisions and views.
        span : Span, optional
            Where it comes from.
        **attrs
            Attributes.

        Raises
        ------
        GraphError
            If the number of arguments, or an attribute, is wrong.
        """
        if self.__name__ not in REGISTRY:
            raise TypeError(f"{self!r} cannot be called; dir() lists its operators")
        operator = REGISTRY[self.__name__]
        by_name = [i.rstrip("?") for i in operator.inputs[len(args) :]]
        inputs = [attrs.pop(key) for key in by_name if key in attrs]
        return call(operator, [*args, *inputs], attrs, name, span)

    def __getattr__(self, name: str) -> OperatorFunction:
        return _named(f"{self.__name__}.{name}")

    def __dir__(self) -> list[str]:
        return _names(f"{self.__name__}.")

    def __repr__(self) -> str:
        if self.__name__ in REGISTRY:
            return f"<operator {signature_text(REGISTRY[self.__name__])}>"
        return f"<operators {self.__name__}.*>"


def _named(name: str) -> OperatorFunction:
    found = _function(name, changes())
    if found is None:
        raise AttributeError(f"no operator {name!r}; dir() lists them")
    return found


@lru_cache(maxsize=1024)
def _function(name: str, _changes: int) -> OperatorFunction | None:
    """Return the function of a name; None if there is none while the registries are as they are."""
    if name in REGISTRY or any(known.startswith(f"{name}.") for known in REGISTRY):
        return OperatorFunction(name)
    return None


def _names(prefix: str) -> list[str]:
    """Return the next parts of the names with a prefix."""
    rest = (name.removeprefix(prefix) for name in REGISTRY if name.startswith(prefix))
    return sorted({name.partition(".")[0] for name in rest})


def __getattr__(name: str) -> OperatorFunction:
    if name.startswith("__"):
        raise AttributeError(name)
    return _named(name)


def __dir__() -> list[str]:
    return _names("")
