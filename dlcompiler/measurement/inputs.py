"""Inputs for a verification: random ones, and others that reveal typical errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.arith import Interval
from dlcompiler.errors import MeasurementError
from dlcompiler.ir import Call, walk
from dlcompiler.measurement.indices import index_ranges
from dlcompiler.te import ComputeOp, ExternOp, PlaceholderOp, Tensor
from dlcompiler.te.tensor import post_order

Array = npt.NDArray[Any]
Kind: TypeAlias = Literal[
    "random", "extremes", "smallest", "greatest", "alternating", "large", "tiny"
]
KINDS: tuple[Kind, ...] = (
    "random", "extremes", "smallest", "greatest", "alternating", "large", "tiny",
)  # fmt: skip
"""See `drawn`."""
REACHING: frozenset[Kind] = frozenset({"extremes", "large", "tiny"})
"""Kinds whose floats may be so large or so small that nothing is known of a result."""

_MOST_LISTED = 2**20
"""Values of an index that are drawn without repeating one before all are used."""
_EXPONENTS = {
    "float16": (-24, 15),
    "bfloat16": (-133, 127),
    "float32": (-149, 127),
    "float64": (-1074, 1023),
}
"""Of the smallest and the largest positive number of a dtype, to the base 2."""


def drawn(kind: Kind, tensor: Tensor, seed: int, reach: float = 1.0) -> Array:
    """Return reproducible values for an input of known shape.

    Parameters
    ----------
    kind : str
        ============= ============================= ==========================================
        kind          integers                      floats
        ============= ============================= ==========================================
        random        of 8 bits all, else -64 … 63  in [-1, 1)
        extremes      the ends of the dtype, -1, 0, of all sizes and signs, some 0 or as large
                      1, and any                    as can be
        smallest      the smallest of the dtype     -1.75
        greatest      the greatest of the dtype     1.75
        alternating   the two ends, in turn         in [1, 2), the signs in turn
        large         any                           in ±[1, 2) times a large number
        tiny          -1, 0 and 1                   in ±[1, 2) times a small number
        ============= ============================= ==========================================
    tensor : Tensor
        Shape and dtype.
    seed : int
        Of the generator.
    reach : float
        How large and small floats become: of the exponents that the dtype has, this part; [1].
    """
    generator = np.random.default_rng(seed)
    shape, dtype = tensor.static_shape, tensor.dtype
    kind_of_element = dtypes.to_numpy(dtype)
    values: Any
    if dtypes.is_bool(dtype):
        values = _truth_values(kind, shape, generator)
    elif dtypes.is_float(dtype):
        values = _floats(kind, shape, generator, [end * reach for end in _EXPONENTS[dtype]])
        largest = dtypes.LARGEST.get(dtype, np.inf)
        values = np.clip(values, -largest, largest)
    else:
        values = _integers(kind, shape, generator, dtype)
    return np.asarray(values).astype(kind_of_element)


def drawn_indices(tensor: Tensor, span: Interval, seed: int) -> Array:
    """Return random values in a span: all values if they fit, else a sample with both ends."""
    generator = np.random.default_rng(seed)
    low, high = int(span.low), int(span.high)
    dtype = dtypes.to_numpy(tensor.dtype)
    size = int(np.prod(tensor.static_shape))
    count = high - low + 1
    if count <= max(size, _MOST_LISTED):
        values = low + np.resize(generator.permutation(count), max(size, count))[:size]
    else:
        values = generator.integers(low, high, size, dtype, endpoint=True)
    if 1 < size < count:
        ends = np.isin(values, (low, high))
        values = np.concatenate([[low, high], values[~ends], values[ends]])[:size]
    values = generator.permutation(values)
    return values.astype(dtype).reshape(tensor.static_shape)


def valid_indices(name: str, args: Sequence[object], seed: int) -> dict[int, Array]:
    """Return valid values for the inputs of a kernel that are used as indices, by position.

    Parameters
    ----------
    name : str
        Of the kernel, in messages.
    args : sequence of Tensor
        What its parameters stand for; of known shapes.
    seed : int
        Of the generator.

    Raises
    ------
    MeasurementError
        If no valid values are known of an index that the kernel does not check.
    """
    tensors = [arg for arg in args if isinstance(arg, Tensor)]
    outputs = [tensor for tensor in tensors if not isinstance(tensor.op, PlaceholderOp)]
    loose, strict = (index_ranges(outputs, guarded=guarded) for guarded in (False, True))
    if strict.unknown and _is_vouched_for(outputs):
        raise MeasurementError(
            f"measure {name}", "no arrays can be drawn", got=strict.unknown[0].name,
            because="its valid values are not known, and te.assume_bounds leaves checks out",
            hint="dlcompiler.measure(kernel, arrays)",
        )  # fmt: skip
    spans = {**loose.spans, **strict.spans}
    return {
        position: drawn_indices(arg, spans[arg], seed + position)
        for position, arg in enumerate(args)
        if isinstance(arg, Tensor) and arg in spans
    }


def _is_vouched_for(outputs: Sequence[Tensor]) -> bool:
    """Tell whether the user has disabled index checks by `te.assume_bounds`."""
    ops = [op for op in post_order(outputs) if isinstance(op, ComputeOp | ExternOp)]
    roots = [root for op in ops for root in (op.bodies if isinstance(op, ComputeOp) else [op.body])]
    nodes = (node for root in roots for node in walk(root))
    return any(isinstance(node, Call) and node.name == "assume_bounds" for node in nodes)


def _parity(shape: tuple[int, ...]) -> Array:
    """Return a checkerboard: for each element, whether the sum of its indices is odd."""
    return np.asarray(np.sum(np.indices(shape), axis=0) % 2 == 1)


def _truth_values(kind: Kind, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    match kind:
        case "smallest":
            return np.zeros(shape, np.bool_)
        case "greatest":
            return np.ones(shape, np.bool_)
        case "alternating":
            return _parity(shape)
    return generator.integers(0, 2, shape).astype(np.bool_)


def _integers(
    kind: Kind, shape: tuple[int, ...], generator: np.random.Generator, dtype: str
) -> Array:
    low, high = int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype))
    element = dtypes.to_numpy(dtype)
    match kind:
        case "random":
            most = high if dtypes.bits(dtype) == 8 else 63
            return generator.integers(max(low, -most - 1), most, shape, element, endpoint=True)
        case "smallest" | "greatest":
            return np.full(shape, low if kind == "smallest" else high, element)
        case "alternating":
            return np.where(_parity(shape), np.array(low, element), np.array(high, element))
        case "tiny":
            return generator.integers(max(low, -1), 1, shape, element, endpoint=True)
    anything = generator.integers(low, high, shape, element, endpoint=True)
    if kind == "large":
        return anything
    ends = np.array([low, high, low, high, max(low, -1), 0, 1], element)
    chosen = generator.integers(0, len(ends) + 1, shape)
    return np.where(chosen < len(ends), ends[np.minimum(chosen, len(ends) - 1)], anything)


def _floats(
    kind: Kind, shape: tuple[int, ...], generator: np.random.Generator, exponents: list[float]
) -> Array:
    lowest, highest = exponents
    if kind == "random":
        return generator.uniform(-1, 1, shape)
    if kind in ("smallest", "greatest"):
        return np.full(shape, -1.75 if kind == "smallest" else 1.75)
    values = generator.uniform(1, 2, shape)
    if kind == "alternating":
        return np.where(_parity(shape), -values, values)
    values = np.where(generator.random(shape) < 0.5, -values, values)
    if kind == "extremes":
        powers = np.floor(generator.uniform(lowest, highest, shape))
        values = np.ldexp(values, powers.astype(np.int64))
        chosen = generator.integers(0, 12, shape)
        largest = np.copysign(np.ldexp(2 - 2.0**-52, int(highest)), values)
        values = np.where(chosen == 0, largest, values)
        return np.where(chosen == 1, np.copysign(0.0, values), values)
    return np.ldexp(values, int(highest if kind == "large" else lowest))
