"""Compute the indices of a thread in 32 bits: GPUs have no integer arithmetic of 64 bits.

*Before*::

    for k in range(8):
        if i.outer*16 + k < n:
            B[i.outer*16 + k + 1] = float32(k)

*After*, with variables of the dtype ``int32``::

    for k in range(8):
        if i.outer*16 + k < n:
            B[index(i.outer*16 + k) + 1] = float32(k)

Addresses have 64 bits: an index of an array is computed in 32 bits and then extended. A constant
that is added last is added in 64 bits, so that neighbouring accesses share the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dlcompiler.ir import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    For,
    IfThenElse,
    Let,
    Select,
    Stmt,
    Var,
)
from dlcompiler.ir.rewrite import Node, map_children

NARROW = "int32"


@dataclass
class Narrowing:
    """Rewrites what one thread does; 32 bits must hold all its indices: see `index_type`.

    Parameters
    ----------
    variables
        Index variables that the statements do not declare -> their ``int32`` variables.
    """

    variables: dict[Var, Var]
    exact: dict[int, Expr] = field(default_factory=dict)
    """By `id`, operations on ``int32`` that never overflow."""
    _narrow: dict[int, Expr] = field(default_factory=dict)
    _wide: dict[int, Expr] = field(default_factory=dict)

    def stmt(self, stmt: Stmt) -> Stmt:
        """Return a statement that computes its indices in 32 bits."""
        match stmt:
            case For():
                var, extent = self._declared(stmt.var), self.narrow(stmt.extent)
                body = self.stmt(stmt.body)
                return For(var, extent, stmt.kind, body, stmt.origin, stmt.annotations)
            case Let(var, value, body) if _is_scalar_index(var):
                return Let(self._declared(var), self.narrow(value), self.stmt(body))
        return map_children(stmt, self._child)

    def _declared(self, var: Var) -> Var:
        return self.variables.setdefault(var, Var(var.name, NARROW))

    def _child(self, node: Node) -> Node:
        return self.stmt(node) if isinstance(node, Stmt) else self.wide(node)

    def wide(self, expr: Expr) -> Expr:
        """Return an expression of the same dtype; the scalar indices in it have 32 bits."""
        if isinstance(expr, Const):
            return expr
        if id(expr) not in self._wide:
            self._wide[id(expr)] = self._widened(expr)
        return self._wide[id(expr)]

    def _widened(self, expr: Expr) -> Expr:
        match expr:
            case Binary("add" | "sub" as op, a, Const() as b) if _is_scalar_index(expr):
                return Binary(op, self.wide(a), b)
            case Compare(op, a, b) if _is_scalar_index(a):
                return Compare(op, self.narrow(a), self.narrow(b))
            case Cast(value, dtype) if _is_scalar_index(value):
                return Cast(self.narrow(value), dtype)
        if _is_scalar_index(expr):
            return Cast(self.narrow(expr), "index")
        return map_children(expr, self._child)

    def narrow(self, expr: Expr) -> Expr:
        """Return a scalar index as an ``int32``."""
        if id(expr) not in self._narrow:
            self._narrow[id(expr)] = self._narrowed(expr)
        return self._narrow[id(expr)]

    def _narrowed(self, expr: Expr) -> Expr:
        match expr:
            case Const(value):
                return Const(value, NARROW)
            case Var():
                return self.variables[expr]
            case Binary(op, a, b):
                made = Binary(op, self.narrow(a), self.narrow(b))
                self.exact[id(made)] = made
                return made
            case Select(condition, a, b):
                return Select(self.wide(condition), self.narrow(a), self.narrow(b))
            case IfThenElse(condition, a, b):
                return IfThenElse(self.wide(condition), self.narrow(a), self.narrow(b))
            case Cast(value):
                return Cast(self.wide(value), NARROW)
            case Call("assume_bounds", (value,)):
                return self.narrow(value)
        return Cast(map_children(expr, self._child), NARROW)


def _is_scalar_index(expr: Expr) -> bool:
    return expr.dtype == "index"


def narrowed_variables(variables: Iterable[Var]) -> dict[Var, Var]:
    """Return a variable of 32 bits for each index among some variables."""
    return {var: Var(var.name, NARROW) for var in variables if _is_scalar_index(var)}
