"""Find the coefficients of the polynomials in `dlcompiler.codegen.llvm.functions`.

``python -m tests.minimax`` writes them, by the exchange of E. Remez in numbers of 60 digits. The
two lowest coefficients are rounded to the format first, and those above are found anew each time,
so that they make up for it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, getcontext
from functools import cache
from pathlib import Path

FILE = Path(__file__).parent.parent / "dlcompiler/codegen/llvm/functions/coefficients.py"
Number = Decimal
Real = Callable[[Number], Number]
getcontext().prec = 60
ONE, HALF = Decimal(1), Decimal("0.5")


@dataclass(frozen=True)
class Problem:
    """Approximate `target` over an interval by a polynomial."""

    meaning: str
    """What is approximated, in words."""
    target: Real
    """The function."""
    low: Number
    high: Number
    count: int
    """Number of coefficients."""
    weight: Real = lambda x: ONE
    """What an error is multiplied by, before the largest is made small."""
    form: str = "f"
    """Format of the coefficients: ``f`` float32, ``d`` float64."""
    one_by_one: int = 2
    """How many coefficients are rounded before those above are found anew."""
    first: tuple[float, ...] = ()
    """Coefficients of the lowest powers that are given."""


def coefficients(problem: Problem) -> tuple[list[float], float]:
    """Return the rounded coefficients, lowest power first, and the largest weighted error."""
    points = chebyshev(problem.low, problem.high, 40 * problem.count)
    values = [problem.target(x) for x in points]
    weights = [problem.weight(x) for x in points]
    known = list(problem.first)
    while len(known) < problem.count:
        exact, lowest = [Decimal(c) for c in known], len(known)
        # Near 0 the coefficients that are known decide, and no others can mend their rounding.
        far = [n for n, x in enumerate(points) if lowest == 0 or abs(x) > problem.high / 8]
        rest = [(values[n] - polynomial(exact, points[n])) / points[n] ** lowest for n in far]
        scaled = [weights[n] * abs(points[n]) ** lowest for n in far]
        found = exchange([points[n] for n in far], rest, scaled, problem.count - lowest)
        count = 1 if lowest < problem.one_by_one else len(found)
        known += [rounded(c, problem.form) for c in found[:count]]
    exact = [Decimal(c) for c in known]
    error = max(
        abs(w * (polynomial(exact, x) - value))
        for x, value, w in zip(points, values, weights, strict=True)
    )
    return known, float(error)


def exchange(
    points: Sequence[Number], values: Sequence[Number], weights: Sequence[Number], count: int
) -> list[Number]:
    """Return the `count` coefficients whose largest weighted error is least."""
    chosen = [round(i * (len(points) - 1) / count) for i in range(count + 1)]
    result: list[Number] = []
    for _ in range(30):
        rows = [
            [*(weights[n] * points[n] ** j for j in range(count)), (-ONE) ** i]
            for i, n in enumerate(chosen)
        ]
        *result, level = solved(rows, [weights[n] * values[n] for n in chosen])
        errors = [
            w * (polynomial(result, x) - value)
            for x, value, w in zip(points, values, weights, strict=True)
        ]
        chosen = extrema(errors, count + 1)
        if max(map(abs, errors)) <= abs(level) * Decimal("1.001"):
            break
    return result


def extrema(errors: Sequence[Number], count: int) -> list[int]:
    """Return `count` positions of alternating sign that hold the largest errors."""
    peaks: list[int] = []
    for n, error in enumerate(errors):
        if peaks and (errors[peaks[-1]] > 0) == (error > 0):
            if abs(error) > abs(errors[peaks[-1]]):
                peaks[-1] = n
        else:
            peaks.append(n)
    while len(peaks) > count:
        peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
    if len(peaks) < count:
        raise ArithmeticError(f"{len(peaks)} extrema, not {count}: fewer coefficients do")
    return peaks


def solved(rows: list[list[Number]], right: list[Number]) -> list[Number]:
    """Solve linear equations by elimination with pivots."""
    size = len(rows)
    matrix = [[*row, value] for row, value in zip(rows, right, strict=True)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda n: abs(matrix[n][column]))
        matrix[column], matrix[pivot] = matrix[pivot], matrix[column]
        head = matrix[column]
        for n in range(size):
            if n != column:
                factor = matrix[n][column] / head[column]
                matrix[n] = [a - factor * b for a, b in zip(matrix[n], head, strict=True)]
    return [matrix[n][size] / matrix[n][n] for n in range(size)]


def chebyshev(low: Number, high: Number, count: int) -> list[Number]:
    """Return points of an interval, dense at its ends, without its middle."""
    middle, radius = (low + high) / 2, (high - low) / 2
    angles = (math.cos(math.pi * (i + 0.5) / count) for i in range(count))
    return [middle - radius * Decimal(angle) for angle in angles]


def polynomial(coefficients: Sequence[Number], x: Number) -> Number:
    total = Decimal(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def rounded(value: Number, form: str) -> float:
    (result,) = struct.unpack(form, struct.pack(form, float(value)))
    return float(result)


# -- functions and constants ----------------------------------------------------------------------

LN2, LN10 = Decimal(2).ln(), Decimal(10).ln()
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")


def series(x: Number, term: Number, ratio: Callable[[int], Number]) -> Number:
    """Sum terms each of which is the last one times ``ratio(n) * x``."""
    total, n = term, 0
    while abs(term) > abs(total) * Decimal("1e-55"):
        n += 1
        term *= ratio(n) * x
        total += term
    return total


@cache
def erf(x: Number) -> Number:
    """Compute the error function by its series of positive terms."""
    terms = series(x * x, x, lambda n: 2 / Decimal(2 * n + 1))
    return 2 / PI.sqrt() * (-x * x).exp() * terms


def sin(x: Number) -> Number:
    return series(x * x, x, lambda n: -ONE / (2 * n * (2 * n + 1)))


def cos(x: Number) -> Number:
    return series(x * x, ONE, lambda n: -ONE / (2 * n * (2 * n - 1)))


def power_tail(base_log: Number) -> Real:
    """Return ``(b**x - 1) / x``."""
    return lambda x: ((x * base_log).exp() - 1) / x


def log_tail(base_log: Number, lead: float) -> Real:
    """Return ``log_b(1 + x) / x - lead``."""
    return lambda x: (1 + x).ln() / base_log / x - Decimal(lead)


def atanh_tail(z: Number) -> Number:
    """Return ``(2 atanh(s) - 2 s) / s**3`` of ``z = s**2``."""
    s = z.sqrt()
    return (((1 + s) / (1 - s)).ln() - 2 * s) / s**3


def tanh_tail(z: Number) -> Number:
    """Return ``(tanh(x) - x) / x**3`` of ``z = x**2``."""
    x = z.sqrt()
    e = (2 * x).exp()
    return ((e - 1) / (e + 1) - x) / x**3


def sin_tail(z: Number) -> Number:
    x = z.sqrt()
    return (sin(x) - x) / x**3


def cos_tail(z: Number) -> Number:
    return (cos(z.sqrt()) - 1 + z / 2) / z**2


def erf_tail(z: Number) -> Number:
    x = z.sqrt()
    return erf(x) / x - 1


def erfc_log(x: Number) -> Number:
    """Return ``ln(1 - erf(x)) / x``."""
    return (1 - erf(x)).ln() / x


AROUND_1 = HALF.sqrt() - 1, Decimal(2).sqrt() - 1
EIGHTH_TURN = (PI / 4) ** 2
SMALL = Decimal("1e-9")
PROBLEMS: dict[str, Problem] = {
    "EXP": Problem(
        "(exp(x) - 1) / x where |x| < ln(2)/2", power_tail(ONE), -LN2 / 2, LN2 / 2, 6,
        first=(1.0,),
    ),
    "EXP2": Problem("(2**x - 1) / x where |x| < 1/2", power_tail(LN2), -HALF, HALF, 6),
    "EXP10": Problem(
        "(10**x - 1) / x where |x| < log10(2)/2",
        power_tail(LN10), -LN2 / LN10 / 2, LN2 / LN10 / 2, 6,
    ),
    "TANH": Problem(
        "(tanh(x) - x) / x**3 as a polynomial of x**2, x < 0.65", tanh_tail, SMALL,
        Decimal("0.4225"), 5, weight=lambda z: z,
    ),
    "LOG": Problem(
        "log(1 + x) / x - 1 where 1/sqrt(2) < 1 + x < sqrt(2)", log_tail(ONE, 1.0),
        *AROUND_1, 10, first=(0.0, -0.5),
    ),
    "LOG2": Problem(
        "log2(1 + x) / x - 1 where 1/sqrt(2) < 1 + x < sqrt(2)", log_tail(LN2, 1.0), *AROUND_1, 10
    ),
    "LOG10": Problem(
        "log10(1 + x) / x - 1/2 where 1/sqrt(2) < 1 + x < sqrt(2)", log_tail(LN10, 0.5),
        *AROUND_1, 10,
    ),
    "ERF": Problem(
        "erf(x) / x - 1 as a polynomial of x**2, x < 0.93", erf_tail, SMALL, Decimal("0.865"), 6
    ),
    "ERFC": Problem(
        "log(1 - erf(x)) / x where 0.92 < x < 3.95, as it matters for erf(x)",
        erfc_log, Decimal("0.92"), Decimal("3.95"), 7,
        weight=lambda x: x * (1 - erf(x)) / erf(x),
    ),
    "SIN": Problem(
        "(sin(x) - x) / x**3 as a polynomial of x**2, x < pi/4", sin_tail, SMALL, EIGHTH_TURN, 3,
        weight=lambda z: z,
    ),
    "COS": Problem(
        "(cos(x) - 1 + x**2/2) / x**4 as a polynomial of x**2, x < pi/4",
        cos_tail, SMALL, EIGHTH_TURN, 3, weight=lambda z: z**2,
    ),
    "POW_LOG2": Problem(
        "2 atanh(s) / ln(2) / s as a polynomial of s**2, s < 0.1717",
        lambda z: (atanh_tail(z) * z + 2) / LN2, SMALL, Decimal("0.0295"), 5, form="d",
    ),
    "POW_EXP2": Problem(
        "(2**x - 1) / x where |x| < 1/2", power_tail(LN2), -HALF, HALF, 7, form="d"
    ),
    "EXP_64": Problem(
        "(exp(x) - 1) / x where |x| < ln(2)/2", power_tail(ONE), -LN2 / 2, LN2 / 2, 12,
        form="d", first=(1.0, 0.5),
    ),
    "TANH_64": Problem(
        "(tanh(x) - x) / x**3 as a polynomial of x**2, x < 0.65", tanh_tail, SMALL,
        Decimal("0.4225"), 13, form="d", weight=lambda z: z,
    ),
    "ERF_64": Problem(
        "erf(x) / x - 1 as a polynomial of x**2, x < 1", erf_tail, SMALL, ONE, 13, form="d"
    ),
    "ERFC_64": Problem(
        "log(1 - erf(x)) / x where 1 < x < 5.95, as it matters for erf(x)",
        erfc_log, ONE, Decimal("5.95"), 18, form="d",
        weight=lambda x: x * (1 - erf(x)) / erf(x),
    ),
    "LOG_64": Problem(
        "2 (atanh(s) - s) / s**3 as a polynomial of s**2, s < 0.1717", atanh_tail, SMALL,
        Decimal("0.0295"), 7, form="d", weight=lambda z: z,
    ),
}  # fmt: skip


HEAD = '''"""Coefficients of the functions' polynomials, lowest power first.

Generated by ``python -m tests.minimax``, which says what each one approximates and how well.
"""

from __future__ import annotations
'''


def text() -> str:
    """Return the module of coefficients."""
    parts = [HEAD]
    for name, problem in PROBLEMS.items():
        found, error = coefficients(problem)
        numbers = "".join(f"    {c!r},\n" for c in found)
        power = f"2**{math.log2(error):.1f}"
        parts.append(f'{name} = (\n{numbers})\n"""{problem.meaning}; error {power}."""\n')
    return "\n".join(parts)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
