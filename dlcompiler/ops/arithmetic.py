"""The operator of elementwise functions and broadcast arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.errors import TuningError
from dlcompiler.ir.function_values import call_function
from dlcompiler.ops import elementwise
from dlcompiler.ops.activations import ACTIVATIONS, Activation
from dlcompiler.ops.base import DeviceSchedule, Operator, Reference, as_expected, by_device
from dlcompiler.ops.injective import default_injective, injective_space, schedule_injective
from dlcompiler.ops.rounding import SMALLEST, Array, unit
from dlcompiler.ops.shapes import FLOATS, INTEGERS, checked_dtype, shape_of, shape_text
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import Tensor

SCALE = 0.5
"""The factor of ``scale``."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the elements of one or two tensors."""

    define: Callable[..., Tensor]
    """Makes the result's tensor from those of the operands."""
    reference: Callable[..., Array]
    """The same on arrays: integers in their dtype, floats in float64."""
    arity: int = 1
    dtypes: tuple[str, ...] = (*FLOATS, *INTEGERS)
    ulps: float = 0
    """Error in units in the last place of the result; 0 if it is exact."""
    absolute: float = 0
    """Additional error, in units in the last place of 1 + |x|."""
    is_test: bool = False
    """Whether the result is a bool."""


def _of_floats(name: str, ulps: float) -> Function:
    return Function(
        getattr(elementwise, name), call_function(name, "float64"), dtypes=FLOATS, ulps=ulps
    )


def _activation(name: str, activation: Activation) -> Function:
    def define(x: Tensor) -> Tensor:
        made: Tensor = elementwise.elementwise(name, activation.element, x)
        return made

    kinds = (*FLOATS, *INTEGERS) if name in ("relu", "relu6") else FLOATS
    return Function(define, activation.reference, dtypes=kinds, absolute=activation.ulps)


def _scaled(x: Tensor) -> Tensor:
    made: Tensor = elementwise.elementwise("scale", lambda v: v * te.const(SCALE, v.dtype), x)
    return made


def _of_two(name: str, reference: Callable[..., Array], **facts: Any) -> Function:
    return Function(getattr(elementwise, name), reference, 2, **facts)


FUNCTIONS: dict[str, Function] = {
    "copy": Function(elementwise.identity, np.positive),
    "negative": Function(elementwise.negative, np.negative),
    "abs": Function(elementwise.abs, np.abs),
    "sign": Function(elementwise.sign, np.sign),
    "square": Function(elementwise.square, np.square, ulps=0.5),
    "scale": Function(_scaled, lambda x: x * SCALE, dtypes=FLOATS, ulps=0.5),
    **{
        name: _of_floats(name, ulps)
        for name, ulps in (
            *(("exp", 4), ("sin", 4), ("cos", 4), ("tanh", 4), ("erf", 4), ("sigmoid", 6)),
            *(("floor", 0), ("ceil", 0), ("trunc", 0), ("round", 0)),
        )
    },
    **{name: _activation(name, activation) for name, activation in ACTIVATIONS.items()},
    "add": _of_two("add", np.add, ulps=0.5),
    "subtract": _of_two("subtract", np.subtract, ulps=0.5),
    "multiply": _of_two("multiply", np.multiply, ulps=0.5),
    "divide": _of_two("divide", np.divide, dtypes=FLOATS, ulps=0.5),
    "maximum": _of_two("maximum", np.maximum),
    "minimum": _of_two("minimum", np.minimum),
    **{
        name: _of_two(name, getattr(np, name), is_test=True)
        for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    },
}
"""Name -> the function.

Integers wrap. Results that differ between machines are not specified: the sign of a NaN, and which
of 0 and -0 is the larger.
"""


def workload(*, function: str, shapes: Sequence[Any] | str, dtype: str = "float32") -> Workload:
    """Return the workload of a function of tensors whose shapes broadcast as in NumPy.

    Parameters
    ----------
    function : str
        A key of `FUNCTIONS`.
    shapes : sequence of tuple of int, or str
        One for each operand, ``[(64, 1000), (1000,)]`` or ``"64x1000,1000"``.
    dtype : str
        Of the operands.
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
    return Workload.of(
        where,
        function=function,
        shapes=",".join(texts),
        dtype=checked_dtype(dtype, kind.dtypes, f"elementwise {function}"),
    )


def _shapes(workload: Workload) -> list[tuple[int, ...]]:
    return [shape_of(text) for text in workload["shapes"].split(",")]


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``data``, for functions of two operands ``other``, and the result."""
    names = ("data", "other")
    shapes = _shapes(workload)
    operands = [
        te.placeholder(s, workload["dtype"], n) for n, s in zip(names, shapes, strict=False)
    ]
    return *operands, FUNCTIONS[workload["function"]].define(*operands)


def reference(workload: Workload, seed: int) -> Reference:
    """Return inputs in [-4, 4), the result, and its bound in units in the last place."""
    kind, dtype = FUNCTIONS[workload["function"]], workload["dtype"]
    names = ("data", "other")
    generator = np.random.default_rng(seed)
    arrays = {
        name: _values(shape, dtype, generator)
        for name, shape in zip(names, _shapes(workload), strict=False)
    }
    is_float = dtypes.is_float(dtype)
    operands = [a.astype(np.float64) if is_float else a for a in arrays.values()]
    with np.errstate(all="ignore"):
        expected = as_expected(kind.reference(*operands), define(workload)[-1].dtype)
    # Half a unit in the last place is an error of `u` times the result. For results near 0, where
    # this is not true, the smallest normal number is added below.
    own = 2 * unit(dtype)
    bound = own * (kind.ulps * np.abs(expected) + kind.absolute * (1 + np.abs(operands[0])))
    if is_float and (kind.ulps or kind.absolute):
        bound = bound + SMALLEST[dtype]
    out = define(workload)[-1].name
    return Reference(arrays, {out: expected}, {out: bound})


def _values(shape: tuple[int, ...], dtype: str, generator: np.random.Generator) -> Array:
    if dtypes.is_float(dtype):
        return generator.uniform(-4, 4, shape).astype(dtypes.to_numpy(dtype))
    low, high = (0, 9) if dtypes.is_unsigned(dtype) else (-9, 9)
    return generator.integers(low, high, shape).astype(dtypes.to_numpy(dtype))


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `dlcompiler.ops.injective`."""
    return injective_space(workload, define(workload)[-1], target)


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config of `dlcompiler.ops.injective` for the size of the result."""
    return default_injective(workload, define(workload)[-1], target)


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule an elementwise function on a CPU; see `schedule_injective`."""
    (out,) = outs
    schedule_injective(s, out, target, cfg.values)


ELEMENTWISE = Operator(
    "elementwise",
    workload,
    define,
    reference,
    by_device(
        {
            "cpu": DeviceSchedule(space, default_config, schedule),
            "gpu": "dlcompiler.ops.gpu.injective:INJECTIVE",
        }
    ),
)
