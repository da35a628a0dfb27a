"""Find a NumPy function that computes the same as an expression, if there is one."""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence

from dlcompiler.ir import Axis, Binary, Expr, Reduce, TensorLoad, Var
from dlcompiler.measurement.baselines import EINSUM
from dlcompiler.te import ComputeOp, Tensor


def numpy_counterpart(args: Sequence[Tensor]) -> str | None:
    """Return the name of the baseline that computes the last of `args` from the others.

    Parameters
    ----------
    args
        Parameters of a kernel: inputs first, the output last.

    Returns
    -------
    str or None
        ``numpy.matmul``, or ``numpy.einsum`` with its subscripts, for sums of products of elements
        whose indices are axes, each over its whole dimension; None for all else.

    Examples
    --------
    >>> from dlcompiler import te
    >>> A, B = te.placeholder((4, 8), name="A"), te.placeholder((8, 2), name="B")
    >>> numpy_counterpart([A, B, te.notation("C[i, j] += A[i, k] * B[k, j]", A=A, B=B)])
    'numpy.matmul'
    >>> numpy_counterpart([A, te.notation("S[i] += A[i, k]", A=A)])
    'numpy.einsum ab->a'
    """
    *inputs, output = args
    op = output.op
    if not isinstance(op, ComputeOp) or len(op.outputs) != 1 or not inputs:
        return None
    body = op.body
    if isinstance(body, Reduce):
        if body.reducer.op != "add" or body.condition is not None or body.init:
            return None
        body = body.values[0]
    axes = {axis.var: axis for axis in (*op.axis, *op.reduce_axis)}
    letters = dict(zip(axes, string.ascii_lowercase, strict=False))
    terms = {}
    for factor in _factors(body):
        if not isinstance(factor, TensorLoad) or factor.tensor in terms:
            return None
        if (term := _term(factor, axes, letters)) is None:
            return None
        terms[factor.tensor] = term
    if set(terms) != set(inputs) or len(axes) > len(letters):
        return None
    left = ",".join(terms[tensor] for tensor in inputs)
    right = "".join(letters[axis.var] for axis in op.axis)
    return "numpy.matmul" if (left, right) == ("ac,cb", "ab") else f"{EINSUM}{left}->{right}"


def _factors(value: Expr) -> Iterator[Expr]:
    if isinstance(value, Binary) and value.op == "mul":
        yield from _factors(value.a)
        yield from _factors(value.b)
    else:
        yield value


def _term(load: TensorLoad, axes: dict[Var, Axis], letters: dict[Var, str]) -> str | None:
    """Return the einsum subscripts of a load; None if an index is not an axis of full extent."""
    term = ""
    for index, size in zip(load.indices, load.tensor.shape, strict=True):
        axis = axes.get(index) if isinstance(index, Var) else None
        if axis is None or axis.start != 0 or axis.extent != size or not isinstance(size, int):
            return None
        term += letters[axis.var]
    return term if len(set(term)) == len(term) else None
