"""Compare two models value by value, and find the first that differs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.display import render
from dlcompiler.errors import CallError
from dlcompiler.graph.execution.model import Outputs, RunnableModel
from dlcompiler.graph.operators.base import Array

TOLERANCES = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}
"""Largest difference of floats that counts as none, by dtype, relative to the largest magnitude of
the value. Sums in another order and minimal filtering differ less; [1]."""


@dataclass(frozen=True, slots=True)
class ValuePair:
    """A value that two models have."""

    name: str
    """Name of the call that made it; ``result``, ``result.1`` … for what a call returns."""
    dtype: str
    shape: tuple[int, ...]
    error: float
    """Largest difference, relative to the largest magnitude in the first model, or in the second
    if the first has only zeros; infinity if one is a number where the other is none; 0 if both
    are equal; [1]."""
    tolerance: float
    """Largest error that counts as none; [1]."""
    at: tuple[int, ...]
    """Where the largest difference is."""
    is_result: bool = False
    """Whether a call of the model returns it."""

    @property
    def differs(self) -> bool:
        """Whether the error is larger than the tolerance."""
        return not self.error <= self.tolerance


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """What two models compute from the same arrays."""

    pairs: tuple[ValuePair, ...]
    """Values that both have, in the order of the first model; then the results."""
    only: tuple[tuple[str, ...], tuple[str, ...]]
    """Names of the values that only the first has, and only the second: inside a kernel of the
    other, or of another shape or dtype."""

    @property
    def first(self) -> ValuePair | None:
        """The first value that differs; None if none does."""
        return next((pair for pair in self.pairs if pair.differs), None)

    @property
    def results_agree(self) -> bool:
        """Whether no result differs."""
        return not any(pair.differs for pair in self.pairs if pair.is_result)

    def __str__(self) -> str:
        found = self.first
        if found is None:
            worst = max((pair.error for pair in self.pairs), default=0.0)
            return f"no difference in {len(self.pairs)} values; largest error {worst:.2g}"
        before = self.pairs.index(found)
        return (
            f"{found.name} differs at {list(found.at)}: error {found.error:.3g}, tolerance "
            f"{found.tolerance:g}; {before} values before it agree"
            + ("; the results agree" if self.results_agree else "")
        )

    def _repr_html_(self) -> str:
        return render("model_comparison", self)


def compare(
    first: RunnableModel,
    second: RunnableModel,
    /,
    *args: Any,
    tolerance: float | None = None,
    **named: Any,
) -> ModelComparison:
    """Run two models on the same arrays, and compare the values that their kernels store.

    Parameters
    ----------
    first, second : RunnableModel
        Models with the same parameters, such as one model for two targets, or fused and not.
    *args, **named
        As of a call of both.
    tolerance : float, optional
        Largest relative error of floats that counts as none; else `TOLERANCES`; [1].

    Returns
    -------
    ModelComparison

    Raises
    ------
    CallError
        If the arguments do not fit, or the results have other types.

    Notes
    -----
    Values are compared by their names. A pass may change what a name stands for: with the scale of
    a batch norm in its weights, a convolution stores other values than without. So a difference
    inside is an error only if the results differ, too. With the same `context` for both models,
    each name stands for the same.

    Examples
    --------
    >>> import numpy
    >>> from dlcompiler import graph
    >>> from dlcompiler.graph import op
    >>> module = graph.Module.from_expr(op.exp(op.nn.relu(graph.var("x", (3,)))))
    >>> print(compare(graph.build(module), graph.build(module, "c"), numpy.ones(3, "float32")))
    no difference in 2 values; largest error 0
    """
    for model in (first, second):
        if not isinstance(model, RunnableModel):
            raise CallError(
                "compare models", "not a model that runs", got=type(model).__name__,
                hint="graph.build(module) makes one of a module",
            )  # fmt: skip
    if tolerance is not None and not _is_tolerance(tolerance):
        raise CallError(
            "compare models", "the tolerance is no finite number from 0", got=repr(tolerance)[:200]
        )
    found, other = first.values(*args, **named), second.values(*args, **named)
    common = [n for n, a in found.items() if n in other and _has_type_of(a, other[n])]
    only = tuple(tuple(n for n in side if n not in common) for side in (found, other))
    results = [_leaves(model(*args, **named)) for model in (first, second)]
    if [_kind(a) for a in results[0]] != [_kind(a) for a in results[1]]:
        raise CallError(
            "compare models", "their results have other types",
            got=" and ".join(str([_kind(a) for a in each]) for each in results),
        )  # fmt: skip
    pairs = [value_pair(name, found[name], other[name], tolerance) for name in common]
    for number, (a, b) in enumerate(zip(*results, strict=True)):
        name = "result" if len(results[0]) == 1 else f"result.{number}"
        pairs.append(replace(value_pair(name, a, b, tolerance), is_result=True))
    return ModelComparison(tuple(pairs), (only[0], only[1]))


def _is_tolerance(value: object) -> bool:
    return isinstance(value, int | float | np.floating) and bool(0 <= value < math.inf)


def _leaves(outputs: Outputs) -> list[Array]:
    if isinstance(outputs, tuple):
        return [leaf for part in outputs for leaf in _leaves(part)]
    return [outputs]


def _kind(array: Array) -> tuple[str, tuple[int, ...]]:
    return dtypes.from_numpy(array.dtype), tuple(array.shape)


def _has_type_of(a: Array, b: Array) -> bool:
    return _kind(a) == _kind(b)


def value_pair(name: str, a: Array, b: Array, tolerance: float | None = None) -> ValuePair:
    """Return how two arrays of the same shape and dtype differ.

    Parameters
    ----------
    name : str
        Name of the value.
    a, b : array
        The value in the first model and in the second.
    tolerance : float, optional
        Largest relative error of floats that counts as none; else `TOLERANCES`; [1].
    """
    dtype, shape = _kind(a)
    if not dtypes.is_float(dtype):
        wrong = a != b
        allowed, errors = 0.0, np.where(wrong, np.inf, 0.0)
        if not dtypes.is_bool(dtype):
            errors = np.abs(a.astype(np.float64) - b.astype(np.float64))
            errors = np.where(wrong, np.maximum(errors, 1), 0.0)
    else:
        allowed = TOLERANCES[dtype] if tolerance is None else tolerance
        errors = _errors(a.astype(np.float64), b.astype(np.float64))
    if not errors.size:
        return ValuePair(name, dtype, shape, 0.0, allowed, ())
    at = np.unravel_index(int(np.argmax(errors)), errors.shape)
    place = tuple(map(int, at))
    return ValuePair(name, dtype, shape, float(errors[place]), allowed, place)


def _errors(a: Array, b: Array) -> Array:
    """Return the error of each float, relative to the largest finite magnitude in `a`.

    If that is 0, relative to the largest in `b`: no number is near 0 by itself.
    """
    largest = _largest(a) or _largest(b)
    is_same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(all="ignore"):
        errors = np.abs(a - b) / (largest or 1.0)
    errors = np.where(np.isnan(errors), np.inf, errors)
    return np.where(is_same, 0.0, errors)


def _largest(a: Array) -> float:
    return float(np.abs(a[np.isfinite(a)]).max(initial=0.0))
