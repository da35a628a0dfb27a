"""Generate CUDA C for tensor intrinsics, with one emitter for each kind of instruction.

An emitter appends the code of one call. It gets the statements of the kernel, which write
expressions and loops, and the call with its regions. Languages without emitters write the loops of
the declaration. A call with an instruction that the processor does not have is refused before: see
`analysis.device_intrinsics`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from dlcompiler.ir import IntrinsicCall
from dlcompiler.registry import Registry

if TYPE_CHECKING:
    from dlcompiler.codegen.gpu.statements import KernelStatements

__all__ = ["REGISTRY", "Emitter"]

Emitter: TypeAlias = "Callable[[KernelStatements, IntrinsicCall], None]"

REGISTRY: Registry[Emitter] = Registry(
    "emitter of CUDA C",
    {
        "dot4": "dlcompiler.codegen.gpu.intrinsics.dot4:emit",
        "mma": "dlcompiler.codegen.gpu.intrinsics.mma:multiply",
        "mma_bt": "dlcompiler.codegen.gpu.intrinsics.mma:multiply",
        "mma_load_a": "dlcompiler.codegen.gpu.intrinsics.mma:load",
        "mma_load_b": "dlcompiler.codegen.gpu.intrinsics.mma:load",
        "mma_load_bt": "dlcompiler.codegen.gpu.intrinsics.mma:load",
        "mma_store": "dlcompiler.codegen.gpu.intrinsics.mma:store",
    },
)
"""Emitters by name; a module is imported when its emitter is first used."""
