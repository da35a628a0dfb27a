"""Fragments: how the threads of a warp hold the tiles of a product on tensor cores.

The 32 lanes of a warp compute ``D = A·B + C`` together. Each holds some elements of every tile in
its registers. With ``g = lane // 4``, ``t = lane % 4``, and p elements in a register of 32 bits,
element i, which is number ``j = i % p`` in register ``r = i // p``, is

=====  =====================  ==========================
tile   row                    column
=====  =====================  ==========================
A      ``g + 8*(r % 2)``      ``p*t + j + 4*p*(r // 2)``
B      ``p*t + j + 4*p*r``    ``g``
C, D   ``g + 8*(r // 2)``     ``2*t + r % 2``
=====  =====================  ==========================

**Source:** PTX ISA 8.8, "Matrix Fragments for mma.m16n8k8", "Matrix Fragments for mma.m16n8k16 with
floating point type" and "Matrix Fragments for mma.m16n8k32".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from dlcompiler import dtypes
from dlcompiler.display import render

WARP = 32
"""Lanes that hold a fragment; [1]."""
REGISTER_BYTES = 4
"""Size of a register [byte]."""
MatrixName: TypeAlias = Literal["a", "b", "c"]


@dataclass(frozen=True, slots=True)
class Fragment:
    """A tile of a matrix in the registers of a warp.

    Examples
    --------
    >>> a = Fragment("a", "float16")
    >>> a.shape, a.elements
    ((16, 16), 8)
    >>> a.place(lane=5, element=3)
    (9, 3)
    >>> a.holder(9, 3)
    (5, 3)
    """

    matrix: MatrixName
    """Which operand of the product: A, B, or the sums C."""
    dtype: str
    """Dtype of its elements."""

    @property
    def packed(self) -> int:
        """Number of elements in a register; [1]."""
        return REGISTER_BYTES // dtypes.bytes_of(self.dtype)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the tile; [1]."""
        depth = 8 * self.packed
        return {"a": (16, depth), "b": (depth, 8), "c": (16, 8)}[self.matrix]

    @property
    def registers(self) -> int:
        """Number of registers of one lane; [1]."""
        return 2 if self.matrix == "b" else 4

    @property
    def elements(self) -> int:
        """Number of elements that one lane holds; [1]."""
        return self.registers * self.packed

    def offset(self, element: int) -> tuple[int, int]:
        """Return the part of an element's row and column that is the same for all lanes."""
        register, number = divmod(element, self.packed)
        if self.matrix == "a":
            return 8 * (register % 2), number + 4 * self.packed * (register // 2)
        if self.matrix == "b":
            return number + 4 * self.packed * register, 0
        return 8 * (register // 2), register % 2

    def place(self, lane: int, element: int) -> tuple[int, int]:
        """Return the row and the column of an element that a lane holds."""
        row, column = self.offset(element)
        group, within = divmod(lane, 4)
        if self.matrix == "b":
            return self.packed * within + row, group + column
        step = self.packed if self.matrix == "a" else 2
        return group + row, step * within + column

    def holder(self, row: int, column: int) -> tuple[int, int]:
        """Return the lane that holds an element, and its number there."""
        pairs = ((lane, n) for lane in range(WARP) for n in range(self.elements))
        return next(pair for pair in pairs if self.place(*pair) == (row, column))

    def _repr_html_(self) -> str:
        return render("fragment", self)


@dataclass(frozen=True, slots=True)
class Operand:
    """The role of an operand of a warp's intrinsic: a fragment of a matrix."""

    matrix: MatrixName
    is_transposed: bool = False
    """Whether the operand has columns before rows."""


OPERANDS: Mapping[str, tuple[Operand | None, ...]] = MappingProxyType(
    {
        "mma": (Operand("c"), Operand("a"), Operand("b")),
        "mma_bt": (Operand("c"), Operand("a"), Operand("b", is_transposed=True)),
        "mma_load_a": (Operand("a"), None),
        "mma_load_b": (Operand("b"), None),
        "mma_load_bt": (Operand("b", is_transposed=True), None),
        "mma_store": (None, Operand("c")),
    }
)
"""Emitter of a warp's intrinsic -> its operands, the result first; None is an array in memory."""
