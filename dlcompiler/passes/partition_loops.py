"""Split loops whose guards hold for nearly all iterations: a main part without them, and a rest.

*Before*::

    def main(A: float32[100, 64], C: float32[100, 64]):
        for i.outer in range(4):
            for j in range(64):
                for i.inner in range(32):
                    if i.outer*32 + i.inner < 100:
                        C[i.outer*32 + i.inner, j] = A[i.outer*32 + i.inner, j]

*After*::

    def main(A: float32[100, 64], C: float32[100, 64]):
        for i.outer in range(3):
            for j in range(64):
                for i.inner in range(32):
                    C[i.outer*32 + i.inner, j] = A[i.outer*32 + i.inner, j]
        for j in range(64):
            for i.inner in range(4):
                C[i.inner + 96, j] = A[i.inner + 96, j]

A guard is cut at the outermost loop whose variable it has, for the worst values of the loops inside
it. A guard around a whole body shortens the loop instead. The iterations of a parallel loop stay
together: it gets a condition around its body. What threads of a device run keeps
its guards: there they are cheaper than code. With symbolic extents the ends are formulas.

Guards are the conditions of statements. In a loop with the pragma ``loop_partition_hint`` the
conditions of choices (`if_then_else`, `select`) count too, and so do the clamps of indices, which
choose the smaller or the larger operand: padding becomes a rim of its own. A chain of choices
between several cases, or between two that each have many iterations, is cut in halves, until each
loop has one case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dlcompiler.arith import Affine, Analyzer, Interval
from dlcompiler.arith.affine import atom_key
from dlcompiler.arith.interval import INFINITY
from dlcompiler.ir import (
    Allocate,
    Const,
    Expr,
    For,
    If,
    Let,
    PrimFunc,
    Seq,
    Stmt,
    Var,
    binary,
    compare,
    free_vars,
    index_const,
    is_thread,
    logical,
    seq,
    substitute,
    tree_size,
)
from dlcompiler.passes.base import push_origin, statements
from dlcompiler.passes.lane_guards import has_loads
from dlcompiler.passes.loop_guards import (
    Bound,
    Guard,
    guards_in,
    not_negative,
    outermost_guards,
    settled,
    without,
)
from dlcompiler.passes.simplify import simplify

MAX_GROWTH = 4
"""How many times as large as before a program may become; [1].

