"""Compute common subexpressions of consecutive assignments once.

*Before*::

    def main(A: float32[64], B: float32[64], C: float32[64], D: float32[64]):
        for i in range(64):
            C[i] = exp(A[i // 8 % 4])*2.0
            D[i] = exp(A[i // 8 % 4]) + B[i // 8 % 4]

*After*::

    def main(A: float32[64], B: float32[64], C: float32[64], D: float32[64]):
        for i in range(64):
            t1 = i // 8 % 4
            t2 = exp(A[t1])
            C[i] = t2*2.0
            D[i] = t2 + B[t1]

An expression is named only if it is computed unconditionally, for assignments without a loop or
condition between them. An element is read again after its buffer was written. Vectors of indices
stay, because their form shows that neighbours are read together; cheap expressions stay as well.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from dlcompiler import dtypes
from dlcompiler.ir import (
    Allocate,
    Binary,
    Buffer,
    Call,
    Const,
    Expr,
    For,
    If,
    IfThenElse,
    Let,
    Load,
    Logical,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    Var,
    seq,
)
from dlcompiler.ir.rewrite import Node, children, map_children
from dlcompiler.ir.structural import structural_key

MIN_COST = 4
"""Least cost of a named expression: an addition costs 1, a division 4, a function 8; [1]."""


def eliminate_common_subexpressions(func: PrimFunc, *, min_cost: int = MIN_COST) -> PrimFunc:
    """Name the expressions that straight-line code computes more than once.

    Parameters
    ----------
    func
        Any function.
    min_cost
        Cheaper expressions are computed again.
    """
    body = _Eliminator(min_cost).stmt(func.body)
    return func.with_body(body)


class _Eliminator:
    def __init__(self, min_cost: int) -> None:
        self.min_cost = min_cost
        self.count = 0

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Store():
                return self.group((stmt,))
            case Seq(statements):
                items = list(self.groups(statements))
                is_same = len(items) == len(statements) and all(
                    a is b for a, b in zip(items, statements, strict=True)
                )
                return stmt if is_same else seq(items)
            case For() | Allocate() | Let():
                body = self.stmt(stmt.body)
                return stmt if body is stmt.body else replace(stmt, body=body)
            case If(condition, then, otherwise):
                branch, rest = self.stmt(then), None if otherwise is None else self.stmt(otherwise)
                is_same = branch is then and rest is otherwise
                return stmt if is_same else If(condition, branch, rest)
        return stmt

    def groups(self, statements: Sequence[Stmt]) -> Iterator[Stmt]:
        """Yield the statements; consecutive assignments are yielded together as one group."""
        run: list[Store] = []
        for statement in (*statements, None):
            if isinstance(statement, Store):
                run.append(statement)
                continue
            if run:
                new = self.group(tuple(run))
                yield from new.statements if isinstance(new, Seq) else (new,)
                run = []
            if statement is not None:
                yield self.stmt(statement)

    def group(self, stores: tuple[Store, ...]) -> Stmt:
        graph = _Graph(stores)
        chosen = [node for node in graph.nodes if self.is_worth(node)]
        if not chosen:
            return stores[0] if len(stores) == 1 else Seq(stores)
        return _rebuilt(graph, stores, {id(node): self.fresh(node) for node in chosen})

    def is_worth(self, node: _Shared) -> bool:
        is_vector_index = dtypes.is_index(dtypes.element(node.expr.dtype)) and (
            dtypes.lanes(node.expr.dtype) > 1
        )
        if node.uses < 2 or not node.is_certain or is_vector_index:
            return False
        return node.cost >= self.min_cost

    def fresh(self, node: _Shared) -> Var:
        self.count += 1
        return Var(f"t{self.count}", node.expr.dtype)


@dataclass(eq=False)
class _Shared:
    """An expression in consecutive assignments, counted once for all equal occurrences."""

    expr: Expr
    operands: tuple[_Shared, ...]
    cost: int
    first: int
    """Number of the first assignment that uses it."""
    uses: int = 0
    is_certain: bool = False
    """Whether it is computed unconditionally."""


@dataclass
class _Graph:
    """The distinct expressions in consecutive assignments, operands first."""

    stores: Sequence[Store]
    nodes: list[_Shared] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.known: dict[Hashable, _Shared] = {}
        self.of: dict[tuple[int, int], _Shared] = {}
        self.versions: dict[Buffer, int] = {}
        for number, store in enumerate(self.stores):
            for slot in _slots(store):
                root = self.add(slot, number)
                root.uses += 1
                _mark(root)
            self.versions[store.buffer] = self.versions.get(store.buffer, 0) + 1

    def add(self, root: Expr, number: int) -> _Shared:
        """Return the node of an expression in assignment `number`; equal expressions share one."""
        stack = [root]
        while stack:
            expr = stack[-1]
            if (id(expr), number) in self.of:
                stack.pop()
                continue
            below = [child for child in children(expr) if isinstance(child, Expr)]
            missing = [child for child in below if (id(child), number) not in self.of]
            if missing:
                stack.extend(missing)
                continue
            self.of[id(expr), number] = self.node(expr, below, number)
        return self.of[id(root), number]

    def node(self, expr: Expr, below: Sequence[Expr], number: int) -> _Shared:
        operands = tuple(self.of[id(child), number] for child in below)
        key = self.key(expr, operands)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = _Shared(expr, operands, _cost(expr, operands), number)
            self.nodes.append(found)
            for operand in operands:
                operand.uses += 1
        return found

    def key(self, expr: Expr, operands: tuple[_Shared, ...]) -> Hashable:
        match expr:
            case Var() | Const():
                return structural_key(expr)
            case Load(buffer, _, predicate):
                version = self.versions.get(buffer, 0)
                return (Load, buffer, version, predicate is None, *map(id, operands))
        details = (getattr(expr, name, None) for name in ("op", "name", "lanes"))
        return (type(expr), expr.dtype, *details, *map(id, operands))


def _slots(store: Store) -> tuple[Expr, ...]:
    mask = () if store.predicate is None else (store.predicate,)
    return (*store.indices, store.value, *mask)


def _mark(root: _Shared) -> None:
    """Mark `root` and its operands that are always computed as unconditional."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.is_certain:
            continue
        node.is_certain = True
        match node.expr:
            case IfThenElse() | Logical():
                stack.append(node.operands[0])
            case _:
                stack.extend(node.operands)


