"""Write arithmetic and comparisons in LLVM IR with the semantics of the loop IR.

Each function takes and returns operands, scalars or vectors. The instructions neither trap nor give
poison for any operands: they may be executed where their result is not used.
"""

from __future__ import annotations

from dlcompiler import dtypes
from dlcompiler.codegen.llvm.bfloat16 import float32_like, in_float32, is_bfloat16, widen
from dlcompiler.codegen.llvm.types import constant, intrinsic_suffix, value_type
from dlcompiler.codegen.llvm.writer import Function
from dlcompiler.errors import InternalError
from dlcompiler.ir.operations import BinaryOp, CompareOp

_PLAIN = ("add", "sub", "mul")
_BITWISE = {"bitand": "and", "bitor": "or", "bitxor": "xor"}


def binary(w: Function, op: BinaryOp, dtype: str, a: str, b: str) -> str:
    """Write ``a op b`` of two operands of `dtype`, except divisions of integers: see `divide`."""
    if is_bfloat16(dtype):
        wide, is_exact = float32_like(dtype), op in ("min", "max")
        return in_float32(w, dtype, (a, b), lambda x: binary(w, op, wide, *x), is_exact=is_exact)
    if op in ("min", "max"):
        return _extremum(w, op, dtype, a, b)
    if dtypes.is_float(dtype):
        return _float_operation(w, op, dtype, a, b)
    if op in _PLAIN:
        # Index arithmetic never overflows, so `nsw` is true; data integers wrap, so it would make
        # the result poison.
        flags = " nsw" if dtypes.is_index(dtype) else ""
        return w.pure(f"{op}{flags} {value_type(dtype)} {a}, {b}")
    if op in _BITWISE:
        return w.pure(f"{_BITWISE[op]} {value_type(dtype)} {a}, {b}")
    if op in ("shl", "shr"):
        return _shift(w, op, dtype, a, b)
    raise InternalError("generate LLVM code", f"{op} of {dtype}")


def divide(w: Function, op: BinaryOp, dtype: str, a: str, b: str, divisor: int | None) -> str:
    """Write a division of two integers of `dtype`, or its remainder.

    `divisor` is the value of `b` if that is a constant and equal in all lanes, else None.
    """
    if dtypes.is_float(dtype) or dtypes.is_bool(dtype):
        raise InternalError("generate LLVM code", f"{op} of {dtype}")
    division = _Division(w, dtype, a, b, divisor)
    match op:
        case "truncdiv":
            return division.quotient()
        case "truncmod":
            return division.remainder()
        case "floordiv":
            return division.floor_quotient()
        case "floormod":
            return division.floor_remainder()
    raise InternalError("generate LLVM code", f"unknown operation {op}")


def _float_operation(w: Function, op: BinaryOp, dtype: str, a: str, b: str) -> str:
    if op not in ("add", "sub", "mul", "div"):
        raise InternalError("generate LLVM code", f"{op} of {dtype}")
    # `contract` lets a multiply and an add become one FMA, and nothing else. Operations on float16
    # round each time: machines widen them, and contracted ones would round once.
    contract = "" if dtypes.element(dtype) == "float16" else " contract"
    return w.pure(f"f{op}{contract} {value_type(dtype)} {a}, {b}")


def _shift(w: Function, op: BinaryOp, dtype: str, a: str, b: str) -> str:
    """Write a shift; in LLVM a shift by the width or more is poison.

    A negative shift is a large unsigned one. `select` drops the poison of the side not chosen.
    """
    type_, condition = value_type(dtype), _bool_like(dtype)
    last = constant(dtypes.bits(dtype) - 1, dtype)
    if op == "shr" and not dtypes.is_unsigned(dtype):
        return w.pure(f"ashr {type_} {a}, {intrinsic(w, 'umin', dtype, b, last)}")
    is_inside = w.pure(f"icmp ule {type_} {b}, {last}")
    shifted = w.pure(f"{'shl' if op == 'shl' else 'lshr'} {type_} {a}, {b}")
    return select(w, dtype, condition, is_inside, shifted, constant(0, dtype))


