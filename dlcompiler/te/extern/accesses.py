"""Accesses in a user's statements that are certainly outside their buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dlcompiler.ir import (
    Allocate,
    Const,
    Expr,
    Extent,
    For,
    If,
    IfThenElse,
    Let,
    Load,
    Logical,
    Region,
    Seq,
    Stmt,
    Store,
    Var,
    format_expr,
    numeric,
)
from dlcompiler.ir.rewrite import children

Counts = Mapping[Var, int]


def outside(body: Stmt) -> Iterator[str]:
    """Yield a description of each access that is certainly outside its buffer.

    Only accesses that always happen and whose indices are linear in loop variables are examined:
    such an index reaches its smallest and its largest value. Other accesses are checked when the
    program runs (`with_checks`).

    Parameters
    ----------
    body
        Statements on buffers.
    """
    yield from _below(body, {})


def _below(stmt: Stmt, counts: Counts) -> Iterator[str]:
    match stmt:
        case For(var, Const(count), _, body) if count > 0:
            yield from _below(body, {**counts, var: int(count)})
        case For() | If():
            return  # the body may not run
        case Seq(statements):
            for statement in statements:
                yield from _below(statement, counts)
        case Allocate(_, body) | Let(_, _, body):
            yield from _below(body, counts)
        case Store(buffer, indices):
            yield from _wrong(buffer.name, buffer.shape, indices, counts)
    for child in children(stmt):
        if isinstance(child, Expr):
            yield from _in_expr(child, counts)


def _in_expr(expr: Expr, counts: Counts) -> Iterator[str]:
    stack: list[Expr] = [expr]
    while stack:
        node = stack.pop()
        match node:
            case IfThenElse(always, _, _) | Logical(_, always, _):
                stack.append(always)
                continue
            case Load(buffer, indices):
                yield from _wrong(buffer.name, buffer.shape, indices, counts)
            case Region(buffer, indices, extents):
                if any(isinstance(n, Const) and n.value <= 0 for n in extents):
                    continue  # the region has no elements
                pairs = zip(indices, extents, strict=True)
                last = tuple(start + extent - 1 for start, extent in pairs)
                yield from _wrong(buffer.name, buffer.shape, indices, counts)
                yield from _wrong(buffer.name, buffer.shape, last, counts)
        stack.extend(child for child in children(node) if isinstance(child, Expr))


def _wrong(
    name: str, shape: tuple[Extent, ...], indices: tuple[Expr, ...], counts: Counts
) -> Iterator[str]:
    for place, (index, extent) in enumerate(zip(indices, shape, strict=True)):
        form = numeric.linear_form(index)
        if form is None or not isinstance(extent, int) or not counts.keys() >= form[0].keys():
            continue
        reach = [factor * (counts[var] - 1) for var, factor in form[0].items()]
        low = form[1] + sum(min(part, 0) for part in reach)
        high = form[1] + sum(max(part, 0) for part in reach)
        if low < 0 or high >= extent:
            text = ", ".join(map(format_expr, indices))
            found = high if high >= extent else low
            yield f"{name}[{text}], {found} in dimension {place} of extent {extent}"