Measured on AVX2: a tiled product of 333³ takes 8.0 ms whole, 2.0 ms at 2, 1.2 ms at 3 and above; a
tiled convolution 0.39 ms up to 3, 0.23 ms at 4 and above.
"""

LEAST_ROOM = 1000
"""Nodes that a program with hints may always grow by. A padded image, of 60 nodes, needs more than
`MAX_GROWTH` for its loops over rows and over columns (measured on AVX2: 2 to 10 times as fast)."""
HINT = "loop_partition_hint"
_CASES = 3
"""Least number of places where a chain of choices changes its case; padding changes at two."""
ZERO = index_const(0)


def partition_loops(func: PrimFunc, *, max_growth: float = MAX_GROWTH) -> PrimFunc:
    """Split loops with guards into a main part without them, and the rest.

    Parameters
    ----------
    func
        A function of simplified indices.
    max_growth
        How many times as large the copies may make it; [1]. Outer loops are split first. With
        hints, `LEAST_ROOM` is allowed, too.

    Returns
    -------
    PrimFunc
        A simplified function; the same object if no loop was split.
    """
    if not any(_conditions(node) for node in statements(func.body)):
        return func
    body = _Partitioner(func, max_growth).stmt(func.body)
    return simplify(func.with_body(body)) if body is not func.body else func


def _conditions(stmt: Stmt) -> bool:
    """Tell whether a statement may contain guards."""
    return isinstance(stmt, If) or _has_hint(stmt)


def _has_hint(stmt: Stmt) -> bool:
    """Tell whether a statement is a loop with the pragma."""
    return isinstance(stmt, For) and any(name == HINT and on for name, on in stmt.annotations)


class _Partitioner:
    def __init__(self, func: PrimFunc, max_growth: float) -> None:
        sizes = (extent for buffer in func.buffers for extent in buffer.shape)
        self.ranges = {size: Interval(0, INFINITY) for size in sizes if isinstance(size, Var)}
        self.variables = set(func.variables)
        self.loops: list[For] = []
        self.analyzers: dict[tuple[For, ...], Analyzer] = {}
        self.max_growth = max_growth
        self.body = func.body
        self.room: float | None = None

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case For():
                return self.loop(stmt)
            case Seq(statements):
                items = [self.stmt(item) for item in statements]
                is_same = all(a is b for a, b in zip(items, statements, strict=True))
                return stmt if is_same else seq(items)
            case If(condition, then, otherwise):
                rest = None if otherwise is None else self.stmt(otherwise)
                branch = self.stmt(then)
                is_same = branch is then and rest is otherwise
                return stmt if is_same else If(condition, branch, rest)
            case Allocate() | Let():
                body = self.stmt(stmt.body)
                return stmt if body is stmt.body else replace(stmt, body=body)
        return stmt

    def loop(self, loop: For, *, cuts: int = _CASES) -> Stmt:
        """Split a loop if it is worth it, then the loops in its parts.

        A chain of choices is cut from `cuts` places on where it changes its case.
        """
        if is_thread(loop.kind):
            return loop
        if _has_hint(loop) or any(isinstance(item, If) for item in statements(loop.body)):
            bounds = list(self.bounds(loop))
            if shorter := self.shortened(loop, bounds):
                return self.stmt(shorter)
            if cases := self.cases(loop, bounds, cuts):
                return cases
            if parts := self.parts(loop, bounds):
                return parts
            if cases := self.cases(loop, bounds, 1):
                return cases
        return self.inside(loop)

    def inside(self, loop: For) -> Stmt:
        """Split the loops inside a loop."""
        self.loops.append(loop)
        body = self.stmt(loop.body)
        self.loops.pop()
        return loop if body is loop.body else replace(loop, body=body)

    # -- bounds from guards ------------------------------------------------------------------------

    def analyzer(self, loops: Sequence[For]) -> Analyzer:
        """Return an analyzer with the ranges of some loops."""
        key = tuple(loops)
        if key not in self.analyzers:
            ranges, extents = dict(self.ranges), {}
            for loop in loops:
                if isinstance(loop.extent, Const):
                    ranges[loop.var] = Interval(0, max(int(loop.extent.value) - 1, 0))
                else:
                    extents[loop.var] = loop.extent
            self.analyzers[key] = Analyzer(ranges, extents)
        return self.analyzers[key]

    def bounds(self, loop: For) -> Iterator[Bound]:
        """Yield the bounds that guards in a loop put on its variable."""
        found: dict[int, list[Bound | None]] = {}
        for guard, inner in guards_in(loop.body, (), with_choices=_has_hint(loop)):
            if loop.var in free_vars(guard) and not has_loads(guard):
                found.setdefault(id(guard), []).append(self.solve(guard, loop, inner))
        for several in found.values():
            # A statement may occur several times: its guard is dropped only if it can be solved at
            # each occurrence.
            if all(several):
                yield from (bound for bound in several if bound is not None)

    def solve(self, guard: Guard, loop: For, inner: tuple[For, ...]) -> Bound | None:
        analyzer = self.analyzer((*self.loops, loop, *inner))
        form = not_negative(guard, analyzer)
        own = None if form is None else form.terms.get(atom_key(loop.var))
        if form is None or own is None:
            return None
        running = {item.var for item in inner}
        rest = form.plus(Affine({atom_key(loop.var): own}), -1).to_expr()
        least = analyzer.lower_bound(rest, running)
        most = analyzer.upper_bound(rest, running)
        if least is None or most is None:
            return None
        spread = analyzer.interval(most.plus(least, -1).to_expr()).high
        known = {item.var for item in self.loops} | self.variables
        if not free_vars(least.to_expr()) <= known or spread == INFINITY:
            return None
        loss = -(-int(spread) // abs(own.factor))
        if (loss or abs(own.factor) > 1) and not free_vars(least.to_expr()) <= self.variables:
            return None  # a division in every iteration of an outer loop costs as much as the guard
        factor = index_const(abs(own.factor))
        end, far = (binary("floordiv", form.to_expr(), factor) for form in (least, most))
        outside = self.analyzer(self.loops)
        fails = outside.simplify(far)
        number = int(fails.value) if isinstance(fails, Const) else None
        if own.factor < 0:
            fails_from = None if number is None else number + 1
            return Bound(guard, None, outside.simplify(binary("add", end, 1)), loss, fails_from)
        fails_before = None if number is None else -number
        return Bound(guard, outside.simplify(binary("sub", 0, end)), None, loss, fails_before)

    # -- new loops ---------------------------------------------------------------------------------

    def shortened(self, loop: For, bounds: list[Bound]) -> For | None:
        """Return a loop over the iterations in which the guard of its whole body holds."""
        around = {id(guard) for guard in outermost_guards(loop.body)}
        exact = [bound for bound in bounds if bound.loss == 0 and id(bound.guard) in around]
        if not exact:
            return None
        start, stop = self.ends(loop, exact)
        extent = self.analyzer(self.loops).simplify(binary("sub", stop, start))
        if not isinstance(extent, Const) and loop.kind in ("vectorized", "unrolled"):
            return None
        body = without(loop.body, exact)
        return replace(loop, extent=extent, body=_shifted(body, loop.var, start))

    def cases(self, loop: For, bounds: list[Bound], least: int) -> Stmt | None:
        """Return two loops, cut near the middle, if a chain of choices has several cases.

        Each half has fewer cases, and is cut again.
        """
        if not _has_hint(loop) or loop.kind in ("parallel", "vectorized"):
            return None
        extent = _difference(loop.extent, ZERO)
        ends = {bound.low if bound.high is None else bound.high for bound in bounds}
        cuts = {int(end.value) for end in ends if isinstance(end, Const)}
        if extent is None or len(ends) < least:
            return None
        cuts |= {bound.fails for bound in bounds if bound.fails is not None}
        cuts = {cut for cut in cuts if 0 < cut < extent}
        if not cuts:
            return None
        cut = min(cuts, key=lambda cut: (abs(2 * cut - extent), cut))
        ranges = ((0, cut), (cut, extent))
        bodies = [settled(loop.body, bounds, first, last) for first, last in ranges]
        if not self.has_room(sum(map(tree_size, bodies)) - tree_size(loop.body)):
            return None
        halves = zip(bodies, ranges, strict=True)
        return seq([self.piece(loop, body, first, last) for body, (first, last) in halves])

    def piece(self, loop: For, body: Stmt, first: int, last: int) -> Stmt:
        """Return the iterations of a loop from `first` to `last` - 1, split further."""
        if last - first == 1:
            whole = substitute(body, {loop.var: index_const(first)})
            return self.stmt(push_origin(whole, loop.origin))
        var = Var(loop.var.name)
        shifted = _shifted(substitute(body, {loop.var: var}), var, index_const(first))
        return self.loop(
            replace(loop, var=var, extent=index_const(last - first), body=shifted), cuts=1
        )

    def parts(self, loop: For, bounds: list[Bound]) -> Stmt | None:
        """Return the main part of a loop, with what comes before and after it."""
        bounds = [bound for bound in bounds if self.is_useful(loop, bound)]
        if not bounds or loop.kind == "vectorized":
            return None
        start, stop = self.ends(loop, bounds)
        if not self.is_worth(loop, start, stop, bounds):
            return None
        main = without(loop.body, bounds)
        if loop.kind == "parallel":
            return self.by_condition(loop, start, stop, main)
        analyzer = self.analyzer(self.loops)
        pieces = []
        for first, last, body in (
            (ZERO, start, loop.body), (start, stop, main), (stop, loop.extent, loop.body)
        ):  # fmt: skip
            extent = analyzer.simplify(binary("sub", last, first))
            if isinstance(extent, Const) and extent.value <= 0:
                continue
            if isinstance(extent, Const) and extent.value == 1:
                whole = push_origin(substitute(body, {loop.var: first}), loop.origin)
                pieces.append(self.stmt(whole))
                continue
            var = Var(loop.var.name)
            shifted = _shifted(substitute(body, {loop.var: var}), var, first)
            piece = replace(loop, var=var, extent=extent, body=shifted)
            pieces.append(self.loop(piece, cuts=1) if _has_hint(loop) else self.inside(piece))
        return seq(pieces)

    def by_condition(self, loop: For, start: Expr, stop: Expr, main: Stmt) -> Stmt:
        """Return a loop that tests in each iteration whether it belongs to the main part."""
        tests = [compare("ge", loop.var, start), compare("lt", loop.var, stop)]
        tests = [test for test in tests if not self.analyzer((*self.loops, loop)).can_prove(test)]
        rest = loop.body
        if _is_number(start, 0) and _difference(loop.extent, stop) == 1:
            rest = substitute(rest, {loop.var: stop})
        self.loops.append(loop)
        chosen = self.stmt(main)
        body = If(logical("and", *tests), chosen, self.stmt(rest)) if tests else chosen
        self.loops.pop()
        return replace(loop, body=body)

    def ends(self, loop: For, bounds: list[Bound]) -> tuple[Expr, Expr]:
        """Return (start, stop): all bounds hold exactly in iterations from start to stop - 1."""
        start: Expr = ZERO
        stop = loop.extent
        for bound in bounds:
            if bound.low is not None:
                start = binary("max", start, bound.low)
            if bound.high is not None:
                stop = binary("min", stop, bound.high)
        analyzer = self.analyzer(self.loops)
        start = analyzer.simplify(binary("min", start, loop.extent))
        return start, analyzer.simplify(binary("max", stop, start))

    def is_useful(self, loop: For, bound: Bound) -> bool:
        """Tell whether a bound separates a main part from a small rest."""
        if loop.kind == "parallel" and bound.loss == 0:
            return False  # the condition itself is as good
        end = bound.low if bound.high is None else bound.high
        extent = _difference(loop.extent, ZERO)
        if extent is None or not isinstance(end, Const):
            return bound.loss <= 1
        start, stop = self.ends(loop, [bound])
        count = _difference(stop, start) or 0
        return count > 0 and (bound.loss == 0 or 2 * count >= extent)

    def is_worth(self, loop: For, start: Expr, stop: Expr, bounds: list[Bound]) -> bool:
        """Tell whether a main part exists, and the copies stay below the growth limit."""
        count = _difference(stop, start)
        if (count is not None and count <= 0) or (count is None and loop.kind == "unrolled"):
            return False
        if count is not None and count == _difference(loop.extent, ZERO):
            return False
        copies = (not _is_number(start, 0)) + (_difference(loop.extent, stop) != 0)
        return self.has_room(copies * tree_size(loop.body))

    def has_room(self, growth: int) -> bool:
        """Tell whether the program may grow by some nodes; if so, count them."""
        if self.room is None:
            self.room = (self.max_growth - 1) * tree_size(self.body)
            if any(map(_has_hint, statements(self.body))):
                self.room = max(self.room, LEAST_ROOM)
        if growth > self.room:
            return False
        self.room -= growth
        return True


def _is_number(expr: Expr, value: int) -> bool:
    return isinstance(expr, Const) and expr.value == value


def _difference(a: Expr, b: Expr) -> int | None:
    """Return ``a - b`` if both are numbers, else None."""
    if isinstance(a, Const) and isinstance(b, Const):
        return int(a.value) - int(b.value)
    return None


def _shifted(body: Stmt, var: Var, start: Expr) -> Stmt:
    """Return a body with ``var + start`` in place of `var`."""
    return body if _is_number(start, 0) else substitute(body, {var: binary("add", var, start)})
