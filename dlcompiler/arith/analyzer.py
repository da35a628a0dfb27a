"""The analyzer: simplifies expressions and bounds them, given the range of each variable."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping

from dlcompiler.arith.affine import Affine, is_same_sum
from dlcompiler.arith.bounds import bounds_of_operation
from dlcompiler.arith.data import FALSE, TRUE, rewritten
from dlcompiler.arith.division import divide, joined, truncated
from dlcompiler.arith.interval import EVERYTHING, NATURAL, Interval
from dlcompiler.arith.laws import law, x, y
from dlcompiler.arith.sampling import Samples
from dlcompiler.arith.symbolic_bounds import ProofBudget, bound, index_vars, is_negative
from dlcompiler.ir import (
    Binary,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Select,
    Stmt,
    Var,
    binary,
    compare,
    index_const,
    substitute,
    walk,
)
from dlcompiler.ir.operations import BinaryOp, CompareOp, fold_index
from dlcompiler.ir.rewrite import Node, map_children

ONE = Affine.of_constant(1)


class Analyzer:
    """Simplify and bound index expressions, and fold conditions.

    Parameters
    ----------
    ranges
        For a variable, the values it takes. Variables without a range may take any value. The
        mapping may grow while the analyzer is in use, but a range must not change.
    extents
        For the variable of a loop whose extent is an expression, that extent: the variable is in
        [0, extent), and what mentions it is evaluated only where the extent is 1 or more. It may
        grow in the same way; an extent may mention other variables, but none in a circle.

    Examples
    --------
    >>> from math import inf
    >>> from dlcompiler.ir import Var
    >>> n, i, j = Var("n"), Var("i.outer"), Var("i.inner")
    >>> analyzer = Analyzer({n: Interval(0, inf), j: Interval(0, 31)}, {i: n // 32})
    >>> analyzer.can_prove(i * 32 + j < n)
    True
    >>> analyzer.upper_bound(i * 32 + j, {i, j}).to_expr()
    Binary(n // 32*32 - 1)
    """

    def __init__(
        self, ranges: Mapping[Var, Interval], extents: Mapping[Var, Expr] | None = None
    ) -> None:
        self.ranges = ranges
        self.extents: Mapping[Var, Expr] = {} if extents is None else extents
        self._memo: dict[int, tuple[Expr, Expr]] = {}
        self._affine_memo: dict[int, tuple[Expr, Affine]] = {}
        self._vars_memo: dict[int, tuple[Expr, tuple[Var, ...]]] = {}
        self._running: dict[frozenset[Var], Analyzer] = {}
        self._positive: dict[Var, Interval] = {}
        self._loop_bounds: dict[Var, Interval] = {}
        self._intervals: dict[int, tuple[Expr, Interval]] = {}
        self._needed: dict[Var, tuple[Var, ...]] = {}
        self._answers: dict[Hashable, tuple[Affine, bool | None]] = {}
        self.partners: dict[int, tuple[Expr, Affine]] = {}
        """By `id` of a remainder, that remainder, and the quotient of its operands."""
        self.samples = Samples(self)
        self.budget = ProofBudget()

    # -- public ------------------------------------------------------------------------------

    def simplify(self, expr: Expr) -> Expr:
        """Return an equal, simpler expression; the same object when nothing got simpler.

        Index arithmetic is put into affine form; comparisons are decided where the ranges allow.
        Data arithmetic is only changed by rules that hold for wrapping integers and IEEE floats.
        """
        known = self._memo.get(id(expr))
        if known is not None:
            return known[1]
        result = self._simplify(expr)
        if result is not expr and is_same_sum(result, expr):
            result = expr
        self._memo[id(expr)] = (expr, result)
        return result

    def interval(self, expr: Expr) -> Interval:
        """Return bounds of an index expression."""
        known = self._intervals.get(id(expr))
        if known is None:
            known = self._intervals[id(expr)] = (expr, self.bounds(self.affine(expr)))
        return known[1]

    def upper_bound(self, expr: Expr, over: Collection[Var]) -> Affine | None:
        """Return the greatest value of an index expression while the variables `over` run.

        The result has none of these variables. None if one has no bound, or if `expr` is not
        monotonic in it.
        """
        return bound(self.affine(expr), over, self, 1)

    def lower_bound(self, expr: Expr, over: Collection[Var]) -> Affine | None:
        """Return the least value of an index expression while `over` run; see `upper_bound`."""
        return bound(self.affine(expr), over, self, -1)

    def can_prove(self, condition: Expr) -> bool:
        """Tell whether `condition` holds for all values in the ranges."""
        result = self.simplify(condition)
        return isinstance(result, Const) and bool(result.value)

    def affine(self, expr: Expr) -> Affine:
        """Return an index expression as a sum of atoms."""
        known = self._affine_memo.get(id(expr))
        if known is None:
            known = (expr, self._affine(expr))
            self._affine_memo[id(expr)] = known
        return known[1]

    # -- simplification ------------------------------------------------------------------------

    def _simplify(self, expr: Expr) -> Expr:
        match expr:
            case Const() | Var(_, "index"):
                return self.affine(expr).to_expr() if isinstance(expr, Var) else expr
            case Binary() if expr.dtype == "index":
                return self.affine(expr).to_expr()
        result = map_children(expr, self._visit)
        if isinstance(result, Compare) and result.a.dtype == "index":
            return self._compare(result, result.op, result.a, result.b)
        changed = rewritten(result)
        return result if changed is None else self.simplify(changed)

    def _visit(self, node: Node) -> Node:
        assert not isinstance(node, Stmt)
        return self.simplify(node)

    def _compare(self, expr: Compare, op: CompareOp, a: Expr, b: Expr) -> Expr:
        verdict = self.decide(op, self.affine(a).plus(self.affine(b), -1))
        return expr if verdict is None else TRUE if verdict else FALSE

    def decide(self, op: CompareOp, difference: Affine) -> bool | None:
        """Decide ``a op b`` from the form ``a - b``; None if the ranges do not decide it."""
        bounds = self.bounds(difference)
        verdict = bounds.decide(op)
        if verdict is not None or not self.is_symbolic(difference, bounds):
            return verdict
        factors = frozenset((key, term.factor) for key, term in difference.terms.items())
        question = (op, difference.constant, factors)
        known = self._answers.get(question)
        if known is not None:
            return known[1]
        verdict = self._prove(op, difference)
        if not self.budget.is_spent:
            self._answers[question] = (difference, verdict)
        return verdict

    def _prove(self, op: CompareOp, difference: Affine) -> bool | None:
        known = self.where_running(difference)
        negated = difference.times(-1)
        match op:
            case "lt" | "ge":  # a >= 0 if and only if -a < 1
                below, above = difference, negated.plus(ONE, -1)
            case "gt" | "le":
                below, above = difference.plus(ONE, -1), negated
            case _:
                below, above = difference, negated
        if is_negative(below, known):
            return op in ("lt", "le", "ne")
        return op in ("gt", "ge", "ne") if is_negative(above, known) else None

    def is_symbolic(self, form: Affine, bounds: Interval) -> bool:
        """Tell whether symbolic bounds may be tighter than numeric ones."""
        if not self.extents:
            return not bounds.is_bounded
        return not bounds.is_bounded or any(
            var in self.extents
            for t in form.terms.values()
            for p in t.parts
            for var in self.vars_of(p)
        )

    # -- affine forms --------------------------------------------------------------------------

    def _affine(self, expr: Expr) -> Affine:
        match expr:
            case Const(value, _):
                return Affine.of_constant(int(value))
            case Var():
                bounds = self.bounds_of(expr)
                if bounds.low == bounds.high:
                    return Affine.of_constant(int(bounds.low))
                return Affine.of_atom(expr)
            case Binary("add" | "sub" as op, a, b):
                return joined(self.affine(a).plus(self.affine(b), 1 if op == "add" else -1), self)
            case Binary("mul", a, b):
                return self.affine(a).product(self.affine(b))
            case Binary("floordiv" | "floormod" as op, a, b):
                return divide(op, self.affine(a), self.affine(b), self)
            case Binary("min" | "max" as op, a, b):
                return extremum(op, self.affine(a), self.affine(b), self)
            case Binary("truncdiv" | "truncmod" as op, a, b):
                return truncated(op, self.affine(a), self.affine(b), self)
            case Binary(op, a, b):
                return bitwise(op, self.affine(a), self.affine(b))
        atom = map_children(expr, self._visit)
        changed = rewritten(atom)
        return Affine.of_atom(atom) if changed is None else self.affine(changed)

    # -- bounds --------------------------------------------------------------------------------

    def bounds(self, affine: Affine) -> Interval:
        """Return bounds of a sum of atoms."""
        low: float = affine.constant
        high: float = affine.constant
        for term in affine.terms.values():
            atom = self._bounds_of_part(term.parts[0])
            for part in term.parts[1:]:
                atom = atom.times(self._bounds_of_part(part))
            ends = (atom.low * term.factor, atom.high * term.factor)
            low += min(ends)
            high += max(ends)
        return Interval(low, high)

    def bounds_of(self, var: Var) -> Interval:
        """Return bounds of a variable."""
        extent = self.extents.get(var)
        if extent is None:
            return self._positive.get(var) or self.ranges.get(var, EVERYTHING)
        known = self._loop_bounds.get(var)
        if known is None:
            numbers = self._positive.get(var) or self.ranges.get(var, NATURAL)
            low, last = max(numbers.low, 0), self.interval(extent).high - 1
            known = Interval(low, max(min(numbers.high, last), low))
            self._loop_bounds[var] = known
        return known

    def _bounds_of_part(self, part: Expr) -> Interval:
        match part:
            case Var():
                return self.bounds_of(part)
            case Binary(op, a, b):
                return bounds_of_operation(op, self.interval(a), self.interval(b))
            case Select(_, a, b) | IfThenElse(_, a, b):
                return self.interval(a).hull(self.interval(b))
        return EVERYTHING

    # -- variables -----------------------------------------------------------------------------

    def vars_of(self, expr: Expr) -> tuple[Var, ...]:
        """Return the variables of an expression."""
        if isinstance(expr, Var):
            return (expr,)
        known = self._vars_memo.get(id(expr))
        if known is None:
            found = tuple(node for node in walk(expr) if isinstance(node, Var))
            known = self._vars_memo[id(expr)] = (expr, found)
        return known[1]

    def where_running(self, *forms: Affine) -> Analyzer:
        """Return an analyzer that assumes that the loops over the variables of `forms` run.

        A loop over [0, n*m) runs only where n and m are not 0.
        """
        if not self.extents:
            return self
        loops = {var for form in forms for var in index_vars(form) if var in self.extents}
        positive = frozenset(symbol for loop in loops for symbol in self._symbols_of(loop))
        if not positive:
            return self
        if positive not in self._running:
            known = Analyzer(self.ranges, self.extents)
            known.budget = self.budget
            known._positive = {s: Interval(1, self.bounds_of(s).high) for s in positive}
            self._running[positive] = known
        return self._running[positive]

    def _symbols_of(self, loop: Var) -> tuple[Var, ...]:
        """Return the symbols with range [0, …) that cannot be 0 while a loop runs."""
        known = self._needed.get(loop)
        if known is None:
            extent = self.extents[loop]
            known = self._needed[loop] = tuple(
                symbol
                for symbol in self.vars_of(extent)
                if self.bounds_of(symbol).low == 0
                and self.interval(substitute(extent, {symbol: index_const(0)})).high <= 0
            )
        return known


@law(compare("eq", binary("min", x, y), x), compare("eq", binary("max", x, y), y), when=(x <= y,))
@law(compare("eq", binary("min", x, y), y), compare("eq", binary("max", x, y), x), when=(x >= y,))
def extremum(op: BinaryOp, a: Affine, b: Affine, analyzer: Analyzer) -> Affine:
    """Return the minimum or maximum: one operand if it is known to be the result."""
    difference = a.plus(b, -1)
    if analyzer.decide("le", difference):
        return a if op == "min" else b
    if analyzer.decide("ge", difference):
        return b if op == "min" else a
    return Affine.of_atom(Binary(op, a.to_expr(), b.to_expr()))


def bitwise(op: BinaryOp, a: Affine, b: Affine) -> Affine:
    """Return the form of ``a & b``, ``a | b`` or ``a ^ b``; constants are folded."""
    if a.is_constant and b.is_constant:
        return Affine.of_constant(fold_index(op, a.constant, b.constant))
    return Affine.of_atom(Binary(op, a.to_expr(), b.to_expr()))
