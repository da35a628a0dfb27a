"""Emitters and statements that do not compute what their intrinsic declares: verify finds them."""

import sys
from dataclasses import replace

import pytest

from dlcompiler import te
from dlcompiler.codegen.llvm import intrinsics
from dlcompiler.codegen.llvm.intrinsics import bits, dot4, fma_tile
from dlcompiler.codegen.llvm.intrinsics.box import Box
from dlcompiler.errors import VerificationError
from dlcompiler.ir import For, Load, Store, Var, index_const
from dlcompiler.measurement import verify
from dlcompiler.schedule import create_schedule
from tests.intrinsics import dots, row_sum_schedule, tiled


def product_with(monkeypatch, emitter):
    """Return a tensorized product whose machine code a wrong emitter writes."""
    monkeypatch.setattr(sys.modules[__name__], "wrong", emitter, raising=False)
    monkeypatch.setitem(intrinsics.REGISTRY, "fma_tile", f"{__name__}:wrong")
    s, args, loop = tiled(12, 32, 16, (6, 16, 8))
    s[args[-1]].tensorize(loop, "gemm_f32_6x16x8")
    return s, args


def cut(box, *shape):
    """Return a box of another shape in the same place."""
    return Box(box.pointer, shape, box.strides, box.dtype)


def without_the_last(w, mode, write, *reads):
    if mode == "update":
        reads = (cut(reads[0], 6, 7), cut(reads[1], 7, 16))
    fma_tile.emit(w, mode, write, *reads)


def without_adding(w, mode, write, *reads):
    fma_tile.emit(w, "body" if mode == "update" else mode, write, *reads)


def without_a_reset(w, mode, write, *reads):
    if mode != "reset":
        fma_tile.emit(w, mode, write, *reads)


def as_if_compact(w, mode, write, *reads):
    compact = [Box(r.pointer, r.shape, (r.shape[1], 1), r.dtype) for r in reads]
    fma_tile.emit(w, mode, write, *compact)


def one_row_further(w, mode, write, *reads):
    first = write.address(w, 1, 0) if mode == "update" else write.pointer
    fma_tile.emit(w, mode, Box(first, write.shape, write.strides, write.dtype), *reads)


def one_vector_short(w, mode, write, *reads):
    if mode == "update":
        write, reads = cut(write, 6, 8), (reads[0], cut(reads[1], 8, 8))
    fma_tile.emit(w, mode, write, *reads)


def operands_swapped(w, mode, write, *reads):
    a, *rest = reads or (None,)
    if a is not None:
        a = Box(a.pointer, a.shape, (a.strides[1], a.strides[0]), a.dtype)
        reads = (a, *rest)
    fma_tile.emit(w, mode, write, *reads)


FAULTS = [
    without_the_last,
    without_adding,
    without_a_reset,
    as_if_compact,
    one_row_further,
    one_vector_short,
    operands_swapped,
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_wrong_emitter_is_found(monkeypatch, fault):
    s, args = product_with(monkeypatch, fault)
    with pytest.raises(VerificationError):
        verify(s, args)


def test_the_right_one_is_accepted(monkeypatch):
    verify(*product_with(monkeypatch, fma_tile.emit))


def saturating(w, total, part):
    """Add the dot products as ``vpmaddubsw`` would: sums of pairs end at 16 bits."""
    lanes = part.lanes
    for group in range(part.x.shape[0]):
        x, weights = part.numbers(w, group)
        wide, half = f"<{4 * lanes} x i16>", f"<{2 * lanes} x i16>"
        a = w.value(f"zext <{4 * lanes} x i8> {x} to {wide}")
        b = w.value(f"sext <{4 * lanes} x i8> {weights} to {wide}")
        products = w.value(f"mul {wide} {a}, {b}")
        pair = [
            w.value(
                f"shufflevector {wide} {products}, {wide} poison, "
                f"{dot4._indices(range(n, 4 * lanes, 2))}"
            )
            for n in (0, 1)
        ]
        symbol = w.module.declare(f"llvm.sadd.sat.v{2 * lanes}i16", half, f"{half}, {half}")
        sums = w.value(f"call {half} {symbol}({half} {pair[0]}, {half} {pair[1]})")
        words = w.value(f"sext {half} {sums} to <{2 * lanes} x i32>")
        added = dot4._adjacent_added(w, words, 2 * lanes)
        total = w.value(f"add <{lanes} x i32> {total}, {added}")
    return total


def test_saturation_is_found(monkeypatch):
    X, W, D = dots(2, 8, 3, "uint8")
    s = create_schedule(D.op)
    s[D].tensorize(D.op.axis[1], "dot4_u8s8_8x3")
    verify(s, [X, W, D])
    monkeypatch.setattr(dot4, "_dots", saturating)
    with pytest.raises(VerificationError):
        verify(s, [X, W, D])


def test_wrong_bits_are_found(monkeypatch):
    X, t = te.placeholder((3, 64), "uint8", "X"), te.reduce_axis((0, 64), "t")

    def element(i, b):
        bit = (X[i, t].astype("uint64") >> b.astype("uint64")) & te.const(1, "uint64")
        return te.sum(bit << t.astype("uint64"), axis=t)

    P = te.compute((3, 2), element, name="P")
    s = create_schedule(P.op)
    s[P].tensorize(P.op.axis[1], "bits_u64_2x64")

    def one_plane_twice(w, mode, write, *reads):
        twice = Box(write.pointer, (1,), write.strides, write.dtype)
        for n in range(2):
            bits.emit(w, mode, replace(twice, pointer=write.address(w, n)), *reads)

    monkeypatch.setattr(sys.modules[__name__], "wrong", one_plane_twice, raising=False)
    monkeypatch.setitem(intrinsics.REGISTRY, "bits", f"{__name__}:wrong")
    with pytest.raises(VerificationError):
        verify(s, [X, P])


def row_sums_but(element, first=0):
    """Declare row sums whose statements are wrong."""
    a = te.placeholder((4, 4), name="a")
    k = te.reduce_axis((0, 4), name="k")
    c = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="c")

    def carry_out(ins, outs):
        i, column = Var("i"), Var("column")
        value = element(Load(outs[0], (i,)), Load(ins[0], (i, column)))
        columns = index_const(4 - first)
        added = For(i, index_const(4), "serial",
                    For(column, columns, "serial", Store(outs[0], (i,), value)))  # fmt: skip
        return None, None, added

    return te.decl_tensor_intrin(c.op, carry_out, "row_sums")


@pytest.mark.parametrize(
    "intrin",
    [
        row_sums_but(lambda old, new: old + new, first=1),
        row_sums_but(lambda old, new: old - new),
        row_sums_but(lambda old, new: new),
    ],
)
def test_wrong_statements_are_found(intrin):
    s, args, leaves = row_sum_schedule(8, 12)
    s[args[-1]].tensorize(leaves[2], intrin)
    with pytest.raises(VerificationError):
        verify(s, args)


def test_right_statements_are_accepted():
    s, args, leaves = row_sum_schedule(8, 12)
    s[args[-1]].tensorize(leaves[2], row_sums_but(lambda old, new: old + new))
    verify(s, args)
