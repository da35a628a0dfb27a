"""Operators that compute element by element."""

from __future__ import annotations

import math
from collections.abc import Callable

from dlcompiler import dtypes
from dlcompiler.graph.frontends.torch.node import AtenNode, Converter
from dlcompiler.graph.ir import Expr


def _unary(name: str, argument: str = "self") -> Converter:
    """Return the converter of a function; it is computed in the dtype of the result."""
    return lambda node: node.call(name, node.operand(argument, node.out_dtype))


def _test(name: str, of_integers: bool) -> Converter:
    """Return the converter of a question about floats, which has one answer for integers."""

    def convert(node: AtenNode) -> Expr:
        x = node.tensor("self")
        if not dtypes.is_float(node.dtype(x)):
            return node.call("full", node.scalar(of_integers, "bool"), shape=node.out_shape,
                             dtype="bool")  # fmt: skip
        return node.call(name, x)

    return convert


def _binary(name: str) -> Converter:
    """Return the converter of an operator; ``alpha`` scales the second operand."""

    def convert(node: AtenNode) -> Expr:
        dtype = node.out_dtype
        a, b = node.operand("self", dtype), node.operand("other", dtype)
        alpha = node.get("alpha", 1)
        if alpha != 1:
            b = node.call("multiply", b, node.number(alpha, dtype))
        return node.call(name, a, b)

    return convert


def _truth(name: str) -> Converter:
    """Return the converter of arithmetic that is logic on truth values."""
    of_numbers = _binary(name)
    of_truths = {"add": "logical_or", "multiply": "logical_and", "maximum": "logical_or",
                 "minimum": "logical_and", "bitwise_and": "logical_and",
                 "bitwise_or": "logical_or", "bitwise_xor": "logical_xor"}[name]  # fmt: skip

    def convert(node: AtenNode) -> Expr:
        if node.out_dtype != "bool":
            made = of_numbers(node)
            assert isinstance(made, Expr)
            return made
        return node.call(of_truths, node.operand("self", "bool"), node.operand("other", "bool"))

    return convert


def _comparison(name: str) -> Converter:
    def convert(node: AtenNode) -> Expr:
        dtype = node.common_dtype("self", "other")
        a, b = (node.operand(each, "int8" if dtype == "bool" else dtype)
                for each in ("self", "other"))  # fmt: skip
        return node.call(name, a, b)

    return convert


def _logical(name: str) -> Converter:
    return lambda node: node.call(name, node.operand("self", "bool"), node.operand("other", "bool"))


def _divide(node: AtenNode) -> Expr:
    dtype = node.out_dtype
    a, b = node.operand("self", dtype), node.operand("other", dtype)
    match node.get("rounding_mode"):
        case None:
            return node.call("divide", a, b)
        case "floor":
            if dtypes.is_float(dtype):
                return _floor_of_quotient(node, a, b)
            return node.call("floor_divide", a, b)
        case "trunc":
            made = node.call("divide", a, b)
            return node.call("trunc", made) if dtypes.is_float(dtype) else made
        case mode:
            node.fail("no such rounding", got=repr(mode), expected="None, 'floor', 'trunc'")


def _floor_of_quotient(node: AtenNode, a: Expr, b: Expr) -> Expr:
    """Return ⌊a/b⌋ as PyTorch and NumPy compute it: from the remainder, which is exact.

    So 1.5 // 0.3 of float32 is 4, since that 0.3 is above 3/10; a/b is rounded to 5.
    """
    dtype = node.out_dtype
    zero, one = node.number(0, dtype), node.number(1, dtype)
    rest = node.call("mod", a, b)
    quotient = node.call("divide", node.call("subtract", a, rest), b)
    has_rest = node.call("not_equal", rest, zero)
    signs = node.call("not_equal", node.call("less", rest, zero), node.call("less", b, zero))
    below = node.call("subtract", quotient, one)
    quotient = node.call("where", node.call("logical_and", has_rest, signs), below, quotient)
    floor = node.call("floor", quotient)
    is_above = node.call("greater", node.call("subtract", quotient, floor), node.number(0.5, dtype))
    made = node.call("where", is_above, node.call("add", floor, one), floor)
    by_zero = node.call("equal", b, zero)
    return node.call("where", by_zero, node.call("divide", a, b), made)


def _power(node: AtenNode) -> Expr:
    dtype = node.out_dtype
    exponent = node["exponent"]
    if not dtypes.is_float(dtype):
        return _integer_power(node, dtype)
    if not isinstance(exponent, Expr) and exponent in _ROOTS:
        return node.call(_ROOTS[exponent], node.operand("self", dtype))
    return node.call("power", node.operand("self", dtype), node.operand("exponent", dtype))


