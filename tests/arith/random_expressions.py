"""Random expressions of each integer family, and what must hold when they are simplified.

A case depends on its name only: ``index:1:17`` is the family, the seed and the number.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dlcompiler import dtypes
from dlcompiler.arith import Analyzer, Interval
from dlcompiler.ir import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Logical,
    Not,
    Select,
    Var,
    binary,
    index_const,
    structural_equal,
)
from dlcompiler.ir.rewrite import children
from tests.arith.evaluation import COMPARISONS, value_of

POINTS = 6
SIZES = (0, 1, 2, 3, 4, 5, 8, 13)
DATA = tuple(name for name in dtypes.SCALARS if dtypes.is_int(name))

i, j, k, n, m = (Var(name) for name in "ijknm")
LOOPS, SYMBOLS = (i, j, k), (n, m)
SUMS = ("add", "sub")
DIVISIONS = ("floordiv", "floormod", "truncdiv", "truncmod")
BITS = ("bitand", "bitor", "bitxor")
Point = dict[Var, int]


@dataclass(frozen=True)
class Case:
    """An expression, what is known of its variables, and points where it has a value."""

    name: str
    expr: Expr
    ranges: dict[Var, Interval]
    extents: dict[Var, Expr]
    points: list[Point]

    def analyzer(self) -> Analyzer:
        """Return an analyzer that has seen nothing yet."""
        return Analyzer(self.ranges, self.extents)

    def __str__(self) -> str:
        known = {var.name: f"{x.low} to {x.high}" for var, x in self.ranges.items()}
        known |= {var.name: f"0 to {extent} - 1" for var, extent in self.extents.items()}
        return f"{self.name}: {self.expr} ({self.expr.dtype}) with {known}"


def random_case(name: str) -> Case:
    """Return the case of a name."""
    rng = random.Random(name)
    return FAMILIES[name.partition(":")[0]](name, rng)


def check(case: Case) -> None:
    """Check value, interval, idempotence, and that what did not change is the same object."""
    analyzer = case.analyzer()
    simple = analyzer.simplify(case.expr)
    is_index = case.expr.dtype == "index"
    bounds = analyzer.interval(case.expr) if is_index else None
    for point in case.points:
        got, expected = value_of(simple, point), value_of(case.expr, point)
        shown = {var.name: value for var, value in point.items()}
        assert got == expected, f"{simple} is {got} and not {expected} at {shown}"
        if bounds is not None:
            assert bounds.low <= expected <= bounds.high, f"{bounds}: {expected} at {shown}"
    again = case.analyzer().simplify(simple)
    assert again is simple, f"{simple} becomes {again}"
    assert simple is case.expr or not structural_equal(simple, case.expr, rename=False)


def shrunk(case: Case) -> Case:
    """Return a smallest part of a failing case that fails alone."""
    for part in children(case.expr):
        smaller = Case(case.name, part, case.ranges, case.extents, case.points)
        if _fails(smaller):
            return shrunk(smaller)
    return case


def _fails(case: Case) -> bool:
    try:
        check(case)
    except Exception:
        return True
    return False


# -- index ----------------------------------------------------------------------------------------


def index_case(name: str, rng: random.Random) -> Case:
    """Make an index expression over loops of known or of symbolic extents."""
    if rng.random() < 0.5:
        ranges, extents, points = static(rng)
    else:
        ranges, extents, points = symbolic(rng)
    if extents and rng.random() < 0.4:
        whole, divisor = whole_and_divisor(rng, extents)
        expr: Expr = Binary(rng.choice(DIVISIONS[:2]), whole, divisor)
    else:
        variables = tuple(points[0]) if points else (*LOOPS, *SYMBOLS)
        expr = index_expr(rng, variables, rng.randint(1, 4))
    return Case(name, expr, ranges, extents, points)


def whole_and_divisor(rng: random.Random, extents: dict[Var, Expr]) -> tuple[Expr, Expr]:
    """Make a sum of multiples of a divisor and a rest, which may stay below it, or nearly."""
    divisor = rng.choice((n, m, index_const(4), n + 1, n * m, extents[i], extents[j]))
    multiple = rng.choice((i, j, n, m, index_const(1), index_const(-1)))
    rest = rng.choice(
        (i, j, k, n, m, REST, j + REST, index_const(0), i - 1, divisor - 1, j - divisor, i + k)
    )
    return multiple * divisor + rest, divisor


def static(rng: random.Random) -> tuple[dict[Var, Interval], dict[Var, Expr], list[Point]]:
    """Return small ranges of the loops, some of one value, some below zero."""
    ranges = {}
    for var in LOOPS:
        low = rng.choice((0, 0, 0, rng.randint(-4, 4)))
        ranges[var] = Interval(low, low + rng.choice((0, 1, 2, 3, 6, 7, 15, 31)))
    points = [
        {var: rng.randint(int(x.low), int(x.high)) for var, x in ranges.items()}
        for _ in range(POINTS - 2)
    ]
    points.append({var: int(x.low) for var, x in ranges.items()})
    points.append({var: int(x.high) for var, x in ranges.items()})
    return ranges, {}, points


def symbolic(rng: random.Random) -> tuple[dict[Var, Interval], dict[Var, Expr], list[Point]]:
    """Return sizes n and m, and loops whose extents are expressions of them."""
    low = rng.choice((0, 0, 1))
    ranges = {var: Interval(low, math.inf) for var in SYMBOLS}
    ranges[k] = Interval(0, rng.choice((0, 3, 7)))
    extents = {i: rng.choice(EXTENTS), j: rng.choice((*EXTENTS, *INNER_EXTENTS))}
    points = []
    for _ in range(8 * POINTS):
        point = {var: rng.choice([size for size in SIZES if size >= low]) for var in SYMBOLS}
        point[k] = rng.randint(0, int(ranges[k].high))
        for var, extent in extents.items():
            size = value_of(extent, point)
            if size < 1:
                break
            point[var] = rng.choice((0, size - 1, rng.randrange(size)))
        else:
            points.append(point)
    return ranges, extents, points[:POINTS]


EXTENTS = (
    n, m, n * m, n + m - 1, (n + 3) // 4, n // 4, n - 2, binary("min", n, 3), n * n * 4,
    binary("max", n - m, 0), (n + 1) // 2 * 2, n * 4, (n * m + 7) // 8, index_const(6),
)  # fmt: skip
REST = binary("min", 4, n - i * 4)
INNER_EXTENTS = (i, i + 1, n - i, REST, 4 - REST, n - i * 2)


def index_expr(rng: random.Random, variables: tuple[Var, ...], depth: int) -> Expr:
    """Make an index expression; half of them as splitting and fusing make them."""
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(variables) if rng.random() < 0.75 else index_number(rng)

    def operand() -> Expr:
        return index_expr(rng, variables, depth - 1)

    def factor() -> Expr:
        number = index_const(rng.choice((2, 3, 4, 6, 8, 12, 32)))
        return number if rng.random() < 0.7 else rng.choice(variables)

    match rng.randrange(10):
        case 0 | 1 | 2:
            return Binary(rng.choice(SUMS), operand(), operand())
        case 3 | 4:
            return Binary("mul", operand(), factor())
        case 5 | 6:
            return Binary(rng.choice(DIVISIONS[:2]), operand(), factor())
        case 7:
            return Binary(rng.choice(("min", "max")), operand(), operand())
        case 8:
            op = rng.choice((*DIVISIONS, "mul", *BITS))
            return Binary(op, operand(), operand())
    choose = rng.choice((Select, IfThenElse))
    return choose(condition(rng, variables, max(depth - 2, 0)), operand(), operand())


def index_number(rng: random.Random) -> Expr:
    return index_const(rng.choice((0, 1, 2, 4, 8, -1, rng.randint(-9, 40))))


# -- data -----------------------------------------------------------------------------------------


def data_case(name: str, rng: random.Random) -> Case:
    """Make an expression of data integers of several widths."""
    variables = data_variables(rng)
    expr = data_expr(rng, variables, rng.choice(variables).dtype, rng.randint(1, 4))
    return Case(name, expr, {}, {}, data_points(rng, variables))


def data_variables(rng: random.Random) -> tuple[Var, ...]:
    dtype = rng.choice(DATA)
    other = rng.choice(DATA)
    return (Var("x", dtype), Var("y", dtype), Var("z", other))


def data_points(rng: random.Random, variables: tuple[Var, ...]) -> list[Point]:
    return [{var: data_value(rng, var.dtype) for var in variables} for _ in range(POINTS)]


def data_value(rng: random.Random, dtype: str) -> int:
    low, high = int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype))
    value = rng.choice((0, 1, 2, 3, 7, -1, low, low + 1, high, high - 1, rng.randint(low, high)))
    return value if low <= value <= high else 0


def data_expr(rng: random.Random, variables: tuple[Var, ...], dtype: str, depth: int) -> Expr:
    """Make an expression of a data integer."""
    fitting = [var for var in variables if var.dtype == dtype]
    if depth == 0 or rng.random() < 0.1:
        if fitting and rng.random() < 0.65:
            return rng.choice(fitting)
        return Const(data_value(rng, dtype), dtype)

    def operand(wanted: str = dtype) -> Expr:
        return data_expr(rng, variables, wanted, depth - 1)

    match rng.randrange(10):
        case 0 | 1 | 2:
            return Binary(rng.choice(SUMS), operand(), operand())
        case 3:
            return Binary("mul", operand(), operand())
        case 4:
            return Binary(rng.choice(DIVISIONS), operand(), operand())
        case 5:
            return Binary(rng.choice(("min", "max")), operand(), operand())
        case 6:
            return Binary(rng.choice((*BITS, "shl", "shr")), operand(), operand())
        case 7:
            same = operand()
            return Binary(rng.choice((*SUMS, *DIVISIONS, *BITS, "min", "max")), same, same)
        case 8 if rng.random() < 0.5:
            return Cast(Cast(rng.choice(variables), rng.choice(DATA)), dtype)
        case 8:
            return Cast(operand(rng.choice(DATA)), dtype)
    choose = rng.choice((Select, IfThenElse))
    return choose(condition(rng, variables, depth - 1), operand(), operand())


# -- conditions -----------------------------------------------------------------------------------


def condition_case(name: str, rng: random.Random) -> Case:
    """Make a condition on indices and data."""
    ranges, extents, points = symbolic(rng) if rng.random() < 0.5 else static(rng)
    data = data_variables(rng)
    points = [
        {**point, **more} for point, more in zip(points, data_points(rng, data), strict=False)
    ]
    if extents and rng.random() < 0.5:
        return Case(name, tight(rng, ranges, extents), ranges, extents, points)
    variables = tuple(dict.fromkeys((*(points[0] if points else (*LOOPS, *SYMBOLS)), *data)))
    return Case(name, condition(rng, variables, rng.randint(1, 3)), ranges, extents, points)


def tight(rng: random.Random, ranges: dict[Var, Interval], extents: dict[Var, Expr]) -> Expr:
    """Compare a value with the end of its range, or with what is one beside it."""
    factors = rng.choice(((1, 1, 0), (1, 0, 0), (0, 1, 1), (4, 0, 1), (1, 2, 0), (1, -1, 0)))
    last = {i: extents[i] - 1, j: extents[j] - 1, k: index_const(int(ranges[k].high))}
    value, end = index_const(0), index_const(rng.choice((-1, 0, 0, 1)))
    for var, factor in zip((i, j, k), factors, strict=True):
        value = value + var * factor
        end = end + (last[var] * factor if factor > 0 else 0)
    if rng.random() < 0.2:
        value, end = i * 4 + j + rng.choice((REST, index_const(0))), n + rng.choice((-1, 0, 1))
    elif rng.random() < 0.2:
        value, end = i * extents[j] + j, extents[i] * extents[j] + rng.choice((-2, -1, 0))
    divisor = rng.choice((index_const(2), index_const(4), m, extents[j]))
    match rng.randrange(5):
        case 0:
            shift = rng.choice((0, 0, 1, -1, 3))
            value, end = value // divisor, (end + shift) // divisor
        case 1:
            value, end = value // divisor * divisor, value + rng.choice((0, 1, 1)) - divisor
        case 2:
            value, end = value % divisor, divisor + rng.choice((-2, -1, 0))
        case 3:
            choose = rng.choice(("min", "max"))
            value, end = binary(choose, value, rng.choice((n, m, i))), binary(choose, end, n)
    return Compare(rng.choice(tuple(COMPARISONS)), value, end)


def condition(rng: random.Random, variables: tuple[Var, ...], depth: int) -> Expr:
    """Make a condition on variables of any dtype."""
    if depth == 0 or rng.random() < 0.5:
        return comparison(rng, variables, depth)

    def operand() -> Expr:
        return condition(rng, variables, depth - 1)

    match rng.randrange(6):
        case 0 | 1:
            return Logical(rng.choice(("and", "or")), operand(), operand())
        case 2 | 3:
            return Not(operand())
        case 4:
            choose = rng.choice((Select, IfThenElse))
            return choose(operand(), operand(), Const(rng.random() < 0.5, "bool"))
    same = operand()
    return Logical(rng.choice(("and", "or")), same, Call("likely", (same,), "bool"))


def comparison(rng: random.Random, variables: tuple[Var, ...], depth: int) -> Expr:
    dtype = rng.choice(variables).dtype
    fitting = tuple(var for var in variables if var.dtype == dtype)
    sides = []
    for _ in range(2):
        if dtype == "index":
            sides.append(index_expr(rng, fitting, depth))
        else:
            sides.append(data_expr(rng, fitting, dtype, depth))
    return Compare(rng.choice(tuple(COMPARISONS)), *sides)


FAMILIES: dict[str, Callable[[str, random.Random], Case]] = {
    "index": index_case,
    "data": data_case,
    "condition": condition_case,
}


def names(family: str, seed: str, count: int) -> Iterator[str]:
    """Yield the names of the first `count` cases of a seed."""
    return (f"{family}:{seed}:{number}" for number in range(count))
