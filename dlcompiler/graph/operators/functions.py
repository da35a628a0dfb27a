"""Functions that make calls: one for each operator, with the signature that its entry gives."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from dlcompiler.errors import GraphError
from dlcompiler.graph.ir import Call, Span, as_expr, op
from dlcompiler.graph.ir.attributes import AttrValue, frozen_attrs
from dlcompiler.graph.operators.attributes import REQUIRED
from dlcompiler.graph.operators.base import GraphOperator


def call(
    operator: GraphOperator, args: Sequence[Any], attrs: dict[str, Any], name: str = "",
    span: Span | None = None,
) -> Call:  # fmt: skip
    """Make a call of an operator; attributes are checked, and those with their default left out.

    Parameters
    ----------
    operator : GraphOperator
        The operator.
    args : sequence
        Expressions, numbers, arrays, or lists of them; then attributes by position.
    attrs : dict
        Attributes by name.
    name : str
        Name of the call in decisions and views.
    span : Span, optional
        Where it comes from.

    Raises
    ------
    GraphError
        If the number of arguments, or an attribute, is wrong.
    """
    names = [attribute.name for attribute in operator.attributes]
    count = len(operator.inputs)
    inputs, rest = args[:count], args[count:]
    if len(rest) > len(names):
        raise GraphError(
            operator.name, "too many arguments", got=len(args), expected=signature_text(operator)
        )
    given = dict(zip(names, rest, strict=False))
    if twice := given.keys() & attrs.keys():
        raise GraphError(operator.name, f"attribute {min(twice)} is given twice")
    made = Call(op(operator.name), tuple(as_expr(arg) for arg in inputs),
                frozen_attrs({**given, **attrs}), name, span)  # fmt: skip
    complete = operator.complete(made)
    defaults = {attribute.name: attribute.default for attribute in operator.attributes}
    kept: dict[str, AttrValue] = {
        key: value for key, value in complete.items() if not _is_default(value, defaults[key])
    }
    return Call(made.op, made.args, kept, name, span)


def _is_default(value: object, default: object) -> bool:
    return type(value) is type(default) and value == default


def signature_text(operator: GraphOperator) -> str:
    """Return how an operator is called: ``nn.conv2d(data, weight, *, strides=(1, 1), …)``."""
    return f"{operator.name}{signature(operator)}"


def signature(operator: GraphOperator) -> inspect.Signature:
    """Return the arguments of an operator, as Python shows those of a function."""
    empty, kinds = inspect.Parameter.empty, inspect.Parameter
    inputs = [
        kinds(
            name.rstrip("?"),
            kinds.POSITIONAL_OR_KEYWORD,
            default=None if name.endswith("?") else empty,
        )
        for name in operator.inputs
    ]
    attributes = [
        kinds(a.name, kinds.KEYWORD_ONLY, default=empty if a.default is REQUIRED else a.default)
        for a in operator.attributes
    ]
    return inspect.Signature([*inputs, *attributes])


def parameters_text(operator: GraphOperator) -> str:
    """Return the arguments of an operator as a docstring lists them."""
    lines = ["Parameters", "----------"]
    lines += [f"{name.rstrip('?')} : Expr" for name in operator.inputs]
    for attribute in operator.attributes:
        lines.append(f"{attribute.name} : {attribute.kind.expected}")
        lines += [f"    {attribute.doc[:1].upper()}{attribute.doc[1:]}."] if attribute.doc else []
    return "\n".join(lines)
