"""Does the order matter in which a reduction combines its values? Answered with a witness."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from dlcompiler import dtypes
from dlcompiler.ir import Const, Expr, Reducer, combine
from dlcompiler.schedule.primitives.base import Refused
from dlcompiler.schedule.state import StageState
from dlcompiler.schedule.verdict import Illegal
from dlcompiler.te import Tensor, compute, evaluate, placeholder

SAMPLES = 256
SMALL = (1, 2, 3, 4)
"""What partial results are made of: few values, so that equal ones meet, exact in any order."""
TOLERANCE = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-4, "float64": 1e-9}
"""Relative: how far rounding may bring two orders apart."""

Partial: TypeAlias = Sequence[Expr]
Merge: TypeAlias = Callable[[Partial, Partial], Partial]
Law: TypeAlias = Callable[[Merge, Partial, Partial, Partial], tuple[Partial, Partial]]


def require_any_order(stage: StageState, reducer: Reducer, *, is_moved: bool) -> None:
    """Refuse to reorder a reduction whose result depends on the order.

    Parameters
    ----------
    stage
        The stage that reduces.
    reducer
        How it combines.
    is_moved
        Whether values change places, too, and are not only grouped otherwise.
    """
    if found := grouping_counterexample(reducer):
        raise Refused(_refusal(stage, reducer, "associative", found, "leave the reduction whole"))
    if is_moved and (found := order_counterexample(reducer)):
        hint = "let equal values be decided by their position, as te.argmax does, or keep the order"
        raise Refused(_refusal(stage, reducer, "commutative", found, hint))


def _refusal(stage: StageState, reducer: Reducer, law: str, found: str, hint: str) -> Illegal:
    return Illegal(
        "semantic",
        f"the reducer {reducer.name} of {stage.name} is not {law}: another order gives another "
        "result",
        because=found,
        hint=hint,
        conflicts=(*(stage.key(x) for x in stage.leaves if x.kind == "reduce"), stage.body_key),
    )


@lru_cache(maxsize=256)
def order_counterexample(reducer: Reducer) -> str | None:
    """Return two partial results that combine to another value when swapped, if any are found."""
    if reducer.op is not None:
        return None
    found = _counterexample(reducer, lambda merge, a, b, c: (merge(a, b), merge(b, a)))
    return "f({0}, {1}) is {3}, but f({1}, {0}) is {4}".format(*found) if found else None


@lru_cache(maxsize=256)
def grouping_counterexample(reducer: Reducer) -> str | None:
    """Return three partial results for which the grouping matters, if any are found."""
    if reducer.op is not None:
        return None

    def law(merge: Merge, a: Partial, b: Partial, c: Partial) -> tuple[Partial, Partial]:
        return merge(merge(a, b), c), merge(a, merge(b, c))

    found = _counterexample(reducer, law)
    text = "f(f({0}, {1}), {2}) is {3}, but f({0}, f({1}, {2})) is {4}"
    return text.format(*found) if found else None


def _counterexample(reducer: Reducer, law: Law) -> tuple[str, ...] | None:
    """Return three partial results, and the two sides of a law that does not hold for them."""
    kinds = [var.dtype for var in reducer.lhs]
    inputs = [[placeholder((SAMPLES,), kind) for kind in kinds] for _ in range(3)]

    def sides(i: object) -> tuple[Expr, ...]:
        a, b, c = ([tensor[i] for tensor in partial] for partial in inputs)
        left, right = law(lambda x, y: combine(reducer, x, y), a, b, c)
        return (*left, *right)

    arrays = _samples(reducer, inputs)
    outputs = list(compute((SAMPLES,), sides))
    results = evaluate(outputs, {tensor: arrays[tensor] for tensor in outputs[0].op.input_tensors})
    left, right = results[: len(kinds)], results[len(kinds) :]
    wrong = np.zeros(SAMPLES, bool)
    for x, y in zip(left, right, strict=True):
        wrong |= ~_same(x, y)
    if not wrong.any():
        return None
    n = int(np.argmax(wrong))
    partials = [[arrays[tensor] for tensor in partial] for partial in inputs]
    return tuple(_text(columns, n) for columns in (*partials, left, right))


def _samples(reducer: Reducer, inputs: list[list[Tensor]]) -> dict[Tensor, np.ndarray]:
    """Return partial results, now and then the one over nothing."""
    rng = np.random.default_rng(0)
    arrays = {}
    for partial in inputs:
        is_nothing = rng.random(SAMPLES) < 0.1
        for tensor, identity in zip(partial, reducer.identities, strict=True):
            array = rng.choice(SMALL, SAMPLES).astype(np.dtype(tensor.dtype))
            if all(isinstance(item, Const) for item in reducer.identities):
                array[is_nothing] = identity.value  # type: ignore[attr-defined]
            arrays[tensor] = array
    return arrays


def _same(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Tell where values are equal, but for rounding."""
    kind = x.dtype.name
    if not dtypes.is_float(kind):
        return np.asarray(x == y)
    a, b = x.astype(np.float64), y.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= TOLERANCE[kind] * np.maximum(np.abs(a), np.abs(b))
    return np.asarray((a == b) | near | (np.isnan(a) & np.isnan(b)))


def _text(columns: Sequence[np.ndarray], n: int) -> str:
    values = [str(column[n]) for column in columns]
    return values[0] if len(values) == 1 else f"({', '.join(values)})"