def _extremum(w: Function, op: BinaryOp, dtype: str, a: str, b: str) -> str:
    if dtypes.is_float(dtype):
        # llvm.maximum propagates NaN. The loop IR does not define which of 0 and -0 is larger;
        # `nsz` on this call saves the instructions that would decide it.
        return intrinsic(w, f"{op}imum", dtype, a, b, flags="nsz ")
    unsigned = dtypes.is_unsigned(dtype) or dtypes.is_bool(dtype)
    return intrinsic(w, f"{'u' if unsigned else 's'}{op}", dtype, a, b)


def intrinsic(w: Function, name: str, dtype: str, *operands: str, flags: str = "") -> str:
    """Write a call of the LLVM intrinsic `name` whose operands and result have one dtype."""
    type_ = value_type(dtype)
    symbol = w.module.declare(
        f"llvm.{name}.{intrinsic_suffix(dtype)}", type_, ", ".join([type_] * len(operands))
    )
    arguments = ", ".join(f"{type_} {operand}" for operand in operands)
    return w.pure(f"call {flags}{type_} {symbol}({arguments})")


class _Division:
    """The four divisions of ``a`` by ``b``; ``x / 0`` is 0, and ``INT_MIN / -1`` is INT_MIN."""

    def __init__(self, w: Function, dtype: str, a: str, b: str, divisor: int | None) -> None:
        self.w = w
        self.dtype = dtype
        self.type = value_type(dtype)
        self.a = a
        self.b = b
        self.divisor = divisor
        self.signed = not dtypes.is_unsigned(dtype)
        self.zero = constant(0, dtype)

    def quotient(self) -> str:
        """Divide toward zero."""
        if self.divisor is not None:
            return self._quotient_by_constant(self.divisor)
        w, a = self.w, self.a
        result = w.pure(f"{'s' if self.signed else 'u'}div {self.type} {a}, {self._safe_divisor()}")
        if self.signed:
            result = self._select(self._is(-1), self._negated(), result)
        return self._select(self._is(0), self.zero, result)

    def _quotient_by_constant(self, divisor: int) -> str:
        if divisor == 0:
            return self.zero
        if divisor == -1 and self.signed:
            return self._negated()
        return self.w.pure(f"{'s' if self.signed else 'u'}div {self.type} {self.a}, {self.b}")

    def remainder(self) -> str:
        """Return the remainder of division toward zero: it has the sign of `a`."""
        if self.divisor == 0 or (self.divisor == -1 and self.signed):
            return self.zero
        divisor = self._safe_divisor() if self.divisor is None else self.b
        return self.w.pure(f"{'s' if self.signed else 'u'}rem {self.type} {self.a}, {divisor}")

    def floor_quotient(self) -> str:
        """Divide toward minus infinity."""
        w = self.w
        if not self.signed:
            return self.quotient()
        if self.divisor is not None and self.divisor > 0:
            if _is_power_of_two(self.divisor):
                shift = constant(self.divisor.bit_length() - 1, self.dtype)
                return w.pure(f"ashr {self.type} {self.a}, {shift}")
            # floor(a / b) = ~(~a / b) for negative a; `sign` is -1 then, else 0. LLVM drops the
            # three extra instructions where it sees that a is not negative.
            sign = w.pure(
                f"ashr {self.type} {self.a}, {constant(dtypes.bits(self.dtype) - 1, self.dtype)}"
            )
            magnitude = w.pure(f"xor {self.type} {self.a}, {sign}")
            quotient = w.pure(f"udiv {self.type} {magnitude}, {self.b}")
            return w.pure(f"xor {self.type} {quotient}, {sign}")
        quotient = self.quotient()
        lowered = w.pure(f"sub {self.type} {quotient}, {constant(1, self.dtype)}")
        return self._select(self._signs_differ(self.remainder()), lowered, quotient)

    def floor_remainder(self) -> str:
        """Return the remainder of division toward minus infinity: it has the sign of `b`."""
        w = self.w
        if not self.signed:
            return self.remainder()
        if self.divisor is not None and self.divisor > 0 and _is_power_of_two(self.divisor):
            return w.pure(f"and {self.type} {self.a}, {constant(self.divisor - 1, self.dtype)}")
        remainder = self.remainder()
        if self.divisor is not None and self.divisor in (0, -1):
            return remainder
        raised = w.pure(f"add {self.type} {remainder}, {self.b}")
        return self._select(self._signs_differ(remainder), raised, remainder)

    def _signs_differ(self, remainder: str) -> str:
        """Write the test that a remainder is not 0 and its sign differs from the divisor's."""
        w, type_, bool_type = self.w, self.type, value_type(_bool_like(self.dtype))
        inexact = w.pure(f"icmp ne {type_} {remainder}, {self.zero}")
        mixed = w.pure(f"xor {type_} {remainder}, {self.b}")
        differ = w.pure(f"icmp slt {type_} {mixed}, {self.zero}")
        return w.pure(f"and {bool_type} {inexact}, {differ}")

    def _safe_divisor(self) -> str:
        """Return the divisor, or 1 where the machine instruction would trap.

        `sdiv` and `srem` are undefined for a divisor of 0 and for INT_MIN / -1, and x86 traps. The
        results for 0 and -1 are selected afterwards, or equal those for 1: x % 1 is 0.
        """
        unsafe = self._is(0)
        if self.signed:
            bool_type = value_type(_bool_like(self.dtype))
            unsafe = self.w.pure(f"or {bool_type} {unsafe}, {self._is(-1)}")
        return self._select(unsafe, constant(1, self.dtype), self.b)

    def _is(self, value: int) -> str:
        return self.w.pure(f"icmp eq {self.type} {self.b}, {constant(value, self.dtype)}")

    def _negated(self) -> str:
        return self.w.pure(f"sub {self.type} {self.zero}, {self.a}")

    def _select(self, condition: str, a: str, b: str) -> str:
        return select(self.w, self.dtype, _bool_like(self.dtype), condition, a, b)


