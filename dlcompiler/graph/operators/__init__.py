"""The operator table of graphs: one entry per operator, which everything else reads.

An entry has the type relation, the meaning with NumPy, the definition as tensor expressions, the
fusion pattern, and the attributes with their defaults. Importers, passes, executors and the
documentation read it. A program adds an operator by one line::

    graph.operators.REGISTRY["my.operator"] = GraphOperator("my.operator", …)
"""

from __future__ import annotations

from dlcompiler.errors import GraphError
from dlcompiler.graph.ir import Attrs, Call
from dlcompiler.graph.operators import (
    attention,
    contraction,
    convolutions,
    creation,
    elementwise,
    indexing,
    losses,
    markers,
    norms,
    padding,
    pooling,
    products,
    quantized,
    rearranging,
    recurrent,
    reductions,
    resize,
    sampling,
    shapes,
    slicing,
    sorting,
)
from dlcompiler.graph.operators.attributes import REQUIRED, Attribute, completed
from dlcompiler.graph.operators.base import (
    CallTypes,
    GraphOperator,
    NotKnown,
    Pattern,
    Result,
    origin_of,
)
from dlcompiler.registry import Registry

__all__ = [
    "FAMILIES",
    "REGISTRY",
    "REQUIRED",
    "Attribute",
    "CallTypes",
    "GraphOperator",
    "NotKnown",
    "Pattern",
    "Result",
    "all_attributes",
    "find",
    "names",
]

FAMILIES = (
    elementwise, shapes, slicing, indexing, creation, sorting, products, convolutions, quantized,
    pooling, norms, padding, reductions, rearranging, resize, contraction,
    attention, recurrent, losses, sampling, markers,
)  # fmt: skip
"""The modules with the entries, in the order of the documentation."""

#: Name of an operator -> its entry.
REGISTRY: Registry[GraphOperator] = Registry(
    "graph operator", {entry.name: entry for family in FAMILIES for entry in family.TABLE}
)


def names() -> tuple[str, ...]:
    """Return the names of all operators."""
    return tuple(REGISTRY)


def all_attributes(name: str, given: Attrs) -> Attrs:
    """Return all attributes of an operator, those that are not given with their default.

    Parameters
    ----------
    name : str
        Name of the operator.
    given : mapping
        The attributes that a call has.
    """
    return completed(name, REGISTRY[name].attributes, given) if name in REGISTRY else given


def find(name: str, call: Call | None = None) -> GraphOperator:
    """Return an operator by its name.

    Parameters
    ----------
    name : str
        As in Relay: ``"nn.conv2d"``.
    call : Call, optional
        The call that names it, for the error.

    Raises
    ------
    GraphError
        If there is none.
    """
    if name in REGISTRY:
        return REGISTRY[name]
    where = origin_of(call)
    return REGISTRY.find(
        name, f"find an operator{f' ({where})' if where else ''}", error=GraphError
    )
