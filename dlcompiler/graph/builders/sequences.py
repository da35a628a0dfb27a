"""Models for sequences: an LSTM language model, an encoder of transformers, and one of images."""

from __future__ import annotations

import math

from dlcompiler.graph import op
from dlcompiler.graph.builders.layers import (
    Model,
    biased_conv2d,
    dense,
    layer_norm,
    model_of,
)
from dlcompiler.graph.ir import Expr, TensorType, Var


def lstm(
    steps: int = 8, batch: int = 1, vocabulary: int = 1000, width: int = 128, layers: int = 2,
    dtype: str = "float32", seed: int = 0,
) -> Model:  # fmt: skip
    """Return a language model: an embedding, LSTM layers, and scores of the next word.

    Parameters
    ----------
    steps : int
        Number of words; the layers are unrolled; [1].
    batch : int
        Number of sentences; [1].
    vocabulary : int
        Number of words that are known; [1].
    width : int
        Width of the embedding and of the layers; [1].
    layers : int
        Number of LSTM layers; [1].
    dtype : str
        Of weights and states.
    seed : int
        Decides the values of the weights.

    Notes
    -----
    **Source:** S. Hochreiter, J. Schmidhuber, "Long short-term memory", 1997, with forget gates.
    """
    data = Var("data", TensorType((batch, steps), "int32"))
    table = Var("words_embedding", TensorType((vocabulary, width), dtype))
    embedded = op.take(table, data, axis=0, name="embed")
    words = op.split(embedded, indices_or_sections=steps, axis=1, name="words")
    start = op.zeros(shape=(batch, width), dtype=dtype, name="start")
    states: list[tuple[Expr, Expr]] = [(start, start)] * layers
    outputs = []
    for step in range(steps):
        x: Expr = op.squeeze(words[step], axis=1, name=f"word{step}")
        for layer in range(layers):
            states[layer] = _cell(
                x, *states[layer], f"lstm{layer}", f"step{step}_lstm{layer}", width
            )
            x = states[layer][0]
        outputs.append(x)
    scores = dense(outputs[-1], "scores", vocabulary)
    return model_of(op.nn.softmax(scores, name="softmax"), (data,), seed)


def _cell(
    x: Expr, hidden: Expr, cell: Expr, weights: str, name: str, width: int
) -> tuple[Expr, Expr]:
    """Return the next state of an LSTM cell."""
    gates = op.add(
        dense(x, f"{weights}_input", 4 * width), dense(hidden, f"{weights}_hidden", 4 * width),
        name=f"{name}_gates",
    )  # fmt: skip
    parts = op.split(gates, indices_or_sections=4, axis=1, name=f"{name}_split")
    take_in, forget, new, put_out = (
        op.sigmoid(parts[0]), op.sigmoid(parts[1]), op.tanh(parts[2]), op.sigmoid(parts[3]),
    )  # fmt: skip
    kept = op.add(op.multiply(forget, cell), op.multiply(take_in, new), name=f"{name}_cell")
    return op.multiply(put_out, op.tanh(kept), name=f"{name}_hidden"), kept


def transformer(
    layers: int = 4, steps: int = 128, batch: int = 1, width: int = 256, heads: int = 4,
    vocabulary: int = 1000, dtype: str = "float32", seed: int = 0,
) -> Model:  # fmt: skip
    """Return an encoder of transformers, as in BERT.

    Parameters
    ----------
    layers : int
        Number of blocks; [1].
    steps, batch, vocabulary, dtype, seed
        As for `lstm`.
    width : int
        Width of a token; heads divide it; [1].
    heads : int
        Number of heads of attention; [1].

    Notes
    -----
    **Source:** A. Vaswani and others, arXiv:1706.03762; J. Devlin and others, arXiv:1810.04805.
    """
    data = Var("data", TensorType((batch, steps), "int32"))
    words = Var("words_embedding", TensorType((vocabulary, width), dtype))
    places = Var("places_embedding", TensorType((steps, width), dtype))
    x: Expr = op.add(op.take(words, data, axis=0, name="embed"), places, name="embed_add")
    x = layer_norm(x, "embed_norm")
    for number in range(layers):
        name = f"block{number}"
        x = layer_norm(
            op.add(x, _attention(x, name, (batch, steps, width), heads)), f"{name}_norm1"
        )
        inner = _rows(x, f"{name}_up", (batch, steps, width), 4 * width)
        inner = op.nn.gelu(inner, name=f"{name}_gelu")
        inner = _rows(inner, f"{name}_down", (batch, steps, 4 * width), width)
        x = layer_norm(op.add(x, inner), f"{name}_norm2")
    return model_of(x, (data,), seed)


