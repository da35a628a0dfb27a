"""Write tensor intrinsics for PTX: by LLVM's intrinsics for the instructions of NVIDIA's GPUs.

An emitter appends the code of one call. It gets the statements of the kernel, which write
expressions and addresses, and the call with its regions. What has no emitter here is the loops of
its declaration.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from dlcompiler.ir import IntrinsicCall
from dlcompiler.registry import Registry

if TYPE_CHECKING:
    from dlcompiler.codegen.gpu.device_llvm import KernelStatements

__all__ = ["REGISTRY", "SHUFFLES", "Emitter", "is_short"]

SHUFFLES = "shuffles"
"""Among what a machine emits: threads of a warp can read the registers of others."""

MOST_ELEMENTS = 4096
"""Emitters write no loops: a call on larger tiles is the loops of its declaration; [1]."""

Emitter: TypeAlias = "Callable[[KernelStatements, IntrinsicCall], None]"

REGISTRY: Registry[Emitter] = Registry(
    "emitter of PTX",
    {
        "dot4": "dlcompiler.codegen.gpu.nvvm.dot4:emit",
        "mma": "dlcompiler.codegen.gpu.nvvm.mma:multiply",
        "mma_bt": "dlcompiler.codegen.gpu.nvvm.mma:multiply",
        "mma_load_a": "dlcompiler.codegen.gpu.nvvm.mma:load",
        "mma_load_b": "dlcompiler.codegen.gpu.nvvm.mma:load",
        "mma_load_bt": "dlcompiler.codegen.gpu.nvvm.mma:load",
        "mma_store": "dlcompiler.codegen.gpu.nvvm.mma:store",
    },
)
"""Emitters by name; a module is imported when its emitter is first used."""


def is_short(call: IntrinsicCall) -> bool:
    """Tell whether the tiles of a call are small enough to be written without loops."""
    sizes = ([int(str(extent)) for extent in region.extents] for region, _ in call.operands)
    return all(math.prod(size) <= MOST_ELEMENTS for size in sizes)
