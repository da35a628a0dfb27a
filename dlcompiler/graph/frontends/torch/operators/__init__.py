"""The converters of operators: name of an ATen operator -> what makes expressions of its calls."""

from collections.abc import Mapping

from dlcompiler.graph.frontends.torch.node import Converter
from dlcompiler.graph.frontends.torch.operators import (
    creation,
    elementwise,
    images,
    indexing,
    layers,
    norms,
    quantized,
    recurrent,
    reductions,
    transformers,
    views,
)

OPERATORS: Mapping[str, Converter] = {
    **creation.TABLE,
    **elementwise.TABLE,
    **images.TABLE,
    **indexing.TABLE,
    **layers.TABLE,
    **norms.TABLE,
    **quantized.TABLE,
    **recurrent.TABLE,
    **reductions.TABLE,
    **transformers.TABLE,
    **views.TABLE,
}
"""Converters by the name of an operator (``add``), or of one of its forms (``div.Tensor_mode``)."""

IGNORED = frozenset({
    "_assert_async", "_assert_scalar", "_assert_tensor_metadata", "sym_constrain_range",
    "sym_constrain_range_for_size",
})  # fmt: skip
"""Operators that check something while PyTorch runs, and compute nothing."""
