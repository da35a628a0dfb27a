"""`te.evaluate`: values of tensor expressions by NumPy, and bounds of their rounding errors.

This is the oracle with which kernels are compared.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import CallError, ExpressionError
from dlcompiler.ir import Expr, Reducer, Var, numeric
from dlcompiler.ir.numeric import REDUCTIONS, check_array, quiet, with_normal_bools
from dlcompiler.te.element_plan import NO_PLAN, plan_of
from dlcompiler.te.elements import NOWHERE, Array, Arrays, Block, Elements
from dlcompiler.te.evaluation.magnitude import (
    Magnitudes,
    combined_magnitudes,
    within_range,
)
from dlcompiler.te.evaluation.stages import Domain, compute_scan, compute_stage
from dlcompiler.te.extern.function import compute_extern
from dlcompiler.te.recurrences import check_recurrences
from dlcompiler.te.roundings import Rounding
from dlcompiler.te.symbols import bind_symbols, specialize, symbols_of
from dlcompiler.te.tensor import (
    ComputeOp,
    ExternOp,
    Operation,
    PlaceholderOp,
    ScanOp,
    Tensor,
    outside_cells,
    post_order,
)

Given: TypeAlias = Mapping[Any, Any] | Sequence[Array]
Accumulate: TypeAlias = Literal["declared", "float64"]


@overload
def evaluate(outputs: Tensor, arrays: Given, *, accumulate: Accumulate = "declared") -> Array: ...
@overload
def evaluate(
    outputs: Sequence[Tensor], arrays: Given, *, accumulate: Accumulate = "declared"
) -> tuple[Array, ...]: ...
def evaluate(
    outputs: Tensor | Sequence[Tensor], arrays: Given, *, accumulate: Accumulate = "declared"
) -> Array | tuple[Array, ...]:
    """Compute tensors from the values of their inputs, with NumPy.

    Parameters
    ----------
    outputs : Tensor or sequence of Tensor
        The tensors to compute.
    arrays : mapping of Tensor to ndarray, or sequence of ndarray
        The values of all placeholders that the outputs depend on. A sequence gives them in the
        order in which the expression first uses them. A mapping may also give numbers for symbols
        (`te.var`); symbols that are extents of an input are inferred from its shape.
    accumulate : {"declared", "float64"}
        ``"float64"`` computes all floats of all stages in float64 and returns float64: this is the
        reference for error bounds. Literals and inputs are first rounded to their declared dtypes;
        conversions between floats have no effect.

    Returns
    -------
    ndarray or tuple of ndarray
        New arrays of the tensors' shapes; bfloat16 is the dtype of that name of `ml_dtypes`.

    Raises
    ------
    CallError
        If the arrays do not fit the placeholders, or a symbol has no value.
    ProgramError
        If an element outside a tensor is read. A read under `if_then_else`, `all` or `any` happens
        only where the condition selects it.

    Notes
    -----
    Each stage is computed in blocks, so the memory needed is only a few times that of the arrays.
    The order of a sum is not defined (NumPy adds pairwise, BLAS in tiles), and a sum of products
    may use FMA. All other operations round as in the loop IR.

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A = te.placeholder((2, 3), name="A")
    >>> k = te.reduce_axis((0, 3), name="k")
    >>> S = te.compute((2,), lambda i: te.sum(A[i, k], axis=k), name="S")
    >>> te.evaluate(S, {A: np.ones((2, 3), "float32")})
    array([3., 3.], dtype=float32)
    """
    targets, arrays = _static(_targets(outputs, "evaluate"), arrays)
    if accumulate not in ("declared", "float64"):
        raise CallError(
            "evaluate", "unknown way to accumulate", got=repr(accumulate),
            expected="'declared' or 'float64'",
        )  # fmt: skip
    values = _compute(targets, arrays, is_wide=accumulate == "float64")
    results = tuple(values[target] for target in targets)
    return results[0] if isinstance(outputs, Tensor) else results


def absolute_bound(output: Tensor, arrays: Given) -> Array:
    r"""Compute the magnitude of each element without cancellation, such as ``sum(|a|*|b|)``.

    This evaluates the expression of all stages in float64, with every term replaced by its
    magnitude. The rounding error of any order of evaluation is at most ``K * u`` times this (to
    first order in the unit roundoff ``u``); for ``K`` see `rounding_depth`.

    Parameters
    ----------
    output : Tensor
        A tensor of floats; of integers, this is the absolute value.
    arrays : mapping of Tensor to ndarray, or sequence of ndarray
        As in `evaluate`.

    Returns
    -------
    ndarray
        float64, of the output's shape; not finite where values are not finite.

    Notes
    -----
    ====================== ========================================================================
    expression             magnitude
    ====================== ========================================================================
    integer, literal       the absolute value (integers are exact)
    element of an input    the absolute value
    ``a + b``, ``a - b``   \|a\| + \|b\|
    ``a * b``              \|a\| \|b\|
    ``a / b``              \|a\| \|b\| / b², where b² is the square of the value
    min, max               the larger of \|a\| and \|b\|
    choice                 \|a\| or \|b\|, as the condition is on the float64 values
    conversion             \|a\|
    sum over axes          the sum of the terms' magnitudes
    product over axes      the product of the factors' magnitudes
    min, max over axes     the largest of the terms' magnitudes
    exp, sin, pow(x, y), … value + slope · \|x\| (+ slope · \|y\|), the slopes at x and y
    floor, ceil, …         the larger of value and \|x\|
    code from outside      the largest of its results
    ====================== ========================================================================

    Here \|a\| is the magnitude of ``a``, never smaller than its absolute value; infinite where its
    dtype does not hold it, since some order of evaluation may overflow there.
    **Source:** N. J. Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., §3.1 and
    §3.3 (running error analysis).
    """
    (target,), arrays = _static(_targets(output, "absolute_bound"), arrays)
    values = _compute([target], arrays, is_wide=True, keep_all=True)
    return _magnitudes(target, values)


def tolerance(output: Tensor, arrays: Given) -> Array:
    """Compute the largest error of a correct result, beside ``evaluate(…, accumulate="float64")``.

    The bound is ``K * (u * absolute_bound(output, arrays) + tiny)``. ``K`` is `rounding_depth`; the
    unit roundoff ``u`` and the smallest positive number ``tiny`` are those of the least precise
    float dtype in the expression.

    Parameters
    ----------
    output : Tensor
        The tensor.
    arrays : mapping of Tensor to ndarray, or sequence of ndarray
        As in `evaluate`.

    Returns
    -------
    ndarray
        float64, of the output's shape; 0 where the result must be exact (integers, copies, maxima
        of inputs).

    Notes
    -----
    The bound is of first order in ``u``. It is infinite where rounding may move an argument out of
    a function's domain (a divisor near 0, the square root of a number that may be negative), and
    where a number may leave the range of its dtype. It does not cover discontinuities: where a
    float is compared, rounded to a whole number (`floor`, `fmod`), converted to an integer, or its
    sign is copied, a rounding error may change the result by any amount.

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> A = te.placeholder((2,), name="A")
    >>> te.tolerance(te.compute((2,), lambda i: A[i] + 1.0), [np.ones(2, "float32")]) < 2e-7
    array([ True,  True])
    """
    (target,), arrays = _static(_targets(output, "tolerance"), arrays)
    rounding = Rounding(target)
    if rounding.depth == 0:
        return np.zeros(target.static_shape)
    return _tolerance(target, _compute([target], arrays, is_wide=True, keep_all=True), rounding)


def evaluate_within(
    outputs: Sequence[Tensor], arrays: Given
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Compute tensors in float64, together with the bounds of `tolerance`.

    Parameters
    ----------
    outputs : sequence of Tensor
        The tensors to compute.
    arrays : mapping of Tensor to ndarray, or sequence of ndarray
        As in `evaluate`.

    Returns
    -------
    tuple of tuple of ndarray
        The results of ``evaluate(…, accumulate="float64")``, and those of `tolerance`, for each
        output; work that both need is done once.
    """
    targets, arrays = _static(_targets(outputs, "evaluate"), arrays)
    roundings = [Rounding(target) for target in targets]
    keeps_all = any(rounding.depth for rounding in roundings)
    values = _compute(targets, arrays, is_wide=True, keep_all=keeps_all)
    bounds = [
        _tolerance(target, values, rounding) if rounding.depth else np.zeros(target.static_shape)
        for target, rounding in zip(targets, roundings, strict=True)
    ]
    return tuple(values[target] for target in targets), tuple(bounds)


