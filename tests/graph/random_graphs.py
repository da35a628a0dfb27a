"""Random graphs over the operator table; shapes are valid by construction."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dlcompiler import dtypes
from dlcompiler.graph import op
from dlcompiler.graph.inference import type_of
from dlcompiler.graph.ir import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    Let,
    Module,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
)

UNARY = ("nn.relu", "negative", "abs", "tanh", "sigmoid", "sqrt", "square", "copy", "floor")
BINARY = ("add", "subtract", "multiply", "maximum", "minimum")
REDUCTIONS = ("sum", "max", "min")
COMPARISONS = ("less", "equal", "greater_equal")
EXTENTS = (1, 2, 3, 4, 6)


@dataclass
class RandomGraph:
    """Values of a growing graph, with their types."""

    seed: int
    size: int = 12
    has_scopes: bool = True
    """Whether it may have lets, branches and functions."""
    random: random.Random = field(init=False)
    params: list[Var] = field(default_factory=list)
    values: list[tuple[Expr, TensorType]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        for number in range(self.random.randint(1, 3)):
            kind = TensorType(self.shape(), "float32")
            self.params.append(Var(f"x{number}", kind))
            self.values.append((self.params[-1], kind))

    def shape(self) -> tuple[int, ...]:
        """Return a shape of up to three dimensions."""
        return tuple(self.random.choice(EXTENTS) for _ in range(self.random.randint(0, 3)))

    def module(self) -> Module:
        """Return a module whose result has some of the values."""
        for _ in range(self.size):
            self.step()
        count = min(len(self.values), self.random.randint(1, 3))
        chosen = [value for value, _ in self.random.sample(self.values[1:] or self.values, count)]
        result = chosen[0] if len(chosen) == 1 else Tuple(tuple(chosen))
        return Module.from_expr(Function(tuple(self.params), result))

    def step(self) -> None:
        """Add a value."""
        steps: list[Callable[[], Expr]] = [
            self.unary, self.unary, self.binary, self.binary, self.chosen, self.reshaped,
            self.transposed, self.joined, self.part, self.constant, self.converted,
            self.reduced, self.centred,
        ]  # fmt: skip
        if self.has_scopes:
            steps += [self.let, self.branch, self.function]
        self.add(self.random.choice(steps)())

    def add(self, value: Expr) -> None:
        """Keep a value, or the fields of a tuple."""
        kind = type_of(value)
        if isinstance(kind, TupleType):
            for i in range(len(kind.fields)):
                self.add(TupleGetItem(value, i))
        elif isinstance(kind, TensorType):
            self.values.append((value, kind))

    def pick(self, rank: int | None = None) -> tuple[Expr, TensorType]:
        """Return a value of float32, later ones more often."""
        of = [(v, k) for v, k in self.values if k.dtype == "float32" and rank in (None, k.rank)]
        return of[max(self.random.randrange(len(of)), self.random.randrange(len(of)))]

    # -- steps ------------------------------------------------------------------------------------

    def unary(self) -> Expr:
        return _operator(self.random.choice(UNARY))(self.pick()[0])

    def binary(self) -> Expr:
        x, kind = self.pick()
        return _operator(self.random.choice(BINARY))(*self.shuffled(x, self.beside(kind)))

    def beside(self, kind: TensorType) -> Expr:
        """Return a value that can be broadcast with one of a type."""
        fitting = [v for v, k in self.values if k.dtype == kind.dtype and k.shape == kind.shape]
        if fitting and self.random.random() < 0.6:
            return self.random.choice(fitting)
        shape = tuple(self.random.choice((1, e)) for e in kind.shape)
        return self.array(shape[self.random.randint(0, len(shape)) :], kind.dtype)

    def array(self, shape: tuple[int, ...], dtype: str) -> Constant:
        values = np.random.default_rng(self.random.randrange(2**32)).integers(-3, 4, shape)
        return Constant(values.astype(dtypes.to_numpy(dtype)))

    def shuffled(self, *items: Expr) -> list[Expr]:
        return self.random.sample(items, len(items))

    def chosen(self) -> Expr:
        x, kind = self.pick()
        other = self.beside(kind)
        condition = _operator(self.random.choice(COMPARISONS))(x, other)
        return op.where(condition, x, other)

    def reshaped(self) -> Expr:
        x, kind = self.pick()
        if not kind.rank:
            return op.expand_dims(x, axis=0)
        shape = list(kind.shape)
        if len(shape) > 1 and self.random.random() < 0.5:
            return op.reshape(x, newshape=[-1, shape[-1]])
        return op.reshape(x, newshape=[*shape[:-1], 1, shape[-1]])

    def reduced(self) -> Expr:
        x, kind = self.pick()
        axes = self.random.sample(range(kind.rank), self.random.randint(0, kind.rank))
        chosen = self.random.choice((None, axes, [-1] if kind.rank else None))
        return _operator(self.random.choice(REDUCTIONS))(
            x, axis=chosen, keepdims=self.random.random() < 0.7
        )

    def centred(self) -> Expr:
        """Return a value minus the maximum of each row, as a softmax begins."""
        x, kind = self.pick()
        axis = self.random.choice(([-1], [0], None)) if kind.rank else None
        return op.subtract(x, op.max(x, axis=axis, keepdims=True))

    def transposed(self) -> Expr:
        x, kind = self.pick()
        return op.transpose(x, axes=self.random.sample(range(kind.rank), kind.rank))

    def joined(self) -> Expr:
        x, kind = self.pick()
        if not kind.rank:
            return op.stack([x, x], axis=0)
        axis = self.random.randrange(kind.rank)
        return op.concatenate(self.shuffled(x, self.array(kind.shape, kind.dtype)), axis=axis)

    def part(self) -> Expr:
        x, kind = self.pick()
        long = [n for n, e in enumerate(kind.shape) if e > 1]
        if not long:
            return op.copy(x)
        axis = self.random.choice(long)
        return op.split(x, indices_or_sections=[1], axis=axis)

    def constant(self) -> Expr:
        return self.array(self.shape(), "float32")

    def converted(self) -> Expr:
        x, _ = self.pick()
        return op.cast(op.cast(x, dtype=self.random.choice(("int32", "int8"))), dtype="float32")

    def let(self) -> Expr:
        x, kind = self.pick()
        var = Var("v", kind if self.random.random() < 0.5 else None)
        return Let(var, op.nn.relu(x), op.add(var, self.pick_or(var, kind)))

    def pick_or(self, var: Var, kind: TensorType) -> Expr:
        return self.random.choice((var, self.beside(kind)))

    def branch(self) -> Expr:
        x, _ = self.pick()
        condition = op.less(self.array((), "float32"), self.array((), "float32"))
        return If(condition, op.exp(op.negative(op.abs(x))), x)

    def function(self) -> Expr:
        x, kind = self.pick()
        var = Var("p", kind)
        return Call(Function((var,), op.multiply(var, self.pick_or(var, kind))), (x,))


def _operator(name: str) -> Callable[..., Expr]:
    found: object = op
    for part in name.split("."):
        found = getattr(found, part)
    return found  # type: ignore[return-value]  # a function of the table


def flat(value):
    """Return the arrays in a value, from left to right."""
    return [leaf for part in value for leaf in flat(part)] if isinstance(value, tuple) else [value]


def inputs_of(module: Module, seed: int) -> list[np.ndarray]:
    """Return arrays of small whole numbers for the parameters of ``main``."""
    random_ = np.random.default_rng(seed)
    return [
        random_.integers(-4, 5, param.type.shape).astype(dtypes.to_numpy(param.type.dtype))
        for param in module.main.params
    ]
