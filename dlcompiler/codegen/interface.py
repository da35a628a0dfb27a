"""Describe the parameters of generated code as data, so that the runtime can call it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dlcompiler.errors import InternalError
from dlcompiler.ir import Binary, Compare, Const, Extent, Logical, PrimFunc, Var
from dlcompiler.ir.names import unique_name
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.formulas import Formula
from dlcompiler.runtime.source import Interface
from dlcompiler.runtime.symbols import Check, Variable


def interface_of(
    func: PrimFunc,
    symbol: str,
    messages: Sequence[str] = (),
    *,
    uses_threads: bool = False,
    reports_values: bool = False,
) -> Interface:
    """Return the calling interface of the code of a function.

    Parameters
    ----------
    func
        The function that the code was generated from.
    symbol, messages, uses_threads, reports_values
        See `dlcompiler.runtime.source.Interface`.
    """
    return Interface(
        symbol,
        parameters(func),
        variables(func),
        checks(func),
        tuple(messages),
        uses_threads,
        reports_values,
    )


def parameters(func: PrimFunc) -> tuple[Param, ...]:
    """Return the name, shape, dtype and direction of each parameter of a function."""
    names = _symbol_names(func)
    return tuple(
        Param(names[param], (), param.dtype, is_number=True)
        if isinstance(param, Var)
        else Param(
            param.name,
            tuple(formula(extent, names) for extent in param.shape),
            param.dtype,
            param in func.outputs,
        )
        for param in func.params
    )


def variables(func: PrimFunc) -> tuple[Variable, ...]:
    """Return the numbers that the code of a function takes after the arrays."""
    names = _symbol_names(func)
    return tuple(Variable(names[variable], variable.dtype) for variable in func.variables)


def checks(func: PrimFunc) -> tuple[Check, ...]:
    """Return the conditions on the symbols that each call must check."""
    names = _symbol_names(func)
    return tuple(Check(formula(condition, names), problem) for condition, problem in func.checks)


def _symbol_names(func: PrimFunc) -> dict[Var, str]:
    """Return a unique name for each symbol."""
    names: dict[Var, str] = {}
    for variable in func.variables:
        names[variable] = unique_name(variable.name, names.values())
    return names


def formula(expr: Extent, names: Mapping[Var, str]) -> Formula:
    """Convert an expression of symbols to nested tuples, which the runtime evaluates."""
    match expr:
        case int():
            return expr
        case Const(value):
            return int(value)
        case Var():
            return names[expr]
        case Binary(op, a, b) | Compare(op, a, b) | Logical(op, a, b):
            return (op, formula(a, names), formula(b, names))
    raise InternalError("formula of symbols", "not a formula", got=str(expr))
