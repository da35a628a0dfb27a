"""Compute what depends on constants only."""

from __future__ import annotations

from dlcompiler.graph.decisions import Decision
from dlcompiler.graph.interpreter import Value, value_of_call
from dlcompiler.graph.ir import Call, Constant, Expr, Module, Node, Tuple, nbytes, tensor_types
from dlcompiler.graph.operators import REGISTRY
from dlcompiler.graph.passes.tools import (
    KnownTypes,
    decided,
    operator_of,
    rewrite_calls,
    with_log,
)

NAME = "fold_constants"
MOST_GROWTH_BYTES = 1 << 20
"""Most bytes by which a result may be larger than its operands: a constant is stored; [byte]."""
MOST_GROWTH = 4
"""How many times as large it may be in any case; [1]."""


def fold_constants(module: Module) -> Module:
    """Replace calls whose arguments are constants by their values.

    *Before*::

        %0 = add(1f, 2f);
        multiply(%x, %0)

    *After*::

        multiply(%x, 3.0f)

    A call whose value is much larger than its operands, such as a tensor of zeros, is left as it
    is. So are operators that have a state.

    Parameters
    ----------
    module : Module
        The module.
    """
    log: list[Decision] = []

    def rule(old: Call, new: Call, types: KnownTypes) -> Expr | None:
        found = [_value(arg) for arg in new.args]
        operands = [value for value in found if value is not None]
        is_stateful = REGISTRY[operator_of(new)].notes.get("is_stateful")
        if is_stateful or len(operands) < len(found):
            return None
        sizes = [tensor_types(types[node]) for node in (old, *old.args)]
        if not all(kind.is_static for kinds in sizes for kind in kinds):
            return None
        result, *given = (sum(map(nbytes, kinds)) for kinds in sizes)
        # Weights of int8 that no kernel takes become floats: four times as many bytes.
        if result > max(sum(given) + MOST_GROWTH_BYTES, MOST_GROWTH * sum(given)):
            reason = f"its value has {result:,} bytes, its operands {sum(given):,}"
            log.append(decided(NAME, old, "not folded", "too large", reason))
            return None
        value = value_of_call(new, operands)
        log.append(decided(NAME, old, "folded", "constant operands",
                           "all its arguments are constants", kernels=1, saved=result))  # fmt: skip
        return _constant(value, new)

    return with_log(rewrite_calls(module, rule), log)


def _value(node: Node) -> Value | None:
    """Return the value of a constant, or of a tuple of constants; None for another node."""
    match node:
        case Constant(value):
            return value
        case Tuple(fields):
            values = [_value(field) for field in fields]
            known = tuple(value for value in values if value is not None)
            return known if len(known) == len(values) else None
    return None


def _constant(value: Value, call: Call) -> Expr:
    """Return a value as an expression."""
    if isinstance(value, tuple):
        return Tuple(tuple(_constant(part, call) for part in value))
    return Constant(value, call.name, call.span)  # type: ignore[arg-type]  # no closure
