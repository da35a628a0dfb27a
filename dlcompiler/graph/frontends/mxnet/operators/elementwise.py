"""Operators that compute element by element."""

from __future__ import annotations

import math
from functools import reduce

from dlcompiler import dtypes
from dlcompiler.graph.frontends.mxnet.node import Converter, MxnetNode
from dlcompiler.graph.ir import Constant, Expr


def _same(node: MxnetNode) -> Expr:
    return node.input(0)


def _unary(name: str) -> Converter:
    return lambda node: node.call(name, node.input(0))


def _function(node: MxnetNode, name: str, a: Expr, b: Expr) -> Expr:
    """Return an operator on two operands; a truth value has the dtype of these, as in MXNet."""
    dtype = node.dtype(a)
    if name.startswith("logical"):
        a, b = (node.call("not_equal", v, node.scalar(0, v)) for v in (a, b))
    if name in ("divide", "power") and "int" in dtype:
        node.fail("it has no such operator on integers here", got=dtype)
    made = node.call(name, a, b)
    if name == "floor_mod" and not (isinstance(b, Constant) and b.value.all()):
        made = node.call("where", node.call("equal", b, node.scalar(0, b)), node.scalar(0, b), made)
    return node.cast(made, dtype)


def _binary(name: str) -> Converter:
    return lambda node: _function(node, name, node.input(0), node.input(1))


def _and_scalar(node: MxnetNode) -> tuple[Expr, Constant]:
    """Return the data, and the attribute ``scalar`` as a number of their dtype.

    Integers become float64 if the number is none.
    """
    x = node.input(0)
    if not node.flag("is_int", True) and "float" not in node.dtype(x):
        x = node.cast(x, "float64")
    return x, node.scalar(node.number("scalar", 1.0), x)


def _with_scalar(name: str) -> Converter:
    return lambda node: _function(node, name, *_and_scalar(node))


def _of_scalar(name: str) -> Converter:
    """Return the converter of an operator whose first operand is the number."""
    return lambda node: _function(node, name, *_and_scalar(node)[::-1])


def _sum_of_all(node: MxnetNode) -> Expr:
    values = [node.input(i) for i in range(max(len(node.inputs), 1))]
    return reduce(lambda a, b: node.call("add", a, b), values)


def _clip(node: MxnetNode) -> Expr:
    """Limit numbers; MXNet leaves the fractions of limits out if the data are integers."""
    x, limits = node.input(0), [node.number("a_min"), node.number("a_max")]
    if "float" not in node.dtype(x):
        ends = dtypes.min_value(node.dtype(x)), dtypes.max_value(node.dtype(x))
        limits = [math.trunc(min(max(n, ends[0]), ends[1])) for n in limits]
    low, high = map(float, limits)
    if low > high:
        node.fail("a_min is above a_max", got=f"{low} and {high}")
    return node.call("clip", x, a_min=low, a_max=high)


def _cast(node: MxnetNode) -> Expr:
    return node.cast(node.input(0), node.dtype_attr(""))


def _amp_cast(node: MxnetNode) -> Expr:
    """Convert floats to other floats; integers stay as they are."""
    x, dtype = node.input(0), node.dtype_attr("")
    if "float" not in node.dtype(x):
        return x
    if "float" not in dtype:
        node.fail("it converts floats to integers", got=dtype, expected="a dtype of floats")
    return node.cast(x, dtype)


def _amp_multicast(node: MxnetNode) -> list[Expr]:
    """Return all operands with the widest of their dtypes, or the narrowest."""
    count, is_narrow = node.integer("num_outputs"), node.flag("cast_narrow")
    order = ["float16", "float32", "float64"]
    found = [node.dtype(value) for value in node.inputs]
    if len(found) != count or not set(found) <= set(order):
        node.fail("its operands are not as many floats", got=", ".join(found)[:100])
    dtype = (min if is_narrow else max)(found, key=order.index)
    return [node.cast(value, dtype) for value in node.inputs]


def _round(node: MxnetNode) -> Expr:
    """Round to the nearest integer, halves away from zero."""
    x = node.input(0)
    size = node.call("abs", x)
    low = node.call("floor", size)
    # Not floor(size + 0.5), whose sum is rounded.
    is_up = node.call("greater_equal", node.call("subtract", size, low), node.scalar(0.5, x))
    near = node.call("add", low, node.cast(is_up, node.dtype(x)))
    return node.call("multiply", node.call("sign", x), near)


