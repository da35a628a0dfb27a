"""Write operators that are special cases as the general ones."""

from __future__ import annotations

from dlcompiler.graph.ir import Call, Expr, Module
from dlcompiler.graph.passes.tools import (
    KnownTypes,
    attrs_of,
    call_like,
    operator_of,
    rewrite_calls,
)


def canonicalize_ops(module: Module) -> Module:
    """Write additions of a bias as additions.

    *Before*::

        nn.bias_add(%x, %b)

    *After*::

        %0 = expand_dims(%b, axis=1, num_newaxis=2);
        add(%x, %0)

    Parameters
    ----------
    module : Module
        The module.
    """

    def rule(old: Call, new: Call, types: KnownTypes) -> Expr | None:
        if operator_of(new) != "nn.bias_add":
            return None
        data, bias = new.args
        rank = types.tensor(data).rank
        trailing = rank - attrs_of(new)["axis"] % rank - 1
        if trailing:
            bias = call_like(old, "expand_dims", bias, suffix="bias", axis=1, num_newaxis=trailing)
        return call_like(old, "add", data, bias)

    return rewrite_calls(module, rule)
