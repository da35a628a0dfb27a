"""Random lowered schedules with random mistakes, which cause realistic races."""

from __future__ import annotations

import random
from dataclasses import replace

from dlcompiler.ir import (
    Const,
    For,
    If,
    Load,
    PrimFunc,
    Store,
    index_const,
    rewrite,
    substitute,
    walk,
)
from dlcompiler.lowering import build_nests
from dlcompiler.passes import simplify
from tests.fuzz.checks import case_of


def lowered(rng: random.Random, seed: str) -> PrimFunc:
    """Return the program of a random schedule, with or without simplification."""
    case = case_of(seed)
    func = build_nests(case.schedule().state, case.expression.args, "main")
    return simplify(func) if rng.random() < 0.5 else func


def mutant(rng: random.Random, func: PrimFunc) -> PrimFunc:
    """Return a program with a few mistakes in it."""
    for _ in range(rng.randint(1, 3)):
        func = rng.choice((made_concurrent, made_concurrent, longer, unguarded, dropped))(rng, func)
    return func


def _replaced(func: PrimFunc, old, new) -> PrimFunc:
    return func.with_body(rewrite(func.body, lambda node: new if node is old else node))


def _chosen(rng: random.Random, func: PrimFunc, kind: type):
    found = [node for node in walk(func.body) if isinstance(node, kind)]
    return rng.choice(found) if found else None


def made_concurrent(rng: random.Random, func: PrimFunc) -> PrimFunc:
    """A loop is parallel or vectorized that was not."""
    loop = _chosen(rng, func, For)
    kind = rng.choice(("parallel", "vectorized"))
    return _replaced(func, loop, replace(loop, kind=kind)) if loop else func


def longer(rng: random.Random, func: PrimFunc) -> PrimFunc:
    """An extent is off by one."""
    loop = _chosen(rng, func, For)
    if loop is None or not isinstance(loop.extent, Const):
        return func
    extent = max(loop.extent.value + rng.choice((-1, 1)), 1)
    return _replaced(func, loop, replace(loop, extent=index_const(extent)))


def unguarded(rng: random.Random, func: PrimFunc) -> PrimFunc:
    """A guard is lost."""
    guard = _chosen(rng, func, If)
    return _replaced(func, guard, guard.then) if guard else func


def dropped(rng: random.Random, func: PrimFunc) -> PrimFunc:
    """A loop no longer decides where a statement stores."""
    store, loop = _chosen(rng, func, Store), _chosen(rng, func, For)
    if loop is None:
        return func
    values = {loop.var: index_const(0)}
    indices = tuple(substitute(index, values) for index in store.indices)

    def rule(node):
        own = isinstance(node, Load) and node.buffer is store.buffer
        return Load(node.buffer, indices) if own and node.indices == store.indices else node

    value = rewrite(store.value, rule)
    return _replaced(func, store, replace(store, indices=indices, value=value))
