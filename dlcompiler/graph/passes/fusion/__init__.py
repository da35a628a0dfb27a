"""Fusion: which calls become one kernel, and why."""

from dlcompiler.graph.passes.fusion.fuse import fuse_ops, groups_of
from dlcompiler.graph.passes.fusion.groups import MAX_DEPTH
from dlcompiler.graph.passes.fusion.kernels import moved_bytes
from dlcompiler.graph.passes.fusion.options import CLASSIC, FusionOptions
from dlcompiler.graph.passes.fusion.reasons import RULES

__all__ = ["CLASSIC", "MAX_DEPTH", "RULES", "FusionOptions", "fuse_ops", "groups_of", "moved_bytes"]
