"""Facts about expressions: simplification, intervals, affine forms, the range an index sweeps."""

from dlcompiler.arith.affine import Affine
from dlcompiler.arith.analyzer import Analyzer
from dlcompiler.arith.interval import NATURAL, Interval
from dlcompiler.arith.region import Span, relax, union

__all__ = ["NATURAL", "Affine", "Analyzer", "Interval", "Span", "relax", "union"]
