"""Write operations on numbers: C's own operator where it has the IR's semantics, else a helper.

Indices never overflow, as in the loop IR. Other integers wrap: signed ones of 32 and 64 bits are
computed by helpers, because their overflow is undefined in C; smaller ones are promoted to ``int``,
where they cannot overflow, and then truncated. The standard leaves conversions to signed integers
to the implementation; all known compilers wrap.
"""

from __future__ import annotations

from dlcompiler import dtypes
from dlcompiler.codegen.c.dialect import Dialect
from dlcompiler.codegen.c.helpers import Helpers
from dlcompiler.codegen.c.text import (
    AND,
    BITS,
    COMPARE,
    OR,
    PRODUCT,
    SUM,
    UNARY,
    Text,
    conversion,
    infix,
    strict_infix,
    tight_infix,
)
from dlcompiler.errors import InternalError
from dlcompiler.ir.operations import BINARY, COMPARISONS, DIVISIONS, BinaryOp, CompareOp

LEVELS = {"add": SUM, "sub": SUM, "mul": PRODUCT, "div": PRODUCT}
"""The operations for which floats and unsigned integers have an operator in C."""
_BITS = ("bitand", "bitor", "bitxor")
_ORDER = ("lt", "le", "gt", "ge")
_HALVES = ("float16", "bfloat16")


class Arithmetic:
    """Writes operations on numbers in a dialect of C."""

    def __init__(self, dialect: Dialect, helpers: Helpers) -> None:
        self.dialect = dialect
        self.helpers = helpers

    def binary(self, op: BinaryOp, dtype: str, a: Text, b: Text) -> Text:
        """Return ``a op b``; for a division that needs no helper, call `quotient` instead."""
        if dtypes.is_bool(dtype):
            raise InternalError("generate C code", f"{op} of {dtype}")
        if op in ("min", "max"):
            return self.helpers.call(op, computed(dtype), a, b)
        if dtypes.is_float(dtype):
            return self._of_floats(op, dtype, a, b)
        if op in _BITS:
            return strict_infix(BINARY[op].symbol, a, b, BITS)
        if op in ("shl", "shr") or op in DIVISIONS:
            return self.helpers.call(op, dtype, a, b)
        if op == "div":
            raise InternalError("generate C code", f"{op} of {dtype}")
        return self._of_integers(op, dtype, a, b)

    def quotient(self, op: BinaryOp, a: Text, b: Text) -> Text:
        """Return a division of indices that are not negative, by a divisor that is not 0."""
        return tight_infix("%" if op in ("floormod", "truncmod") else "/", a, b)

    def negated(self, value: Text) -> Text:
        """Return ``-value`` of an index or a float."""
        return Text(f"-{value.at(UNARY + 1)}", UNARY)

    def rounded(self, dtype: str, value: Text) -> Text:
        """Round the result of an operation to `dtype`: C computes floats of 16 bits in float32."""
        return self.helpers.call("round", dtype, value) if dtype in _HALVES else value

    def compare(self, op: CompareOp, dtype: str, a: Text, b: Text) -> Text:
        """Return a comparison of two operands of `dtype`; with NaN only ``!=`` holds."""
        if dtypes.is_bool(dtype) and op in _ORDER:
            return _ordered_conditions(op, a, b)
        return Text(f"{a.at(SUM)} {COMPARISONS[op].symbol} {b.at(SUM)}", COMPARE)

    def _of_floats(self, op: BinaryOp, dtype: str, a: Text, b: Text) -> Text:
        if op not in LEVELS:
            raise InternalError("generate C code", f"{op} of {dtype}")
        return self.rounded(dtype, infix(BINARY[op].symbol, a, b, LEVELS[op]))

    def _of_integers(self, op: BinaryOp, dtype: str, a: Text, b: Text) -> Text:
        if dtypes.is_index(dtype) and op == "add":  # associative: indices never overflow
            return Text(f"{a.at(SUM)} + {b.at(SUM)}", SUM)
        if dtypes.is_index(dtype) and op == "mul":
            return tight_infix("*", a, b)
        plain = infix(BINARY[op].symbol, a, b, LEVELS[op])
        if dtypes.is_index(dtype):
            return plain
        if dtypes.bits(dtype) < 32:
            if dtype == "uint16" and op == "mul":  # 65535² overflows an int: undefined
                plain = infix("*", conversion("uint32_t", a), b, PRODUCT)
            return conversion(self.dialect.types[dtype], plain)
        return plain if dtypes.is_unsigned(dtype) else self.helpers.call(op, dtype, a, b)


def _ordered_conditions(op: CompareOp, a: Text, b: Text) -> Text:
    """Return a comparison by ``<``, ``<=``, ``>`` or ``>=`` of two conditions: false < true.

    It is written with ``!``, ``&&`` and ``||``: compilers warn about ``<`` between conditions.
    """
    symbol, level = ("&&", AND) if op in ("lt", "gt") else ("||", OR)
    left, right = (f"!{a.at(UNARY)}", b.at(COMPARE))
    if op in ("gt", "ge"):
        left, right = a.at(COMPARE), f"!{b.at(UNARY)}"
    return Text(f"{left} {symbol} {right}", level)


def computed(dtype: str) -> str:
    """Return the dtype in which C computes: float32 for floats of 16 bits, else the same."""
    return "float32" if dtype in _HALVES else dtype
