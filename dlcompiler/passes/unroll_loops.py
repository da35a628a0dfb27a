"""Repeat the bodies of unrolled loops.

*Before*::

    def main(A: float32[4, 2], C: float32[4, 2]):
        for i in range(4):  # auto_unroll_max_step = 4
            for j in unrolled(2):
                C[i, j] = A[i, j]

*After*::

    def main(A: float32[4, 2], C: float32[4, 2]):
        for i in range(4):  # auto_unroll_max_step = 4
            C[i, 0] = A[i, 0]
            C[i, 1] = A[i, 1]

The pass runs late, because unrolled code makes every later pass slower.

The pragma ``auto_unroll_max_step`` unrolls serial loops too, from the innermost outwards, as long
as the copies make no more assignments than its value: here 8 would have unrolled ``i``. With
``unroll_explicit = 0`` loops are only marked as unrolled, for the code generator. Both hold for the
loops inside the one that they stand at, and for itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dlcompiler.errors import ScheduleError
from dlcompiler.ir import (
    Allocate,
    Assert,
    ExternCall,
    For,
    If,
    IntrinsicCall,
    Let,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    index_const,
    seq,
    substitute,
    walk,
)
from dlcompiler.ir.rewrite import children
from dlcompiler.passes.base import constant_extent, push_origin

MAX_STATEMENTS = 8192
MAX_NODES = 250_000
"""Of the copies of one loop: a few seconds of lowering and compiling."""


@dataclass(frozen=True)
class AutoUnroll:
    """Limits for unrolling serial loops, as in classic TVM's ``tir.UnrollLoop``."""

    max_step: int = 0
    """Assignments that the copies of nested loops may make; the pragma ``auto_unroll_max_step``."""
    max_depth: int = 8
    """How many nested loops may be unrolled; the pragma ``auto_unroll_max_depth``."""
    max_extent: int = 0
    """Loops of up to this extent ignore `max_step`; the pragma ``auto_unroll_max_extent``."""
    is_explicit: bool = True
    """Whether bodies are repeated, not only marked; the pragma ``unroll_explicit``."""

    def inside(self, loop: For) -> AutoUnroll:
        """Return the limits inside a loop, changed by its pragmas."""
        given = dict(loop.annotations)
        if not given.keys() & {*_PRAGMAS, "unroll_explicit"}:
            return self
        own = {
            name.removeprefix("auto_unroll_"): int(given[name]) for name in _PRAGMAS & given.keys()
        }
        is_explicit = bool(given.get("unroll_explicit", self.is_explicit))
        return replace(self, **own, is_explicit=is_explicit)


_PRAGMAS = frozenset({"auto_unroll_max_step", "auto_unroll_max_depth", "auto_unroll_max_extent"})


def unroll_loops(
    func: PrimFunc, *, max_statements: int = MAX_STATEMENTS, auto: AutoUnroll | None = None
) -> PrimFunc:
    """Replace each unrolled loop by copies of its body.

    Parameters
    ----------
    func
        Any function.
    max_statements
        How many assignments the copies of one loop may hold; [1]. LLVM's time grows faster than
        their number.
    auto
        Which serial loops are unrolled, too, where no pragma says otherwise; none by default.

    Raises
    ------
    ScheduleError
        If a loop would become longer than that, or have more than `MAX_NODES` operations. The
        schedule refuses most such loops when they are unrolled; attaching a stage elsewhere, or
        inlining one, can make a loop longer afterwards.
    """
    body, _ = _Unroller(max_statements).stmt(func.body, auto or AutoUnroll())
    return func.with_body(body)


@dataclass(frozen=True)
class _Contents:
    """The size of a statement: its assignments, and its loops."""

    steps: int = 0
    """Number of assignments, as if each loop that is not unrolled ran once."""
    has_loops: bool = False
    depth: int = 0
    """Number of unrolled loops nested in each other."""

    def beside(self, other: _Contents) -> _Contents:
        has_loops = self.has_loops or other.has_loops
        return _Contents(self.steps + other.steps, has_loops, max(self.depth, other.depth))


class _Unroller:
    def __init__(self, max_statements: int) -> None:
        self.max_statements = max_statements

    def stmt(self, stmt: Stmt, auto: AutoUnroll) -> tuple[Stmt, _Contents]:
        match stmt:
            case For():
                return self.loop(stmt, auto.inside(stmt))
            case Store() | Assert() | ExternCall() | IntrinsicCall():
                return stmt, _Contents(1)
            case Seq(statements):
                parts = [self.stmt(item, auto) for item in statements]
                contents = _Contents()
                for _, inside in parts:
                    contents = contents.beside(inside)
                if all(new is old for (new, _), old in zip(parts, statements, strict=True)):
                    return stmt, contents
                return seq(new for new, _ in parts), contents
            case If(condition, then, otherwise):
                branch, contents = self.stmt(then, auto)
                rest = otherwise
                if otherwise is not None:
                    rest, inside = self.stmt(otherwise, auto)
                    contents = contents.beside(inside)
                is_same = branch is then and rest is otherwise
                return stmt if is_same else If(condition, branch, rest), contents
            case Allocate() | Let():
                body, contents = self.stmt(stmt.body, auto)
                return stmt if body is stmt.body else replace(stmt, body=body), contents
        return stmt, _Contents()

    def loop(self, loop: For, auto: AutoUnroll) -> tuple[Stmt, _Contents]:
        body, inside = self.stmt(loop.body, auto)
        loop = loop if body is loop.body else replace(loop, body=body)
        extent = constant_extent(loop)
        if extent is None or not self.is_chosen(loop, extent, inside, auto):
            kind = "serial" if loop.kind == "unrolled" else loop.kind
            loop = loop if kind == loop.kind else replace(loop, kind="serial")
            return loop, _Contents(inside.steps, True, inside.depth)
        contents = _Contents(inside.steps * max(extent, 1), inside.has_loops, inside.depth + 1)
        if not auto.is_explicit:
            return loop if loop.kind == "unrolled" else replace(loop, kind="unrolled"), contents
        _check_size(loop, extent * _count_stores(body), "statements", self.max_statements)
        _check_size(loop, extent * _count_nodes(body), "operations", MAX_NODES)
        body = push_origin(body, loop.origin)
        return seq(substitute(body, {loop.var: index_const(n)}) for n in range(extent)), contents

    def is_chosen(self, loop: For, extent: int, inside: _Contents, auto: AutoUnroll) -> bool:
        if loop.kind != "serial":
            return loop.kind == "unrolled"
        if inside.has_loops or inside.depth > auto.max_depth:
            return False
        steps = extent * inside.steps
        return extent <= auto.max_extent or steps <= min(auto.max_step, self.max_statements)


def _check_size(loop: For, size: int, unit: str, most: int) -> None:
    if size > most:
        raise ScheduleError(
            f"unroll loop {loop.var.name}",
            "its body would be copied too many times",
            got=f"{size} {unit}",
            expected=f"at most {most}",
            hint="unroll a shorter inner loop, or attach the stage at an inner loop",
        )


def _count_nodes(stmt: Stmt) -> int:
    return sum(1 for _ in walk(stmt))


def _count_stores(stmt: Stmt) -> int:
    """Count the assignments in a statement; a shared node counts at each occurrence."""
    if isinstance(stmt, Store | ExternCall | IntrinsicCall):
        return 1
    return sum(_count_stores(child) for child in children(stmt) if isinstance(child, Stmt))
