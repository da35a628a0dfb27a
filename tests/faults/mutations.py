"""Programs that may be wrong: generated kernels with one thing changed."""

from __future__ import annotations

import random
from collections.abc import Iterator

from dlcompiler import dtypes
from dlcompiler.ir import (
    Binary,
    Compare,
    Const,
    For,
    IfThenElse,
    Load,
    PrimFunc,
    Ramp,
    Select,
    Store,
    binary,
    const,
    rewrite,
    walk,
)
from dlcompiler.ir.stmt import seq

OTHER_OPERATION = {
    "add": "sub", "sub": "add", "mul": "add", "div": "mul", "max": "min", "min": "max",
    "floordiv": "floormod", "floormod": "floordiv",
}  # fmt: skip
OTHER_COMPARISON = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "eq": "ne", "ne": "eq"}


def mutant(func: PrimFunc, generator: random.Random) -> tuple[PrimFunc, str] | None:
    """Return a function with one node changed, and what was changed."""
    node = generator.choice([n for n in walk(func.body) if list(_changes(n))])
    name, new = generator.choice(list(_changes(node)))
    body = rewrite(func.body, lambda current: new if current is node else current)
    return func.with_body(body), f"{name} in {type(node).__name__}"


def _changes(node: object) -> Iterator[tuple[str, object]]:
    match node:
        case Const() if dtypes.lanes(node.dtype) == 1 and not dtypes.is_bool(node.dtype):
            yield "a number one more", const(node.value + 1, node.dtype)
            if node.value:
                yield "a number nothing", const(0, node.dtype)
        case Binary(op, a, b):
            if op in OTHER_OPERATION and dtypes.lanes(a.dtype) == 1:
                yield "another operation", binary(OTHER_OPERATION[op], a, b)
            yield "an operand lost", a
        case Compare(op, a, b):
            yield "another comparison", Compare(OTHER_COMPARISON[op], a, b)
        case Select(condition, a, b) | IfThenElse(condition, a, b):
            yield "sides exchanged", type(node)(condition, b, a)
        case For(extent=Const(value)) if value > 1:
            for less in {1, value // 2}:
                shorter = const(value - less, node.extent.dtype)
                yield f"{less} iterations lost", _with(node, extent=shorter)
        case Store():
            yield "a store lost", seq(())
            yield from _elsewhere(node)
        case Load():
            yield from _elsewhere(node)
        case Ramp(base, stride, lanes):
            yield "lanes in place", Ramp(base, const(0, stride.dtype), lanes)


def _elsewhere(node: Load | Store) -> Iterator[tuple[str, object]]:
    for place, index in enumerate(node.indices):
        if dtypes.lanes(index.dtype) == 1:
            moved = binary("add", index, const(1, index.dtype))
            indices = (*node.indices[:place], moved, *node.indices[place + 1 :])
            yield "an index one more", _with(node, indices=indices)


def _with(node: object, **changes: object) -> object:
    fields = {name: getattr(node, name) for name in type(node).__match_args__}
    return type(node)(**{**fields, **changes})
