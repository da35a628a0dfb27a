"""Classic TVM's ``tvm.te``: the names of `dlcompiler.te`, with classic arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from dlcompiler import dtypes, te
from dlcompiler.compat.conditions import SpecializedCondition
from dlcompiler.compat.division import floordiv, floormod
from dlcompiler.compat.literals import literal
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.tvm.te import hybrid, schedule, tensor
from dlcompiler.compat.tvm.te.schedule import Schedule, Stage, create_schedule
from dlcompiler.compat.warp_matrices import translated
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Axis, Buffer, decl_buffer
from dlcompiler.ir.names import checked_label
from dlcompiler.te.given_functions import call_given

IterVar = Axis
"""The classic name of an axis."""


NAMES_OF_DTYPES = {"float": "float32", "int": "int32", "uint": "uint32"}
"""Dtypes without a number of bits; `compute` and `placeholder` understand them."""
_tag: ContextVar[str] = ContextVar("classic_tag", default="")


@contextmanager
def tag_scope(tag: str) -> Iterator[None]:
    """Tag the operations that are defined inside a ``with`` or in a decorated function.

    In nested scopes, which classic TVM refuses, the innermost tag applies.
    """
    token = _tag.set(checked_label(tag, "te.tag_scope", "tag"))
    try:
        yield
    finally:
        _tag.reset(token)


def placeholder(shape: Any, dtype: Any = None, name: str | None = None) -> te.Tensor:
    """Declare an input tensor; see `dlcompiler.te.placeholder`."""
    with dtypes.synonyms(NAMES_OF_DTYPES):
        return te.placeholder(shape, "float32" if dtype is None else dtype, name)


def compute(
    shape: Any,
    fcompute: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: object = None,
    varargs_names: object = None,
) -> Any:
    """Define a tensor, or several, element by element; see `dlcompiler.te.compute`."""
    del varargs_names
    with dtypes.synonyms(NAMES_OF_DTYPES):
        return te.compute(shape, fcompute, name, tag or _tag.get(), attrs)


const = literal


def reduce_axis(dom: Any, name: str | None = None, thread_tag: str = "") -> Axis:
    """Declare an axis to reduce over; see `dlcompiler.te.reduce_axis`."""
    del thread_tag
    return te.reduce_axis(dom, name)


def decl_tensor_intrin(
    op: te.ComputeOp,
    fcompute: Callable[..., Any],
    name: str = "tensor_intrin",
    binds: Mapping[te.Tensor, Buffer] | None = None,
    scalar_params: object = None,
    default_buffer_params: Mapping[str, Any] | None = None,
) -> te.TensorIntrin:
    """Declare a tensor intrinsic; see `dlcompiler.te.decl_tensor_intrin`.

    Tensors without a buffer in `binds` are compact, as in classic TVM. Calls for tensor cores
    become intrinsics of this project.
    """
    where = f"decl_tensor_intrin {name}"
    if scalar_params is not None:
        raise ExpressionError(
            where, "scalar_params= is not supported", got=repr(scalar_params),
            hint="read the numbers from a tensor",
        )  # fmt: skip
    given = dict(binds or {})
    for handle in (*op.input_tensors, op.output(0)):
        default = dict(default_buffer_params or {})
        if handle not in given:
            given[handle] = decl_buffer(handle.shape, handle.dtype, handle.name, **default)

    def implement(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        args = (ins, outs)
        made = call_given(fcompute, args, where, "f(ins, outs), lists of buffers")
        return translated(op, ins, outs, made, where)

    return te.decl_tensor_intrin(op, implement, name, given)


def _reducer(
    over_axes: Callable[..., Any], of_two: Callable[[Any, Any], Any]
) -> Callable[..., Any]:
    """Return a reduction that combines its operands if no axis is given, as in classic TVM."""

    def reduce(expr: Any, axis: Any, where: Any = None, init: Any = None, *more: Any) -> Any:
        if isinstance(axis, Axis | list | tuple):
            return over_axes(expr, axis, where=where, init=init)
        result = of_two(expr, axis)
        for operand in (where, init, *more):
            if operand is not None:
                result = of_two(result, operand)
        return result

    reduce.__doc__ = f"{over_axes.__doc__}\n\nWithout an axis: combine the operands."
    return reduce


def comm_reducer(
    fcombine: Callable[..., Any], fidentity: Callable[..., Any], name: str = "reduce"
) -> Callable[..., Any]:
    """Make a reducer; see `dlcompiler.te.comm_reducer`.

    Without an axis, the reducer combines its operands.
    """

    def combine(a: Any, b: Any) -> Any:
        return call_given(fcombine, (a, b), f"te.comm_reducer {name}", "f(x, y), of two values")

    return _reducer(te.comm_reducer(fcombine, fidentity, name), combine)


sum = _reducer(te.sum, lambda a, b: a + b)
max = _reducer(te.max, te.maximum)
min = _reducer(te.min, te.minimum)

_report = reporter(__name__, fallback=te)


def __getattr__(name: str) -> Any:
    return _report(name)


__all__ = [
    "IterVar",
    "Schedule",
    "SpecializedCondition",
    "Stage",
    "comm_reducer",
    "compute",
    "const",
    "create_schedule",
    "decl_tensor_intrin",
    "floordiv",
    "floormod",
    "hybrid",
    "max",
    "min",
    "placeholder",
    "reduce_axis",
    "schedule",
    "sum",
    "tag_scope",
    "tensor",
]
