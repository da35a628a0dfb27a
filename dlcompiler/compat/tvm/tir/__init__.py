"""Classic TVM's ``tvm.tir``: scalar expressions, buffers, and loop IR by hand."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any as Anything

from dlcompiler import ir, te
from dlcompiler.compat.intrinsics import CallEffectKind, IntrinsicCall, call_intrin
from dlcompiler.compat.literals import as_operand
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.tvm.runtime import const
from dlcompiler.compat.tvm.te import IterVar, floordiv, floormod, max, min, sum
from dlcompiler.compat.tvm.tir import ir_builder
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import (
    Buffer,
    Const,
    Expr,
    PrimFunc,
    Stmt,
    call_extern,
    call_packed,
    call_pure_extern,
    cast,
    decl_buffer,
)

pow = te.power
PrimExpr = Expr


class _Form(type):
    """Metaclass of TVM's expression classes: a call makes our class; ``isinstance`` checks it."""

    make: Callable[..., Anything]
    recognise: Callable[[Anything], bool]

    def __call__(cls, *args: Anything, **kwargs: Anything) -> Anything:
        return cls.make(*args, **kwargs)

    def __instancecheck__(cls, value: object) -> bool:
        return cls.recognise(value)


class IntImm(metaclass=_Form):
    """An integer literal: ``IntImm(dtype, value)``."""

    make = staticmethod(lambda dtype, value: te.const(value, dtype))
    recognise = staticmethod(lambda x: isinstance(x, Const) and type(x.value) is int)


class FloatImm(metaclass=_Form):
    """A floating-point literal: ``FloatImm(dtype, value)``."""

    make = staticmethod(lambda dtype, value: te.const(value, dtype))
    recognise = staticmethod(lambda x: isinstance(x, Const) and type(x.value) is float)


class Call(metaclass=_Form):
    """A call of a function by name, as ``call_intrin`` makes it: ``Call(dtype, op, args)``."""

    make = staticmethod(lambda dtype, op, args: call_intrin(dtype, op, *args))
    recognise = staticmethod(lambda x: isinstance(x, ir.Call | IntrinsicCall))


class Var(metaclass=_Form):
    """A variable: ``Var(name, dtype="int32")``."""

    make = staticmethod(lambda name, dtype="int32": te.var(name, dtype))
    recognise = staticmethod(lambda x: isinstance(x, ir.Var))


class Cast(metaclass=_Form):
    """A conversion: ``Cast(dtype, value)``."""

    make = staticmethod(lambda dtype, value: cast(as_operand(value), dtype))
    recognise = staticmethod(lambda x: isinstance(x, ir.Cast))


class Select(metaclass=_Form):
    """``Select(condition, true_value, false_value)``; both values are evaluated."""

    make = staticmethod(
        lambda condition, true_value, false_value: te.select(condition, true_value, false_value)
    )
    recognise = staticmethod(lambda x: isinstance(x, ir.Select))


def _no_extent(*_arguments: Anything) -> Anything:
    raise ExpressionError(
        "tir.Any", "a symbolic extent needs a name", hint='declare it: n = te.var("n")'
    )


class Any(metaclass=_Form):
    """TVM's unknown extent, which is refused: here an extent is a number or a named symbol."""

    make = staticmethod(_no_extent)
    recognise = staticmethod(lambda x: False)


expr = sys.modules[__name__]
"""The older place of these names."""

_report = reporter(__name__, fallback=te)


def __getattr__(name: str) -> Anything:
    return _report(name)


__all__ = [
    "Any",
    "Buffer",
    "Call",
    "CallEffectKind",
    "Cast",
    "FloatImm",
    "IntImm",
    "IterVar",
    "PrimExpr",
    "PrimFunc",
    "Select",
    "Stmt",
    "Var",
    "call_extern",
    "call_intrin",
    "call_packed",
    "call_pure_extern",
    "const",
    "decl_buffer",
    "expr",
    "floordiv",
    "floormod",
    "ir_builder",
    "max",
    "min",
    "pow",
    "sum",
]
