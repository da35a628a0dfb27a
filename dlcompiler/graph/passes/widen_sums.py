"""Compute sums of 16-bit floats in float32."""

from __future__ import annotations

from typing import Any

from dlcompiler.graph.ir import Call, Expr, Module, TensorType
from dlcompiler.graph.passes.tools import KnownTypes, call_like, operator_of, rewrite_calls

SUMS = frozenset({
    "sum", "mean", "prod", "logsumexp", "variance", "norm", "cumsum", "cumprod",
    *(f"nn.conv{rank}d{kind}" for rank in (1, 2, 3) for kind in ("", "_transpose")),
    *(f"nn.{kind}_pool{rank}d" for rank in (1, 2, 3)
      for kind in ("avg", "lp", "global_avg", "adaptive_avg")),
    "nn.layer_norm", "nn.instance_norm", "nn.group_norm", "nn.rms_norm", "nn.l2_normalize",
    "nn.lrn", "nn.softmax", "nn.log_softmax", "nn.nll_loss", "nn.cross_entropy",
    "nn.cross_entropy_with_logits",
})  # fmt: skip
"""Operators whose definition adds up or multiplies in the dtype of the operands; products of
matrices, which are not among them, have sums in float32 of their own."""
NARROW = ("float16", "bfloat16")


def widen_sums(module: Module) -> Module:
    """Compute sums of 16-bit floats in float32, and round the result once.

    In float16, a sum of ones would stay at 2048.

    *Before*::

        sum(%x, axis=[1])

    *After*::

        %0 = cast(%x, dtype="float32");
        %1 = sum(%0, axis=[1]);
        cast(%1, dtype="float16")

    Parameters
    ----------
    module : Module
        The module.
    """

    def rule(old: Call, new: Call, types: KnownTypes) -> Expr | None:
        name, kind = operator_of(new), types[old]
        if name not in SUMS or not isinstance(kind, TensorType):
            return None
        if kind.dtype not in NARROW and not any(_is_narrow(arg, types) for arg in new.args):
            return None
        args = [
            call_like(old, "cast", arg, suffix="wide", dtype="float32")
            if _is_narrow(arg, types) else arg
            for arg in new.args
        ]  # fmt: skip
        attrs: dict[str, Any] = {
            key: "float32" if key in ("dtype", "out_dtype") and value in NARROW else value
            for key, value in new.attrs.items()
        }
        made = call_like(old, name, *args, suffix="sum", **attrs)
        return call_like(old, "cast", made, dtype=kind.dtype)

    return rewrite_calls(module, rule)


def _is_narrow(value: Expr, types: KnownTypes) -> bool:
    kind = types[value]
    return isinstance(kind, TensorType) and kind.dtype in NARROW
