"""The `Pass` class and functions that several passes use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from dlcompiler.ir import (
    Allocate,
    Assert,
    Barrier,
    Buffer,
    Const,
    Expr,
    ExternCall,
    For,
    If,
    IntrinsicCall,
    Let,
    Load,
    Origin,
    Prefetch,
    PrimFunc,
    Region,
    Seq,
    Stmt,
    Store,
    index_const,
    rewrite,
    seq,
)
from dlcompiler.ir.rewrite import Node
from dlcompiler.target import Target


@dataclass(frozen=True, slots=True)
class Pass:
    """A named step of a pipeline.

    `requires` and `establishes` name properties of the program (such as ``no vectorized loops``):
    a pipeline is well ordered if an earlier pass establishes each required property.
    """

    name: str
    run: Callable[..., PrimFunc]
    """The function of the pass; if `reads_target`, it also takes the keyword ``target``."""
    requires: frozenset[str] = frozenset()
    establishes: frozenset[str] = frozenset()
    reads_target: bool = False
    """Whether it depends on the target, and not only on the kind of device."""
    only_for: Callable[[Target], bool] | None = None
    """Predicate of the targets that the pass is for; None for all targets."""

    def apply(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Run the pass on a function and return the new function."""
        return self.run(func, target=target) if self.reads_target else self.run(func)


def constant_extent(loop: For) -> int | None:
    """Return a loop's extent if it is a number, else None."""
    return int(loop.extent.value) if isinstance(loop.extent, Const) else None


def statements(stmt: Stmt) -> Iterator[Stmt]:
    """Yield a statement and all statements inside it, parents first; skip expressions."""
    stack = [stmt]
    while stack:
        current = stack.pop()
        yield current
        match current:
            case Seq(items):
                stack.extend(reversed(items))
            case For() | Allocate() | Let():
                stack.append(current.body)
            case If(_, then, otherwise):
                stack.extend((then,) if otherwise is None else (otherwise, then))


def push_origin(body: Stmt, origin: Origin) -> Stmt:
    """Add the origin of a deleted loop to the statements of its body."""
    if not origin:
        return body
    match body:
        case Seq(statements):
            return seq(push_origin(statement, origin) for statement in statements)
        case If(condition, then, otherwise):
            rest = None if otherwise is None else push_origin(otherwise, origin)
            return If(condition, push_origin(then, origin), rest)
        case Allocate() | Let():
            return replace(body, body=push_origin(body.body, origin))
        case Store() | For() | ExternCall() | IntrinsicCall():
            return replace(body, origin=merge_origins(body.origin, origin))
        case Prefetch() | Assert() | Barrier():
            return body
    raise AssertionError(body)


NEST_PRAGMAS = ("dma_copy", "alu", "skip_dma_copy", "skip_alu")
"""Pragmas of all loops from theirs on."""


def push_pragmas(body: Stmt, loop: For) -> Stmt:
    """Add the pragmas of a deleted loop that are also about the loops inside to the next one."""
    kept = tuple(note for note in loop.annotations if note[0] in NEST_PRAGMAS)
    match body:
        case For() if kept:
            others = tuple(note for note in body.annotations if note not in kept)
            return replace(body, annotations=(*kept, *others))
        case If(_, then, None) if kept:
            return replace(body, then=push_pragmas(then, loop))
    return body


def in_copies(stmt: Stmt, copies: Mapping[Buffer, Buffer], index: Expr) -> Stmt:
    """Replace buffers by their copies, whose new first dimension has the given index."""
    there = set(copies.values())

    def rule(node: Node) -> Node:
        if isinstance(node, Load | Store | Prefetch) and node.buffer in copies:
            return replace(node, buffer=copies[node.buffer], indices=(index, *node.indices))
        if isinstance(node, Region) and node.buffer in copies:
            extents = (index_const(1), *node.extents)
            return Region(copies[node.buffer], (index, *node.indices), extents, node.mode)
        if isinstance(node, IntrinsicCall):
            dims = tuple(
                tuple(dim + 1 for dim in dims) if region.buffer in there else dims
                for region, dims in node.operands
            )
            return node if dims == node.dims else replace(node, dims=dims)
        return node

    return rewrite(stmt, rule)


def merge_origins(a: Origin, b: Origin) -> Origin:
    """Return the union of two origins, in order and without duplicates."""
    return (*a, *(ref for ref in b if ref not in a))
