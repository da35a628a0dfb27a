"""The pass that computes with quantized numbers in integers."""

from __future__ import annotations

from dlcompiler.graph.decisions import Decision, Verdict
from dlcompiler.graph.ir import Call, Expr, Module
from dlcompiler.graph.passes.quantized import products, rewritten, values
from dlcompiler.graph.passes.quantized.computed import computed_product
from dlcompiler.graph.passes.quantized.forms import Rules
from dlcompiler.graph.passes.tools import (
    KnownTypes,
    decided,
    operator_of,
    rewrite_calls,
    with_log,
)

NAME = "compute_in_integers"
RULES: Rules = {**products.RULES, **rewritten.RULES, **values.RULES}
"""Operator -> the rule for its calls."""


def compute_in_integers(module: Module) -> Module:
    """Compute convolutions and products of quantized numbers in integers.

    *Before*::

        %0 = qnn.dequantize(%x, 0.5f, 3u8);
        %1 = qnn.dequantize(meta[relay.Constant][0], 0.25f, 0i8);
        %2 = nn.conv2d(%0, %1);
        %3 = nn.relu(%2);
        qnn.quantize(%3, 2f, 0u8)

    *After*::

        %0 = qnn.conv2d(%x, meta[relay.Constant][0], input_zero_point=3);
        qnn.requantize(%0, 0.0625f, 0u8)

    Scales and zero points must be known; only those of the data of a product with known weights may
    be what a run computes. Biases of integers are added to the sums; operators that
    move or compare elements take integers; what the limits of a dtype cut off is not cut off
    before. Products of int32 whose operands have 8 bits become such calls, too: `QLinearConv`,
    `ConvInteger` and `MatMulInteger` of ONNX are imported as such products. Convolutions along rows
    and transposed ones are first written by convolutions of images.

    Parameters
    ----------
    module : Module
        The module.

    Notes
    -----
    Products of int32 stay the same. Products of floats differ: the sums are exact here, and scaled
    once by ``scale of the data * scale of the weights / scale of the result``. Float sums, and a
    division by the scale of the result, round more often, so that an integer may differ by 1 where
    the number is half-way between two integers.
    """
    log: list[Decision] = []

    def rule(old: Call, new: Call, types: KnownTypes) -> Expr | None:
        name = operator_of(new)
        found = RULES[name](new, types) if name in RULES else None
        if found is None and name == "nn.matmul":
            found = computed_product(new, types)
        if found is None:
            return None
        verdict: Verdict = "rewritten" if found.value is not None else "not rewritten"
        log.append(decided(NAME, old, verdict, name, found.reason))
        return found.value

    made = rewrite_calls(module, rule)
    if any(each.rule in rewritten.RULES and each.verdict == "rewritten" for each in log):
        first, log = log, []
        made = rewrite_calls(made, rule)  # these rules make calls that others recognise
        log = first + [each for each in log if each not in first]
    return with_log(made, log)
