"""Decide whether two accesses conflict in two iterations of a loop, by integer constraints.

A loop carries a dependence if there is a point of the iteration space for each access such that the
outer loops have equal values, the second access is in a later iteration of the loop, all conditions
hold, and both accesses touch the same element. Threads of a block depend on each other only where
no barrier is between the accesses, which then have one epoch (`barriers`).

For each inner loop, the system has a variable for the value in the first iteration and one for the
*difference* in the second. Equal terms of two indices then cancel, and the bounds of the
differences decide the rest, whatever the sizes.

**Source:** P. Feautrier, "Dataflow analysis of array and scalar references", IJPP 20 (1991),
section 2, for the formulation; A. Bernstein, "Analysis of programs for parallel processing", IEEE
EC-15 (1966), for the conditions under which iterations may run in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from dlcompiler.analysis.accesses import Access, Loop
from dlcompiler.analysis.injectivity import has_load
from dlcompiler.analysis.integers import (
    FALSE,
    LIMIT,
    TRUE,
    All,
    Any,
    AtLeast,
    Formula,
    Function,
    Linear,
    OutOfBudget,
    System,
    Zero,
)
from dlcompiler.analysis.values import DataDependent, evaluate
from dlcompiler.arith import Affine, Analyzer
from dlcompiler.arith.affine import AtomKey, atom_key
from dlcompiler.arith.implication import NEGATION
from dlcompiler.ir import (
    Binary,
    Call,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Logical,
    Not,
    Select,
    Var,
    free_vars,
    is_in_block,
)
from dlcompiler.ir.operations import CompareOp, fold_index

ONE = Linear({}, 1)
FIRST, SECOND = 0, 1


@dataclass(frozen=True, slots=True)
class Witness:
    """Two points of the program whose accesses touch one element: a proof of a dependence."""

    first: Mapping[Loop, int]
    """The value of each loop around the first access; outermost first."""
    second: Mapping[Loop, int]
    element: tuple[int, ...]
    symbols: Mapping[Var, int]
    """Values of the function's symbols, where it has any."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """The answer if a dependence could neither be shown nor excluded, with the reason."""

    reason: str


CUT_OFF = Doubt("the search for two such iterations was cut off")


def find_dependence(
    loop: Loop, first: Access, second: Access, analyzer: Analyzer
) -> Witness | Doubt | None:
    """Find two points at which accesses touch one element, the second in a later iteration.

    Parameters
    ----------
    loop
        A loop around both accesses.
    first, second
        The accesses, which may be one and the same.
    analyzer
        Knows the range of each variable.

    Returns
    -------
    Witness, Doubt or None
        None if there are provably none.
    """
    return DependenceSystem(first, second, first.loops.index(loop), analyzer).build().solve()


def may_write(
    write: Access,
    element: Sequence[int],
    values: Mapping[Loop, int] | None,
    before: bool,
    analyzer: Analyzer,
    epoch: int | None = None,
) -> bool:
    """Tell whether a store may have written an element before a point of the program.

    Parameters
    ----------
    write
        The store.
    element
        The element's index.
    values
        The loops around the point, outermost first, with their values there; None for the end.
    before
        Whether the store stands before the point in the text.
    analyzer
        Knows the range of each variable.
    epoch
        How many barriers have been passed at the point; None where that is not known.

    Returns
    -------
    bool
        False only if a proof shows that no store has written it.
    """
    system = DependenceSystem(write, write, len(write.loops), analyzer)
    require = system.constraints.require
    for index, place in zip(write.indices, element, strict=True):
        require(Zero(system.value(index, FIRST).plus(ONE, -place)))
    for condition in write.conditions:
        require(system.condition(condition, FIRST))
    for loop in write.loops:
        system.variable(loop.var, FIRST)
    if values is not None:
        shared = [loop for own, loop in zip(write.loops, values, strict=False) if own is loop]
        ahead = [system.variable(loop.var, FIRST).plus(ONE, -values[loop]) for loop in shared]
        for difference in ahead[: write.shared_from]:
            require(Zero(difference))
        threads = (n for n, loop in enumerate(shared) if is_in_block(loop.kind))
        first = max(next(threads, len(shared)), write.shared_from)
        outside, inside = ahead[write.shared_from : first], ahead[first:]
        if not inside:
            require(_is_before(outside, before))
        elif epoch is None or write.epoch is None:
            require(_is_before(outside, True))
        else:
            passed = system.value(write.epoch, FIRST).plus(ONE, -epoch)
            require(_is_before([*outside, passed, *inside], before))
    return system.constraints.solve() is not None


