"""Proofs with z3: expressions as integers (indices), as bit vectors or as floats (data)."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import z3

from dlcompiler.ir import (
    Binary,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Logical,
    Not,
    Select,
    Var,
)

TIMEOUT_MS = 10_000


class Terms:
    """Terms of z3 for expressions over one kind of numbers."""

    def __init__(self) -> None:
        self.definitions: list[z3.BoolRef] = []

    def prove(self, claim: z3.BoolRef, when: Sequence[z3.BoolRef] = ()) -> str:
        """Return "proved", or what the solver says instead."""
        solver = z3.Solver()
        solver.set("timeout", TIMEOUT_MS)
        solver.add(*self.definitions, *when, z3.Not(claim))
        result = solver.check()
        if result == z3.sat:
            return f"not so for {solver.model()}"
        return "proved" if result == z3.unsat else f"unknown: {solver.reason_unknown()}"

    def term(self, expr: Expr) -> z3.ExprRef:
        match expr:
            case Const(value, "bool"):
                return z3.BoolVal(bool(value))
            case Const(value, _):
                return self.number(value)
            case Var(name, "bool"):
                return z3.Bool(name)
            case Var(name, _):
                return self.variable(name)
            case Binary(op, a, b):
                return self.operation(op, self.term(a), self.term(b))
            case Compare(op, a, b):
                return self.comparison(op, self.term(a), self.term(b))
            case Logical(op, a, b):
                return (z3.And if op == "and" else z3.Or)(self.term(a), self.term(b))
            case Not(value):
                return z3.Not(self.term(value))
            case Select(condition, a, b) | IfThenElse(condition, a, b):
                return z3.If(self.term(condition), self.term(a), self.term(b))
        raise AssertionError(expr)

    def comparison(self, op: str, a: z3.ExprRef, b: z3.ExprRef) -> z3.BoolRef:
        return {
            "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
            "gt": operator.gt, "ge": operator.ge,
        }[op](a, b)  # fmt: skip


class Integers(Terms):
    """Indices; each division is a new variable, the quotient, with its definition."""

    def __init__(self) -> None:
        super().__init__()
        self.quotients: dict[object, z3.ArithRef] = {}

    def number(self, value: int) -> z3.ArithRef:
        return z3.IntVal(int(value))

    def variable(self, name: str) -> z3.ArithRef:
        return z3.Int(name)

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
        if key not in self.quotients:
            self.quotients[key] = z3.Int(f"quotient{len(self.quotients)}")
        quotient = self.quotients[key]
        rest = a - quotient * b
        size = z3.If(b > 0, b, -b)
        is_positive = b > 0 if rounding == "floor" else a >= 0
        in_range = z3.If(
            is_positive, z3.And(rest >= 0, rest < size), z3.And(-size < rest, rest <= 0)
        )
        self.definitions.append(z3.If(b == 0, quotient == 0, in_range))
        return quotient, z3.If(b == 0, 0, rest)


class Bits(Terms):
    """Data integers of so many bits."""

    def __init__(self, bits: int, signed: bool) -> None:
        super().__init__()
        self.bits, self.signed = bits, signed

    def number(self, value: int) -> z3.BitVecRef:
        return z3.BitVecVal(int(value), self.bits)

    def variable(self, name: str) -> z3.BitVecRef:
        low = -(1 << self.bits - 1) if self.signed else 0
        ends = {"LOWEST": low, "HIGHEST": low + (1 << self.bits) - 1, "ALL_BITS": -1}
        return self.number(ends[name]) if name in ends else z3.BitVec(name, self.bits)

    def comparison(self, op: str, a: z3.ExprRef, b: z3.ExprRef) -> z3.BoolRef:
        unsigned = {"lt": z3.ULT, "le": z3.ULE, "gt": z3.UGT, "ge": z3.UGE}
        if self.signed or op not in unsigned or not isinstance(a, z3.BitVecRef):
            return super().comparison(op, a, b)
        return unsigned[op](a, b)

    def operation(self, op: str, a: z3.BitVecRef, b: z3.BitVecRef) -> z3.BitVecRef:
        match op:
            case "add":
                return a + b
            case "sub":
                return a - b
            case "mul":
                return a * b
            case "min":
                return z3.If(self.comparison("lt", a, b), a, b)
            case "max":
                return z3.If(self.comparison("gt", a, b), a, b)
            case "bitand":
                return a & b
            case "bitor":
                return a | b
            case "bitxor":
                return a ^ b
            case "shl":
                return a << b
            case "shr":
                return a >> b if self.signed else z3.LShR(a, b)
        return self.division(op, a, b)

    def division(self, op: str, a: z3.BitVecRef, b: z3.BitVecRef) -> z3.BitVecRef:
        zero = self.number(0)
        quotient = a / b if self.signed else z3.UDiv(a, b)
        rest = z3.SRem(a, b) if self.signed else z3.URem(a, b)
        if op.startswith("floor") and self.signed:
            is_below = z3.And(rest != 0, (rest < 0) != (b < 0))
            quotient = z3.If(is_below, quotient - 1, quotient)
            rest = z3.If(is_below, rest + b, rest)
        return z3.If(b == zero, zero, quotient if op.endswith("div") else rest)


class Floats(Terms):
    """Floats of a sort of z3; all NaN are equal."""

    def __init__(self, sort: z3.FPSortRef) -> None:
        super().__init__()
        self.sort = sort

    def number(self, value: float) -> z3.FPRef:
        return z3.fpMinusZero(self.sort) if str(value) == "-0.0" else z3.FPVal(value, self.sort)

    def variable(self, name: str) -> z3.FPRef:
        return z3.FP(name, self.sort)

    def comparison(self, op: str, a: z3.ExprRef, b: z3.ExprRef) -> z3.BoolRef:
        if op in ("eq", "ne"):
            return z3.fpEQ(a, b) if op == "eq" else z3.Not(z3.fpEQ(a, b))
        return super().comparison(op, a, b)

    def operation(self, op: str, a: z3.FPRef, b: z3.FPRef) -> z3.FPRef:
        match op:
            case "add":
                return z3.fpAdd(z3.RNE(), a, b)
            case "sub":
                return z3.fpSub(z3.RNE(), a, b)
            case "mul":
                return z3.fpMul(z3.RNE(), a, b)
            case "div":
                return z3.fpDiv(z3.RNE(), a, b)
            case "min":
                return z3.If(z3.Or(z3.fpLT(a, b), z3.fpIsNaN(a)), a, b)
            case "max":
                return z3.If(z3.Or(z3.fpGT(a, b), z3.fpIsNaN(a)), a, b)
        raise AssertionError(op)