def _integer_power(node: AtenNode, dtype: str) -> Expr:
    """Multiply squares of integers, which wrap; float64 has only 53 bits of a power."""
    exponent, square = node["exponent"], node.operand("self", dtype)
    one, zero = node.number(1, dtype), node.number(0, dtype)
    is_tensor = isinstance(exponent, Expr)
    if is_tensor:
        exponent = node.cast(exponent, dtype)
    elif exponent < 0:
        node.fail("integers have no negative powers", got=f"exponent {exponent}")
    made, base = node.call("full", one, shape=node.out_shape, dtype=dtype), square
    bits = dtypes.bits(dtype) - (0 if dtypes.is_unsigned(dtype) else 1)
    for bit in range(bits if is_tensor else int(exponent).bit_length()):
        if is_tensor:
            shifted = node.call("right_shift", exponent, node.number(bit, dtype))
            is_set = node.call("not_equal", node.call("bitwise_and", shifted, one), zero)
            made = node.call("where", is_set, node.call("multiply", made, square), made)
        elif exponent >> bit & 1:
            made = node.call("multiply", made, square)
        square = node.call("multiply", square, square)
    if not is_tensor or dtypes.is_unsigned(dtype):
        return made
    # 1/base rounds to 0, but for 1 and -1, for which only the lowest bit of the exponent counts.
    is_unit = node.call("equal", node.call("multiply", base, base), one)
    is_unit = node.call(
        "logical_and", is_unit, node.call("less_equal", node.call("abs", base), one)
    )
    is_whole = node.call("logical_or", node.call("greater_equal", exponent, zero), is_unit)
    return node.call("where", is_whole, made, zero)


_ROOTS = {0.5: "sqrt", -0.5: "rsqrt"}
"""What PyTorch computes for an exponent; of -inf it is NaN, the power of which is infinite."""


def _clamp(node: AtenNode) -> Expr:
    dtype = node.out_dtype
    x = node.operand("self", dtype)
    for bound, name in (("min", "maximum"), ("max", "minimum")):
        if node.get(bound) is not None:
            x = node.call(name, x, node.operand(bound, dtype))
    return x


def _hardtanh(node: AtenNode) -> Expr:
    low, high = node["min_val"], node["max_val"]
    x = node.tensor("self")
    if (low, high) == (0, 6):
        return node.call("nn.relu6", x)
    return node.call("clip", x, a_min=float(low), a_max=float(high))


def _where(node: AtenNode) -> Expr:
    dtype = node.out_dtype
    return node.call(
        "where", node.operand("condition", "bool"), node.operand("self", dtype),
        node.operand("other", dtype),
    )  # fmt: skip


def _masked_fill(node: AtenNode) -> Expr:
    dtype = node.out_dtype
    return node.call("where", node.operand("mask", "bool"), node.operand("value", dtype),
                     node.operand("self", dtype))  # fmt: skip


def _reciprocal(node: AtenNode) -> Expr:
    dtype = node.out_dtype
    return node.call("divide", node.number(1, dtype), node.operand("self", dtype))


def _expm1(node: AtenNode) -> Expr:
    """Return tanh(x/2)·(e**x + 1), which loses no digits near 0; where it is large, e**x - 1."""
    dtype = node.out_dtype
    x, one = node.operand("self", dtype), node.number(1, dtype)
    power = node.call("exp", x)
    half = node.call("tanh", node.call("multiply", x, node.number(0.5, dtype)))
    near = node.call("multiply", half, node.call("add", power, one))
    is_near = node.call("less", node.call("abs", x), one)
    return node.call("where", is_near, near, node.call("subtract", power, one))


def _gelu(node: AtenNode) -> Expr:
    name = {"none": "nn.gelu", "tanh": "nn.gelu_tanh"}.get(str(node["approximate"]))
    if name is None:
        node.fail("no such approximation", got=repr(node["approximate"]))
    return node.call(name, node.tensor("self"))


def _elu(node: AtenNode) -> Expr:
    x, dtype = node.tensor("self"), node.out_dtype
    alpha, scale, inner = (float(node[name]) for name in ("alpha", "scale", "input_scale"))
    if inner != 1:
        scaled = node.call("multiply", x, node.number(inner, dtype))
        below = node.call("nn.elu", scaled, alpha=alpha)
        x = node.call("where", node.call("greater", x, node.number(0, dtype)), x, below)
    else:
        x = node.call("nn.elu", x, alpha=alpha)
    return x if scale == 1 else node.call("multiply", x, node.number(scale, dtype))


def _leaky_relu(node: AtenNode) -> Expr:
    return node.call("nn.leaky_relu", node.tensor("self"), alpha=float(node["negative_slope"]))


def _softplus(node: AtenNode) -> Expr:
    """Return log(1 + e**(beta·x)) / beta; above the threshold PyTorch has x itself."""
    x, dtype = node.tensor("self"), node.out_dtype
    beta, threshold = float(node["beta"]), float(node["threshold"])
    scaled = x if beta == 1 else node.call("multiply", x, node.number(beta, dtype))
    soft = node.call("nn.softplus", scaled)
    if beta != 1:
        soft = node.call("multiply", soft, node.number(1 / beta if beta else math.inf, dtype))
    is_linear = node.call("greater", scaled, node.number(threshold, dtype))
    return node.call("where", is_linear, x, soft)


def _mish(node: AtenNode) -> Expr:
    x = node.tensor("self")
    return node.call("multiply", x, node.call("tanh", node.call("nn.softplus", x)))


