"""Convert a node of either language, and turn errors about its operands into errors about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dlcompiler.graph.frontends.coreml.messages import OPERATION
from dlcompiler.graph.frontends.coreml.node import CoremlOrigin
from dlcompiler.graph.frontends.origin import folded
from dlcompiler.graph.ir import Expr

MOST_FOLDED = 1 << 22
"""Most elements of a result that is computed while the model is imported; [1]."""


_Node = TypeVar("_Node", bound=CoremlOrigin)


def converted(node: _Node, table: Mapping[str, Callable[[_Node], Any]]) -> list[Expr]:
    """Return the values of a node; constant ones are computed at once."""
    converter = table.get(node.op_name)
    if converter is None:
        node.fail("there is no such operator here", got=node.op_name or "an operator without name")
    try:
        with node.refusing(OPERATION):
            made = converter(node)
            found = [made] if isinstance(made, Expr) else list(made)
            for value in found:
                node.types[value]  # its operands may not fit
    except (IndexError, OverflowError, TypeError, ValueError) as error:  # of NumPy
        node.fail("its operands do not fit", got=f"{type(error).__name__}: {error}"[:200])
    return [folded(value, node.types, MOST_FOLDED) for value in found]
