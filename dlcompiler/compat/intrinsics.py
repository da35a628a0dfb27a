"""Scalar functions that classic code defines by a lowering rule for a target.

The rule defines the user's function. It is applied where the function is called, so that
interpreter, simulator and machine code agree. No rule changes the functions of `te`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from dlcompiler.compat.notes import note
from dlcompiler.compat.warp_matrices import ABSENT, ARITY, matrix_call
from dlcompiler.errors import ExpressionError, UserError
from dlcompiler.ir import Call, Expr, as_expr, cast
from dlcompiler.ir.functions import FUNCTIONS

PREFIX = "tir."
TARGETS = ("llvm", "cpu", "default")
"""Targets whose rules apply to this machine, in order of precedence."""
Rule = Callable[["IntrinsicCall"], Any]


class CallEffectKind(IntEnum):
    """TVM's side effects of a call; here, only `Pure` calls may be in expressions."""

    ExprAnnotation = 0
    Pure = 1
    ReadState = 2
    UpdateState = 3
    SpecialCallArg = 4
    EmbedInfo = 5
    ControlJump = 6


@dataclass(frozen=True)
class Op:
    """A function by name."""

    name: str
    """With its prefix: ``tir.mylog``."""


@dataclass(frozen=True)
class IntrinsicCall:
    """A call of a user's function; the lowering rule takes it as its argument."""

    op: Op
    args: tuple[Expr, ...]
    dtype: str

    @property
    def name(self) -> str:
        """Name of the function without prefix, as in version 0.6."""
        return self.op.name.removeprefix(PREFIX)


_rules: dict[tuple[str, str], tuple[int, Rule]] = {}


def register_intrin_lowering(
    op_name: str, target: str, *, f: Rule | None = None, level: int = 10
) -> Any:
    """Register a lowering rule, which defines a function of the user.

    Parameters
    ----------
    op_name : str
        Such as ``"tir.mylog"``.
    target : str
        ``"llvm"`` or ``"default"``; a rule for another target is kept, and has no use here.
    f : callable
        Gets the call, with ``op.name``, ``args`` and ``dtype``, and returns an expression; without
        it, the result is a decorator.
    level : int
        A rule replaces one with a lower level.
    """
    name = _full(op_name)
    if name.removeprefix(PREFIX) in FUNCTIONS:
        note(f"{op_name} has the same meaning on all targets; the rule for {target} is not used", 3)

    def enter(rule: Rule) -> Rule:
        if not callable(rule):
            raise UserError(f"register a rule for {op_name}", "not a function", got=repr(rule))
        known = _rules.get((name, target))
        if known is None or known[0] <= level:
            _rules[name, target] = level, rule
        return rule

    return enter if f is None else enter(f)


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Accept an attribute of a function, such as its purity.

    Raises
    ------
    UserError
        If it is not pure: an expression has no effects here.
    """
    del level
    is_kind = attr_key == "TCallEffectKind"
    if is_kind and value not in (CallEffectKind.Pure, CallEffectKind.ExprAnnotation):
        raise UserError(
            f"register {attr_key} of {op_name}", "an expression has no effects", got=repr(value),
            expected="CallEffectKind.Pure", hint="te.extern calls code that has",
        )  # fmt: skip
    if not is_kind:
        note(f"{attr_key} of {op_name} has no effect", 3)
    return value


def call_intrin(dtype: Any, func_name: str, *args: Any) -> Any:
    """Call a scalar function: one of `te`, or a user's function, by its rule.

    A call for tensor cores, such as ``tir.tvm_mma_sync``, is a part of a tensor intrinsic.

    Raises
    ------
    ExpressionError
        If there is no rule for this CPU, or it gives no value of the dtype.
    """
    name = _full(func_name)
    if name in ARITY or name in ABSENT:
        return matrix_call(name, args)
    where = f"call_intrin {func_name}"
    own = name.removeprefix(PREFIX)
    if own in FUNCTIONS:
        return _known(own, tuple(map(as_expr, args)), dtype, where)
    rule = next((_rules[name, target][1] for target in TARGETS if (name, target) in _rules), None)
    if rule is None:
        raise ExpressionError(
            where, "no rule says what it computes",
            hint=f'register_intrin_lowering("{name}", target="llvm", f=…) does',
        )  # fmt: skip
    made = rule(IntrinsicCall(Op(name), tuple(map(as_expr, args)), dtype))
    if isinstance(made, IntrinsicCall) or not isinstance(made, Expr) or made.dtype != dtype:
        raise ExpressionError(
            where,
            "its rule does not return a value of its dtype",
            got=str(made),
            expected=str(dtype),
        )
    return made


def _known(name: str, values: tuple[Expr, ...], dtype: Any, where: str) -> Expr:
    signature = FUNCTIONS[name]
    if not signature.takes(*(value.dtype for value in values)):
        raise ExpressionError(
            where, "it takes other arguments",
            got=", ".join(f"{value} ({value.dtype})" for value in values) or "none",
        )  # fmt: skip
    return cast(Call(name, values, signature.result_dtype(values[0].dtype)), dtype)


def _full(name: str) -> str:
    return name if name.startswith(PREFIX) else PREFIX + name