def _tolerance(target: Tensor, values: Mapping[Any, Array], rounding: Rounding) -> Array:
    magnitudes = _magnitudes(target, values, rounding)
    bound: Array = rounding.depth * (rounding.unit * magnitudes + rounding.tiny)
    return bound


def _magnitudes(
    target: Tensor, values: Mapping[Any, Array], rounding: Rounding | None = None
) -> Array:
    """Return the magnitudes of a tensor's elements, given the values of all producers."""
    magnitudes: dict[Any, Array] = {}

    def domain_of(op: ComputeOp) -> Domain:
        return _magnitude_domain(op, values, magnitudes, rounding)

    with quiet():
        for op in outside_cells(post_order([target])):
            if isinstance(op, ComputeOp):
                magnitudes.update(compute_stage(op, domain_of(op)))
            elif isinstance(op, ScanOp):
                compute_scan(op, magnitudes, domain_of)
            else:
                for tensor in op.outputs:
                    magnitude = np.asarray(np.abs(values[tensor].astype(np.float64)))
                    if isinstance(op, ExternOp):  # terms that cancel inside it are not known
                        largest = magnitude[np.isfinite(magnitude)].max(initial=0.0)
                        magnitude = np.full(magnitude.shape, largest)
                    magnitudes[tensor] = magnitude
    return np.asarray(within_range(magnitudes[target], target.dtype))


