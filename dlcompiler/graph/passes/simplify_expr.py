"""Replace calls by simpler ones with the same value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dlcompiler import dtypes
from dlcompiler.graph.decisions import Decision
from dlcompiler.graph.ir import Call, Constant, Expr, Module, Tuple
from dlcompiler.graph.passes.tools import (
    KnownTypes,
    attrs_of,
    call_like,
    decided,
    operator_of,
    rewrite_calls,
    scalar_of,
    with_log,
)

NAME = "simplify_expr"


def simplify_expr(module: Module) -> Module:
    """Replace calls by simpler ones with the same value.

    *Before*::

        %0 = reshape(%x, newshape=[2, 12]);
        %1 = reshape(%0, newshape=[24]);
        multiply(%1, 1f)

    *After*::

        reshape(%x, newshape=[24])

    Values are the same but for the sign of 0.

    Parameters
    ----------
    module : Module
        The module.
    """
    log: list[Decision] = []

    def rule(old: Call, new: Call, types: KnownTypes) -> Expr | None:
        current: Expr = new
        while isinstance(current, Call) and (name := operator_of(current)) in RULES:
            found = RULES[name](current, types)
            if found is None:
                break
            reason, after = found
            is_gone = not isinstance(after, Call) or operator_of(after) != name
            log.append(decided(NAME, old, "removed" if is_gone else "rewritten", name, reason,
                               kernels=int(is_gone)))  # fmt: skip
            current = after
        return None if current is new else current

    return with_log(rewrite_calls(module, rule), log)


_Found = tuple[str, Expr] | None
"""The reason, and what takes the place of a call; None if no rule fits."""


def _without_neutral(neutral: float, *, is_commutative: bool) -> Callable[..., _Found]:
    """Return the rule that removes an operand that changes nothing."""

    def rule(call: Call, types: KnownTypes) -> _Found:
        a, b = call.args
        for kept, other in ((a, b), (b, a))[: 2 if is_commutative else 1]:
            if scalar_of(other) == neutral and types[kept] == types[call]:
                return f"{neutral:g} changes nothing", kept
        return None

    return rule


def _plus_zero(call: Call, types: KnownTypes) -> _Found:
    """Remove a sum with 0; join the constants of two sums of integers."""
    if (found := _without_neutral(0, is_commutative=True)(call, types)) is not None:
        return found
    inner, last = call.args
    if not isinstance(last, Constant) or operator_of(inner) != "add":
        return None
    assert isinstance(inner, Call)
    data, first = inner.args
    if not isinstance(first, Constant) or types[inner] != types[data]:
        return None
    if dtypes.is_float(first.type.dtype):
        return None  # (x + 1e8) - 1e8 is not x: sums of floats depend on their order
    both = call_like(call, "add", first, last, suffix="constants")
    return "two constants are one", call_like(call, "add", data, both)


def _small_power(call: Call, types: KnownTypes) -> _Found:
    """Write a square as a product, which is exact and has no function in it."""
    data, exponent = call.args
    if types[data] != types[call]:
        return None
    match scalar_of(exponent):
        case 1:
            return "the first power changes nothing", data
        case 2:
            return "the second power is a product", call_like(call, "multiply", data, data)
    return None


def _same_shape(call: Call, types: KnownTypes) -> _Found:
    """Remove a reshape to the same shape; join two."""
    (data,) = call.args
    kind = types.tensor(call)
    if types[data] == kind and kind.is_static:
        return "the shape is the same", data
    inner = operator_of(data)
    if inner in _VIEWS and kind.is_static and isinstance(data, Call):
        shape = tuple(kind.shape)
        return f"{inner} before it keeps the order of the elements", call_like(
            call, "reshape", data.args[0], newshape=shape, allowzero=0 in shape
        )
    return None


def _transposes(call: Call, types: KnownTypes) -> _Found:
    """Remove a transposition that changes nothing; join two."""
    (data,) = call.args
    order = _order(call, types)
    if order == sorted(order):
        return "the order of the dimensions is the same", data
    if operator_of(data) == "transpose" and isinstance(data, Call):
        before = _order(data, types)
        axes = tuple(before[n] for n in order)
        return "two transpositions are one", call_like(call, "transpose", data.args[0], axes=axes)
    return None


def _order(call: Call, types: KnownTypes) -> list[int]:
    axes, rank = attrs_of(call)["axes"], types.tensor(call).rank
    return list(reversed(range(rank))) if axes is None else [n % rank for n in axes]


def _casts(call: Call, types: KnownTypes) -> _Found:
    """Remove a conversion to the same dtype; join two if the first one loses nothing."""
    (data,) = call.args
    target = types.tensor(call).dtype
    if types.tensor(data).dtype == target:
        return f"it is {target} already", data
    if operator_of(data) == "cast" and isinstance(data, Call):
        source, between = (types.tensor(n).dtype for n in (data.args[0], data))
        if _is_exact(source, between):
            return f"{between} holds every {source}", call_like(
                call, "cast", data.args[0], dtype=target
            )
    return None


def _is_exact(source: str, target: str) -> bool:
    """Tell whether a dtype holds every value of another one."""
    if dtypes.is_bool(source):
        return not dtypes.is_bool(target)
    if dtypes.is_float(source):
        return (
            dtypes.is_float(target)
            and _float_bits(source) <= _float_bits(target)
            and (source == target or target in ("float32", "float64"))
        )
    if not dtypes.is_int(target):
        return dtypes.is_float(target) and dtypes.bits(source) <= _float_bits(target)
    low = dtypes.min_value(target) <= dtypes.min_value(source)
    return low and dtypes.max_value(source) <= dtypes.max_value(target)


def _float_bits(dtype: str) -> int:
    """Return the bits of the significand; [1]."""
    return {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}[dtype]


def _copied(call: Call, types: KnownTypes) -> _Found:
    del types
    return "values do not change", call.args[0]


def _one_part(call: Call, types: KnownTypes) -> _Found:
    """Replace a concatenation of one tensor by the tensor."""
    del types
    (data,) = call.args
    if isinstance(data, Tuple) and len(data.fields) == 1:
        return "it joins one tensor only", data.fields[0]
    return None


def _twice(name: str, is_idempotent: bool) -> Callable[..., _Found]:
    """Return the rule for a call of the same operator on its own result."""

    def rule(call: Call, types: KnownTypes) -> _Found:
        del types
        (data,) = call.args
        if operator_of(data) != name or not isinstance(data, Call) or data.attrs != call.attrs:
            return None
        reason = "a second time changes nothing" if is_idempotent else "the second undoes the first"
        return reason, data if is_idempotent else data.args[0]

    return rule


def _padded(call: Call, types: KnownTypes) -> _Found:
    """Let a convolution pad its input itself."""
    data, *rest = call.args
    if operator_of(data) != "nn.pad" or not isinstance(data, Call):
        return None
    pad, attrs = attrs_of(data), attrs_of(call)
    value = scalar_of(data.args[1]) if len(data.args) > 1 else 0.0
    layout = attrs["data_layout"]
    width = (
        list(zip(pad["pad_width"][0::2], pad["pad_width"][1::2], strict=True))
        if (pad["pad_width"] and isinstance(pad["pad_width"][0], int))
        else [tuple(pair) for pair in pad["pad_width"]]
    )
    spatial = [n for n, letter in enumerate(layout) if letter in "DHW"]
    others = [pair for n, pair in enumerate(width) if n not in spatial]
    is_zero = pad["pad_mode"] == "constant" and value == 0 and not any(map(any, others))
    if not is_zero or len(width) != len(layout) or any(n < 0 for pair in width for n in pair):
        return None
    own, count = attrs["padding"], len(spatial)
    padding = tuple(
        own[side * count + i] + width[n][side] for side in (0, 1) for i, n in enumerate(spatial)
    )
    del types
    new: dict[str, Any] = {**call.attrs, "padding": padding}
    return "a convolution can pad by itself", call_like(
        call, operator_of(call), data.args[0], *rest, **new
    )


_VIEWS = ("reshape", "expand_dims", "squeeze", "nn.batch_flatten")

RULES: Mapping[str, Callable[[Call, KnownTypes], _Found]] = {
    "add": _plus_zero,
    "subtract": _without_neutral(0, is_commutative=False),
    "multiply": _without_neutral(1, is_commutative=True),
    "divide": _without_neutral(1, is_commutative=False),
    "power": _small_power,
    **dict.fromkeys(_VIEWS, _same_shape),
    "transpose": _transposes,
    "cast": _casts,
    "copy": _copied,
    "concatenate": _one_part,
    "nn.relu": _twice("nn.relu", is_idempotent=True),
    "negative": _twice("negative", is_idempotent=False),
    **{f"nn.conv{n}d": _padded for n in (1, 2, 3)},
}
"""Operator -> the rule for its calls."""
