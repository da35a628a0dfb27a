"""The pass that writes operators by others for which the operator library has kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dlcompiler.graph.decisions import Decision
from dlcompiler.graph.ir import Call, Expr, Module
from dlcompiler.graph.passes.decompose import convolutions, pooling, products, transposed
from dlcompiler.graph.passes.decompose.rules import Rule
from dlcompiler.graph.passes.tools import (
    KnownTypes,
    decided,
    operator_of,
    placed,
    rewrite_calls,
    with_log,
)

NAME = "decompose_ops"

RULES: Mapping[str, Rule] = {
    **convolutions.RULES,
    **transposed.RULES,
    **pooling.RULES,
    **products.RULES,
}
"""Operator -> the rule for its calls. It returns a reason and what takes their place, or None."""


def decompose_ops(module: Module) -> Module:
    """Write operators by others for which the operator library has kernels.

    *Before*::

        nn.conv1d(%x, %w, padding=[1, 1])

    *After*::

        %0 = expand_dims(%x, axis=2);
        %1 = expand_dims(%w, axis=2);
        %2 = nn.conv2d(%0, %1, padding=[0, 1, 0, 1]);
        squeeze(%2, axis=[2])

    One-dimensional convolutions and pooling become two-dimensional ones, three-dimensional
    convolutions sum over slices as over channels, transposed convolutions become convolutions whose
    channels are the places between the pixels, stacks of matrices and `einsum` become
    `nn.batch_matmul` or, with a constant matrix, `nn.dense`.

    Calls that ``on_device`` places stay as they are.

    Parameters
    ----------
    module : Module
        The module.
    """
    log: list[Decision] = []
    fixed = placed(module)

    def rule(old: Call, new: Call, types: KnownTypes) -> Expr | None:
        name = operator_of(new)
        found = RULES[name](new, types) if name in RULES and old not in fixed else None
        if found is None:
            return None
        log.append(decided(NAME, old, "rewritten", name, found.reason))
        value = found.value
        return replace(value, name=old.name) if isinstance(value, Call) else value

    return with_log(rewrite_calls(module, rule), log)
