"""Read a register of another thread of the warp: the instruction ``shfl.sync``.

**Source:** PTX ISA 8.8, "shfl.sync"; LLVM 22, User Guide for NVPTX Back-end.
"""

from __future__ import annotations

from dlcompiler import dtypes
from dlcompiler.codegen.gpu.shuffles import WARP_SIZE, Group
from dlcompiler.codegen.llvm.types import value_type
from dlcompiler.codegen.llvm.writer import Function

_LAST_LANE = 31


def shuffled(w: Function, group: Group, dtype: str, value: str, lane: str) -> str:
    """Write the value that another thread of the group has.

    Parameters
    ----------
    w
        The function to append to.
    group
        The threads that execute it together.
    dtype, value
        The value of this thread.
    lane
        The number of the other thread in the group, an ``i32``.
    """
    type_, bits = value_type(dtype), dtypes.bits(dtype)
    bits = 1 if dtypes.is_bool(dtype) else bits
    whole = value
    if dtypes.is_float(dtype):
        whole = w.pure(f"bitcast {type_} {value} to i{bits}")
    words = []
    for number in range(max(bits // 32, 1)):
        word = whole
        if bits > 32:
            shifted = w.pure(f"lshr i{bits} {whole}, {32 * number}")
            word = w.pure(f"trunc i{bits} {shifted} to i32")
        elif bits < 32:
            word = w.pure(f"zext i{bits} {whole} to i32")
        words.append(_word(w, group, word, lane))
    made = words[0]
    if bits < 32:
        made = w.pure(f"trunc i32 {made} to i{bits}")
    elif bits > 32:
        low, high = (w.pure(f"zext i32 {word} to i64") for word in words)
        shifted = w.pure(f"shl i64 {high}, 32")
        made = w.pure(f"or disjoint i64 {low}, {shifted}")
    return w.pure(f"bitcast i{bits} {made} to {type_}") if dtypes.is_float(dtype) else made


def _word(w: Function, group: Group, word: str, lane: str) -> str:
    symbol = w.module.declare(
        "llvm.nvvm.shfl.sync.idx.i32", "i32", "i32, i32, i32, i32", "convergent nounwind"
    )
    segment = (WARP_SIZE - group.width) << 8 | _LAST_LANE
    return w.value(f"call i32 {symbol}(i32 {group.mask}, i32 {word}, i32 {lane}, i32 {segment})")
