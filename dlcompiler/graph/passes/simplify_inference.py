"""Write operators that behave differently in training as what they do in inference."""

from __future__ import annotations

import numpy as np

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
    """
    log: list[Decision] = []

    def rule(old: Call, new: Call, types: KnownTypes) -> Expr | None:
        match operator_of(new):
            case "nn.batch_norm" if _keeps_epsilon(old, types):
                reason = "the mean and the variance are those of training, which do not change"
                log.append(decided(NAME, old, "rewritten", "fixed statistics", reason))
                normalised = _normalised(old, new, types)
                return Tuple((normalised, new.args[3], new.args[4]))
            case "nn.dropout":
                reason = "elements are dropped in training only"
                log.append(decided(NAME, old, "removed", "no training", reason, kernels=1))
                mask = call_like(old, "ones_like", new.args[0], suffix="mask")
                return Tuple((new.args[0], mask))
        return None

    return with_log(rewrite_calls(module, rule), log)


def _keeps_epsilon(call: Call, types: KnownTypes) -> bool:
    """Tell whether the dtype of a batch normalisation holds its epsilon: float16 has no 1e-8."""
    epsilon = attrs_of(call)["epsilon"]
    dtype = dtypes.to_numpy(types.tensor(call.args[0]).dtype)
    return epsilon == 0 or bool(np.asarray(epsilon, dtype) != 0)


def _normalised(old: Call, new: Call, types: KnownTypes) -> Expr:
    """Return ``x·scale + shift`` for a batch normalisation."""
    attrs, kind = attrs_of(old), types.tensor(old.args[0])
    data, gamma, beta, mean, variance = new.args
    axis = attrs["axis"] % kind.rank
    epsilon = Constant(np.asarray(attrs["epsilon"], dtypes.to_numpy(kind.dtype)))

    def made(name: str, suffix: str, *args: Expr, **more: int) -> Call:
        return call_like(old, name, *args, suffix=suffix, **more)

    def per_channel(value: Expr, suffix: str) -> Expr:
        trailing = kind.rank - axis - 1
        if not trailing:
            return value
        return made("expand_dims", suffix, value, axis=1, num_newaxis=trailing)

    scale: Expr = made("rsqrt", "root", made("add", "epsilon", variance, epsilon))
    scale = made("multiply", "gamma", scale, gamma) if attrs["scale"] else scale
    shift: Expr = made("multiply", "mean", mean, scale)
    shift = (
        made("subtract", "beta", beta, shift)
        if attrs["center"]
        else made("negative", "beta", shift)
    )
    scaled = made("multiply", "scale", data, per_channel(scale, "factor"))
    return call_like(old, "add", scaled, per_channel(shift, "shift"))
