"""Compute an elementwise result in the place of its operand, if that is not needed any more.

*Before*::

    def main(A: int32[4, 16], C: int32[4, 16]):
        allocate S: int32[4, 16] in vta-pynq.acc
        allocate T: int32[4, 16] in vta-pynq.acc
        for i in range(4):
            for j in range(16):
                S[i, j] = A[i, j]
        for i in range(4):
            for j in range(16):
                T[i, j] = S[i, j] >> 8
        for i in range(4):
            for j in range(16):
                C[i, j] = T[i, j]

*After*::

    def main(A: int32[4, 16], C: int32[4, 16]):
        allocate S: int32[4, 16] in vta-pynq.acc
        for i in range(4):
            for j in range(16):
                S[i, j] = A[i, j]
        for i in range(4):
            for j in range(16):
                S[i, j] = S[i, j] >> 8
        for i in range(4):
            for j in range(16):
                C[i, j] = S[i, j]

The elementwise instructions of an accelerator write their result over their first operand. Without
this pass each would need a copy before it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dlcompiler.arith import Affine, Analyzer
from dlcompiler.ir import (
    Allocate,
    Binary,
    Buffer,
    Const,
    Expr,
    For,
    IntrinsicCall,
    Load,
    PrimFunc,
    Region,
    Stmt,
    Store,
    rewrite,
    structural_equal,
    walk,
)
from dlcompiler.ir.operations import REORDERED
from dlcompiler.ir.rewrite import Node, children
from dlcompiler.passes.base import constant_extent
from dlcompiler.target import Target


def compute_in_place(func: PrimFunc, *, target: Target) -> PrimFunc:
    """Let results of elementwise stages take the places of their operands.

    Parameters
    ----------
    func
        A function whose buffers are not shared yet.
    target
        Says in which memories elementwise instructions write.
    """
    accelerator = target.accelerator
    if accelerator is None:
        return func
    scopes = {
        accelerator.scope_of(next(iter(each.operands.values())))
        for each in accelerator.instructions
        if each.kind == "elementwise"
    }
    while (pair := _first_pair(func, scopes)) is not None:
        func = func.with_body(_replaced(func.body, *pair))
    return func


@dataclass(frozen=True, slots=True)
class _Access:
    """A statement that accesses memory."""

    number: int
    leaf: Stmt
    loops: tuple[For, ...]


def _first_pair(func: PrimFunc, scopes: set[str]) -> tuple[Buffer, Buffer] | None:
    """Return two buffers that can be one: a result and its operand, the inner one first.

    Both are allocated where the result is stored. The allocation of the outer one therefore holds
    that of the other, and all uses of both.
    """
    homes: dict[Buffer, tuple[For, ...]] = {}
    order: dict[Buffer, int] = {}
    uses: defaultdict[Buffer, list[_Access]] = defaultdict(list)
    stores: list[_Access] = []
    for number, (leaf, loops) in enumerate(_leaves(func.body, ())):
        access = _Access(number, leaf, loops)
        if isinstance(leaf, Allocate):
            homes[leaf.buffer], order[leaf.buffer] = loops, number
            continue
        for buffer in dict.fromkeys(_buffers(leaf)):
            uses[buffer].append(access)
        if isinstance(leaf, Store) and leaf.buffer.scope in scopes:
            stores.append(access)
    for access in stores:
        assert isinstance(access.leaf, Store)
        result = access.leaf.buffer
        for operand in _first_operands(access.leaf.value):
            source = operand.buffer
            if (
                _are_alike(access.leaf, operand)
                and _reads_once(access.leaf, source)
                and source in homes
                and homes[source] == homes.get(result)
                and _is_last(access, uses[source], len(homes[source]))
                and uses[result][0] is access
                and _has_own_elements(access, len(homes[source]))
            ):
                outer, inner = sorted((result, source), key=order.__getitem__)
                return inner, outer
    return None


def _are_alike(leaf: Store, operand: Load) -> bool:
    """Tell whether a result and an operand have the same form, and are accessed at one place."""
    result, source = leaf.buffer, operand.buffer
    like = (source.scope, source.shape, source.strides, source.dtype)
    return (
        source is not result
        and like == (result.scope, result.shape, result.strides, result.dtype)
        and all(structural_equal(a, b) for a, b in zip(leaf.indices, operand.indices, strict=True))
    )


def _is_last(access: _Access, uses: list[_Access], depth: int) -> bool:
    """Tell whether all other uses are over before an access begins.

    They are if they come before it, and no loop inside the allocation, which has `depth` loops
    around it, runs both again and again.
    """
    return all(
        other is access
        or (other.number < access.number and other.loops[: depth + 1] != access.loops[: depth + 1])
        or (other.number < access.number and len(access.loops) == depth)
        for other in uses
    )


def _has_own_elements(access: _Access, depth: int) -> bool:
    """Tell whether each iteration of the loops inside the allocation has an element of its own."""
    assert isinstance(access.leaf, Store)
    loops = [(loop.var, constant_extent(loop)) for loop in access.loops[depth:]]
    analyzer, total = Analyzer({}), Affine.of_constant(0)
    for index, stride in zip(access.leaf.indices, access.leaf.buffer.static_strides, strict=True):
        total = total.plus(analyzer.affine(index), stride)
    factors = {term.atom: abs(term.factor) for term in total.terms.values()}
    reach = 0  # the largest distance of two elements that the loops so far reach
    for var, extent in sorted(loops, key=lambda loop: factors.get(loop[0], 0)):
        if extent is None or (extent > 1 and factors.get(var, 0) <= reach):
            return False
        reach += factors.get(var, 0) * (extent - 1)
    return True


def _first_operands(value: Expr) -> Iterator[Load]:
    """Yield the elements with which a chain of operations can begin.

    All others are still needed when the first operation has written its result.
    """
    while isinstance(value, Binary):
        a, b = value.a, value.b
        if value.op in REORDERED and isinstance(a, Load | Const):
            if isinstance(a, Load) and isinstance(b, Load):
                yield a
            if not isinstance(b, Const):
                a = b
        value = a
    if isinstance(value, Load):
        yield value


def _reads_once(leaf: Store, buffer: Buffer) -> bool:
    """Tell whether a store reads one element of a buffer, only once."""
    counts: dict[int, int] = {}

    def count(node: Node) -> int:
        # One node can be in a value twice, where `walk` would meet it once.
        if id(node) not in counts:
            own = isinstance(node, Load) and node.buffer is buffer
            counts[id(node)] = own + sum(map(count, children(node)))
        return counts[id(node)]

    return count(leaf) == 1


def _leaves(stmt: Stmt, loops: tuple[For, ...]) -> Iterator[tuple[Stmt, tuple[For, ...]]]:
    """Yield allocations and the statements that access memory, in order, with their loops."""
    if isinstance(stmt, Allocate | Store | IntrinsicCall):
        yield stmt, loops
    if isinstance(stmt, For):
        loops = (*loops, stmt)
    for part in children(stmt):
        if isinstance(part, Stmt) and not isinstance(stmt, IntrinsicCall):
            yield from _leaves(part, loops)


def _buffers(leaf: Stmt) -> Iterator[Buffer]:
    """Yield the buffers that a statement accesses."""
    for node in walk(leaf):
        if isinstance(node, Load | Store | Region):
            yield node.buffer


def _replaced(body: Stmt, old: Buffer, new: Buffer) -> Stmt:
    """Return statements with one buffer in the place of another, which is not allocated."""

    def rule(node: Node) -> Node:
        match node:
            case Allocate() if node.buffer is old:
                return node.body
            case Load() | Store() | Region() if node.buffer is old:
                return replace(node, buffer=new)
        return node

    return rewrite(body, rule)
