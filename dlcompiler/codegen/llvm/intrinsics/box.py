"""Regions of buffers in the form that emitters use: a pointer, a shape and strides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from dlcompiler import dtypes
from dlcompiler.codegen.llvm.types import memory_type, value_type
from dlcompiler.codegen.llvm.writer import Function
from dlcompiler.errors import InternalError, TargetError


@dataclass(frozen=True)
class Box:
    """A rectangular region of a buffer."""

    pointer: str
    """Operand: the address of its first element."""
    shape: tuple[int, ...]
    """Number of elements along each dimension."""
    strides: tuple[int | str, ...]
    """Stride of each dimension, a number or an LLVM operand; [elements]."""
    dtype: str

    def address(self, w: Function, *place: int | str) -> str:
        """Write the address of an element; its indices are numbers or LLVM operands."""
        total: int | str = 0
        for index, stride in zip(place, self.strides, strict=True):
            total = _sum(w, total, _product(w, index, stride))
        if total == 0:
            return self.pointer
        element = memory_type(self.dtype)
        return w.pure(f"getelementptr inbounds {element}, ptr {self.pointer}, i64 {total}")

    def load(self, w: Function, lanes: int, *place: int | str) -> str:
        """Write a load of `lanes` adjacent elements of the last dimension, from `place` on."""
        self._require_adjacent(lanes)
        type_ = value_type(dtypes.with_lanes(self.dtype, lanes))
        return w.value(f"load {type_}, ptr {self.address(w, *place)}, {self._alignment}")

    def store(self, w: Function, value: str, lanes: int, *place: int | str) -> None:
        """Write a store of `lanes` adjacent elements of the last dimension, from `place` on."""
        self._require_adjacent(lanes)
        type_ = value_type(dtypes.with_lanes(self.dtype, lanes))
        w.effect(f"store {type_} {value}, ptr {self.address(w, *place)}, {self._alignment}")

    def _require_adjacent(self, lanes: int) -> None:
        if lanes > 1 and self.strides[-1] != 1:
            raise InternalError(
                "generate LLVM code", "the elements of an intrinsic's vector are not adjacent",
                got=f"strides {self.strides}",
            )  # fmt: skip

    @property
    def _alignment(self) -> str:
        """The alignment of one element: a caller's array guarantees no more."""
        return f"align {dtypes.bytes_of(self.dtype)}"


def require(holds: bool, what: str, *boxes: Box) -> None:
    """Raise an error unless an emitter supports its operands; `what` names its operation.

    Raises
    ------
    TargetError
        If the condition does not hold.
    """
    if not holds:
        raise TargetError(
            "generate LLVM code", f"the emitter computes {what}",
            got=", ".join(f"{box.dtype}{list(box.shape)}" for box in boxes),
            hint="name another emitter in decl_tensor_intrin, or give statements",
        )  # fmt: skip


Emitter: TypeAlias = Callable[..., None]
"""``emitter(w, mode, write, *reads)`` writes the instructions of a call in a mode."""


def lanes_for(w: Function, dtype: str, count: int) -> int:
    """Return the largest number of lanes that fits a vector register and divides `count`."""
    lanes = max(w.module.vector_bits // dtypes.bits(dtype), 1)
    while count % lanes:
        lanes //= 2
    return lanes


def _product(w: Function, a: int | str, b: int | str) -> int | str:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if a in (0, 1) or b in (0, 1):
        return 0 if 0 in (a, b) else b if a == 1 else a
    return w.pure(f"mul nsw i64 {a}, {b}")


def _sum(w: Function, a: int | str, b: int | str) -> int | str:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if 0 in (a, b):
        return b if a == 0 else a
    return w.pure(f"add nsw i64 {a}, {b}")
