"""Counts of n-grams in sequences of integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dlcompiler.graph.frontends.onnx.node import Node
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.ir import Expr
from dlcompiler.graph.operators.base import Array

MOST_COMPARISONS = 1 << 24
"""Most pairs of a window and an n-gram that are compared; [1]."""


def _tf_idf(node: Node) -> Expr:
    """Count the n-grams of a pool, with skipped elements; a weight may be multiplied."""
    x, indexes = node.input(0), np.asarray(node.attr("ngram_indexes"))
    if node.attr("pool_strings") or node.rank(x) not in (1, 2) or indexes.min(initial=0) < 0:
        node.fail("no counts of integers", got=str(node.type(x)))
    rows = x if node.rank(x) == 2 else node.call("expand_dims", x, axis=0, num_newaxis=1)
    columns = int(indexes.max(initial=-1)) + 1
    if columns > MOST_COMPARISONS // max(len(indexes), 1):
        node.fail("too many columns", got=str(columns))
    counts, places = _counts(node, rows, indexes)
    matrix = np.zeros((columns, len(places)))
    matrix[places, np.arange(len(places))] = 1
    made: Expr = node.call("nn.dense", counts, constant_of(matrix, "float32"))
    mode, weights = str(node.attr("mode")), node.attr("weights")
    if mode not in ("TF", "IDF", "TFIDF") or (weights and len(weights) < columns):
        node.fail("no such mode, or too few weights", got=f"{mode!r}, {weights}"[:100])
    if mode == "IDF":
        made = node.cast(node.call("greater", made, node.scalar(0, made)), "float32")
    if mode != "TF" and weights:
        made = node.call("multiply", made, constant_of(np.asarray(weights[:columns]), "float32"))
    return made if node.rank(x) == 2 else node.call("squeeze", made, axis=(0,))


def _counts(node: Node, rows: Expr, indexes: Array) -> tuple[Expr, Array]:
    """Return how often each n-gram is in each row, and the columns of the n-grams."""
    pool = np.asarray(node.attr("pool_int64s"), np.int64)
    starts = [*node.attr("ngram_counts"), len(pool)]
    sizes = range(int(node.attr("min_gram_length")), int(node.attr("max_gram_length")) + 1)
    skips, first = int(node.attr("max_skip_count")), 0
    parts: list[Expr] = []
    places: list[Array] = []
    for n in range(1, len(starts)):
        grams = pool[starts[n - 1] : starts[n]].reshape(-1, n)
        columns = indexes[first : first + len(grams)]
        first += len(grams)
        if len(columns) < len(grams):
            node.fail("there are fewer columns than n-grams", got=str(len(indexes)))
        if n in sizes and len(grams):
            parts.append(_found(node, rows, grams, skips))
            places.append(columns)
    if not parts:
        node.fail("the pool has no n-grams of these sizes", got=str(sizes))
    if len(parts) == 1:
        return parts[0], places[0]
    return node.call("concatenate", node.tuple(parts), axis=1), np.concatenate(places)


def _found(node: Node, rows: Expr, grams: Array, skips: int) -> Expr:
    """Return how many windows of each row are each of the n-grams."""
    batch, extent = node.shape(rows)
    steps = 1 + (min(skips, extent) if grams.shape[1] > 1 else 0)  # nothing is skipped in one
    if extent * steps * len(grams) > MOST_COMPARISONS:
        node.fail("too many n-grams", got=f"{len(grams)} at {extent} places, {steps} distances")
    windows = _windows(extent, grams.shape[1], steps)
    if not len(windows):
        zero, shape = node.scalar(0, "float32"), (batch, len(grams))
        return node.call("full", zero, shape=shape, dtype="float32")
    read = node.call("take", node.cast(rows, "int64"), constant_of(windows, "int64"), axis=1)
    read = node.call("expand_dims", read, axis=2, num_newaxis=1)
    is_gram = node.call("all", node.call("equal", read, constant_of(grams, "int64")), axis=(3,))
    return node.call("sum", node.cast(is_gram, "float32"), axis=(1,))


def _windows(extent: int, n: int, steps: int) -> Array:
    """Return the places of all n-grams of a row, whose elements have equal distances."""
    found = [
        np.arange(max(extent - (n - 1) * step, 0))[:, None] + np.arange(n) * step
        for step in range(1, steps + 1)
    ]
    return np.concatenate(found)


TABLE: dict[str, Callable[[Node], Any]] = {"TfIdfVectorizer": _tf_idf}
"""The converters of this module."""
