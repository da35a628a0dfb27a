"""Memory of the values between kernels: an arena with planned offsets."""

from dlcompiler.graph.memory.plan import MemoryPlan, Placement, plan_memory
from dlcompiler.graph.memory.values import ALIGNMENT

__all__ = ["ALIGNMENT", "MemoryPlan", "Placement", "plan_memory"]
