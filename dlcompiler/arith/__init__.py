"""Analyse index expressions: simplify them, bound them, prove conditions, solve equations."""

from dlcompiler.arith.affine import Affine
from dlcompiler.arith.analyzer import Analyzer
from dlcompiler.arith.interval import NATURAL, Interval
from dlcompiler.arith.inversion import Solution, solve
from dlcompiler.arith.region import Span, relax, union

__all__ = [
    "NATURAL",
    "Affine",
    "Analyzer",
    "Interval",
    "Solution",
    "Span",
    "relax",
    "solve",
    "union",
]
