"""Passes: loop IR to loop IR, one file each, pure. What a pass does not change, it returns."""

from dlcompiler.passes.base import Pass
from dlcompiler.passes.simplify import simplify
from dlcompiler.passes.unroll_loops import unroll_loops
from dlcompiler.passes.vectorize_loops import vectorize_loops

__all__ = ["Pass", "simplify", "unroll_loops", "vectorize_loops"]
