"""Passes on graphs: pure functions from a module to a module; what they decide is in its log."""

from dlcompiler.graph.passes.fusion import fuse_ops

__all__ = ["fuse_ops"]
