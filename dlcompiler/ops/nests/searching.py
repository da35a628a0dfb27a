"""Binary search in sorted sequences."""

from __future__ import annotations

import math

from dlcompiler import te
from dlcompiler.ir import Buffer, Builder, Expr, Stmt
from dlcompiler.ops.nests.runs import comes_before
from dlcompiler.ops.sharing import is_worth_sharing
from dlcompiler.ops.transforms import unravelled
from dlcompiler.target import Target
from dlcompiler.te import Tensor

STEP_CYCLES = 4.0
"""Time of a step of the search for a value, where several searches overlap; [cycle]."""


def searchsorted(
    sequence: Tensor, values: Tensor, dtype: str, target: Target, *, is_right: bool
) -> Tensor:
    """Define what `ordering.searchsorted` defines, for a CPU.

    Each search halves the rest of the sequence in the same number of steps, without branches: the
    results of comparisons cannot be guessed. The sequence must be sorted, and have an element.
    """
    extent, shape = sequence.static_shape[-1], values.static_shape
    cycles = STEP_CYCLES * math.prod(shape) * extent.bit_length()
    kind = "parallel" if is_worth_sharing(cycles, target) else "serial"

    def code(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = Builder()
        elements, wanted, out = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        with ib.for_range(0, math.prod(shape), "element", kind=kind) as element:
            at = unravelled(element, shape)
            lead = at[:-1] if sequence.ndim > 1 else ()
            value = ib.let("value", wanted[at])
            first: Expr = te.const(0, "int32")
            rest = extent
            while rest > 0:
                step = max(rest // 2, 1)
                place = te.assume_bounds((first + te.const(step - 1, "int32")).astype("index"))
                found = ib.let("found", elements[(*lead, place)])
                if is_right:
                    is_before = te.select(
                        comes_before(value, found, is_ascending=True),
                        te.const(False, "bool"), te.const(True, "bool"),
                    )  # fmt: skip
                else:
                    is_before = comes_before(found, value, is_ascending=True)
                moved = first + te.const(step, "int32")
                first = ib.let("first", te.select(is_before, moved, first))
                rest = 0 if rest == 1 else rest - step
            out[at] = first.astype(dtype)
        return ib.get()

    made: Tensor = te.extern(
        shape, [sequence, values], code, name="T_searchsorted", dtype=dtype, is_complete=True
    )
    return made
