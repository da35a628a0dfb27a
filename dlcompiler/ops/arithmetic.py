"""The operator of elementwise functions and broadcast arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.errors import TuningError
from dlcompiler.ops.base import Operator, Reference, as_expected
from dlcompiler.ops.functions import FUNCTIONS
from dlcompiler.ops.injective import injective_schedules
from dlcompiler.ops.options import options_of, options_text
from dlcompiler.ops.rounding import SMALLEST, Array, unit
from dlcompiler.ops.shapes import checked_dtype, shape_of, shape_text
from dlcompiler.space import Workload
from dlcompiler.te import Tensor

_NAMES = ("data", "other", "third")
"""Names of the operands, after the condition if there is one."""


def workload(
    *,
    function: str,
    shapes: Sequence[Any] | str,
    dtype: str = "float32",
    options: Mapping[str, Any] | str = "",
) -> Workload:
    """Return the workload of a function of tensors whose shapes broadcast as in NumPy.

    Parameters
    ----------
    function : str
        A key of `FUNCTIONS`.
    shapes : sequence of tuple of int, or str
        One for each operand, ``[(64, 1000), (1000,)]`` or ``"64x1000,1000"``.
    dtype : str
        Of the operands; a condition is a bool.
    options : mapping, or str
        Parameters of the function: ``{"low": 0, "high": 6}`` or ``"low=0,high=6"``. Those that
        are missing have the values in `FUNCTIONS`.
    """
    where = "elementwise"
    if function not in FUNCTIONS:
        raise TuningError(
            where, "no such function", got=repr(function), expected=", ".join(FUNCTIONS)
        )
    kind = FUNCTIONS[function]
    given = shapes.split(",") if isinstance(shapes, str) else shapes
    texts = [shape_text(shape, where) for shape in given]
    if len(texts) != kind.arity:
        raise TuningError(
            where, f"{function} takes another number of operands",
            got=f"{len(texts)} shapes", expected=f"{kind.arity}",
        )  # fmt: skip
    try:
        np.broadcast_shapes(*map(shape_of, texts))
    except ValueError:
        raise TuningError(where, "the shapes cannot be aligned", got=" and ".join(texts)) from None
    kind_of_data = checked_dtype(dtype, kind.dtypes, f"elementwise {function}")
    chosen = options_text(options, kind.options, f"elementwise {function}")
    more = {"options": chosen} if chosen else {}
    return Workload.of(
        where, function=function, shapes=",".join(texts), dtype=kind_of_data, **more
    )  # fmt: skip


def _shapes(workload: Workload) -> list[tuple[int, ...]]:
    return [shape_of(text) for text in workload["shapes"].split(",")]


def _options(workload: Workload) -> dict[str, float | str]:
    known = FUNCTIONS[workload["function"]].options
    return options_of(str(workload.as_dict().get("options", "")), known)


def _operands(workload: Workload) -> list[tuple[str, tuple[int, ...], str]]:
    """Return name, shape and dtype of each operand."""
    shapes, dtype = _shapes(workload), workload["dtype"]
    if not FUNCTIONS[workload["function"]].has_condition:
        return [(name, shape, dtype) for name, shape in zip(_NAMES, shapes, strict=False)]
    of_data = [(name, shape, dtype) for name, shape in zip(_NAMES, shapes[1:], strict=False)]
    return [("condition", shapes[0], "bool"), *of_data]


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``data``, for functions of two operands ``other``, and the result.

    A function that chooses has ``condition`` first.
    """
    operands = [te.placeholder(shape, dtype, n) for n, shape, dtype in _operands(workload)]
    made = FUNCTIONS[workload["function"]].define(*operands, **_options(workload))
    return *operands, made


def reference(workload: Workload, seed: int) -> Reference:
    """Return random inputs, the result, and its bound in units in the last place."""
    kind, dtype = FUNCTIONS[workload["function"]], workload["dtype"]
    generator = np.random.default_rng(seed)
    ranges = kind.ranges * 2 if kind.ranges else (None, None, None)
    arrays = {
        name: _values(shape, of, generator, limits)
        for (name, shape, of), limits in zip(_operands(workload), ranges, strict=False)
    }
    is_float = dtypes.is_float(dtype)
    operands = [a.astype(np.float64) if a.dtype.kind not in "iub" else a for a in arrays.values()]
    out = define(workload)[-1]
    with np.errstate(all="ignore"):
        expected = as_expected(kind.reference(*operands, **_options(workload)), out.dtype)
    # Half a unit in the last place is an error of `u` times the result. For results near 0, where
    # this is not true, the smallest normal number is added below.
    own = 2 * unit(dtype)
    bound = np.zeros(expected.shape)
    if is_float and (kind.ulps or kind.absolute):
        size = np.abs(operands[0].astype(np.float64))
        bound = own * (kind.ulps * np.abs(expected) + kind.absolute * (1 + size))
        bound = bound + SMALLEST[dtype]
    return Reference(arrays, {out.name: expected}, {out.name: bound})


def _values(
    shape: tuple[int, ...],
    dtype: str,
    generator: np.random.Generator,
    limits: tuple[float, float] | None,
) -> Array:
    kind = dtypes.to_numpy(dtype)
    if dtypes.is_float(dtype):
        low, high = limits or (-4, 4)
        drawn: Array = generator.uniform(low, high, shape).astype(kind)
        return drawn
    least, most = (0, 2) if dtypes.is_bool(dtype) else map(int, limits or (-9, 9))
    least = max(least, 0) if dtypes.is_unsigned(dtype) else least
    return generator.integers(least, most, shape).astype(kind)


ELEMENTWISE = Operator(
    "elementwise",
    workload,
    define,
    reference,
    injective_schedules(define),
)