def vit(
    layers: int = 12, batch: int = 1, image: int = 224, patch: int = 16, width: int = 192,
    heads: int = 3, classes: int = 1000, dtype: str = "float32", seed: int = 0,
) -> Model:  # fmt: skip
    """Return a vision transformer, by default ViT-tiny, with the mean of all patches as its result.

    Parameters
    ----------
    layers, width, heads
        As for `transformer`.
    batch : int
        Number of images; [1].
    image : int
        Height and width of an image, a multiple of `patch`; [1].
    patch : int
        Height and width of a patch, which is a token; [1].
    classes : int
        Number of classes; [1].
    dtype, seed
        As for `lstm`.

    Notes
    -----
    **Source:** A. Dosovitskiy and others, arXiv:2010.11929; L. Beyer and others, arXiv:2205.01580,
    for the mean in place of a token of its own; H. Touvron and others, arXiv:2012.12877, for the
    sizes of the tiny one.
    """
    steps = (image // patch) ** 2
    shape = batch, steps, width
    data = Var("data", TensorType((batch, 3, image, image), dtype))
    places = Var("places_embedding", TensorType((steps, width), dtype))
    x: Expr = biased_conv2d(data, "embed", channels=width, kernel_size=patch, strides=patch)
    x = op.transpose(op.reshape(x, newshape=(batch, width, steps)), axes=(0, 2, 1))
    x = op.add(x, places, name="embed_places")
    for number in range(layers):
        name = f"block{number}"
        x = op.add(x, _attention(layer_norm(x, f"{name}_norm1"), name, shape, heads))
        inner = _rows(layer_norm(x, f"{name}_norm2"), f"{name}_up", shape, 4 * width)
        inner = op.nn.gelu(inner, name=f"{name}_gelu")
        x = op.add(x, _rows(inner, f"{name}_down", (batch, steps, 4 * width), width))
    pooled = op.mean(layer_norm(x, "norm"), axis=1, name="pool")
    return model_of(op.nn.softmax(dense(pooled, "fc", classes), name="softmax"), (data,), seed)


def _rows(x: Expr, name: str, shape: tuple[int, int, int], units: int) -> Expr:
    """Multiply each token by weights and add a bias."""
    batch, steps, width = shape
    flat = op.reshape(x, newshape=(batch * steps, width))
    return op.reshape(dense(flat, name, units), newshape=(batch, steps, units))


def _attention(x: Expr, name: str, shape: tuple[int, int, int], heads: int) -> Expr:
    batch, steps, width = shape
    depth = width // heads

    def head(part: str) -> Expr:
        rows = op.reshape(_rows(x, f"{name}_{part}", shape, width),
                          newshape=(batch, steps, heads, depth))  # fmt: skip
        return op.reshape(op.transpose(rows, axes=(0, 2, 1, 3)),
                          newshape=(batch * heads, steps, depth))  # fmt: skip

    query, key, value = (head(part) for part in ("query", "key", "value"))
    scores = op.nn.batch_matmul(query, key, name=f"{name}_scores")
    scores = op.nn.softmax(op.multiply(scores, 1 / math.sqrt(depth)), name=f"{name}_softmax")
    mixed = op.nn.batch_matmul(scores, value, transpose_b=False, name=f"{name}_mixed")
    mixed = op.reshape(mixed, newshape=(batch, heads, steps, depth))
    mixed = op.reshape(op.transpose(mixed, axes=(0, 2, 1, 3)), newshape=shape)
    return _rows(mixed, f"{name}_out", shape, width)
