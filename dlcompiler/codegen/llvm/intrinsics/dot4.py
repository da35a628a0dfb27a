"""Dot products of four 8-bit integers each, summed in 32 bits: exact, without saturation.

``C[j] += X[g, q] * W[g, j, q]`` with q < 4 and signed W. The instructions for each g are:

==================================  ===============================================================
x86 with VNNI, unsigned X           ``vpdpbusd``: four products and the sum, on 32 bits
other x86                           the numbers with even and those with odd q as 16 bits, by
                                    shifts; then ``vpmaddwd`` (``pmaddwd``) for each: products and
                                    sums of two on 32 bits
others                              products on 32 bits, by LLVM's generic vectors
==================================  ===============================================================

``vpmaddubsw`` is not used: it saturates sums of pairs at 16 bits (255·127 + 255·127 does not fit).
Here a sum of a pair always fits 32 bits. Sums over all g may wrap, as in the declaration.
"""

from __future__ import annotations

from dataclasses import dataclass

from dlcompiler import dtypes
from dlcompiler.codegen.llvm.addresses import splat
from dlcompiler.codegen.llvm.intrinsics.box import Box, lanes_for, require
from dlcompiler.codegen.llvm.types import constant, value_type
from dlcompiler.codegen.llvm.writer import Function, Module
from dlcompiler.ir import IntrinsicMode

PAIRS = {4: "sse2.pmadd.wd", 8: "avx2.pmadd.wd", 16: "avx512.pmaddw.d.512"}
"""LLVM's name of the instruction that adds pairs of products, by its number of sums."""
NEEDS = {4: "sse2", 8: "avx2", 16: "avx512bw"}


def emit(w: Function, mode: IntrinsicMode, write: Box, *reads: Box) -> None:
    """Write the instructions; `reads` are X and W, and empty for a reset."""
    require(_fits(write, *reads), "sums of four products of 8 bits", write, *reads)
    count = write.shape[0]
    lanes = lanes_for(w, "int32", count)
    for start in range(0, count, lanes):
        total = constant(0, _vector("int32", lanes))
        if mode == "update":
            total = write.load(w, lanes, start)
        if mode != "reset":
            total = _dots(w, total, _Part(start, lanes, *reads))
        write.store(w, total, lanes, start)


def _fits(write: Box, *reads: Box) -> bool:
    if write.dtype != "int32" or len(write.shape) != 1:
        return False
    if not reads:
        return True
    (x, *rest), groups = reads, reads[0].shape[0]
    known = [("int8", (groups, write.shape[0], 4))]
    is_known = x.dtype in ("int8", "uint8") and x.shape == (groups, 4)
    return is_known and [(r.dtype, r.shape) for r in rest] == known


@dataclass(frozen=True)
class _Part:
    """The dot products of one vector of results: `lanes` of them, from element `start`."""

    start: int
    lanes: int
    x: Box
    weights: Box

    def numbers(self, w: Function, group: int) -> tuple[str, str]:
        """Write the loads of a group: its four numbers of X, copied to each lane, and W."""
        four = w.value(f"load i32, ptr {self.x.address(w, group, 0)}, align 1")
        words = splat(w, four, "int32", self.lanes)
        type_, bytes_ = _type("int32", self.lanes), _type("int8", 4 * self.lanes)
        x = w.pure(f"bitcast {type_} {words} to {bytes_}")
        address = self.weights.address(w, group, self.start, 0)
        return x, w.value(f"load {bytes_}, ptr {address}, align 1")


def _dots(w: Function, total: str, part: _Part) -> str:
    """Add the dot products of all groups to `total`."""
    if part.x.dtype == "uint8" and (fused := _fused(w.module, part.lanes)):
        return _dots_fused(w, total, part, fused)
    if _has_pairs(w.module, part.lanes):
        return _dots_of_pairs(w, total, part)
    lanes, groups = part.lanes, range(part.x.shape[0])
    wide = 4 * lanes
    sums = constant(0, _vector("int32", wide))
    for group in groups:
        x, weights = part.numbers(w, group)
        a = _widened(w, x, part.x.dtype, wide)
        b = _widened(w, weights, "int8", wide)
        products = w.value(f"mul {_type('int32', wide)} {a}, {b}")
        sums = w.value(f"add {_type('int32', wide)} {sums}, {products}")
    while wide > lanes:
        sums, wide = _adjacent_added(w, sums, wide), wide // 2
    return w.value(f"add {_type('int32', lanes)} {total}, {sums}")


