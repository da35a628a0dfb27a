"""What quantization costs: noise of each layer, and the answers of two models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler.errors import GraphError
from dlcompiler.graph.operators.base import Array

OPERATION = "compare two models"


@dataclass(frozen=True, slots=True)
class LayerError:
    """How a layer of the quantized model differs from that of the model."""

    name: str
    """Name of the call."""
    sqnr_db: float
    """Signal-to-quantization-noise ratio of the layer's result, with the errors of all layers
    before it: ``10 log10(Σ x² / Σ (x - x̂)²)``; [dB]."""
    largest: float
    """Largest magnitude of the result."""
    error: float
    """Largest difference."""


def layer_errors(
    names: Sequence[str], pairs: Iterable[tuple[Sequence[Array], Sequence[Array]]]
) -> tuple[LayerError, ...]:
    """Compare the results of layers.

    Parameters
    ----------
    names : sequence of str
        Of the layers.
    pairs : iterable
        For each input, the results of the model's layers, and those of the quantized model.
    """
    count = len(names)
    signal, noise, largest, error = (np.zeros(count) for _ in range(4))
    for exact, found in pairs:
        for n, (x, y) in enumerate(zip(exact, found, strict=True)):
            wide = x.astype(np.float64)
            difference = wide - y.astype(np.float64)
            signal[n] += np.sum(wide**2)
            noise[n] += np.sum(difference**2)
            largest[n] = np.maximum(largest[n], np.abs(wide).max(initial=0))
            error[n] = np.maximum(error[n], np.abs(difference).max(initial=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(noise == 0, np.inf, 10 * np.log10(signal / noise))
    rows = zip(names, ratios, largest, error, strict=True)
    return tuple(LayerError(name, float(r), float(x), float(e)) for name, r, x, e in rows)


@dataclass(frozen=True, slots=True)
class Top1:
    """How often two models give the right class."""

    count: int
    """Number of examples."""
    first: int
    """How many the first model classifies rightly."""
    second: int
    """How many the second one does."""
    same: int
    """How many get the same class from both."""

    @property
    def drop(self) -> float:
        """How much worse the second model is; [percentage point]."""
        return 100 * (self.first - self.second) / max(self.count, 1)


def compare_top1(first: Any, second: Any, inputs: Iterable[Any], labels: Sequence[int]) -> Top1:
    """Compare the classes that two models give.

    Parameters
    ----------
    first, second : callable
        Models: they return scores ``(n, classes)``, or a tuple that begins with them.
    inputs : iterable
        Arrays; or tuples of arrays for models with several inputs; or mappings by name.
    labels : sequence of int
        The right class of each example, over all inputs.

    Raises
    ------
    GraphError
        The number of labels is not that of the examples, or a model gives no scores.

    Examples
    --------
    >>> scores = np.array([[0, 1], [1, 0]])
    >>> compare_top1(lambda x: x, lambda x: -x, [scores], [1, 0]).drop
    100.0
    """
    classes: tuple[list[Array], list[Array]] = ([], [])
    for given in inputs:
        for model, found in zip((first, second), classes, strict=True):
            found.append(_classes(model, given))
    a, b = (np.concatenate(found) if found else np.zeros(0, int) for found in classes)
    right = np.asarray(labels).ravel()
    if not len(right) == len(a) == len(b):
        raise GraphError(OPERATION, "the labels are not as many as the examples",
                         got=f"{len(right)} labels, {len(a)} and {len(b)} examples")  # fmt: skip
    return Top1(len(a), int((a == right).sum()), int((b == right).sum()), int((a == b).sum()))


def _classes(model: Any, given: Any) -> Array:
    """Return the classes that a model gives to an input."""
    if isinstance(given, Mapping):
        scores = model(**given)
    else:
        scores = model(*given) if isinstance(given, tuple) else model(given)
    if isinstance(scores, tuple | list) and scores:
        scores = scores[0]
    array = np.asarray(scores)
    if not array.ndim or not array.shape[-1] or array.dtype.kind not in "iuf":
        raise GraphError(OPERATION, "the result of a model has no scores",
                         got=f"{array.dtype} of shape {array.shape}",
                         expected="numbers of shape (n, classes)")  # fmt: skip
    return np.asarray(np.argmax(array, axis=-1)).ravel()