# -- stages ---------------------------------------------------------------------------------------


def _compute(
    targets: Sequence[Tensor], given: Given, *, is_wide: bool, keep_all: bool = False
) -> dict[Any, Array]:
    """Return the values of the targets, and with `keep_all` of all tensors they depend on."""
    check_recurrences(targets)
    order = outside_cells(post_order(targets))
    values: dict[Any, Array] = dict(_inputs(order, given, targets[0].name))
    if is_wide:
        is_float = {t: dtypes.is_float(t.dtype) for t in values}
        values = {t: v.astype(np.float64) if is_float[t] else v for t, v in values.items()}
    else:
        values = {t: v.copy() if t in targets else v for t, v in values.items()}
    last_use = {tensor: op for op in order for tensor in _used(op)}
    domain_of = functools.partial(_value_domain, arrays=values, is_wide=is_wide)
    with quiet():
        for op in order:
            if isinstance(op, ComputeOp):
                values.update(compute_stage(op, domain_of(op)))
            elif isinstance(op, ScanOp):
                compute_scan(op, values, domain_of)
            elif isinstance(op, ExternOp):
                values.update(compute_extern(op, values, is_wide=is_wide))
            if not keep_all:
                for tensor in _used(op):
                    if last_use[tensor] is op and tensor not in targets:
                        del values[tensor]
    return values


def _used(op: Operation) -> frozenset[Tensor]:
    """Return the tensors that an operation uses; for a scan, also the tensors of its cell."""
    if not isinstance(op, ScanOp):
        return frozenset(op.input_tensors)
    inside = {tensor for each in op.cell for tensor in (*each.outputs, *each.input_tensors)}
    return frozenset(inside.union(op.inits, op.states))


def _value_domain(op: ComputeOp, arrays: Arrays, is_wide: bool) -> Domain:
    plan = plan_of(op)

    def element(expr: Expr, block: Block) -> Any:
        return Elements(op, arrays, block, plan, is_wide=is_wide).of(expr)

    def storage(dtype: str) -> np.dtype[np.generic]:
        return np.dtype("float64") if is_wide and dtypes.is_float(dtype) else numeric.storage(dtype)

    def ufunc(reducer: Reducer) -> np.ufunc:
        assert reducer.op is not None
        return REDUCTIONS[reducer.op]

    def combine(reducer: Reducer, a: list[Array], b: list[Array]) -> list[Array]:
        variables = dict(zip((*reducer.lhs, *reducer.rhs), (*a, *b), strict=True))
        elements = Elements(op, {}, NOWHERE, NO_PLAN, is_wide=is_wide, variables=variables)
        return [np.broadcast_to(elements.of(result), a[0].shape) for result in reducer.results]

    return Domain(element, element, storage, ufunc, combine)


