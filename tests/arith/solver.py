"""Proofs with z3: expressions as integers (indices) or as bit vectors (data)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import z3

from dlcompiler.ir import (
    Binary,
    Compare,
    Const,
    Expr,
    Logical,
    Not,
    Var,
)

TIMEOUT_MS = 10_000


class Integers:
    """Index expressions; each division is a new quotient and remainder with their definition."""

    def __init__(self) -> None:
        self.definitions: list[z3.BoolRef] = []
        self.numbers = itertools.count()
        self.divisions: dict[object, tuple[z3.ArithRef, z3.ArithRef]] = {}

    def prove(self, claim: Expr, when: Sequence[Expr]) -> str:
        """Return "proved", or what the solver says instead."""
        assumptions = [self.term(condition) for condition in when]
        goal = self.term(claim)
        solver = z3.Solver()
        solver.set("timeout", TIMEOUT_MS)
        solver.add(*self.definitions, *assumptions, z3.Not(goal))
        result = solver.check()
        if result == z3.sat:
            return f"not so for {solver.model()}"
        return "proved" if result == z3.unsat else f"unknown: {solver.reason_unknown()}"

    def term(self, expr: Expr) -> z3.ExprRef:
        match expr:
            case Const(value, _):
                return z3.IntVal(int(value))
            case Var(name, _):
                return z3.Int(name)
            case Binary(op, a, b):
                return self.operation(op, self.term(a), self.term(b))
            case Compare(op, a, b):
                return comparison(op, self.term(a), self.term(b))
            case Logical(op, a, b):
                return (z3.And if op == "and" else z3.Or)(self.term(a), self.term(b))
            case Not(value):
                return z3.Not(self.term(value))
        raise AssertionError(expr)

    def operation(self, op: str, a: z3.ArithRef, b: z3.ArithRef) -> z3.ArithRef:
        match op:
            case "add":
                return a + b
            case "sub":
                return a - b
            case "mul":
                return a * b
            case "min":
                return z3.If(a < b, a, b)
            case "max":
                return z3.If(a > b, a, b)
            case "floordiv":
                return self.division("floor", a, b)[0]
            case "floormod":
                return self.division("floor", a, b)[1]
            case "truncdiv":
                return self.division("trunc", a, b)[0]
            case "truncmod":
                return self.division("trunc", a, b)[1]
        raise AssertionError(op)

    def division(
        self, rounding: str, a: z3.ArithRef, b: z3.ArithRef
    ) -> tuple[z3.ArithRef, z3.ArithRef]:
        key = (rounding, a.sexpr(), b.sexpr())
        if key not in self.divisions:
            quotient = z3.Int(f"quotient{next(self.numbers)}")
            rest = a - quotient * b
            size = z3.If(b > 0, b, -b)
            is_positive = b > 0 if rounding == "floor" else a >= 0
            in_range = z3.If(
                is_positive, z3.And(rest >= 0, rest < size), z3.And(-size < rest, rest <= 0)
            )
            self.definitions.append(z3.If(b == 0, quotient == 0, in_range))
            self.divisions[key] = (quotient, z3.If(b == 0, 0, rest))
        return self.divisions[key]


def comparison(op: str, a: z3.ExprRef, b: z3.ExprRef) -> z3.BoolRef:
    """Return a comparison of integers."""
    match op:
        case "eq":
            return a == b
        case "ne":
            return a != b
        case "lt":
            return a < b
        case "le":
            return a <= b
        case "gt":
            return a > b
        case "ge":
            return a >= b
    raise AssertionError(op)
