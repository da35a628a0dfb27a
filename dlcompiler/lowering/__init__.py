"""Lower a schedule state to loop IR: loop nests, guards and attached stages."""

from dlcompiler.lowering.nest import build_nests

__all__ = ["build_nests"]
