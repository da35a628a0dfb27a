"""Write what each thread executes for a tensor intrinsic, so that it can be counted.

*Before*, where the first thread computes what the intrinsics declare::

    if x == 0:
        A.local[0 : +16, 0 : +16] = mma_load_a_f16_16x16(A.shared[k*16 : +16, 0 : +16])
    if x == 0:
        C.local[0 : +16, 0 : +8] += mma_f16_16x8x16(A.local[…], B.local[…])

*After*, where all 32 threads execute it, and memory has words of 4 bytes::

    A.local[ramp(0, 1, 4)] = A.shared[ramp(k*128 + x % 16*8 + x // 16*4, 1, 4)]
    C.local[0] = kind.float16 mma(A.local[0], B.local[0])

``kind.float16 mma`` stands for an instruction that is counted as of the kind ``float16 mma``. A dot
product of four 8-bit numbers becomes an instruction of the kind ``integer``. The addresses and
instructions are those of CUDA C and PTX. The values are not: the result is only for counters.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from dlcompiler import dtypes
from dlcompiler.arith import Analyzer
from dlcompiler.codegen.gpu import tiles
from dlcompiler.codegen.gpu.elements import with_elements
from dlcompiler.codegen.gpu.nvvm import is_short
from dlcompiler.ir import (
    Allocate,
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    IntrinsicCall,
    Load,
    Ramp,
    Region,
    Stmt,
    Store,
    Var,
    along,
    binary,
    index_const,
    place_in,
    rewrite,
    seq,
)
from dlcompiler.ir.rewrite import Node
from dlcompiler.passes.flatten_storage import flat_index
from dlcompiler.passes.fragments import operands_of
from dlcompiler.passes.merge_thread_loops import ThreadProgram, of_warp

WORD = "int32"
NAMES = {"float32": "tf32"}
"""Dtypes of factors with another name as operands of tensor cores."""


def as_lanes(thread: ThreadProgram, emits: Collection[str]) -> ThreadProgram:
    """Return what one thread executes, with instructions in place of the calls of a warp.

    Parameters
    ----------
    thread
        What one thread of a launch does.
    emits
        The tensor intrinsics that are instructions, by the names of their emitters.
    """
    lane = thread.axes.get("threadIdx.x")
    lanes = _Lanes(Var("lane") if lane is None else lane, set(thread.shared))

    def rule(node: Node) -> Node:
        if isinstance(node, IntrinsicCall) and node.part == "dot4" and is_short(node):
            return lanes.dot_products(node) if "dot4" in emits else node
        call = of_warp(node, lane) if isinstance(node, Stmt) else None
        return lanes.instructions(call) if call is not None and call.part in emits else node

    own, registers = with_elements(thread, emits)
    body = rewrite(own.body, rule)
    if body is thread.body:
        return thread
    for array in registers:
        body = Allocate(array, body)
    return replace(own, body=body, shared=(*thread.shared, *lanes.shared_words))


@dataclass
class _Lanes:
    """Writes the instructions of a thread for calls of its warp."""

    lane: Var
    shared: set[Buffer]
    words: dict[Buffer, Buffer] = field(default_factory=dict)
    """An array in memory -> the same memory as words."""
    shared_words: list[Buffer] = field(default_factory=list)

    def instructions(self, call: IntrinsicCall) -> Stmt:
        """Return the statements of a thread for a call."""
        if call.part in ("mma", "mma_bt"):
            return self._product(call)
        return self._store(call) if call.part == "mma_store" else self._load(call)

    def _product(self, call: IntrinsicCall) -> Stmt:
        (result, _, _), *factors = operands_of(call)
        sums, first = result.buffer, _origin(result.buffer)
        if call.mode == "reset":
            return seq(Store(sums, first, Const(0, sums.dtype), call.origin) for _ in range(4))
        values: list[Expr] = []
        for region, _, of in factors:
            assert of is not None
            values.append(Load(region.buffer, _origin(region.buffer)))
            if region.buffer.dtype == "float32":  # each register is rounded
                values += [Cast(values[-1], "float16") for _ in range(of.fragment.registers)]
        dtype = factors[0][0].buffer.dtype
        made = Call(f"kind.{NAMES.get(dtype, dtype)} mma", tuple(values), sums.dtype)
        return Store(sums, first, made, call.origin)

    def _load(self, call: IntrinsicCall) -> Stmt:
        copy = tiles.loaded(call)
        buffer, packed = copy.memory.buffer, copy.tiles.fragment.packed
        fragment, analyzer = copy.fragment.buffer, Analyzer({})
        if tiles.matrices(copy, self.lane, analyzer) is not None:
            words = self._rows(copy)
            registers = (
                *_origin(fragment)[1:],
                Ramp(index_const(0), index_const(1), dtypes.lanes(words.dtype)),
            )
            return Store(fragment, registers, words, call.origin)
        values = (
            self._word_of(buffer, places) if packed > 1 else Load(buffer, places[0])
            for places in tiles.places(copy, self.lane)
        )
        return seq(Store(fragment, _origin(fragment), value, call.origin) for value in values)

    def _word_of(self, buffer: Buffer, places: Sequence[tiles.Place]) -> Expr:
        """Return the elements that fill a register, loaded at once or one by one."""
        if tiles.are_one_word(buffer, places, Analyzer({})):
            return Load(self._as_words(buffer), (_word(buffer, places[0], len(places)),))
        return _joined([Load(buffer, place) for place in places])

    def dot_products(self, call: IntrinsicCall) -> Stmt:
        """Return the statements of a thread for sums of products of four 8-bit numbers."""
        (result, dims), *operands = call.operands
        (outputs,) = map(int, map(str, along(result.extents, dims)))
        stores = []
        for j in range(outputs):
            place = place_in(result, dims, (index_const(j),))
            total: Expr = Load(result.buffer, place) if call.mode == "update" else _zero()
            for x, weights in zip(*self._groups(operands, j), strict=True):
                total = Call("kind.integer", (x, weights, total), WORD)
            stores.append(Store(result.buffer, place, total, call.origin))
        return seq(stores)

    def _groups(
        self, operands: Sequence[tuple[Region, tuple[int, ...]]], j: int
    ) -> tuple[list[Expr], list[Expr]]:
        """Return the registers with X and W of each group, for a result."""
        if not operands:
            return [], []
        (x, x_dims), (weights, w_dims) = operands
        groups, found = range(int(str(along(x.extents, x_dims)[0]))), []
        for region, dims, at in ((x, x_dims, ()), (weights, w_dims, (j,))):
            places = [
                [place_in(region, dims, tuple(map(index_const, (g, *at, q)))) for q in range(4)]
                for g in groups
            ]
            found.append([self._word_of(region.buffer, each) for each in places])
        return found[0], found[1]

    def _rows(self, copy: tiles.Copy) -> Load:
        """Return the words of memory that a thread accesses for a load by ``ldmatrix``.

        Eight rows of 16 bytes are accessed at once. For four matrices, each thread is given a row.
        For two, it is given half a row: half of the threads access the eight rows of a matrix.
        """
        buffer, bytes_ = copy.memory.buffer, dtypes.bytes_of(copy.memory.buffer.dtype)
        count = copy.tiles.fragment.registers
        two = index_const(2)
        giver: Expr = self.lane if count == 4 else binary("floordiv", self.lane, two)
        matrices = tiles.matrices(copy, giver, Analyzer({}))
        assert matrices is not None
        start = _word(buffer, matrices.row, 4 // bytes_)
        if count == 2:
            half = binary("mul", binary("floormod", self.lane, two), two)
            start = binary("add", start, half)
        return Load(self._as_words(buffer), (Ramp(start, index_const(1), count),))

    def _store(self, call: IntrinsicCall) -> Stmt:
        copy = tiles.stored(call)
        register = Load(copy.fragment.buffer, _origin(copy.fragment.buffer))
        return seq(
            Store(copy.memory.buffer, place, register, call.origin)
            for (place,) in tiles.places(copy, self.lane)
        )

    def _as_words(self, buffer: Buffer) -> Buffer:
        """Return the same memory as words; its shape is not used."""
        if buffer not in self.words:
            self.words[buffer] = Buffer(buffer.name, (1,), WORD, buffer.scope)
            if buffer in self.shared:
                self.shared_words.append(self.words[buffer])
        return self.words[buffer]


def _zero() -> Expr:
    return Const(0, WORD)


def _origin(buffer: Buffer) -> tuple[Expr, ...]:
    return (index_const(0),) * len(buffer.shape)


def _word(buffer: Buffer, place: tiles.Place, packed: int) -> Expr:
    """Return the number of the word that an element at a multiple of `packed` begins."""
    quotient, rest = Analyzer({}).affine(flat_index(buffer, place)).split_by(packed)
    assert rest.is_constant
    assert rest.constant == 0
    return quotient.to_expr()


def _joined(elements: Sequence[Expr]) -> Expr:
    """Return elements put together, by one operation on integers for each but the first."""
    word: Expr = Cast(elements[0], WORD)
    for element in elements[1:]:
        word = binary("bitor", word, Cast(element, WORD))
    return word
