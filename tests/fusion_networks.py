"""Networks for tests of fusion: the names and the edges of large ones, with small weights."""

from __future__ import annotations

from dlcompiler import graph
from dlcompiler.graph import builders, op
from dlcompiler.graph.ir import Expr, Module

UNITS = (3, 4, 6, 3)


def residual() -> Module:
    """Return a network with the units of ResNet-50, and with tiny convolutions."""
    x = graph.var("data", (1, 4, 8, 8))
    value: Expr = op.nn.relu(_conv(x, "conv0"), name="relu0")
    for stage, units in enumerate(UNITS, 1):
        for unit in range(1, units + 1):
            value = _unit(value, f"stage{stage}_unit{unit}", is_first=unit == 1)
    return builders.model_of(value, (x,), seed=0).bound


def _unit(x: Expr, name: str, *, is_first: bool) -> Expr:
    inner = x
    for n in (1, 2):
        inner = op.nn.relu(_conv(inner, f"{name}_{n}_conv"), name=f"{name}_relu{n}")
    short = _conv(x, f"{name}_sc_conv") if is_first else x
    total = op.add(_conv(inner, f"{name}_3_conv"), short, name=f"{name}_add")
    return op.nn.relu(total, name=f"{name}_relu")


def _conv(x: Expr, name: str) -> Expr:
    return op.nn.conv2d(x, graph.Var(f"{name}_weight"), channels=4, kernel_size=1, name=name)


def chain(count: int) -> Module:
    """Return a chain of calls without names, of which each second one is a reduction."""
    value: Expr = graph.var("x", (4,))
    for n in range(count):
        value = op.exp(value) if n % 2 else op.sum(value, axis=0, keepdims=True)
    return Module.from_expr(value)
