"""Compiler from expressions of the loop IR to Python closures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import InternalError
from dlcompiler.ir import (
    Binary,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Load,
    Logical,
    Not,
    Ramp,
    Select,
    Var,
    numeric,
    walk,
)
from dlcompiler.ir.function_values import call_function
from dlcompiler.ir.rewrite import children
from dlcompiler.simulate.access import Access, scalar_load, vector_load
from dlcompiler.simulate.memory import Cell, Memory, Site, State, Thunk


@dataclass
class Scope:
    """The variables and buffers that a statement can use, and its location for errors."""

    state: State
    cells: Mapping[Var, Cell]
    memories: Mapping[Buffer, Memory]
    site: Site
    cache: dict[int, Any] = field(default_factory=dict)
    """Values of shared nodes; the statement clears it each time it runs."""
    has_shared: bool = False

    def access(self, buffer: Buffer, indices: Iterable[Thunk], *, is_write: bool = False) -> Access:
        """Return the access to `buffer` at `indices`, for the statement of this scope."""
        return Access(self.state, self.site, self.memories[buffer], tuple(indices), is_write)


def compile_exprs(exprs: Iterable[Expr], scope: Scope) -> list[Thunk]:
    """Return a function for each expression of one statement."""
    compiler = _Compiler(scope, tuple(exprs))
    return [compiler.compile(expr) for expr in compiler.roots]


class _Compiler:
    def __init__(self, scope: Scope, roots: tuple[Expr, ...]) -> None:
        self.scope = scope
        self.roots = roots
        self.done: dict[int, Thunk] = {}
        nodes = {id(node): node for root in roots for node in walk(root)}.values()
        uses = Counter(id(child) for node in nodes for child in children(node))
        # Under a vector choice, the value of a node depends on the lanes that are on.
        is_masked = any(isinstance(n, IfThenElse | Logical) and _is_vector(n) for n in nodes)
        is_masked = is_masked or any(isinstance(n, Load) and n.predicate is not None for n in nodes)
        self.shared = set() if is_masked else {key for key, count in uses.items() if count > 1}

    def compile(self, expr: Expr) -> Thunk:
        if id(expr) not in self.done:
            self.done[id(expr)] = self.cheap(expr) or self.maybe_shared(expr)
        return self.done[id(expr)]

    def cheap(self, expr: Expr) -> Thunk | None:
        """Return the function of an expression that is cheaper to compute than to cache."""
        if isinstance(expr, Const):
            constant = numeric.literal(expr.value, expr.dtype)
            return lambda: constant
        if isinstance(expr, Var):
            cell = self.cell(expr)
            return lambda: cell[0]
        linear = numeric.linear_form(expr)
        return linear and _linear([(self.cell(v), f) for v, f in linear[0].items()], linear[1])

    def maybe_shared(self, expr: Expr) -> Thunk:
        thunk = self.one(expr)
        if id(expr) not in self.shared:
            return thunk
        self.scope.has_shared = True
        return _remembered(thunk, self.scope.cache, id(expr))

    def one(self, expr: Expr) -> Thunk:  # noqa: C901 - one case per node
        match expr:
            case Binary(op, a, b):
                function = numeric.binary_function(op, expr.dtype, vector=_is_vector(expr))
                return _apply2(function, self.compile(a), self.compile(b))
            case Compare(op, a, b):
                return _apply2(numeric.compare_function(op), self.compile(a), self.compile(b))
            case Logical(op, a, b):
                return self.logical(op == "and", self.compile(a), self.compile(b), _is_vector(expr))
            case Not(value):
                return _apply1(np.logical_not if _is_vector(expr) else _not, self.compile(value))
            case Cast(value, dtype):
                function = numeric.cast_function(value.dtype, dtype, vector=_is_vector(expr))
                return _apply1(function, self.compile(value))
            case Call(name, args, _):
                function = call_function(name, args[0].dtype)
                thunks = [self.compile(arg) for arg in args]
                return lambda: function(*(thunk() for thunk in thunks))
            case Select(condition, a, b):
                chosen, x, y = map(self.compile, (condition, a, b))
                return _select(chosen, x, y, _is_vector(condition))
            case IfThenElse(condition, a, b):
                chosen, x, y = map(self.compile, (condition, a, b))
                return self.choose(chosen, x, y, _is_vector(condition))
            case Load():
                return self.load(expr)
            case Ramp(base, stride, lanes):
                steps = np.arange(lanes).astype(numeric.storage(expr.dtype))
                first, step = self.compile(base), self.compile(stride)
                return lambda: first() + step() * steps
            case Broadcast(value, lanes):
                inner, kind = self.compile(value), numeric.storage(expr.dtype)
                return lambda: np.full(lanes, inner(), kind)
        raise InternalError("interpret", f"no meaning for {type(expr).__name__}", got=str(expr))

    def load(self, expr: Load) -> Thunk:
        access = self.scope.access(expr.buffer, map(self.compile, expr.indices))
        load = vector_load(access) if _is_vector(expr) else scalar_load(access)
        if expr.predicate is None:
            return load
        zero = numeric.literal(0, dtypes.element(expr.dtype))
        predicate = self.compile(expr.predicate)
        if not _is_vector(expr):
            return lambda: load() if predicate() else zero
        return lambda: self.on_lanes(predicate(), load)

    def cell(self, var: Var) -> Cell:
        if var not in self.scope.cells:
            raise InternalError("interpret", f"variable {var.name} is used outside its loop")
        return self.scope.cells[var]

    def logical(self, is_and: bool, a: Thunk, b: Thunk, is_vector: bool) -> Thunk:
        if not is_vector:
            return (lambda: a() and b()) if is_and else (lambda: a() or b())

        def join() -> Any:
            first = a()
            second = self.on_lanes(first if is_and else ~first, b)
            return first & second if is_and else first | second

        return join

    def choose(self, condition: Thunk, a: Thunk, b: Thunk, is_vector: bool) -> Thunk:
        if not is_vector:
            return lambda: a() if condition() else b()

        def choose() -> Any:
            chosen = condition()
            return np.where(chosen, self.on_lanes(chosen, a), self.on_lanes(~chosen, b))

        return choose

    def on_lanes(self, lanes: Any, thunk: Thunk) -> Any:
        """Evaluate `thunk` with only `lanes` active; inactive lanes load nothing."""
        state = self.scope.state
        outer = state.active
        state.active = lanes if outer is None else outer & lanes
        result = thunk()
        state.active = outer
        return result


def _is_vector(expr: Expr) -> bool:
    return dtypes.lanes(expr.dtype) > 1


def _not(value: Any) -> bool:
    return not value


def _select(condition: Thunk, a: Thunk, b: Thunk, is_vector: bool) -> Thunk:
    if is_vector:
        return lambda: np.where(condition(), a(), b())

    def choose() -> Any:
        x, y = a(), b()
        return x if condition() else y

    return choose


def _remembered(thunk: Thunk, cache: dict[int, Any], key: int) -> Thunk:
    def get() -> Any:
        if key not in cache:
            cache[key] = thunk()
        return cache[key]

    return get


def _linear(terms: list[tuple[Cell, int]], constant: int) -> Thunk:
    """Return a function for ``sum(cell * factor) + constant``; few terms get faster code."""
    match terms:
        case []:
            return lambda: constant
        case [(a, 1)] if constant == 0:
            return lambda: a[0]
        case [(a, f)]:
            return lambda: a[0] * f + constant
        case [(a, f), (b, g)]:
            return lambda: a[0] * f + b[0] * g + constant
    return lambda: constant + sum(cell[0] * factor for cell, factor in terms)


def _apply1(function: Any, a: Thunk) -> Thunk:
    return lambda: function(a())


def _apply2(function: Any, a: Thunk, b: Thunk) -> Thunk:
    return lambda: function(a(), b())
