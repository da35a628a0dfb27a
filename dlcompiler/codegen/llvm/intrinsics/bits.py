"""Pack bits of neighbouring numbers into words: ``P[b] += ((X[t] >> b) & 1) << t``.

All numbers of a word are one vector. For each plane, one comparison gives a mask whose bits are the
word: ``vptestmb`` and ``kmov`` with AVX-512, ``vpmovmskb`` with SSE2 and AVX2.
"""

from __future__ import annotations

from dlcompiler import dtypes
from dlcompiler.codegen.llvm.intrinsics.box import Box, require
from dlcompiler.codegen.llvm.types import constant, value_type
from dlcompiler.codegen.llvm.writer import Function
from dlcompiler.ir import IntrinsicMode


def emit(w: Function, mode: IntrinsicMode, write: Box, *reads: Box) -> None:
    """Write the instructions; `reads` is X, and empty for a reset."""
    require(_fits(write, *reads), "words of as many numbers of uint8 as they have bits",
            write, *reads)  # fmt: skip
    width, word = dtypes.bits(write.dtype), value_type(write.dtype)
    vector = dtypes.with_lanes("uint8", width)
    type_ = value_type(vector)
    numbers = reads[0].load(w, width, 0) if reads else ""
    for plane in range(write.shape[0]):
        place = Box(write.address(w, plane), (1,), (1,), write.dtype)
        made = constant(0, write.dtype)
        if mode != "reset":
            bit = w.pure(f"and {type_} {numbers}, {constant(1 << plane, vector)}")
            mask = w.pure(f"icmp ne {type_} {bit}, zeroinitializer")
            made = w.pure(f"bitcast <{width} x i1> {mask} to {word}")
        if mode == "update":
            made = w.value(f"add {word} {place.load(w, 1, 0)}, {made}")
        place.store(w, made, 1, 0)


def _fits(write: Box, *reads: Box) -> bool:
    if write.dtype not in ("uint32", "uint64") or len(write.shape) != 1 or write.shape[0] > 8:
        return False
    wanted = ("uint8", (dtypes.bits(write.dtype),))
    return all((read.dtype, read.shape) == wanted for read in reads)
