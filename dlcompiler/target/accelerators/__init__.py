"""Accelerators: machines with memories of their own, which a program moves data into and out of."""

from dlcompiler.target.accelerators.model import Accelerator, copy, tensor_op
from dlcompiler.target.accelerators.parts import (
    Engine,
    Field,
    Instruction,
    Memory,
    MemoryPort,
    TokenQueue,
)

__all__ = [
    "Accelerator",
    "Engine",
    "Field",
    "Instruction",
    "Memory",
    "MemoryPort",
    "TokenQueue",
    "copy",
    "tensor_op",
]
