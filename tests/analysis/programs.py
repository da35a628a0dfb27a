"""Random small programs: nests of loops of any kind, quasi-affine indices and conditions."""

from __future__ import annotations

import random

from dlcompiler.ir import (
    Allocate,
    Binary,
    Buffer,
    Compare,
    Expr,
    For,
    If,
    IfThenElse,
    Load,
    Logical,
    Not,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    Var,
    const,
    index_const,
)

KINDS = ("serial", "serial", "parallel", "vectorized", "unrolled")
SHAPES = ((400,), (40, 40))
MAX_POINTS = 2000


class Programs:
    """Makes programs from a source of random numbers."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.count = 0

    def func(self) -> PrimFunc:
        params = tuple(self.buffer(name) for name in "AB")
        body = self.block([], list(params), self.rng.randint(1, 4), 1)
        return PrimFunc("main", params, params, body)

    def buffer(self, name: str) -> Buffer:
        return Buffer(name, self.rng.choice(SHAPES), "float32")

    def block(self, loops: list[For], buffers: list[Buffer], depth: int, points: int) -> Stmt:
        count = self.rng.choice((1, 1, 2))
        body = [self.stmt(loops, buffers, depth, points) for _ in range(count)]
        return body[0] if count == 1 else Seq(tuple(body))

    def stmt(self, loops: list[Var], buffers: list[Buffer], depth: int, points: int) -> Stmt:
        choice = self.rng.random()
        if depth == 0 or points > MAX_POINTS or (loops and choice < 0.1):
            return self.store(loops, buffers)
        self.count += 1
        if loops and choice < 0.25:
            rest = self.block(loops, buffers, 0, points) if self.rng.random() < 0.3 else None
            return If(self.condition(loops), self.block(loops, buffers, depth, points), rest)
        if choice < 0.35:
            own = self.buffer(f"T{self.count}")
            return Allocate(own, self.block(loops, [*buffers, own, own], depth, points))
        var, extent = Var(f"i{self.count}"), self.rng.choice((1, 2, 3, 4, 5, 6, 8))
        size: Expr = index_const(extent)
        if loops and self.rng.random() < 0.1:
            size = Binary("min", self.index(loops), size)
        body = self.block([*loops, var], buffers, depth - 1, points * extent)
        return For(var, size, self.rng.choice(KINDS), body)

    def store(self, loops: list[Var], buffers: list[Buffer]) -> Store:
        buffer = self.rng.choice(buffers)
        target = self.indices(loops, buffer)
        value = self.value(loops, buffers)
        if self.rng.random() < 0.4:
            value = Binary("add", Load(buffer, target), value)
        return Store(buffer, target, value)

    def value(self, loops: list[Var], buffers: list[Buffer]) -> Expr:
        if self.rng.random() < 0.4:
            return const(1.0, "float32")
        buffer = self.rng.choice(buffers)
        load = Load(buffer, self.indices(loops, buffer))
        if self.rng.random() < 0.3:
            return IfThenElse(self.condition(loops), load, const(0.0, "float32"))
        return load

    def indices(self, loops: list[Var], buffer: Buffer) -> tuple[Expr, ...]:
        if len(buffer.shape) == 1 and self.rng.random() < 0.3:
            return (self.radix(loops),)
        return tuple(self.index(loops) for _ in buffer.shape)

    def radix(self, loops: list[Var]) -> Expr:
        """Return a sum of many variables, as a flattened index has."""
        result: Expr = index_const(self.rng.choice((0, 0, 1)))
        step = 1
        for var in self.rng.sample(loops, len(loops)):
            result = result + var * step
            step *= self.rng.choice((2, 3, 4, 6, 8))
        return result

    def index(self, loops: list[Var]) -> Expr:
        if not loops or self.rng.random() < 0.08:
            return index_const(self.rng.randint(0, 3))
        a = self.rng.choice(loops)
        b = self.rng.choice(loops)
        c = self.rng.choice((2, 3, 4, 5))
        forms = (
            lambda: a, lambda: a, lambda: a, lambda: a, lambda: a + b, lambda: a * c + b,
            lambda: a - b + c, lambda: a // c, lambda: a % c, lambda: (a * c + b) // 3,
            lambda: (a * c + b) % 4, lambda: a + c, lambda: a * c, lambda: c - a,
            lambda: Binary("min", a, index_const(c)), lambda: Binary("max", a, b),
            lambda: self.index(loops) * c + self.index(loops),
            lambda: self.index(loops) // 2,
        )  # fmt: skip
        result = self.rng.choice(forms)()
        return result

    def condition(self, loops: list[Var]) -> Expr:
        op = self.rng.choice(("lt", "le", "gt", "ge", "eq", "ne", "lt", "lt"))
        test: Expr = Compare(op, self.index(loops), self.index(loops))
        if self.rng.random() < 0.5:
            bound = index_const(self.rng.randint(0, 12))
            test = Compare("lt", self.index(loops), bound)
        if self.rng.random() < 0.2:
            test = Logical(self.rng.choice(("and", "or")), test, self.condition(loops))
        return Not(test) if self.rng.random() < 0.1 else test
