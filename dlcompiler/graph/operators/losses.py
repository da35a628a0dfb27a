"""Losses: numbers that say how far predictions are from targets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dlcompiler import te
from dlcompiler.errors import ProgramError
from dlcompiler.graph.ir.types import TensorType
from dlcompiler.graph.operators.attributes import Attribute, integer, one_of
from dlcompiler.graph.operators.base import Array, CallTypes, GraphOperator, Pattern, Result
from dlcompiler.graph.operators.relations import expect, index_type, of_floats
from dlcompiler.graph.operators.values import rounded, wide
from dlcompiler.ops import losses

# -- nll_loss -------------------------------------------------------------------------------------


def _nll_type(call: CallTypes) -> TensorType:
    kind = of_floats(call)
    if not kind.rank:
        call.fail("argument predictions has no dimensions")
    targets = index_type(call, 1)
    shape = () if kind.rank == 1 else (kind.shape[0], *kind.shape[2:])
    targets = expect(call, 1, shape, targets.dtype)
    classes = kind.shape[0 if kind.rank == 1 else 1]
    if classes == 0 and 0 not in targets.shape:
        call.fail("argument predictions has no classes")
    expect(call, 2, (classes,), kind.dtype)
    return TensorType(targets.shape if call.attrs["reduction"] == "none" else (), kind.dtype)


def _nll_loss(call: Result, predictions: Array, targets: Array, weights: Array) -> Array:
    values, ignored = wide(predictions), call.attrs["ignore_index"]
    values = values if values.ndim == 1 else np.moveaxis(values, 1, -1)
    places = targets.astype(np.int64)
    kept = places != ignored
    outside = kept & ((places < 0) | (places >= len(weights)))
    if outside.any():
        classes = f"0 to {len(weights) - 1}, or {ignored}"
        raise ProgramError(
            "nn.nll_loss", "a target is no class", kind="out_of_bounds",
            got=str(places[outside].reshape(-1)[0]), expected=classes,
        )  # fmt: skip
    places = np.where(kept, places, 0)
    own = np.where(kept, wide(weights)[places], 0)
    found = -np.take_along_axis(values, places[..., None], -1)[..., 0] * own
    if call.attrs["reduction"] == "none":
        return rounded(np.where(kept, found, 0), call.tensor)
    total = np.where(kept, found, 0).sum()
    return rounded(total / own.sum() if call.attrs["reduction"] == "mean" else total, call.tensor)


def _define_nll(
    call: Result, predictions: te.Tensor, targets: te.Tensor, weights: te.Tensor
) -> te.Tensor:
    attrs = call.attrs
    return losses.nll_loss(predictions, targets, weights, attrs["reduction"], attrs["ignore_index"])


# -- cross_entropy --------------------------------------------------------------------------------


def _entropy_type(call: CallTypes) -> TensorType:
    kind = of_floats(call)
    if kind.rank != 2:
        call.fail("argument predictions is not a matrix")
    expect(call, 1, kind.shape, kind.dtype)
    return TensorType((), kind.dtype)


def _entropy(function: Callable[[Array], Array]) -> Callable[..., Array]:
    def evaluate(call: Result, predictions: Array, targets: Array) -> Array:
        total = -(function(wide(predictions)) * wide(targets)).sum()
        return rounded(total / np.float64(len(predictions)), call.tensor)

    return evaluate


_PAIR = ("predictions", "targets")

TABLE = (
    GraphOperator(
        "nn.nll_loss", (*_PAIR, "weights"), _nll_type, _nll_loss, Pattern.ANCHOR, _define_nll,
        (Attribute("reduction", one_of("mean", "sum", "none"), "mean",
                   "of all losses; the mean is weighted"),
         Attribute("ignore_index", integer, -100, "a class whose losses are 0")),
        "The negative prediction (n, c, …) for the class of each target, times its weight.",
    ),
    GraphOperator(
        "nn.cross_entropy", _PAIR, _entropy_type, _entropy(np.log), Pattern.OPAQUE,
        lambda call, p, t: losses.cross_entropy(p, t),
        doc="-Σ targets · log(predictions), by the number of rows.",
    ),
    GraphOperator(
        "nn.cross_entropy_with_logits", _PAIR, _entropy_type, _entropy(np.asarray),
        Pattern.OPAQUE, lambda call, p, t: losses.cross_entropy_with_logits(p, t),
        doc="-Σ targets · predictions, by the number of rows: of logarithms.",
    ),
)  # fmt: skip
"""The operators of this module."""