def _rint(node: MxnetNode) -> Expr:
    """Round to the nearest integer, halves down."""
    x = node.input(0)
    low, high = node.call("floor", x), node.call("ceil", x)
    is_low = node.call("less_equal", node.call("subtract", x, low), node.call("subtract", high, x))
    return node.call("where", is_low, low, high)


def _sign(node: MxnetNode) -> Expr:
    """Return -1, 0 or 1; that of NaN is 0."""
    x = node.input(0)
    sides = [node.call(name, x, node.scalar(0, x)) for name in ("greater", "less")]
    return node.call("subtract", *(node.cast(side, node.dtype(x)) for side in sides))


def _reciprocal(node: MxnetNode) -> Expr:
    x = node.input(0)
    return node.call("divide", node.scalar(1, x), x)


def _cbrt(node: MxnetNode) -> Expr:
    x = node.input(0)
    size = node.call("power", node.call("abs", x), node.scalar(1 / 3, x))
    return node.call("multiply", node.call("sign", x), size)


def _times(factor: float) -> Converter:
    return lambda node: node.call("multiply", node.input(0), node.scalar(factor, node.input(0)))


def _smooth_l1(node: MxnetNode) -> Expr:
    """Return a parabola around 0 that goes on as two lines, from 1 / scalar² on."""
    x, square = node.input(0), node.number("scalar", 1.0) ** 2
    size = node.call("abs", x)
    curve = node.call("multiply", node.call("square", x), node.scalar(square / 2, x))
    line = node.call("subtract", size, node.scalar(0.5 / square, x))
    return node.call("where", node.call("less", size, node.scalar(1 / square, x)), curve, line)


def _expm1(node: MxnetNode) -> Expr:
    x = node.input(0)
    return node.call("subtract", node.call("exp", x), node.scalar(1, x))


def _logical_not(node: MxnetNode) -> Expr:
    x = node.input(0)
    return node.cast(node.call("equal", x, node.scalar(0, x)), node.dtype(x))


def _softsign(node: MxnetNode) -> Expr:
    x = node.input(0)
    return node.call("divide", x, node.call("add", node.call("abs", x), node.scalar(1, x)))


def _log_sigmoid(node: MxnetNode) -> Expr:
    return node.call("negative", node.call("nn.softplus", node.call("negative", node.input(0))))


def _hard_sigmoid(node: MxnetNode) -> Expr:
    return node.call("nn.hard_sigmoid", node.input(0), alpha=node.number("alpha", 0.2),
                     beta=node.number("beta", 0.5))  # fmt: skip


def _activation(node: MxnetNode) -> Expr:
    kind = node.choice("act_type", "", *_ACTIVATIONS)
    if not kind:
        node.fail("it has no act_type")
    return _ACTIVATIONS[kind](node)  # type: ignore[return-value]  # each returns one value


def _leaky_relu(node: MxnetNode) -> Expr:
    x, slope = node.input(0), node.number("slope", 0.25)
    low, high = node.number("lower_bound", 0.125), node.number("upper_bound", 0.334)
    match node.choice("act_type", "leaky", "elu", "gelu", "prelu", "rrelu", "selu"):
        case "leaky":
            return node.call("nn.leaky_relu", x, alpha=slope)
        case "rrelu":
            return node.call("nn.leaky_relu", x, alpha=(low + high) / 2)
        case "elu":
            return node.call("nn.elu", x, alpha=slope)
        case "gelu":
            return node.call("nn.gelu", x)
        case "selu":
            return node.call("multiply", node.call("nn.elu", x, alpha=_SELU_ALPHA),
                             node.scalar(_SELU_SCALE, x))  # fmt: skip
    gamma = node.input(1)
    if node.shape(gamma) != (1,):
        return node.call("nn.prelu", x, gamma, axis=min(1, node.rank(x) - 1))
    return node.call("where", node.call("less", x, node.scalar(0, x)),
                     node.call("multiply", x, gamma), x)  # fmt: skip


def _where(node: MxnetNode) -> Expr:
    condition, x = node.input(0), node.input(1)
    if node.rank(condition) == 1 and node.rank(x) > 1:  # one for each row
        condition = node.reshape(condition, (*node.shape(condition), *(1,) * (node.rank(x) - 1)))
    chosen = node.call("not_equal", condition, node.scalar(0, condition))
    return node.call("where", chosen, x, node.input(2))


