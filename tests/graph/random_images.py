"""Random graphs on images: convolutions in several layouts, and what stands around them."""

from __future__ import annotations

import random

import numpy as np

from dlcompiler.graph import constant, op, var
from dlcompiler.graph.inference import type_of
from dlcompiler.graph.ir import Expr, Function, Module, Tuple, free_vars

CHANNELS = (2, 4, 8, 16)


class RandomImages:
    """Values with four dimensions in NCHW; some convolutions are in NHWC."""

    def __init__(self, seed: int, size: int = 10) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.size = size
        shape = (self.random.randint(1, 2), self.random.choice(CHANNELS), 5, 4)
        self.x = var("x", shape)
        self.values: list[Expr] = [self.x]

    def module(self) -> Module:
        """Return a module whose result has some of the values."""
        steps = [self.convolution] * 4 + [
            self.pool, self.bias, self.scaled, self.both, self.joined, self.part, self.outside,
            self.unary,
        ]  # fmt: skip
        for _ in range(self.size):
            self.values.append(self.random.choice(steps)())
        chosen = self.random.sample(self.values[1:], self.random.randint(1, 2))
        result = chosen[0] if len(chosen) == 1 else Tuple((*chosen, self.values[-1]))
        return Module.from_expr(Function(tuple(free_vars(result)), result))

    def pick(self) -> Expr:
        """Return a value, later ones more often."""
        count = len(self.values)
        return self.values[max(self.random.randrange(count), self.random.randrange(count))]

    def array(self, *shape: int):
        return constant(self.numbers.integers(-1, 2, shape).astype("float32"))

    def convolution(self) -> Expr:
        # Values stay small whole numbers, so that sums are exact in each order.
        x = op.clip(self.pick(), a_min=-3.0, a_max=3.0)
        (_, c, _, _), out = type_of(x).shape, self.random.choice(CHANNELS)
        if self.random.random() < 0.3:
            x = self.scaled(x)
        kernel = self.random.choice((1, 3))
        if self.random.random() < 0.2:
            groups = c if self.random.random() < 0.5 else 2
            weight = self.array(c, c // groups, kernel, kernel)
            return op.nn.conv2d(x, weight, padding=kernel // 2, groups=groups)
        weight = self.array(out, c, kernel, kernel)
        if self.random.random() < 0.2:
            x, weight = op.transpose(x, axes=(0, 2, 3, 1)), op.transpose(weight, axes=(2, 3, 1, 0))
            made = op.nn.conv2d(x, weight, padding=kernel // 2, data_layout="NHWC",
                                kernel_layout="HWIO")  # fmt: skip
            return op.transpose(op.nn.relu(made), axes=(0, 3, 1, 2))
        return op.nn.conv2d(x, weight, padding=kernel // 2)

    def pool(self) -> Expr:
        return op.nn.max_pool2d(self.pick(), pool_size=3, padding=1)

    def unary(self) -> Expr:
        return op.nn.relu(self.pick())

    def scaled(self, x: Expr | None = None) -> Expr:
        """Return a value times a power of 2 for each channel."""
        x = self.pick() if x is None else x
        c = type_of(x).shape[1]
        factors = 2.0 ** self.numbers.integers(-1, 2, (c, 1, 1))
        return op.multiply(x, constant(factors.astype("float32")))

    def bias(self) -> Expr:
        x = self.pick()
        (_, c, _, w) = type_of(x).shape
        shape = self.random.choice(((c, 1, 1), (1, c, 1, 1), (w,), (), (1, 1, 1, w)))
        return op.add(*self.random.sample([x, self.array(*shape)], 2))

    def both(self) -> Expr:
        x = self.pick()
        shape = type_of(x).shape
        like = [v for v in self.values if type_of(v).shape == shape]
        return op.maximum(x, self.random.choice(like))

    def joined(self) -> Expr:
        x, y = self.pick(), self.pick()
        if type_of(x).shape[1] + type_of(y).shape[1] > 32:
            return op.nn.relu(x)
        return op.concatenate([x, y], axis=self.random.choice((1, -3)))

    def part(self) -> Expr:
        parts = op.split(self.pick(), 2, axis=self.random.choice((1, 3)))
        return op.concatenate([parts[1], parts[0]], axis=1 if parts.attrs["axis"] == 1 else 3)

    def outside(self) -> Expr:
        """Return what an operator without a layout rule makes."""
        x = self.pick()
        return op.reshape(op.reshape(x, newshape=[-1]), newshape=type_of(x).shape)


def image_inputs(module: Module, seed: int) -> list[np.ndarray]:
    """Return images of small whole numbers."""
    numbers = np.random.default_rng(seed)
    return [numbers.integers(-2, 3, p.type.shape).astype("float32") for p in module.main.params]