def _magnitude_domain(
    op: ComputeOp, values: Arrays, magnitudes: Arrays, rounding: Rounding | None
) -> Domain:
    plan = plan_of(op)

    def element(expr: Expr, block: Block) -> Any:
        elements = Elements(op, values, block, plan, is_wide=True)
        return Magnitudes(elements, magnitudes, rounding).of(expr)

    def ufunc(reducer: Reducer) -> np.ufunc:
        return {"add": np.add, "mul": np.multiply}.get(reducer.op or "", np.maximum)

    def start(expr: Expr, block: Block) -> Any:
        magnitude = element(expr, block)
        return np.where(np.isfinite(magnitude), magnitude, 0.0)  # the identities of min and max

    return Domain(
        element,
        start,
        storage=lambda dtype: np.dtype("float64"),
        ufunc=ufunc,
        combine=combined_magnitudes,
    )


# -- arguments ------------------------------------------------------------------------------------


def _targets(outputs: Tensor | Sequence[Tensor], where: str) -> tuple[Tensor, ...]:
    targets = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    if not targets or not all(isinstance(target, Tensor) for target in targets):
        raise ExpressionError(
            where, "not a tensor", got=repr(outputs), expected="a tensor, or a sequence of tensors"
        )
    return targets


def _static(targets: tuple[Tensor, ...], given: Given) -> tuple[tuple[Tensor, ...], Given]:
    """Replace symbols by numbers from the shapes of arrays; return the targets and the arrays."""
    symbols = symbols_of(targets)
    if not symbols:
        return targets, given
    where = f"evaluate {targets[0].name}"
    inputs = [op.output(0) for op in post_order(targets) if isinstance(op, PlaceholderOp)]
    numbers: dict[Var, Any] = {}
    if isinstance(given, Mapping):
        numbers = {key: value for key, value in given.items() if isinstance(key, Var)}
        arrays = {key: value for key, value in given.items() if isinstance(key, Tensor)}
    else:
        arrays = dict(zip(inputs, given, strict=False))
    shapes = {tensor: np.shape(array) for tensor, array in arrays.items()}
    values = bind_symbols(shapes, numbers, where)
    known = specialize(targets, {symbol: values[symbol] for symbol in symbols if symbol in values})
    result = {known.get(tensor, tensor): array for tensor, array in arrays.items()}
    return tuple(known[target] for target in targets), result


def _inputs(order: Sequence[Operation], given: Given, name: str) -> dict[Tensor, Array]:
    """Return a checked array for each placeholder."""
    where = f"evaluate {name}"
    inputs = [op.output(0) for op in order if isinstance(op, PlaceholderOp)]
    needed = ", ".join(tensor.name for tensor in inputs) or "none"
    if isinstance(given, Mapping):
        arrays = dict(given)
        extra = [tensor for tensor in arrays if tensor not in inputs]
        missing = [tensor.name for tensor in inputs if tensor not in arrays]
        if extra:
            raise CallError(
                where, "an array is given for a tensor that is not an input",
                got=", ".join(map(str, extra)), expected=needed,
            )  # fmt: skip
        if missing:
            raise CallError(where, f"no array is given for {', '.join(missing)}", expected=needed)
    elif not isinstance(given, Sequence):
        raise CallError(
            where, "the arrays are not in a mapping or a sequence", got=type(given).__name__,
            hint="write {A: a, B: b} or [a, b]",
        )  # fmt: skip
    elif len(given) != len(inputs):
        raise CallError(
            where, "wrong number of arrays", got=len(given), expected=f"{len(inputs)}: {needed}"
        )
    else:
        arrays = dict(zip(inputs, given, strict=True))
    for tensor in inputs:
        check_array(arrays[tensor], tensor.name, tensor.static_shape, tensor.dtype, where)
    return {tensor: with_normal_bools(arrays[tensor]) for tensor in inputs}
