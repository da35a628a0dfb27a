"""Compute addresses from indices: offsets in elements from the start of the buffer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dlcompiler import dtypes
from dlcompiler.arith.joining import flat_offset, joined
from dlcompiler.codegen.llvm import arithmetic
from dlcompiler.codegen.llvm.lanes import pattern, progression
from dlcompiler.codegen.llvm.types import constant, memory_type, value_type
from dlcompiler.codegen.llvm.writer import Function
from dlcompiler.ir import Binary, Buffer, Const, Expr, Extent, extent_expr


class Offset(NamedTuple):
    """A distance in elements: an operand (or None for 0) plus a constant.

    The constant is separate so that neighbouring accesses, ``A[i]`` and ``A[i + 1]``, share the
    operand.
    """

    variable: str | None
    constant: int

    def plus(self, distance: int) -> Offset:
        """Return the offset `distance` elements further."""
        return Offset(self.variable, self.constant + distance)


class Addresses:
    """The addresses that one function computes.

    Parameters
    ----------
    w
        The function to append to.
    evaluate
        Writes an expression and returns its operand.
    """

    def __init__(self, w: Function, evaluate: Callable[[Expr], str]) -> None:
        self.w = w
        self.evaluate = evaluate
        self.pointers: dict[Buffer, str] = {}
        """Where each buffer starts."""
        self.streamed: dict[Buffer, int] = {}
        """The buffers that non-temporal stores write here."""

    def pointer(self, buffer: Buffer, offset: Offset, *, in_bounds: bool = True) -> str:
        """Write the address of an element; `in_bounds` tells LLVM that it lies in the buffer."""
        operand = self._operand(offset)
        if operand == "0":
            return self.pointers[buffer]
        flag = " inbounds" if in_bounds else ""
        return self.w.pure(
            f"getelementptr{flag} {memory_type(buffer.dtype)}, ptr {self.pointers[buffer]}, "
            f"i64 {operand}"
        )

    def _operand(self, offset: Offset) -> str:
        if offset.variable is None:
            return str(offset.constant)
        if offset.constant == 0:
            return offset.variable
        return self.w.pure(f"add nsw i64 {offset.variable}, {offset.constant}")

    def offset(self, buffer: Buffer, indices: Sequence[Expr]) -> Offset:
        """Write the offset of one element."""
        w = self.w
        total: str | None = None
        known = 0
        flat = flat_offset(indices, buffer.strides)
        strides: Sequence[Extent] = buffer.strides
        if flat is not None:
            indices, strides = (flat,), (1,)
        for index, stride in zip(indices, strides, strict=True):
            if isinstance(stride, int):
                variable, distance = _without_constant(index)
                known += distance * stride
                if variable is None:
                    continue
                term = self.evaluate(variable)
                if stride != 1:
                    term = w.pure(f"mul nsw i64 {term}, {stride}")
            elif isinstance(index, Const) and index.value == 0:
                continue
            else:
                term = w.pure(f"mul nsw i64 {self.evaluate(index)}, {self.evaluate(stride)}")
            total = term if total is None else w.pure(f"add nsw i64 {total}, {term}")
        return Offset(total, known)

    def progression(self, buffer: Buffer, indices: Sequence[Expr]) -> tuple[Offset, int] | None:
        """Write the offset of the first lane; return it with the distance from lane to lane.

        None if the distance is not a constant.
        """
        found = _bases(buffer, indices)
        return None if found is None else (self.offset(buffer, found[0]), found[1])

    def pattern(
        self, buffer: Buffer, indices: Sequence[Expr]
    ) -> tuple[Offset, tuple[int, ...]] | None:
        """Write an offset; return it with the constant distances of all lanes from it.

        None if a distance is not a constant.
        """
        bases: list[Expr] = []
        places: tuple[int, ...] = (0,)
        for index, stride in zip(indices, buffer.strides, strict=True):
            found = pattern(index)
            if found is None or not isinstance(stride, int):
                return None
            bases.append(found[0])
            count = max(len(places), len(found[1]))
            pairs = zip(_repeated(places, count), _repeated(found[1], count), strict=True)
            places = tuple(place + own * stride for place, own in pairs)
        return self.offset(buffer, bases), places

    def scattered(self, buffer: Buffer, indices: Sequence[Expr], lanes: int) -> list[Offset]:
        """Write the offset of each lane, for indices of any form."""
        w, dtype = self.w, dtypes.with_lanes("index", lanes)
        type_ = value_type(dtype)
        total = constant(0, dtype)
        for index, stride in zip(indices, buffer.strides, strict=True):
            operand = splat(w, self.evaluate(index), index.dtype, lanes)
            factor = splat(w, self.evaluate(extent_expr(stride)), "index", lanes)
            term = arithmetic.binary(w, "mul", dtype, operand, factor)
            total = arithmetic.binary(w, "add", dtype, total, term)
        return [
            Offset(w.pure(f"extractelement {type_} {total}, i64 {lane}"), 0)
            for lane in range(lanes)
        ]


def step_of(buffer: Buffer, indices: Sequence[Expr]) -> int | None:
    """Return the distance between neighbouring lanes [elements]; None if it varies."""
    found = _bases(buffer, indices)
    return None if found is None else found[1]


def _bases(buffer: Buffer, indices: Sequence[Expr]) -> tuple[list[Expr], int] | None:
    """Return the indices of lane 0 and the step between lanes [elements]; None if it varies."""
    indices = joined(indices, buffer.strides) or indices
    bases: list[Expr] = []
    step = 0
    for index, stride in zip(indices, buffer.strides, strict=True):
        found = progression(index)
        if found is None or (found[1] and not isinstance(stride, int)):
            return None
        bases.append(found[0])
        step += found[1] * stride if isinstance(stride, int) else 0
    return bases, step


def _repeated(places: tuple[int, ...], count: int) -> tuple[int, ...]:
    return places * count if len(places) == 1 else places


def span(buffer: Buffer) -> int:
    """Return the number of elements from the first to the last of a buffer, padding included."""
    if buffer.size == 0:
        return 0
    steps = zip(buffer.static_shape, buffer.static_strides, strict=True)
    return 1 + sum((extent - 1) * stride for extent, stride in steps)


def _without_constant(index: Expr) -> tuple[Expr | None, int]:
    """Split ``x + 3`` into ``x`` and 3."""
    distance = 0
    while isinstance(index, Binary) and isinstance(index.b, Const):
        if index.op not in ("add", "sub"):
            break
        distance += int(index.b.value) if index.op == "add" else -int(index.b.value)
        index = index.a
    if isinstance(index, Const):
        return None, distance + int(index.value)
    return index, distance


def splat(w: Function, value: str, dtype: str, lanes: int) -> str:
    """Write the vector of `lanes` copies of a scalar of `dtype`; a vector stays as it is."""
    if dtypes.lanes(dtype) == lanes:
        return value
    scalar, vector = value_type(dtype), value_type(dtypes.with_lanes(dtype, lanes))
    first = w.pure(f"insertelement {vector} poison, {scalar} {value}, i64 0")
    return w.pure(
        f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer"
    )