def _is_before(differences: Sequence[Linear], or_equal: bool) -> Formula:
    """Return the formula: the first nonzero difference is negative, or `or_equal` and all are 0."""
    result: Formula = TRUE if or_equal else FALSE
    for difference in reversed(differences):
        less = AtLeast(Linear({}, -1).plus(difference, -1))
        result = Any((less, All((Zero(difference), result))))
    return result


class DependenceSystem:
    """The constraints on two accesses in different iterations of the loop at `depth`.

    With `is_carried` False, they are in one iteration of the first `depth` loops, and may be
    anywhere in the loops inside these.
    """

    def __init__(
        self,
        first: Access,
        second: Access,
        depth: int,
        analyzer: Analyzer,
        *,
        is_carried: bool = True,
    ) -> None:
        self.accesses = (first, second)
        self.depth = depth
        self.loop = first.loops[depth] if is_carried and depth < len(first.loops) else None
        self.analyzer = analyzer
        self.loops = tuple({x.var: x for x in access.loops} for access in self.accesses)
        outside = {x.var for x in first.loops[: self.depth]}
        self.varying = {x.var for access in self.accesses for x in access.loops} - outside
        self.constraints = System()
        self.variables: dict[tuple[Var, int], Linear] = {}
        self.atoms: dict[tuple[AtomKey, int], Linear] = {}

    def build(self) -> DependenceSystem:
        """Add the constraints: one element, and the second access in a later iteration."""
        if self.loop is not None:
            self.difference(self.loop)
        first, second = self.accesses
        for a, b in zip(first.indices, second.indices, strict=True):
            difference = self.value(b, SECOND).plus(self.value(a, FIRST), -1)
            self.constraints.require(Zero(difference))
        for side, access in enumerate(self.accesses):
            for loop in access.loops:
                if loop.size is None or loop.size < 1:
                    self.variable(loop.var, side)
            for condition in access.conditions:
                self.constraints.require(self.condition(condition, side))
        epochs = self.epochs()
        if epochs is not None:
            first_epoch, second_epoch = (self.value(epoch, n) for n, epoch in enumerate(epochs))
            self.constraints.require(Zero(second_epoch.plus(first_epoch, -1)))
        return self

    def difference(self, loop: Loop) -> Linear:
        """Return the iterations of a loop around both accesses from the first to the second."""
        second = self.variable(loop.var, SECOND)
        return second.plus(self.variable(loop.var, FIRST), -1)

    @property
    def is_over_threads(self) -> bool:
        """Tell whether the iterations are threads of a block, which barriers order."""
        return self.loop is not None and is_in_block(self.loop.kind)

    def epochs(self) -> tuple[Expr, Expr] | None:
        """Return how many barriers threads pass before the accesses; None if that is not known."""
        first, second = (access.epoch for access in self.accesses)
        return (
            (first, second)
            if self.is_over_threads and first is not None and second is not None
            else None
        )

    def solve(self, *more: Formula) -> Witness | Doubt | None:
        """Return a solution of the constraints, and of `more`, as a witness."""
        solution = self.constraints.solve_with(*more)
        if solution is None:
            return None
        if isinstance(solution, OutOfBudget):
            return CUT_OFF
        return self.checked(solution)

    def checked(self, solution: list[int]) -> Witness | Doubt:
        """Return a solution as a witness if evaluating the indices confirms it; else a doubt."""
        values = [
            {var: self.at(var, side, solution) for var in (*self.symbols(), *self.loops[side])}
            for side in (FIRST, SECOND)
        ]
        elements = []
        try:
            for access, at in zip(self.accesses, values, strict=True):
                for condition in access.conditions:
                    if not evaluate(condition, at):
                        return Doubt(f"the solution found does not satisfy {condition}")
                elements.append(tuple(evaluate(index, at) for index in access.indices))
        except DataDependent as doubt:
            return Doubt(f"it depends on {doubt}")
        if elements[0] != elements[1]:
            return Doubt(f"the solution found touches {elements[0]} and {elements[1]}")
        if self.is_over_threads and not self.is_one_epoch(values):
            return Doubt("it is not known whether a barrier is between them")
        first, second = (
            {loop: at[loop.var] for loop in access.loops}
            for access, at in zip(self.accesses, values, strict=True)
        )
        return Witness(first, second, elements[0], {var: values[0][var] for var in self.symbols()})

    def is_one_epoch(self, values: Sequence[Mapping[Var, int]]) -> bool:
        """Tell whether both accesses are in one barrier epoch for given values of the variables."""
        epochs = self.epochs()
        if epochs is None:
            return False
        first, second = (evaluate(epoch, at) for epoch, at in zip(epochs, values, strict=True))
        return first == second

    def at(self, var: Var, side: int, solution: list[int]) -> int:
        """Return the value of a variable in a solution; 0 if no constraint contains it."""
        known = self.variables.get((var, side if var in self.varying else FIRST))
        return known.bounds(solution, solution)[0] if known else 0

    def symbols(self) -> list[Var]:
        """Return the variables that no loop binds."""
        return [var for var, side in self.variables if side == FIRST and var not in self.loops[0]]

    # -- variables -------------------------------------------------------------------------------

    def variable(self, var: Var, side: int) -> Linear:
        """Return the linear form of a variable for one of the two accesses."""
        if side == SECOND and var not in self.varying:
            side = FIRST
        known = self.variables.get((var, side))
        if known is None:
            known = self.new_variable(var, side)
            self.variables[var, side] = known
        return known

    def new_variable(self, var: Var, side: int) -> Linear:
        """Add the variable of a loop, or of a symbol, with its bounds."""
        loop = self.loops[side].get(var)
        if loop is None:
            bounds = self.analyzer.interval(var)
            return self.constraints.variable(bounds.low, bounds.high)
        last = self.last(loop)
        if side == FIRST or self.loops[FIRST].get(var) is not loop:
            result = self.constraints.variable(0, last)
        else:
            least = 1 if loop is self.loop else -last
            result = self.variable(var, FIRST).plus(self.constraints.variable(least, last))
            self.constraints.require(AtLeast(result))
            if loop.size is not None:
                self.constraints.require(AtLeast(Linear({}, last).plus(result, -1)))
        if loop.size is None:
            extent = self.value(loop.extent, side)
            self.constraints.require(AtLeast(extent.plus(result, -1).plus(ONE, -1)))
        return result

    def last(self, loop: Loop) -> int:
        """Return the greatest value of a loop's variable."""
        if loop.size is not None:
            return loop.size - 1
        return int(min(self.analyzer.interval(loop.var).high, LIMIT))

    # -- expressions -----------------------------------------------------------------------------

    def value(self, expr: Expr, side: int) -> Linear:
        """Return the linear form of an index expression for one of the two accesses."""
        return self.affine(self.analyzer.affine(expr), side)

    def affine(self, affine: Affine, side: int) -> Linear:
        """Return the linear form of an affine expression."""
        result = Linear({}, affine.constant)
        for term in affine.terms.values():
            result = result.plus(self.product(term.parts, side), term.factor)
        return result

    def product(self, parts: tuple[Expr, ...], side: int) -> Linear:
        """Return the linear form of a product of atoms."""
        if len(parts) == 1:
            return self.atom(parts[0], side)
        return self.atom(reduce(lambda a, b: Binary("mul", a, b), parts), side)

    def atom(self, atom: Expr, side: int) -> Linear:
        """Return the linear form of an expression that is not affine; the same for equal ones."""
        if isinstance(atom, Var):
            return self.variable(atom, side)
        if side == SECOND and not (free_vars(atom) & self.varying or has_load(atom)):
            side = FIRST
        key = atom_key(atom), side
        known = self.atoms.get(key)
        if known is None:
            known = self.new_atom(atom, side)
            self.atoms[key] = known
        return known

    def new_atom(self, atom: Expr, side: int) -> Linear:
        """Add an expression that is not affine, with the constraints that define it."""
        match atom:
            case Binary("floordiv", a, Const(c, _)) if c > 0:
                return self.quotient(atom, a, int(c), side)
            case Binary("floormod", a, Const(c, _) as divisor) if c > 0:
                quotient = self.atom(Binary("floordiv", a, divisor), side)
                return self.value(a, side).plus(quotient, -int(c))
            case Binary("min" | "max" as op, a, b):
                return self.extremum(atom, 1 if op == "min" else -1, a, b, side)
            case Binary(op, a, b):
                arguments = (self.value(a, side), self.value(b, side))
                return self.function(atom, arguments, lambda x, y: fold_index(op, x, y))
            case Select(condition, a, b) | IfThenElse(condition, a, b):
                return self.choice(atom, condition, a, b, side)
        return self.unknown(atom)

    def unknown(self, atom: Expr) -> Linear:
        """Add a variable of which only the bounds are known."""
        bounds = self.analyzer.interval(atom)
        return self.constraints.variable(bounds.low, bounds.high)

    def quotient(self, atom: Expr, dividend: Expr, divisor: int, side: int) -> Linear:
        """Return a variable q with ``0 <= dividend - divisor * q < divisor``."""
        value = self.value(dividend, side)
        bounds = self.analyzer.interval(atom)
        first = self.atoms.get((atom_key(atom), FIRST))
        if side == FIRST or first is None:
            result = self.constraints.variable(bounds.low, bounds.high)
        else:
            width = bounds.high - bounds.low
            step = self.constraints.variable(-width, width)
            result = first.plus(step)
            moved = value.plus(self.value(dividend, FIRST), -1).plus(step, -divisor)
            for sign in (1, -1):
                self.constraints.require(AtLeast(Linear({}, divisor - 1).plus(moved, sign)))
        rest = value.plus(result, -divisor)
        self.constraints.require(AtLeast(rest))
        self.constraints.require(AtLeast(Linear({}, divisor - 1).plus(rest, -1)))
        return result

    def extremum(self, atom: Expr, sign: int, a: Expr, b: Expr, side: int) -> Linear:
        """Return the smaller of two values, or with `sign` -1 the greater."""
        result = self.unknown(atom)
        rests = [self.value(x, side).plus(result, -1) for x in (a, b)]
        for rest in rests:
            self.constraints.require(AtLeast(Linear({}).plus(rest, sign)))
        self.constraints.require(Any(tuple(Zero(rest) for rest in rests)))
        return result

    def function(
        self, atom: Expr, arguments: tuple[Linear, ...], apply: Callable[..., int]
    ) -> Linear:
        """Return a function of its arguments, which is known once these are numbers."""
        result = self.unknown(atom)
        (variable,) = result.terms
        self.constraints.functions.append(Function(variable, arguments, apply))
        return result

    def choice(self, atom: Expr, condition: Expr, a: Expr, b: Expr, side: int) -> Linear:
        """Return `a` where a condition holds, else `b`."""
        result = self.unknown(atom)
        parts = [
            All((self.condition(test, side), Zero(self.value(x, side).plus(result, -1))))
            for test, x in ((condition, a), (Not(condition), b))
        ]
        self.constraints.require(Any(tuple(parts)))
        return result

    # -- conditions ------------------------------------------------------------------------------

    def condition(self, expr: Expr, side: int, *, negated: bool = False) -> Formula:
        """Return a condition for one of the two accesses; a data-dependent one counts as true."""
        match expr:
            case Const(value, _):
                return TRUE if bool(value) != negated else FALSE
            case Not(value):
                return self.condition(value, side, negated=not negated)
            case Call("likely", (value,), _):
                return self.condition(value, side, negated=negated)
            case Logical(op, a, b):
                parts = tuple(self.condition(x, side, negated=negated) for x in (a, b))
                return All(parts) if (op == "and") != negated else Any(parts)
            case Compare(op, a, b) if a.dtype == "index":
                difference = self.value(a, side).plus(self.value(b, side), -1)
                return comparison(NEGATION[op] if negated else op, difference)
        return TRUE


def comparison(op: CompareOp, difference: Linear) -> Formula:
    """Return ``difference op 0``."""
    opposite = Linear({}).plus(difference, -1)
    match op:
        case "eq":
            return Zero(difference)
        case "ne":
            above, below = difference.plus(ONE, -1), opposite.plus(ONE, -1)
            return Any((AtLeast(above), AtLeast(below)))
        case "ge":
            return AtLeast(difference)
        case "le":
            return AtLeast(opposite)
        case "gt":
            return AtLeast(difference.plus(ONE, -1))
        case "lt":
            return AtLeast(opposite.plus(ONE, -1))