def _cost(expr: Expr, operands: Sequence[_Shared]) -> int:
    own = 1
    match expr:
        case Var() | Const():
            own = 0
        case Binary("div" | "floordiv" | "floormod" | "truncdiv" | "truncmod"):
            own = 4
        case Call():
            own = 8
        case Load():
            own = 2
    return own + sum(operand.cost for operand in operands)


def _rebuilt(graph: _Graph, stores: Sequence[Store], names: dict[int, Var]) -> Stmt:
    """Return the assignments with names for shared expressions, each bound before its first use."""
    values: dict[int, Expr] = {}
    definitions: dict[int, list[tuple[Var, Expr]]] = {}
    for node in graph.nodes:
        parts = iter(node.operands)

        def operand(child: Node, parts: Iterator[_Shared] = parts) -> Node:
            return values[id(next(parts))]

        value = map_children(node.expr, operand)
        values[id(node)] = value
        if (name := names.get(id(node))) is not None:
            definitions.setdefault(node.first, []).append((name, value))
            values[id(node)] = name
    result: Stmt | None = None
    for number in reversed(range(len(stores))):
        store = stores[number]

        def slot(expr: Node, number: int = number) -> Node:
            return values[id(graph.of[id(expr), number])]

        new: Stmt = map_children(store, slot)
        result = new if result is None else seq((new, result))
        for name, value in reversed(definitions.get(number, [])):
            result = Let(name, value, result)
    assert result is not None
    return result
