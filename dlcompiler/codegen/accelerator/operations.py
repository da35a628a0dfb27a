"""Elementwise expressions as chains of an accelerator's operations.

``min(max(a >> 8, 0), 127)`` is a chain of three operations, each with an immediate. Each writes its
result over its first operand; another element can be the second one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dlcompiler import dtypes
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import Binary, Const, Expr, Load, Store
from dlcompiler.ir.operations import REORDERED
from dlcompiler.target.accelerators import Field, Instruction
from dlcompiler.target.accelerators.uses import WITH_NUMBER

_LEAST_SHIFT, _MOST_SHIFT = -15, 31
"""Shifts by other amounts differ between implementations of VTA; [bit]."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a chain: on the result so far, and a number or an element."""

    name: str
    operand: int | Load


@dataclass(frozen=True, slots=True)
class Chain:
    """Operations on an element, one after another."""

    first: Load | int
    """What the chain begins with: an element, or a constant."""
    operations: tuple[Operation, ...]


def chain_of(leaf: Store, instruction: Instruction) -> Chain:
    """Return the value of a store as a chain of operations.

    Raises
    ------
    ScheduleError
        The instruction cannot compute it.
    """
    found = _Reader(leaf, instruction).chain(leaf.value)
    # An element that is its own first operand needs no copy: a + b with b's place is b + a.
    return found


class _Reader:
    def __init__(self, leaf: Store, instruction: Instruction) -> None:
        self.leaf, self.instruction = leaf, instruction
        self.immediate = instruction.field("imm")

    def chain(self, value: Expr) -> Chain:
        match value:
            case Load():
                return Chain(value, ())
            case Const(number):
                return self._constant(self._whole(number))
            case Binary(op, a, b):
                return self._operation(op, a, b)
        raise self._refusal(f"it has no operation for {value}")

    def _constant(self, number: int) -> Chain:
        """Return a constant; one that no immediate holds is shifted into its place."""
        field = self.immediate
        if field is None or field.least <= number <= field.most or not self._has_shift(field):
            return Chain(number, ())
        half = field.bits
        low = (number + (1 << half - 1)) % (1 << half) - (1 << half - 1)
        high = (number - low) >> half
        if high > field.most:  # the sum with the low half wraps to the same number
            high -= 1 << half
        left = (Operation("shr", 1 - half), Operation("shr", -1))
        return Chain(high, (*left, *((Operation("add", low),) if low else ())))

    def _has_shift(self, field: Field) -> bool:
        """Tell whether two shifts bring an immediate into the upper half of a result."""
        operations = self.instruction.operations
        is_double = dtypes.bits(self.leaf.buffer.dtype) == 2 * field.bits
        return field.signed and is_double and {"add", "shr"} <= {*operations}

    def _whole(self, number: float) -> int:
        """Return an immediate, which is a whole number."""
        if not math.isfinite(number) or int(number) != number:
            raise self._refusal(
                f"the number {number} is no immediate", expected="a whole number",
                hint="load it as a tensor",
            )  # fmt: skip
        return int(number)

    def _operation(self, op: str, a: Expr, b: Expr) -> Chain:
        if op in REORDERED and self._is_first(b) and not self._is_first(a):
            a, b = b, a
        if op in REORDERED and not isinstance(b, Load | Const) and isinstance(a, Load | Const):
            a, b = b, a
        if not isinstance(b, Load | Const):
            raise self._refusal(
                f"both operands of {op} are computed",
                hint="make one of them a stage of its own, in the same memory",
            )
        before = self.chain(a)
        if isinstance(b, Const):
            operation = self._with_number(op, self._whole(b.value))
        else:
            operation = Operation(op, b)
        if operation.name not in self.instruction.operations:
            raise self._refusal(f"it has no operation {operation.name}")
        return Chain(before.first, (*before.operations, operation))

    def _is_first(self, value: Expr) -> bool:
        """Tell whether a value begins with the element that the result is written over."""
        while isinstance(value, Binary):
            value = value.a
        return isinstance(value, Load) and value.buffer is self.leaf.buffer

    def _with_number(self, op: str, number: int) -> Operation:
        if op in WITH_NUMBER:
            op, number = WITH_NUMBER[op], -number
        if op == "shr" and not _LEAST_SHIFT <= number <= _MOST_SHIFT:
            raise self._refusal(
                f"it shifts by {number}", expected=f"{_LEAST_SHIFT} to {_MOST_SHIFT}, to the right"
            )
        field = self.immediate
        if field is None or not field.least <= number <= field.most:
            raise self._refusal(
                f"the number {number} does not fit an instruction",
                expected=f"{field.least} to {field.most}" if field else "an element",
                hint="load it as a tensor",
            )
        return Operation(op, number)

    def _refusal(self, problem: str, **details: str) -> ScheduleError:
        where = f"compute {self.leaf.buffer.name} by {self.instruction.name}"
        details.setdefault("expected", ", ".join(self.instruction.operations))
        return ScheduleError(where, problem, got=str(self.leaf.value), **details)