_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805
"""**Source:** Klambauer et al., Self-Normalizing Neural Networks, 2017."""
_ACTIVATIONS = {
    "relu": _unary("nn.relu"), "sigmoid": _unary("sigmoid"), "tanh": _unary("tanh"),
    "softrelu": _unary("nn.softplus"), "softsign": _softsign, "log_sigmoid": _log_sigmoid,
}  # fmt: skip
_UNARY = {
    "relu": "nn.relu", "sigmoid": "sigmoid", "tanh": "tanh", "exp": "exp", "log": "log",
    "log2": "log2", "log10": "log10", "log1p": "log1p", "sqrt": "sqrt", "rsqrt": "rsqrt",
    "square": "square", "abs": "abs", "floor": "floor", "ceil": "ceil",
    "trunc": "trunc", "fix": "trunc", "negative": "negative",
    "sin": "sin", "cos": "cos", "tan": "tan", "arcsin": "asin", "arccos": "acos",
    "arctan": "atan", "sinh": "sinh", "cosh": "cosh", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "erf": "erf", "zeros_like": "zeros_like", "ones_like": "ones_like",
}  # fmt: skip
_BINARY = {
    "plus": "add", "minus": "subtract", "mul": "multiply", "div": "divide", "mod": "floor_mod",
    "power": "power", "maximum": "maximum", "minimum": "minimum", "equal": "equal",
    "not_equal": "not_equal", "greater": "greater", "greater_equal": "greater_equal",
    "lesser": "less", "lesser_equal": "less_equal", "logical_and": "logical_and",
    "logical_or": "logical_or", "logical_xor": "logical_xor",
}  # fmt: skip
"""Name of MXNet, which has a prefix or a suffix -> ours. Old versions wrote `_Not_Equal` and
`_NotEqualScalar`.
"""
_REVERSED = {
    "minus": "subtract", "div": "divide", "mod": "floor_mod", "power": "power",
}  # fmt: skip

TABLE: dict[str, Converter] = {
    **{name: _unary(ours) for name, ours in _UNARY.items()},
    **{f"broadcast_{name}": _binary(ours) for name, ours in _BINARY.items()},
    **{f"_{name}": _binary(ours) for name, ours in _BINARY.items()},
    **{f"_{name.title()}": _binary(ours) for name, ours in _BINARY.items()},
    **{f"_{name}_scalar": _with_scalar(ours) for name, ours in _BINARY.items()},
    **{f"_{name.title().replace('_', '')}Scalar": _with_scalar(ours)
       for name, ours in _BINARY.items()},
    **{f"_r{name}_scalar": _of_scalar(ours) for name, ours in _REVERSED.items()},
    **{f"_R{name.title()}Scalar": _of_scalar(ours) for name, ours in _REVERSED.items()},
    "broadcast_add": _binary("add"), "broadcast_sub": _binary("subtract"), "_add": _binary("add"),
    "_sub": _binary("subtract"),
    "elemwise_add": _binary("add"), "elemwise_sub": _binary("subtract"),
    "elemwise_mul": _binary("multiply"), "elemwise_div": _binary("divide"),
    "_grad_add": _binary("add"), "add_n": _sum_of_all, "ElementWiseSum": _sum_of_all,
    "_copy": _same, "identity": _same, "BlockGrad": _same, "stop_gradient": _same,
    "MakeLoss": _same, "make_loss": _same, "LinearRegressionOutput": _same,
    "MAERegressionOutput": _same, "SVMOutput": _same, "LogisticRegressionOutput": _unary("sigmoid"),
    "clip": _clip, "Cast": _cast, "cast": _cast, "amp_cast": _amp_cast, "sign": _sign,
    "amp_multicast": _amp_multicast, "round": _round, "rint": _rint, "reciprocal": _reciprocal,
    "cbrt": _cbrt, "degrees": _times(180 / math.pi), "radians": _times(math.pi / 180),
    "smooth_l1": _smooth_l1, "expm1": _expm1, "logical_not": _logical_not, "softsign": _softsign,
    "hard_sigmoid": _hard_sigmoid, "Activation": _activation, "LeakyReLU": _leaky_relu,
    "where": _where,
}  # fmt: skip
"""The converters of this module."""
