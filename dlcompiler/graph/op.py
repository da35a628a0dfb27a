"""Functions that make calls of the operators in the table.

::

    from dlcompiler.graph import op

    y = op.nn.relu(op.nn.conv2d(x, w, padding=1))

``op.NAME`` is the operator of that name; a part before a dot is an attribute: ``op.nn.conv2d``.
``op.add?`` shows what an operator takes.
"""

from __future__ import annotations

from typing import Any

from dlcompiler.graph.operators import REGISTRY
from dlcompiler.graph.operators.functions import OperatorFunction


class Namespace:
    """The operators whose names begin with a prefix: ``op.nn``."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        return _named(f"{self._prefix}.{name}")

    def __dir__(self) -> list[str]:
        return _names(f"{self._prefix}.")

    def __repr__(self) -> str:
        return f"<operators {self._prefix}.*>"


def _named(name: str) -> Any:
    if name in REGISTRY:
        return OperatorFunction(REGISTRY[name])
    if any(known.startswith(f"{name}.") for known in REGISTRY):
        return Namespace(name)
    raise AttributeError(f"no operator {name!r}; dir() lists them")


def _names(prefix: str) -> list[str]:
    """Return the next parts of the names with a prefix."""
    rest = (name.removeprefix(prefix) for name in REGISTRY if name.startswith(prefix))
    return sorted({name.partition(".")[0] for name in rest})


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _named(name)


def __dir__() -> list[str]:
    return _names("")