def _fused(module: Module, lanes: int) -> str | None:
    """Return the name of ``vpdpbusd`` for this many lanes, or None if the target lacks it."""
    is_256 = bool({"avxvnni"} & module.features) or {"avx512vnni", "avx512vl"} <= module.features
    has = {4: is_256, 8: is_256, 16: "avx512vnni" in module.features}.get(lanes, False)
    return f"llvm.x86.avx512.vpdpbusd.{32 * lanes}" if has else None


def _dots_fused(w: Function, total: str, part: _Part, name: str) -> str:
    type_, bytes_ = _type("int32", part.lanes), _type("int8", 4 * part.lanes)
    # LLVM 22 takes vectors of 8-bit integers, but still accepts this older form with 32-bit ones,
    # which earlier versions need.
    symbol = w.module.declare(name, type_, f"{type_}, {type_}, {type_}")
    for group in range(part.x.shape[0]):
        x, weights = (
            w.pure(f"bitcast {bytes_} {value} to {type_}") for value in part.numbers(w, group)
        )
        total = w.value(f"call {type_} {symbol}({type_} {total}, {type_} {x}, {type_} {weights})")
    return total


def _has_pairs(module: Module, lanes: int) -> bool:
    is_x86 = module.triple.startswith("x86_64")
    return is_x86 and lanes in NEEDS and (lanes == 4 or NEEDS[lanes] in module.features)


def _dots_of_pairs(w: Function, total: str, part: _Part) -> str:
    """Add the products of two numbers at a time: those with even q, then those with odd q."""
    sums, words = _type("int32", part.lanes), _type("int16", 2 * part.lanes)
    symbol = w.module.declare(f"llvm.x86.{PAIRS[part.lanes]}", sums, f"{words}, {words}")
    for group in range(part.x.shape[0]):
        x, weights = part.numbers(w, group)
        left, right = (
            _halves(w, x, part.x.dtype, part.lanes),
            _halves(w, weights, "int8", part.lanes),
        )
        for a, b in zip(left, right, strict=True):
            products = w.value(f"call {sums} {symbol}({words} {a}, {words} {b})")
            total = w.value(f"add {sums} {total}, {products}")
    return total


def _halves(w: Function, value: str, dtype: str, lanes: int) -> tuple[str, str]:
    """Return the numbers of 8 bits with even places, and those with odd ones, as 16 bits."""
    words = _type("int16", 2 * lanes)
    eight = constant(8, _vector("int16", 2 * lanes))
    shift = "lshr" if dtypes.is_unsigned(dtype) else "ashr"
    both = w.pure(f"bitcast {_type('int8', 4 * lanes)} {value} to {words}")
    raised = w.pure(f"shl {words} {both}, {eight}")
    even = w.pure(f"{shift} {words} {raised}, {eight}")
    return even, w.pure(f"{shift} {words} {both}, {eight}")


def _adjacent_added(w: Function, sums: str, count: int) -> str:
    type_ = _type("int32", count)
    if count == 2:
        even, odd = (w.pure(f"extractelement {type_} {sums}, i64 {n}") for n in (0, 1))
    else:
        even, odd = (
            w.pure(f"shufflevector {type_} {sums}, {type_} poison, {_indices(range(n, count, 2))}")
            for n in (0, 1)
        )
    return w.value(f"add {_type('int32', count // 2)} {even}, {odd}")


def _widened(w: Function, value: str, dtype: str, lanes: int) -> str:
    how = "zext" if dtypes.is_unsigned(dtype) else "sext"
    return w.pure(f"{how} {_type('int8', lanes)} {value} to {_type('int32', lanes)}")


def _indices(places: range) -> str:
    return f"<{len(places)} x i32> <{', '.join(f'i32 {place}' for place in places)}>"


def _vector(dtype: str, lanes: int) -> str:
    return dtypes.with_lanes(dtype, lanes)


def _type(dtype: str, lanes: int) -> str:
    return value_type(_vector(dtype, lanes))
