"""Rewrite rules for data: wrapping integers, IEEE floats and conditions.

The table is the code: `rewritten` matches the left sides and builds the right ones. Each rule makes
an expression smaller, or moves a literal to the right, so that rewriting ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from dlcompiler import dtypes
from dlcompiler.arith.fold import folded
from dlcompiler.arith.laws import c, d, x, y
from dlcompiler.arith.matching import (
    ALL_BITS,
    HIGHEST,
    LITERAL,
    LOWEST,
    Head,
    Shape,
    build,
    head_of,
    literal,
    match,
    operands,
    pattern_shape,
    shape_of,
)
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
    compare,
    index_const,
)


@dataclass(frozen=True, eq=False)
class Rewrite:
    """A rule: replace `left` by `right` if the operands belong to one of these dtype families."""

    left: Expr
    right: Expr
    families: tuple[str, ...]


def _table(families: str, *pairs: tuple[Expr, Expr]) -> tuple[Rewrite, ...]:
    return tuple(Rewrite(left, right, tuple(families.split())) for left, right in pairs)


# x and y stand for anything, c and d for literals, all of one dtype, in which the numbers are, too.
# p and q are conditions.
p, q = Var("p", "bool"), Var("q", "bool")
TRUE, FALSE = Const(True, "bool"), Const(False, "bool")
ZERO, MINUS_ZERO = index_const(0), Const(-0.0, "index")

SUMS = _table(
    "int uint index",
    (x + 0, x),
    (x - 0, x),
    (x - x, ZERO),
    (c + x, x + c),
    (x + c + d, x + (c + d)),
    (x - c + d, x + (d - c)),
    (c - x + d, (c + d) - x),
    (x + c - d, x + (c - d)),
    (x - c - d, x - (c + d)),
    (c - x - d, (c - d) - x),
    (c - (d - x), x + (c - d)),
    (x + y - y, x),
    (x + y - x, y),
    (x - y + y, x),
    (x - (x - y), y),
)
PRODUCTS = _table(
    "int uint index",
    (x * 0, ZERO),
    (x * 1, x),
    (c * x, x * c),
    (x * c * d, x * (c * d)),
    (x // 1, x),
    (x // 0, ZERO),
    (0 // x, ZERO),
    (x % 1, ZERO),
    (x % 0, ZERO),
    (0 % x, ZERO),
    (x % x, ZERO),
    (binary("truncdiv", x, 1), x),
    (binary("truncdiv", x, 0), ZERO),
    (binary("truncdiv", 0, x), ZERO),
    (binary("truncmod", x, 1), ZERO),
    (binary("truncmod", x, 0), ZERO),
    (binary("truncmod", 0, x), ZERO),
    (binary("truncmod", x, x), ZERO),
)
BITS = _table(
    "int uint",
    (Binary("bitand", x, ZERO), ZERO),
    (x & ALL_BITS, x),
    (x & x, x),
    (c & x, x & c),
    (x & c & d, x & (c & d)),
    (x | 0, x),
    (x | ALL_BITS, ALL_BITS),
    (x | x, x),
    (c | x, x | c),
    (x | c | d, x | (c | d)),
    (x ^ 0, x),
    (x ^ x, ZERO),
    (c ^ x, x ^ c),
    (x ^ c ^ d, x ^ (c ^ d)),
    (Binary("shl", x, ZERO), x),
    (Binary("shl", ZERO, x), ZERO),
    (Binary("shr", x, ZERO), x),
    (Binary("shr", ZERO, x), ZERO),
)
EXTREMA = (
    *_table("int uint index float", (binary("min", x, x), x), (binary("max", x, x), x)),
    *_table(
        "int uint index",
        (binary("min", c, x), binary("min", x, c)),
        (binary("max", c, x), binary("max", x, c)),
        (binary("min", binary("min", x, c), d), binary("min", x, binary("min", c, d))),
        (binary("max", binary("max", x, c), d), binary("max", x, binary("max", c, d))),
        (binary("min", binary("min", x, y), x), binary("min", x, y)),
        (binary("min", binary("min", x, y), y), binary("min", x, y)),
        (binary("max", binary("max", x, y), x), binary("max", x, y)),
        (binary("max", binary("max", x, y), y), binary("max", x, y)),
    ),
    *_table(
        "int uint",
        (binary("min", x, LOWEST), LOWEST),
        (binary("min", x, HIGHEST), x),
        (binary("max", x, LOWEST), x),
        (binary("max", x, HIGHEST), HIGHEST),
    ),
)
# There is no rule for x + 0 (-0.0 + 0.0 is 0.0), x * 0 or x - x (wrong for infinities and NaN).
FLOATS = _table(
    "float",
    (x * 1, x),
    (1 * x, x),
    (Binary("div", x, index_const(1)), x),
    (x - 0, x),
    (Binary("add", x, MINUS_ZERO), x),
    (Binary("add", MINUS_ZERO, x), x),
    (Binary("sub", MINUS_ZERO, Binary("sub", MINUS_ZERO, x)), x),
)
COMPARISONS = (
    *_table(
        "int uint index",
        (compare("eq", x, x), TRUE),
        (compare("ne", x, x), FALSE),
        (x <= x, TRUE),
        (x >= x, TRUE),
        (x < x, FALSE),
        (x > x, FALSE),
        (compare("eq", c, x), compare("eq", x, c)),
        (compare("ne", c, x), compare("ne", x, c)),
        (Compare("lt", c, x), x > c),
        (Compare("le", c, x), x >= c),
        (Compare("gt", c, x), x < c),
        (Compare("ge", c, x), x <= c),
        (compare("eq", x + c, d), compare("eq", x, d - c)),
        (compare("ne", x + c, d), compare("ne", x, d - c)),
        (compare("eq", x - c, d), compare("eq", x, d + c)),
        (compare("ne", x - c, d), compare("ne", x, d + c)),
        (compare("eq", c - x, d), compare("eq", x, c - d)),
        (compare("ne", c - x, d), compare("ne", x, c - d)),
        (Not(x < y), x >= y),
        (Not(x <= y), x > y),
        (Not(x > y), x <= y),
        (Not(x >= y), x < y),
    ),
    *_table(
        "int uint",
        (x < LOWEST, FALSE),
        (x >= LOWEST, TRUE),
        (x > HIGHEST, FALSE),
        (x <= HIGHEST, TRUE),
    ),
    *_table(
        # No such rule for `<` of floats: with NaN both `a < b` and `a >= b` are false.
        "int uint index float",
        (Not(compare("eq", x, y)), compare("ne", x, y)),
        (Not(compare("ne", x, y)), compare("eq", x, y)),
    ),
)
CONDITIONS = _table(
    "bool",
    (Not(Not(p)), p),
    (Logical("and", p, TRUE), p),
    (Logical("and", TRUE, p), p),
    (Logical("and", p, FALSE), FALSE),
    (Logical("and", FALSE, p), FALSE),
    (Logical("and", p, p), p),
    (Logical("or", p, FALSE), p),
    (Logical("or", FALSE, p), p),
    (Logical("or", p, TRUE), TRUE),
    (Logical("or", TRUE, p), TRUE),
    (Logical("or", p, p), p),
    (Select(p, TRUE, FALSE), p),
    (IfThenElse(p, TRUE, FALSE), p),
    (Select(p, FALSE, TRUE), Not(p)),
    (IfThenElse(p, FALSE, TRUE), Not(p)),
)
CHOICES = _table(
    "int uint index float bool",
    (Select(TRUE, x, y), x),
    (Select(FALSE, x, y), y),
    (Select(p, x, x), x),
    (Select(Not(p), x, y), Select(p, y, x)),
    (IfThenElse(TRUE, x, y), x),
    (IfThenElse(FALSE, x, y), y),
    (IfThenElse(p, x, x), x),
    (IfThenElse(Not(p), x, y), IfThenElse(p, y, x)),
)
REWRITES = (*SUMS, *PRODUCTS, *BITS, *EXTREMA, *FLOATS, *COMPARISONS, *CONDITIONS, *CHOICES)


def _by_head(rewrites: Iterable[Rewrite]) -> dict[tuple[str, Head], list[tuple[Shape, Rewrite]]]:
    result: dict[tuple[str, Head], list[tuple[Shape, Rewrite]]] = {}
    for rewrite in rewrites:
        shape = tuple(pattern_shape(operand) for operand in operands(rewrite.left))
        for family in rewrite.families:
            result.setdefault((family, head_of(rewrite.left)), []).append((shape, rewrite))
    return result


_REWRITES = _by_head(REWRITES)


def rewritten(expr: Expr) -> Expr | None:
    """Apply one rule to the root of an expression; None when there is none.

    Parameters
    ----------
    expr
        Its operands must be simplified. It must not be scalar index arithmetic, which the affine
        form simplifies.
    """
    match expr:
        case Cast():
            value = folded(expr)
            return _shorter_cast(expr) if value is None else value
        case Call("likely", (value,)):
            return literal(value)
    below = operands(expr)
    if not below:
        return None
    shapes = tuple(shape_of(operand) for operand in below)
    if all(shape == LITERAL for shape in shapes) and (value := folded(expr)) is not None:
        return value
    dtype = operand_dtype(expr)
    for shape, rewrite in _REWRITES.get((dtypes.family(dtype), head_of(expr)), ()):
        if all(wanted is None or wanted == got for wanted, got in zip(shape, shapes, strict=True)):
            found: dict[Var, Expr] = {}
            if match(rewrite.left, expr, dtype, found):
                return build(rewrite.right, found, dtype)
    return None


def operand_dtype(expr: Expr) -> str:
    """Return the dtype of the operands of an expression, which selects its rules."""
    match expr:
        case Compare(_, a, _) | Not(Compare(_, a, _)):
            return a.dtype
    return expr.dtype


def _shorter_cast(expr: Cast) -> Expr | None:
    """Drop a conversion to the same dtype, or the inner one of two if it loses nothing."""
    value = expr.value
    if value.dtype == expr.dtype:
        return value
    if isinstance(value, Cast) and can_skip(value.value.dtype, value.dtype, expr.dtype):
        return Cast(value.value, expr.dtype)
    return None


def can_skip(source: str, way: str, target: str) -> bool:
    """Tell whether a conversion from `source` via `way` to `target` can skip `way`.

    A conversion of an integer to an integer wraps, but that of a float to an integer saturates. So
    a float between two integers cannot be skipped.
    """
    if dtypes.is_float(way) and not dtypes.is_float(source) and not dtypes.is_float(target):
        return False
    return holds_all_of(way, source)


@cache
def holds_all_of(wide: str, narrow: str) -> bool:
    """Tell whether dtype `wide` holds each value of `narrow`; false if either is ``index``."""
    kinds = dtypes.family(wide), dtypes.family(narrow)
    if "index" in kinds:
        return False
    if kinds[1] == "float":
        return kinds[0] == "float" and (dtypes.element(wide), dtypes.element(narrow)) in _WIDENS
    if kinds[0] == "float":
        return dtypes.bits(narrow) - (kinds[1] == "int") <= _PRECISION[dtypes.element(wide)]
    low, high = dtypes.min_value(narrow), dtypes.max_value(narrow)
    return dtypes.min_value(wide) <= low and high <= dtypes.max_value(wide)


#: Bits of the integers that a float holds without gaps.
_PRECISION = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
_WIDENS = {
    (wide, narrow)
    for wide, narrows in {
        "float32": ("float16", "bfloat16", "float32"),
        "float64": ("float16", "bfloat16", "float32", "float64"),
        "float16": ("float16",),
        "bfloat16": ("bfloat16",),
    }.items()
    for narrow in narrows
}
