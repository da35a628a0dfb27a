"""The statements of a kernel, each with the loops and conditions around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from dlcompiler import dtypes
from dlcompiler.autotune.features.symbolic_nests import NotCoveredError
from dlcompiler.ir import (
    Allocate,
    Barrier,
    Binary,
    Buffer,
    Compare,
    Const,
    Expr,
    For,
    If,
    Load,
    Logical,
    Seq,
    Stmt,
    Store,
    Var,
    binary,
    extent_expr,
    index_const,
    rewrite,
    substitute,
    walk,
)
from dlcompiler.ir.rewrite import Node, children
from dlcompiler.passes.inject_virtual_threads import differs, own_buffers
from dlcompiler.passes.merge_thread_loops import ThreadProgram


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A loop around a statement."""

    var: Var
    extent: Expr
    kind: str
    repeats: bool = True
    """Whether each iteration executes the statement; a statement on which the number of the virtual
    thread has no influence is executed once for all of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """The loops, conditions and allocations around a statement, outermost first."""

    steps: tuple[Step, ...] = ()
    guards: tuple[Expr, ...] = ()
    own: tuple[Buffer, ...] = ()
    """Memory of the thread."""


def leaves_of(thread: ThreadProgram, virtual: Mapping[Var, For]) -> Iterator[tuple[Chain, Stmt]]:
    """Yield the stores and barriers of a thread's program, with what is around each.

    Parameters
    ----------
    thread
        The program, without loops over virtual threads.
    virtual
        These loops, which are around all of it, by their variables.

    Raises
    ------
    NotCoveredError
        The program has another statement.
    """
    copied = {var: own_buffers(loop) for var, loop in virtual.items()}

    def visit(stmt: Stmt, chain: Chain) -> Iterator[tuple[Chain, Stmt]]:
        match stmt:
            case Seq(items):
                for item in items:
                    yield from visit(item, chain)
            case For(var, extent, kind, body):
                step = Step(var, extent, kind)
                yield from visit(body, replace(chain, steps=(*chain.steps, step)))
            case If(condition, then, None):
                guards = (*chain.guards, *conjuncts(condition))
                yield from visit(then, replace(chain, guards=guards))
            case Allocate(buffer, body):
                yield from visit(body, replace(chain, own=(*chain.own, buffer)))
            case Store() | Barrier():
                yield _with_virtual(chain, stmt, copied), stmt
            case _:
                raise NotCoveredError(f"a statement {type(stmt).__name__}")

    around = tuple(Step(var, loop.extent, "vthread") for var, loop in virtual.items())
    yield from visit(thread.body, Chain(around))


def _with_virtual(chain: Chain, stmt: Stmt, copied: Mapping[Var, set[Buffer]]) -> Chain:
    """Mark the loops over virtual threads that a statement is executed once for."""

    def repeats(step: Step) -> bool:
        if step.var not in copied:
            return True
        nodes: tuple[Node, ...] = (stmt, *chain.guards)
        return any(differs(node, step.var, copied[step.var]) for node in nodes)

    steps = tuple(replace(step, repeats=repeats(step)) for step in chain.steps)
    return replace(chain, steps=steps)


def conjuncts(condition: Expr) -> Iterator[Expr]:
    """Yield the conditions of a conjunction."""
    if isinstance(condition, Logical) and condition.op == "and":
        yield from conjuncts(condition.a)
        yield from conjuncts(condition.b)
    else:
        yield condition


def at_zero(body: Stmt, variables: set[Var]) -> Stmt:
    """Return a statement for 0 as the value of variables, without what this makes needless."""
    zero = index_const(0)

    def is_zero(node: Expr) -> bool:
        return isinstance(node, Const) and node.value == 0

    def rule(node: Node) -> Node:
        match node:
            case Var() if node in variables:
                return zero
            case Binary("mul", a, b) if dtypes.is_index(node.dtype) and (is_zero(a) or is_zero(b)):
                return zero
            case Binary("floordiv" | "floormod", a, _) if is_zero(a) and dtypes.is_index(a.dtype):
                return zero
            case Binary("add", a, b) if is_zero(a) and dtypes.is_index(node.dtype):
                return b
            case Binary("add" | "sub", a, b) if is_zero(b) and dtypes.is_index(node.dtype):
                return a
        return node

    return rewrite(body, rule)


def first_only(chain: Chain, store: Store) -> tuple[Chain, Store]:
    """Leave out loops of which a condition ``i < 1`` chooses the first iteration."""
    first = {
        guard.a
        for guard in chain.guards
        if isinstance(guard, Compare) and guard.op == "lt" and isinstance(guard.a, Var)
        and isinstance(guard.b, Const) and guard.b.value == 1
    } & {step.var for step in chain.steps}  # fmt: skip
    if not first:
        return chain, store
    zeros = {var: index_const(0) for var in first}
    guards = tuple(
        substitute(guard, zeros)
        for guard in chain.guards
        if not (isinstance(guard, Compare) and guard.op == "lt" and guard.a in first)
    )
    steps = tuple(step for step in chain.steps if step.var not in first)
    return Chain(steps, guards, chain.own), cast(Store, substitute(store, zeros))


def offset(node: Load | Store) -> Expr:
    """Return the distance of an element from the begin of its array; [element]."""
    total: Expr = index_const(0)
    for index, stride in zip(node.indices, node.buffer.strides, strict=True):
        total = binary("add", total, binary("mul", index, extent_expr(stride)))
    return total


def condition_variables(value: Expr) -> set[Var]:
    """Return the variables of a value that are in no index: conditions depend on them."""
    found: set[Var] = set()

    def visit(node: Node) -> None:
        if isinstance(node, Var):
            found.add(node)
        for child in () if isinstance(node, Load) else children(node):
            visit(child)

    visit(value)
    return found


def without_own_indices(store: Store, own: frozenset[Buffer]) -> Store:
    """Return a store in which indices of memory of the thread, which cost nothing, are 0."""

    def rule(node: Node) -> Node:
        if not isinstance(node, Load | Store) or node.buffer not in own:
            return node
        if any(isinstance(part, Load) for index in node.indices for part in walk(index)):
            return node
        return replace(node, indices=tuple(index_const(0) for _ in node.indices))

    return cast(Store, rewrite(store, rule))