def _sign(node: AtenNode) -> Expr:
    """Return -1, 0 or 1; PyTorch has 0 for NaN."""
    x, dtype = node.tensor("self"), node.out_dtype
    if dtype == "bool":
        return node.call("copy", x)
    made = node.call("sign", x)
    if not dtypes.is_float(dtype):
        return made
    return node.call("where", node.call("isnan", x), node.number(0, dtype), made)


def _not_nan(name: str) -> Converter:
    """Return the converter of the larger or smaller operand, the other one where one is NaN."""
    of_numbers = _truth(name)

    def convert(node: AtenNode) -> Expr:
        made, dtype = of_numbers(node), node.out_dtype
        assert isinstance(made, Expr)
        if not dtypes.is_float(dtype):
            return made
        a, b = node.operand("self", dtype), node.operand("other", dtype)
        made = node.call("where", node.call("isnan", b), a, made)
        return node.call("where", node.call("isnan", a), b, made)

    return convert


def _round(node: AtenNode) -> Expr:
    decimals = int(node.get("decimals", 0))
    if not decimals:
        return _of_float("round")(node)
    x, scale = node.tensor("self"), node.number(10.0 ** abs(decimals), node.out_dtype)
    before, after = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
    return node.call(after, node.call("round", node.call(before, x, scale)), scale)


def _of_float(name: str) -> Callable[[AtenNode], Expr]:
    """Return the converter of a rounding, which leaves integers as they are."""

    def convert(node: AtenNode) -> Expr:
        x = node.tensor("self")
        return node.call(name if dtypes.is_float(node.dtype(x)) else "copy", x)

    return convert


def _absolute(node: AtenNode) -> Expr:
    x = node.tensor("self")
    return node.call("copy" if node.dtype(x) == "bool" else "abs", x)


def _not(node: AtenNode) -> Expr:
    x = node.tensor("self")
    return node.call("logical_not" if node.dtype(x) == "bool" else "bitwise_not", x)


def _dropout(node: AtenNode) -> Expr:
    """Return the data: a model that is imported does not learn."""
    is_training, p = node.get("train"), float(node["p"])
    if is_training is not False and p != 0:
        node.fail("it drops elements at random, as in training", hint="module.eval()")
    return node.call("copy", node.tensor("input"))


_UNARY = {
    "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan",
    "atanh": "atanh", "cos": "cos", "cosh": "cosh", "erf": "erf", "exp": "exp", "exp2": "exp2",
    "log": "log", "log10": "log10", "log1p": "log1p", "log2": "log2", "neg": "negative",
    "relu": "nn.relu", "relu6": "nn.relu6", "rsqrt": "rsqrt", "sigmoid": "sigmoid", "sin": "sin",
    "sinh": "sinh", "sqrt": "sqrt", "square": "square", "tan": "tan", "tanh": "tanh",
    "silu": "nn.silu", "hardswish": "nn.hard_swish", "hardsigmoid": "nn.hard_sigmoid",
    "alias": "copy", "clone": "copy", "detach": "copy", "lift_fresh_copy": "copy",
    "contiguous": "copy",
}  # fmt: skip
_COMPARISONS = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal",
}  # fmt: skip

TABLE: dict[str, Converter] = {
    **{name: _unary(ours) for name, ours in _UNARY.items()},
    **{name: _comparison(ours) for name, ours in _COMPARISONS.items()},
    **{name: _of_float(name) for name in ("ceil", "floor", "trunc")},
    "add": _truth("add"), "sub": _binary("subtract"), "mul": _truth("multiply"),
    "maximum": _truth("maximum"), "minimum": _truth("minimum"),
    "fmax": _not_nan("maximum"), "fmin": _not_nan("minimum"),
    "bitwise_and": _truth("bitwise_and"), "bitwise_or": _truth("bitwise_or"),
    "bitwise_xor": _truth("bitwise_xor"), "bitwise_left_shift": _binary("left_shift"),
    "bitwise_right_shift": _binary("right_shift"), "__lshift__": _binary("left_shift"),
    "__rshift__": _binary("right_shift"), "atan2": _binary("atan2"),
    "fmod": _binary("mod"), "remainder": _binary("floor_mod"),
    "logical_and": _logical("logical_and"), "logical_or": _logical("logical_or"),
    "logical_xor": _logical("logical_xor"),
    "logical_not": lambda node: node.call("logical_not", node.operand("self", "bool")),
    "isnan": _test("isnan", False), "isinf": _test("isinf", False),
    "isfinite": _test("isfinite", True),
    "div": _divide, "pow": _power, "clamp": _clamp, "hardtanh": _hardtanh, "where": _where,
    "masked_fill": _masked_fill, "reciprocal": _reciprocal, "expm1": _expm1, "gelu": _gelu,
    "elu": _elu, "leaky_relu": _leaky_relu, "softplus": _softplus, "mish": _mish, "sign": _sign,
    "round": _round, "abs": _absolute, "bitwise_not": _not, "dropout": _dropout,
    "native_dropout": lambda node: [_dropout(node), None],
}  # fmt: skip
"""The converters of this module."""
