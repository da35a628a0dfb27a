"""Programs of accelerators: their instructions, what they compute, and how long they take."""

from dlcompiler.simulate.accelerators.program import DramBuffer, InstructionProgram, Step

__all__ = ["DramBuffer", "InstructionProgram", "Step"]
