"""One expression by all evaluations: NumPy, interpreter, machine code, the same vectorized, C.

A test can ask for the way ``"opencl"``, too, which needs a device, and for ``"ptx"``: the LLVM IR
of PTX, run on this CPU.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import dlcompiler as dlc
from dlcompiler import dtypes, te
from dlcompiler.pipeline import lower
from dlcompiler.runtime.c_source import c_compiler
from dlcompiler.simulate import interpret
from tests.codegen.gpu import emulated

LANES = 8
WAYS = ("interpreter", "scalar", "vectorized", *(["c"] if c_compiler() else []))
DATA = tuple(name for name in dtypes.SCALARS if name != "index")
INTEGERS = tuple(name for name in DATA if dtypes.is_int(name))
FLOATS = tuple(name for name in DATA if dtypes.is_float(name))
# Bits of the significand and exponents of the smallest and the largest power of two.
FORMATS = {
    "float16": (11, -24, 15), "bfloat16": (8, -133, 127),
    "float32": (24, -149, 127), "float64": (53, -1074, 1023),
}  # fmt: skip


def edge_values(dtype: str) -> np.ndarray:
    """Return the values at which mistakes show: zeros, ones, ends, NaN, subnormal numbers."""
    kind = dtypes.to_numpy(dtype)
    if dtypes.is_bool(dtype):
        return np.array([False, True])
    if dtypes.is_int(dtype):
        low, high = int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype))
        numbers = {0, 1, 2, 3, 7, 100, low, low + 1, high, high - 1, high // 2, high // 3}
        numbers |= set() if dtypes.is_unsigned(dtype) else {-1, -2, -3, -7, -100}
        return np.array(sorted(numbers), kind)
    info = ml_dtypes.finfo(kind)
    positive = [0.0, info.smallest_subnormal, info.tiny, 1 / 3, 0.5, 1, 1.5, 2.5, 3, 100, info.max]
    with np.errstate(all="ignore"):
        return np.array([s * float(x) for x in positive for s in (1, -1)] + SPECIAL).astype(kind)


SPECIAL = [np.inf, -np.inf, np.nan]


def pairs(*dtypes_: str) -> list[np.ndarray]:
    """Return all combinations of edge values."""
    grids = np.meshgrid(*map(edge_values, dtypes_), indexing="ij")
    return [grid.ravel() for grid in grids]


def agree(
    functions: Mapping[str, Callable[..., Any]],
    arrays: Sequence[np.ndarray],
    *,
    ulps: int = 0,
    ways: Sequence[str] = WAYS,
) -> dict[str, np.ndarray]:
    """Compute every function of the elements of `arrays` in all ways, which must agree.

    They may differ from NumPy's arrays by `ulps` units in the last place; otherwise by nothing but
    the bits of NaN. Returns NumPy's results.
    """
    count = len(arrays[0])
    size = -(-count // LANES) * LANES
    given = [np.resize(array, size) for array in arrays]
    inputs = [te.placeholder((size,), array.dtype, name=f"X{n}") for n, array in enumerate(given)]
    outputs = [
        te.compute((size,), lambda i: function(*(x[i] for x in inputs)), name=name)  # noqa: B023
        for name, function in functions.items()
    ]
    expected = te.evaluate(outputs, dict(zip(inputs, given, strict=True)))
    for way in ways:
        for name, got, right in zip(
            functions, run(way, inputs, outputs, given), expected, strict=True
        ):
            assert_same(got, right, given, f"{name}, {way}", ulps)
    return {name: array[:count] for name, array in zip(functions, expected, strict=True)}


def run(
    way: str, inputs: list[te.Tensor], outputs: list[te.Tensor], given: list[np.ndarray]
) -> list[np.ndarray]:
    s = te.create_schedule([output.op for output in outputs])
    if way == "vectorized":
        for output in outputs:
            _, inner = s[output].split(output.op.axis[0], factor=LANES)
            s[output].vectorize(inner)
    results = [np.zeros(output.shape, dtypes.to_numpy(output.dtype)) for output in outputs]
    if way in ("opencl", "ptx"):
        for output in outputs:
            block, thread = s[output].split(output.op.axis[0], factor=LANES)
            s[output].bind(block, te.thread_axis("blockIdx.x"))
            s[output].bind(thread, te.thread_axis("threadIdx.x"))
    if way == "interpreter":
        interpret(lower(s, [*inputs, *outputs], simple_mode=True), [*given, *results])
    elif way == "ptx":
        program = dlc.build(s, [*inputs, *outputs], "gpu").program
        with tempfile.TemporaryDirectory() as folder:
            emulated.run(program, [*given, *results], Path(folder))
    else:
        target = way if way in ("c", "opencl") else "cpu"
        dlc.build(s, [*inputs, *outputs], target)(*given, *results)
    return results


def assert_same(
    got: np.ndarray, right: np.ndarray, given: Sequence[np.ndarray], where: str, ulps: int = 0
) -> None:
    """Compare bit by bit, NaN apart; with `ulps`, floats by that many units in the last place."""
    assert got.dtype == right.dtype, where
    same = _ordered(got) == _ordered(right)
    if dtypes.is_float(dtypes.from_numpy(right.dtype)):
        with np.errstate(invalid="ignore"):
            nans = np.isnan(got), np.isnan(right)
        a, b = _ordered(got), _ordered(right)
        distance = np.maximum(a, b).view("u8") - np.minimum(a, b).view("u8")
        same = np.where(nans[0] | nans[1], nans[0] & nans[1], distance <= ulps)
    wrong = np.flatnonzero(~same)
    if len(wrong):
        n = wrong[0]
        at = ", ".join(str(array[n]) for array in given)
        raise AssertionError(f"{where}, {len(wrong)} wrong: at {at} got {got[n]}, not {right[n]}")


def _ordered(values: np.ndarray) -> np.ndarray:
    """Return integers in the order of the values; -0.0 comes just before 0.0."""
    if not dtypes.is_float(dtypes.from_numpy(values.dtype)):
        return values
    bits = values.view(f"int{8 * values.dtype.itemsize}")
    return np.where(bits < 0, np.iinfo(bits.dtype).max ^ bits, bits).astype("i8")


def nearest(value: Fraction, dtype: str) -> float:
    """Return the float of `dtype` nearest to a number, ties to even: slow and obvious."""
    precision, smallest, largest = FORMATS[dtype]
    if value == 0:
        return 0.0
    sign = 1 if value > 0 else -1
    exponent = _exponent(abs(value))
    unit = Fraction(2) ** max(exponent - precision + 1, smallest)
    rounded = round(abs(value) / unit) * unit  # Python rounds ties to even
    return sign * (float(rounded) if rounded < Fraction(2) ** (largest + 1) else float("inf"))


def _exponent(value: Fraction) -> int:
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent if Fraction(2) ** exponent <= value else exponent - 1
