"""Write operators by others for which the operator library has kernels."""

from dlcompiler.graph.passes.decompose.run import RULES, decompose_ops

__all__ = ["RULES", "decompose_ops"]
