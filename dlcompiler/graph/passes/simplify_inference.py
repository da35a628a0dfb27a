"""Write operators that behave differently in training as what they do in inference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dlcompiler import dtypes
from dlcompiler.graph.decisions import Decision
from dlcompiler.graph.ir import Call, Constant, Expr, Module, Tuple
from dlcompiler.graph.passes.tools import (
    SMALLEST_NORMAL,
    KnownTypes,
    attrs_of,
    call_like,
    decided,
    operator_of,
    rewrite_calls,
    with_log,
)

NAME = "simplify_inference"


def simplify_inference(module: Module) -> Module:
    """Replace batch normalisations by a product and a sum, and dropouts by their input.

    *Before*::

        %0 = nn.batch_norm(%x, %gamma, %beta, %mean, %var);
        %1 = nn.dropout(%0.0);
        %1.0

    *After*::

        %0 = add(%var, 1e-05f);
        %1 = rsqrt(%0);
        %2 = multiply(%1, %gamma);
        %3 = expand_dims(%2, axis=1, num_newaxis=2);
        %4 = multiply(%x, %3);
        %5 = multiply(%mean, %2);
        %6 = subtract(%beta, %5);
        %7 = expand_dims(%6, axis=1, num_newaxis=2);
        add(%4, %7)

    The product and the sum can be folded into a convolution (`fold_scale_axis`), or fused.

    Parameters
    ----------
    module : Module
        The module.

    Notes
    -----
    In float16 the factors may be infinite, or round to 0. If the parameters are constants, the
    factors are computed in float64 and checked. If they are not, or do not fit, the data becomes
    float32 first, and the result float16 again.
    """
    log: list[Decision] = []

    def rule(old: Call, new: Call, types: KnownTypes) -> Expr | None:
        match operator_of(new):
            case "nn.batch_norm" if _keeps_epsilon(old, types):
                normalised = _normalised(old, new, types)
                rule = "fixed statistics"
                reason = "the mean and the variance are those of training, which do not change"
                if operator_of(normalised) == "cast":
                    rule = "fixed statistics, wide"
                    reason += f"; the factors may not fit {types.tensor(old.args[0]).dtype}"
                log.append(decided(NAME, old, "rewritten", rule, reason))
                return Tuple((normalised, new.args[3], new.args[4]))
            case "nn.dropout":
                reason = "elements are dropped in training only"
                log.append(decided(NAME, old, "removed", "no training", reason, kernels=1))
                mask = call_like(old, "ones_like", new.args[0], suffix="mask")
                return Tuple((new.args[0], mask))
        return None

    return with_log(rewrite_calls(module, rule), log)


def _keeps_epsilon(call: Call, types: KnownTypes) -> bool:
    """Tell whether the dtype that computes a batch normalisation holds its epsilon."""
    epsilon = attrs_of(call)["epsilon"]
    dtype = dtypes.promote(types.tensor(call.args[0]).dtype, "float32")
    return epsilon == 0 or bool(np.asarray(epsilon, dtypes.to_numpy(dtype)) != 0)


def _normalised(old: Call, new: Call, types: KnownTypes) -> Expr:
    """Return a batch normalisation as arithmetic: ``x·scale + shift`` where the dtype allows it."""
    kind = types.tensor(old.args[0])
    channel = _Channel(old, kind.rank)
    data: Expr
    parameters: Sequence[Expr]
    data, *parameters = new.args
    if dtypes.bits(kind.dtype) >= 32:
        scale = channel.scale(parameters, kind.dtype)
        return channel.affine(data, scale, channel.shift(parameters, scale))
    if (known := _rounded_factors(old, parameters, kind.dtype)) is not None:
        return channel.affine(data, *known)
    data, *parameters = [
        call_like(old, "cast", each, suffix="wide", dtype="float32") for each in new.args
    ]
    # No product is folded into weights over a cast: the mean first, which rounds less.
    centred = channel.made("subtract", "centred", data, channel.aligned(parameters[2], "mean"))
    scale = channel.aligned(channel.scale(parameters, "float32"), "factor")
    made = channel.made("multiply", "scale", centred, scale)
    if attrs_of(old)["center"]:
        made = channel.made("add", "sum", made, channel.aligned(parameters[1], "beta"))
    return call_like(old, "cast", made, dtype=kind.dtype)


@dataclass(frozen=True)
class _Channel:
    """Arithmetic for each channel in the place of a batch normalisation."""

    old: Call
    rank: int

    def made(self, name: str, suffix: str, *args: Expr, **attrs: int) -> Call:
        """Make a call."""
        return call_like(self.old, name, *args, suffix=suffix, **attrs)

    def aligned(self, value: Expr, suffix: str) -> Expr:
        """Return numbers for each channel with the dimensions that follow the channels."""
        trailing = self.rank - attrs_of(self.old)["axis"] % self.rank - 1
        if not trailing:
            return value
        if isinstance(value, Constant):
            return Constant(value.value.reshape(-1, *[1] * trailing))
        return self.made("expand_dims", suffix, value, axis=1, num_newaxis=trailing)

    def scale(self, parameters: Sequence[Expr], dtype: str) -> Expr:
        """Return the factors."""
        gamma, _, _, variance = parameters
        attrs = attrs_of(self.old)
        epsilon = Constant(np.asarray(attrs["epsilon"], dtypes.to_numpy(dtype)))
        root = self.made("rsqrt", "root", self.made("add", "epsilon", variance, epsilon))
        return self.made("multiply", "gamma", root, gamma) if attrs["scale"] else root

    def shift(self, parameters: Sequence[Expr], scale: Expr) -> Expr:
        """Return the summands."""
        _, beta, mean, _ = parameters
        shift = self.made("multiply", "mean", mean, scale)
        if attrs_of(self.old)["center"]:
            return self.made("subtract", "beta", beta, shift)
        return self.made("negative", "beta", shift)

    def affine(self, data: Expr, scale: Expr, shift: Expr) -> Expr:
        """Return data times a factor plus a summand."""
        scaled = self.made("multiply", "scale", data, self.aligned(scale, "factor"))
        return self.made("add", "", scaled, self.aligned(shift, "shift"))


def _rounded_factors(
    old: Call, parameters: Sequence[Expr], dtype: str
) -> tuple[Constant, Constant] | None:
    """Return the factors in a narrow dtype, computed in float64; None if they do not fit it."""
    values = [each.value.astype("float64") for each in parameters if isinstance(each, Constant)]
    if len(values) < len(parameters):
        return None
    attrs = attrs_of(old)
    gamma, beta, mean, variance = values
    with np.errstate(all="ignore"):
        scale = 1 / np.sqrt(variance + attrs["epsilon"])
        scale = scale * gamma if attrs["scale"] else scale
        shift = (beta if attrs["center"] else 0) - mean * scale
    smallest, largest = SMALLEST_NORMAL[dtype], dtypes.LARGEST[dtype]
    fits = (scale == 0) | ((abs(scale) >= smallest) & (abs(scale) <= largest))
    # Half of the range for the summand: the product must not overflow before it is added.
    if not (fits & (2 * abs(shift) <= largest)).all():
        return None
    narrow = dtypes.to_numpy(dtype)
    return Constant(scale.astype(narrow)), Constant(shift.astype(narrow))
