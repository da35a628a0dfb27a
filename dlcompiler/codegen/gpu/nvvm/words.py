"""Registers of 32 bits that hold several neighbouring elements."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler import dtypes
from dlcompiler.arith import Analyzer
from dlcompiler.codegen.gpu.device_llvm import KernelStatements
from dlcompiler.codegen.gpu.tiles import Place, are_one_word
from dlcompiler.ir import Buffer


def load_word(kernel: KernelStatements, buffer: Buffer, places: Sequence[Place]) -> str:
    """Write the load of elements that fill a register, at once or one by one; return an ``i32``.

    They are loaded at once where they are proved to be neighbours and aligned.
    """
    w = kernel.w
    if are_one_word(buffer, places, Analyzer({})):
        return w.value(f"load i32, ptr {kernel.address(buffer, places[0])}, align 4")
    bits = dtypes.bits(buffer.dtype)
    word = ""
    for number, place in enumerate(places):
        address = kernel.address(buffer, place)
        element = w.value(f"load i{bits}, ptr {address}, align {bits // 8}")
        wide = w.pure(f"zext i{bits} {element} to i32")
        shifted = w.pure(f"shl i32 {wide}, {bits * number}") if number else wide
        word = w.pure(f"or disjoint i32 {word}, {shifted}") if word else shifted
    return word
