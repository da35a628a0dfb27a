"""Weights of networks, and numbers in fewer bits.

Source: ``WeightParams`` and ``QuantizationParams`` of ``NeuralNetwork.proto``.
"""

from __future__ import annotations

import math

import numpy as np

from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.coreml.messages import OPERATION, Message
from dlcompiler.graph.frontends.coreml.reading import unpacked
from dlcompiler.graph.frontends.files import array_of, checked_shape
from dlcompiler.graph.operators.base import Array


def weights_of(given: Message, shape: tuple[int, ...], what: str, axis: int = 0) -> Array:
    """Return weights as float32.

    Parameters
    ----------
    given : Message
        The weights.
    shape : tuple of int
        Their shape.
    what : str
        What they are, for errors.
    axis : int
        The dimension of the output channels, each of which may have a scale.

    Raises
    ------
    GraphError
        There are too few, or too many.
    """
    checked_shape(shape, OPERATION, what)
    if given["quantization"] is not None:
        return _unquantized(given, shape, what, axis)
    if given["float16Value"]:
        return array_of(given["float16Value"], shape, "float16", OPERATION, what).astype(np.float32)
    if given["rawValue"] or given["int8RawValue"]:
        raise GraphError(OPERATION, f"{what} has a format that is not known")
    return array_of(given["floatValue"].tobytes(), shape, "float32", OPERATION, what)


def _unquantized(given: Message, shape: tuple[int, ...], what: str, axis: int) -> Array:
    """Return weights of 1 to 8 bits, which have a scale and a bias, or a table of values."""
    quantization = given["quantization"]
    count = math.prod(shape)
    numbers = unpacked(given["rawValue"], quantization["numberOfBits"], count, what)
    table, linear = quantization["lookupTableQuantization"], quantization["linearQuantization"]
    if table is not None:
        values = table["floatValue"]
        if numbers.size and int(numbers.max()) >= values.size:
            raise GraphError(OPERATION, f"{what} has indices outside of their table")
        return np.asarray(values[numbers].reshape(shape))
    if linear is None:
        raise GraphError(OPERATION, f"{what} has a format that is not known")
    parts = [_column(part, shape, axis, what) for part in (linear["scale"], linear["bias"])]
    return numbers.reshape(shape).astype(np.float32) * parts[0] + parts[1]


def _column(values: Array, shape: tuple[int, ...], axis: int, what: str) -> Array:
    """Return one number, or one for each output channel, so that it broadcasts."""
    if values.size == 0:
        return np.zeros((), np.float32)
    channels = shape[axis] if shape else 1
    if values.size not in (1, channels):
        raise GraphError(OPERATION, f"{what} has another number of scales than of channels",
                         got=str(values.size), expected=str(channels))  # fmt: skip
    places = (-1, *(1,) * (len(shape) - axis - 1)) if values.size > 1 else ()
    return values.reshape(places)


def count_of(given: Message) -> int:
    """Return how many weights there are, where the layer does not say it."""
    if given["quantization"] is not None:
        return int(len(given["rawValue"]) * 8 // max(given["quantization"]["numberOfBits"], 1))
    count: int = len(given["float16Value"]) // 2 or len(given["floatValue"])
    return count
