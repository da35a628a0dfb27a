"""From a schedule state to loop IR: nests, guards, attachment."""

from dlcompiler.lowering.nest import build_nests

__all__ = ["build_nests"]
