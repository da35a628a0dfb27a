"""Dot products of four 8-bit numbers, added to an int32: the instruction ``dp4a``.

**Source:** LLVM 22, User Guide for NVPTX Back-end; PTX ISA 8.8, "dp4a".
"""

from __future__ import annotations

from dlcompiler.codegen.gpu.device_llvm import KernelStatements
from dlcompiler.codegen.gpu.nvvm.words import load_word
from dlcompiler.codegen.gpu.tiles import Place
from dlcompiler.ir import IntrinsicCall, Region, along, index_const, place_in

GROUP = 4
"""Numbers in one register; [1]."""


def emit(kernel: KernelStatements, call: IntrinsicCall) -> None:
    """Append ``C[j] += X[g, q] * W[g, j, q]``, for all j and g, and q < 4."""
    (result, dims), *operands = call.operands
    (outputs,) = map(int, map(str, along(result.extents, dims)))
    for j in range(outputs):
        address = kernel.address(result.buffer, place_in(result, dims, (index_const(j),)))
        total = "0"
        if call.mode == "update":
            total = kernel.w.value(f"load i32, ptr {address}, align 4")
        if call.mode != "reset":
            total = _added(kernel, total, operands, j)
        kernel.w.effect(f"store i32 {total}, ptr {address}, align 4")


def _added(
    kernel: KernelStatements, total: str, operands: list[tuple[Region, tuple[int, ...]]], j: int
) -> str:
    """Write a sum to which the products of all groups are added."""
    w = kernel.w
    (x, x_dims), (weights, w_dims) = operands
    groups = int(str(along(x.extents, x_dims)[0]))
    sign = "u" if x.buffer.dtype == "uint8" else "s"
    symbol = w.module.declare(f"llvm.nvvm.idp4a.{sign}.s", "i32", "i32, i32, i32", "nounwind")
    for g in range(groups):
        numbers = (
            load_word(kernel, x.buffer, _four(x, x_dims, (g,))),
            load_word(kernel, weights.buffer, _four(weights, w_dims, (g, j))),
        )
        total = w.pure(f"call i32 {symbol}(i32 {numbers[0]}, i32 {numbers[1]}, i32 {total})")
    return total


def _four(region: Region, dims: tuple[int, ...], at: tuple[int, ...]) -> list[Place]:
    return [place_in(region, dims, tuple(map(index_const, (*at, q)))) for q in range(GROUP)]
