"""Define losses: numbers that say how far predictions are from targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler import te
from dlcompiler.ops import reductions
from dlcompiler.ops.helpers import ELEMWISE, tensor
from dlcompiler.te import Tensor


def nll_loss(
    predictions: Tensor, targets: Tensor, weights: Tensor, reduction: str, ignored: int
) -> Tensor:
    """Define the negative of the prediction for the target's class, times the weight of the class.

    Parameters
    ----------
    predictions : Tensor
        Logarithms of probabilities, of shape ``(n, c, …)``, or ``(c,)``.
    targets : Tensor
        Classes, of shape ``(n, …)``, or ``()``.
    weights : Tensor
        Of shape ``(c,)``.
    reduction : {"none", "sum", "mean"}
        Return all losses, their sum, or that by the sum of their weights.
    ignored : int
        A class whose loss and weight are 0.
    """
    is_one = predictions.ndim == 1
    zero = te.const(0, predictions.dtype)

    def chosen(i: Sequence[Any], value: Any) -> Any:
        return te.if_then_else(targets[i].astype("index") == ignored, zero, value)

    def loss(*i: Any) -> Any:
        place = targets[i].astype("index")
        read = predictions[(place,) if is_one else (i[0], place, *i[1:])]
        return chosen(i, -read * weights[place])

    losses = tensor(targets.shape, loss, "nll_loss", "broadcast")
    if reduction == "none":
        return losses
    total: Tensor = reductions.sum(losses)
    if reduction == "sum":
        return total
    own = tensor(
        targets.shape, lambda *i: chosen(i, weights[targets[i].astype("index")]), "nll_weights",
        "broadcast",
    )  # fmt: skip
    weight: Tensor = reductions.sum(own)
    return tensor((), lambda: total[()] / weight[()], "nll_mean", ELEMWISE)


def cross_entropy(predictions: Tensor, targets: Tensor) -> Tensor:
    """Define ``-Σ targets · log(predictions)``, by the number of rows."""
    terms = tensor(
        predictions.shape, lambda *i: -te.log(predictions[i]) * targets[i], "cross_entropy_terms",
        ELEMWISE,
    )  # fmt: skip
    return _by_rows(terms, predictions)


def cross_entropy_with_logits(predictions: Tensor, targets: Tensor) -> Tensor:
    """Define ``-Σ targets · predictions``, by the number of rows."""
    terms = tensor(
        predictions.shape, lambda *i: -predictions[i] * targets[i], "cross_entropy_terms", ELEMWISE
    )
    return _by_rows(terms, predictions)


def _by_rows(terms: Tensor, predictions: Tensor) -> Tensor:
    total: Tensor = reductions.sum(terms)
    rows = te.const(predictions.static_shape[0], predictions.dtype)
    return tensor((), lambda: total[()] / rows, "cross_entropy", ELEMWISE)