def _is_power_of_two(value: int) -> bool:
    return value & (value - 1) == 0


def _bool_like(dtype: str) -> str:
    return dtypes.with_lanes("bool", dtypes.lanes(dtype))


def select(w: Function, dtype: str, condition_dtype: str, condition: str, a: str, b: str) -> str:
    """Write a choice between two computed values; a scalar condition applies to all lanes."""
    type_ = value_type(dtype)
    return w.pure(f"select {value_type(condition_dtype)} {condition}, {type_} {a}, {type_} {b}")


def branch_free_select(w: Function, dtype: str, condition: str, a: str, b: str) -> str:
    """Write a choice by a scalar condition as a conditional move.

    Both values are computed, so that a branch would save nothing; where data decides, it costs 10
    cycles or more each time that the processor guesses wrong. Without the hint, LLVM may turn
    conditional moves in loops into branches.
    """
    type_ = value_type(dtype)
    hint = f"!unpredictable !{w.module.debug.note('!{}')}"
    return w.pure(f"select i1 {condition}, {type_} {a}, {type_} {b}, {hint}")


def compare(w: Function, op: CompareOp, dtype: str, a: str, b: str) -> str:
    """Write a comparison of two operands of `dtype`; with NaN only ``ne`` holds."""
    if is_bfloat16(dtype):
        return compare(w, op, float32_like(dtype), widen(w, a, dtype), widen(w, b, dtype))
    type_ = value_type(dtype)
    if dtypes.is_float(dtype):
        return w.pure(f"fcmp {'une' if op == 'ne' else 'o' + op} {type_} {a}, {b}")
    if op in ("eq", "ne"):
        return w.pure(f"icmp {op} {type_} {a}, {b}")
    unsigned = dtypes.is_unsigned(dtype) or dtypes.is_bool(dtype)
    return w.pure(f"icmp {'u' if unsigned else 's'}{op} {type_} {a}, {b}")
