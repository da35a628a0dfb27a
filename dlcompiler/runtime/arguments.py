"""Check the arguments of a kernel, and refuse those that do not fit."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.errors import CallError, shown_number
from dlcompiler.runtime.formulas import Formula, compiled, text

Array = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a kernel: an array or a number.

    Examples
    --------
    >>> print(Param("C", (4, 8), "float32", is_output=True))
    C: float32[4, 8]
    >>> print(Param("D", ("n", ("add", "n", 1)), "float32"))
    D: float32[n, n + 1]
    """

    name: str
    """Name of the tensor, or of the number."""
    shape: tuple[Formula, ...]
    """Extents: numbers, symbols by name, or formulas of them; () holds one element."""
    dtype: str
    """Scalar dtype."""
    is_output: bool = False
    """Whether the kernel writes it; outputs come last."""
    is_number: bool = False
    """Whether it is passed as a number, not as an array."""

    @property
    def is_static(self) -> bool:
        """Tell whether the shape is known before a call."""
        return all(isinstance(extent, int) for extent in self.shape)

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape, where it is known before a call."""
        return tuple(extent for extent in self.shape if isinstance(extent, int))

    def at(self, values: Mapping[str, Any]) -> Param:
        """Return the parameter with its symbols replaced by values."""
        if self.is_static:
            return self
        return replace(self, shape=tuple(compiled(extent)(values) for extent in self.shape))

    @property
    def nbytes(self) -> int:
        """Size of an array of this static shape [byte]."""
        return math.prod(self.static_shape) * dtypes.bytes_of(self.dtype)

    @property
    def kind(self) -> str:
        """Dtype and shape as text, such as ``float32[4, 8]``."""
        if self.is_number:
            return self.dtype
        return f"{self.dtype}[{', '.join(text(extent) for extent in self.shape)}]"

    def __str__(self) -> str:
        return f"{self.name}: {self.kind}"


def check_all(name: str, params: Sequence[Param], arguments: Sequence[Any]) -> None:
    """Refuse arguments of a call that do not fit; shapes with symbols are not checked.

    Raises
    ------
    CallError
        The message names the argument.
    """
    check_count(name, params, arguments)
    for number, (param, argument) in enumerate(zip(params, arguments, strict=True), 1):
        operation = f"call {name}: argument {number} ({param.name})"
        if param.is_number:
            as_checked_number(operation, param.dtype, argument)
        elif param.is_static:
            as_checked_array(operation, param, argument)


def check_count(name: str, params: Sequence[Param], arguments: Sequence[object]) -> None:
    """Refuse too few or too many arguments."""
    if len(arguments) == len(params):
        return
    hint = None
    if len(arguments) < len(params) and params[len(arguments)].is_output:
        output = params[len(arguments)]
        empty = f"numpy.empty({output.shape}, {output.dtype!r})"
        hint = f"the caller makes the outputs and passes them last: {output.name} = {empty}"
    raise CallError(
        f"call {name}",
        "wrong number of arguments",
        got=len(arguments),
        expected=f"{len(params)}: {', '.join(param.name for param in params)}",
        hint=hint,
    )


def as_checked_array(operation: str, param: Param, argument: object) -> Array:
    """Check an argument, and return it as a plain array that machine code may use.

    Parameters
    ----------
    operation : str
        ``"call matmul: argument 2 (B)"``.
    param : Param
        What the argument must be.
    argument : object
        An array, or what has ``__dlpack__``; never copied.

    Raises
    ------
    CallError
        Its type, dtype, byte order, shape, layout, alignment or writability does not fit.
    """
    array = as_array(operation, param, argument)
    _check_dtype(operation, param, array)
    _check_shape(operation, param, array)
    _check_layout(operation, param, array)
    if param.is_output and not array.flags.writeable:
        raise CallError(
            operation,
            "the output is read-only",
            got="an array with flags.writeable False",
            expected="an array that may be written",
            hint=f"pass numpy.empty({param.shape}, {param.dtype!r})",
        )
    return array


def refuse_overlap(name: str, params: Sequence[Param], output: int, other: int) -> CallError:
    """Return the error of an output that shares memory with another argument."""
    return CallError(
        f"call {name}: argument {output + 1} ({params[output].name})",
        f"the output overlaps argument {other + 1} ({params[other].name})",
        because=f"the kernel writes {params[output].name} before it has done with"
        f" {params[other].name}",
        hint="pass an array of its own for each output, for example numpy.empty_like(x)",
    )


def as_checked_number(operation: str, dtype: str, argument: object) -> Any:
    """Check an argument, and return it as a Python number; an array of shape () counts as one."""
    if isinstance(argument, np.ndarray) and argument.ndim == 0:
        argument = argument.item()
    if dtype == "index" and isinstance(argument, numbers.Integral):
        if -(2**48) <= int(argument) <= 2**48:
            return int(argument)
        raise CallError(
            operation, "the number is too large", got=shown_number(argument),
            expected="at most 2**48",
        )  # fmt: skip
    if dtypes.is_int(dtype) and isinstance(argument, numbers.Integral):
        low, high = dtypes.min_value(dtype), dtypes.max_value(dtype)
        if low <= int(argument) <= high:
            return int(argument)
        raise CallError(
            operation, f"the number does not fit {dtype}", got=shown_number(argument),
            expected=f"{low} to {high}",
        )  # fmt: skip
    if dtype == "bool" and isinstance(argument, bool | np.bool_):
        return bool(argument)
    if dtypes.is_float(dtype) and isinstance(argument, numbers.Real):
        return _as_checked_float(operation, dtype, argument)
    raise CallError(
        operation,
        "not a number of its kind",
        got=f"{argument!r} ({type(argument).__name__})",
        expected={"b": "True or False", "i": "an integer", "u": "an integer"}.get(
            dtype[0], "a number"
        ),
    )


def _as_checked_float(operation: str, dtype: str, argument: Any) -> float:
    """Check a number, and return it as a Python float that the dtype can represent.

    A finite number that the dtype would round to infinity is refused: every result would be wrong.
    """
    largest, kind = dtypes.LARGEST[dtype], dtypes.to_numpy(dtype).type
    try:
        value = float(argument)
    except OverflowError:  # `float` of a large int or fraction
        value = math.inf if argument > 0 else -math.inf
    with np.errstate(over="ignore"):
        rounded = float(kind(value))
    if not math.isinf(rounded):
        return value if math.isnan(value) else max(-largest, min(value, largest))
    if argument in (math.inf, -math.inf):
        return value
    raise CallError(
        operation, f"the number does not fit {dtype}", got=shown_number(argument),
        expected=f"{-largest} to {largest}, or an infinity",
        because=f"it would become {rounded}",
    )  # fmt: skip


def check_rank(operation: str, param: Param, array: Array) -> None:
    """Refuse an array with a different number of dimensions."""
    if array.ndim != len(param.shape):
        raise CallError(
            operation,
            "wrong number of dimensions",
            got=array.shape,
            expected=f"{len(param.shape)}: {param.kind}",
        )


def as_array(operation: str, param: Param, argument: object) -> Array:
    """Check that an argument is an array, of any shape and dtype."""
    if isinstance(argument, np.ma.MaskedArray):
        raise CallError(
            operation,
            "a masked array",
            because="machine code does not see the mask",
            hint="fill it: x.filled(0)",
        )
    if isinstance(argument, np.ndarray):
        return argument.view(np.ndarray)
    if hasattr(argument, "__dlpack__"):
        return _from_dlpack(operation, argument)
    raise CallError(
        operation,
        "not an array",
        got=type(argument).__name__,
        expected=f"a NumPy array {param.kind}",
        hint=f"numpy.asarray(x, dtype={param.dtype!r})",
    )


def _from_dlpack(operation: str, argument: object) -> Array:
    try:
        return np.from_dlpack(argument)  # type: ignore[arg-type]
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise CallError(
            operation,
            "NumPy cannot use its memory",
            got=f"{type(argument).__name__}: {error}",
            expected="an array in the memory of the CPU",
        ) from error


def _check_dtype(operation: str, param: Param, array: Array) -> None:
    expected = dtypes.to_numpy(param.dtype)
    if array.dtype == expected:
        return
    if array.dtype.newbyteorder("=") == expected:
        raise CallError(
            operation,
            "foreign byte order",
            got=f"{param.dtype} as {array.dtype.str!r}",
            expected=f"{param.dtype} as {expected.str!r}",
            hint=f"x.astype({param.dtype!r}) makes a copy in this machine's order",
        )
    raise CallError(
        operation,
        "wrong dtype",
        got=array.dtype.name,
        expected=param.dtype,
        hint=None if param.is_output else f"x.astype({param.dtype!r})",
    )


def _check_shape(operation: str, param: Param, array: Array) -> None:
    if array.shape == param.shape:
        return
    ranks = array.ndim, len(param.shape)
    raise CallError(
        operation,
        "wrong shape" if ranks[0] == ranks[1] else "wrong number of dimensions",
        got=array.shape,
        expected=param.shape,
        hint="a built function has fixed shapes: build it again for other ones",
    )


def _check_layout(operation: str, param: Param, array: Array) -> None:
    if not array.flags.c_contiguous:
        raise CallError(
            operation,
            "not contiguous in C order",
            got=f"strides of {array.strides} bytes",
            expected=f"strides of {_c_strides(param)} bytes",
            hint="write into numpy.empty(shape, dtype) and copy from it"
            if param.is_output
            else "numpy.ascontiguousarray(x)",
        )
    if not array.flags.aligned:
        raise CallError(
            operation,
            "elements are not aligned",
            got=f"the address {array.ctypes.data:#x}",
            expected=f"a multiple of {array.dtype.alignment}",
            hint="write into numpy.empty(shape, dtype)" if param.is_output else "x.copy()",
        )


def _c_strides(param: Param) -> tuple[int, ...]:
    strides, step = [], dtypes.bytes_of(param.dtype)
    for extent in reversed(param.static_shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
