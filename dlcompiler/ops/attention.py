"""Define scaled dot-product attention: a mean of values, weighted by products of queries and keys.

Its stages are the products, the largest of each row, the powers ``exp(x - largest)``, their sum,
and the weighted sums of the values, which are divided last. A row without any position gives 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dlcompiler import dtypes, te
from dlcompiler.ops.helpers import over, tensor
from dlcompiler.te import Tensor
from dlcompiler.te.broadcast import element_indices


@dataclass(frozen=True, slots=True)
class Attention:
    """What is computed."""

    scale: float
    """Factor of the products."""
    is_causal: bool = False
    """A query sees no key behind it: row i sees the keys up to i."""


def attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, of: Attention
) -> Tensor:
    """Define attention.

    Parameters
    ----------
    query : Tensor
        Of shape ``(…, h, l, e)``.
    key, value : Tensor
        Of shapes ``(…, g, s, e)`` and ``(…, g, s, v)``; h / g heads of queries share keys and
        values. Tensors with two dimensions have no heads.
    mask : Tensor, optional
        What is broadcast to ``(…, h, l, s)``: bools that say which keys a query sees, or numbers
        that are added to the products.
    of : Attention
        What is computed.

    Returns
    -------
    Tensor
        Of shape ``(…, h, l, v)``.

    Notes
    -----
    **Source:** A. Vaswani and others, "Attention is all you need", 2017, equation 1.
    """
    *lead, rows, depth = query.shape
    length, width = value.shape[-2:]
    dtype, own = query.dtype, shared_heads(query, key)
    e, k = over(depth, "e"), over(length, "k")

    def product(*i: Any) -> Any:
        *places, row, column = i
        return te.sum(query[(*places, row, e)] * key[(*own(places), column, e)], axis=e)

    products = tensor((*lead, rows, length), product, "attention.products")
    scores = tensor(products.shape, lambda *i: score(products[i], mask, i, of), "attention.scores")
    is_seen = sees(mask, of)
    largest = tensor(
        (*lead, rows),
        lambda *i: te.max(scores[(*i, k)], axis=k, where=is_seen((*i, k))),
        "attention.largest",
    )
    zero, lowest = te.const(0, dtype), te.const(-math.inf, dtype)

    def power(*i: Any) -> Any:
        base = largest[i[:-1]]
        base = te.select(base == lowest, zero, base)  # of no key, or of keys that all are masked
        made = te.exp(te.minimum(scores[i] - base, zero))
        condition = is_seen(i)
        return made if condition is None else te.select(condition, made, zero)

    powers = tensor(scores.shape, power, "attention.powers")
    total = tensor((*lead, rows), lambda *i: te.sum(powers[(*i, k)], axis=k), "attention.total")

    def weighted(*i: Any) -> Any:
        *places, row, column = i
        read = value[(*own(places), k, column)]
        return te.sum(powers[(*places, row, k)] * read, axis=k)

    sums = tensor((*lead, rows, width), weighted, "attention.sums")

    def result(*i: Any) -> Any:
        divisor = total[i[:-1]]
        one = te.const(1, dtype)
        return sums[i] / te.select(divisor == zero, one, divisor)

    return tensor(sums.shape, result, "attention", "attention")


def shared_heads(query: Tensor, key: Tensor) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Return a function from the indices of a head of queries to those of its keys and values."""
    share = _share(query, key)

    def own(places: Sequence[Any]) -> tuple[Any, ...]:
        if not places or share == 1:
            return tuple(places)
        return (*places[:-1], te.floordiv(places[-1], share))

    return own


def _share(query: Tensor, key: Tensor) -> int:
    """Return how many heads of queries share the keys of one head."""
    if query.ndim < 3 or not key.static_shape[-3]:
        return 1
    return query.static_shape[-3] // key.static_shape[-3]


def score(value: Any, mask: Tensor | None, i: Sequence[Any], of: Attention) -> Any:
    """Return the score of a product: scaled, and with its mask added."""
    scaled = value * te.const(of.scale, value.dtype)
    if mask is None or dtypes.is_bool(mask.dtype):
        return scaled
    return scaled + mask[element_indices(mask.shape, i)]


def sees(mask: Tensor | None, of: Attention) -> Callable[[Sequence[Any]], Any]:
    """Return a function that tells whether a query sees a key; it returns None if all do."""

    def condition(i: Sequence[Any]) -> Any:
        tests = [i[-1] <= i[-2]] if of.is_causal else []
        if mask is not None and dtypes.is_bool(mask.dtype):
            tests.append(mask[element_indices(mask.shape, i)])
        return te.all(*tests) if tests else None

    return condition


def default_scale(depth: int) -> float:
    """Return the factor of products of `depth` terms: 1 / √depth."""
    return 1 / math.sqrt(max(depth, 1))
