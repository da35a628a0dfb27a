"""Sums of int8 products by dot products of four numbers (``dot4_u8s8``), on CPUs.

The instruction multiplies unsigned by signed numbers, so that one operand is stored plus 128. The
sums are then too large by 128 times the sum of the other operand, which is computed once and
subtracted; with a zero point z, by 128 + z times that sum. All numbers are exact: int32 wraps in
the same way with and without this offset.
"""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler import te
from dlcompiler.ir import Axis, Expr
from dlcompiler.schedule import Schedule, Stage
from dlcompiler.target import Target
from dlcompiler.te import Tensor

LONGEST_VECTOR = 16
"""Most lanes of a vector of int32 that a target has; [1]."""
ZERO = 128
"""What an unsigned operand has in place of 0, if its zero point is 0."""


def unsigned(value: Expr) -> Expr:
    """Return an int8 number plus 128, as uint8."""
    made: Expr = (value.astype("int32") + ZERO).astype("uint8")
    return made


def product(unsigned: Expr, signed: Expr) -> Expr:
    """Return the int32 product of an unsigned and a signed number."""
    made: Expr = unsigned.astype("int32") * signed.astype("int32")
    return made


def zeros(steps: int, name: str, zero_point: int = 0) -> Tensor:
    """Define the operand whose products with the signed one are the offsets: ``(steps, 4)``.

    Parameters
    ----------
    steps : int
        Groups of four numbers.
    name : str
        Of the tensor.
    zero_point : int
        What int8 operands hold in place of 0.
    """
    value = te.const(ZERO + zero_point, "uint8")
    made: Tensor = te.compute((steps, 4), lambda g, q: value, name=name)
    return made


def tile_fits(rows: int, vectors: int, target: Target) -> bool:
    """Tell whether a tile of sums fits the registers, with the operands of its instructions.

    Without an instruction for four products, numbers with even and odd places are multiplied apart:
    two registers for each vector of B and for a number of A, beside a mask and a product.
    """
    has_instruction = not {"+avx512vnni", "+avxvnni"}.isdisjoint(target.features)
    operands = vectors + 1 if has_instruction else 2 * vectors + 4
    return rows * vectors + operands <= target.vector_registers


def schedule_dots(
    stage: Stage,
    vector: Axis,
    steps: Sequence[Axis],
    inside: Sequence[Axis],
    target: Target,
    together: int = 1,
) -> None:
    """Order the loops of dot products, and compute those of a vector by one instruction.

    Parameters
    ----------
    stage : Stage
        Sums over `steps`, and over four numbers in the last reduction loop.
    vector : Axis
        A loop over the lanes of a vector of sums.
    steps : sequence of Axis
        The other loops of the reduction.
    inside : sequence of Axis
        Loops of the register tile, which come inside `steps`.
    target : Target
        A CPU.
    together : int
        Iterations of the last of `steps` that are computed for a vector before the next vector.
    """
    four = stage.op.reduce_axis[-1]
    last, step = stage.split(steps[-1], together)
    stage.reorder(*steps[:-1], last, *inside, step, four, vector)
    if "dot4" in target.emits:
        stage.tensorize(step, f"dot4_u8s8_{vector.extent}x{together}")
    else:
        stage.vectorize(vector)
        stage.unroll(four)
        stage.unroll(step)


def schedule_offsets(
    s: Schedule, offsets: Tensor, columns: int, lanes: int, target: Target
) -> None:
    """Compute offsets in registers, some neighbours at a time.

    Parameters
    ----------
    s : Schedule
        Changed in place.
    offsets : Tensor
        The products of `zeros` with the signed operand.
    columns : int
        Neighbours that are computed together: whole vectors.
    lanes : int
        Lanes of a vector.
    target : Target
        A CPU.
    """
    constant = offsets.op.input_tensors[0]
    local = s.cache_write(offsets, "local")
    tiles, column = s[offsets].split(s[offsets].op.axis[-1], columns)
    _, vector = s[offsets].split(column, lanes)
    s[offsets].vectorize(vector)
    s[local].compute_at(s[offsets], tiles)
    vectors, vector = s[local].split(s[local].op.axis[-1], lanes)
    *steps, _ = s[local].op.reduce_axis
    schedule_dots(s[local], vector, steps, [vectors], target)
    s[local].unroll(vectors)
    s[constant].vectorize(s[constant].fuse(*constant.op.axis))
