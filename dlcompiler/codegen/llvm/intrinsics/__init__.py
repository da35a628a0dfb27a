"""Generate the machine code of tensor intrinsics, with one emitter for each kind.

An emitter writes the instructions of one call. It gets the addresses, shapes and strides of the
call's regions. The instructions must compute what the intrinsic declares; `measurement.verify`
compares the two.
"""

from __future__ import annotations

from dlcompiler.codegen.llvm.addresses import Addresses
from dlcompiler.codegen.llvm.intrinsics.box import Box, Emitter
from dlcompiler.errors import TargetError
from dlcompiler.ir import IntrinsicCall, Region, along
from dlcompiler.ir.printer import format_intrinsic
from dlcompiler.registry import Registry

__all__ = ["REGISTRY", "Box", "Emitter", "write"]

REGISTRY: Registry[Emitter] = Registry(
    "emitter",
    {
        "fma_tile": "dlcompiler.codegen.llvm.intrinsics.fma_tile:emit",
        "dot4": "dlcompiler.codegen.llvm.intrinsics.dot4:emit",
        "bits": "dlcompiler.codegen.llvm.intrinsics.bits:emit",
    },
)
"""Emitters by name; a module is imported when its emitter is first used."""


def write(addresses: Addresses, call: IntrinsicCall) -> None:
    """Write the machine code of a call.

    Raises
    ------
    TargetError
        If no emitter has the name that the call gives.
    """
    part = call.part
    if not isinstance(part, str) or part not in REGISTRY:
        raise TargetError(
            f"generate LLVM code for {format_intrinsic(call)}",
            "no emitter of this name",
            got=repr(part),
            expected=", ".join(REGISTRY),
        )
    REGISTRY[part](
        addresses.w,
        call.mode,
        *(_box(addresses, region, dims) for region, dims in call.operands),
    )


def _box(addresses: Addresses, region: Region, dims: tuple[int, ...]) -> Box:
    buffer = region.buffer
    first = addresses.pointer(buffer, addresses.offset(buffer, region.indices))
    shape = tuple(extent for extent in along(region.extents, dims) if isinstance(extent, int))
    strides = (
        stride if isinstance(stride, int) else addresses.evaluate(stride)
        for stride in along(buffer.strides, dims)
    )
    return Box(first, shape, tuple(strides), buffer.dtype)
