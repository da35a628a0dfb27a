"""`te.gradient`: reverse-mode differentiation over the operations that compute a tensor."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from dlcompiler import dtypes
from dlcompiler.arith import NATURAL, Interval
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Axis, Expr, Reduce, TensorLoad, Var, const
from dlcompiler.te.broadcast import same_extent
from dlcompiler.te.gradient.accesses import Space, Use, adjoint_tensor, identity
from dlcompiler.te.gradient.body import Adjoint, adjoints, is_differentiable
from dlcompiler.te.gradient.reductions import seed_of_reduction
from dlcompiler.te.tensor import ComputeOp, Operation, Tensor, post_order


def gradient(
    output: Tensor, inputs: Tensor | Sequence[Tensor], head: Tensor | None = None
) -> list[Tensor]:
    """Define the derivatives of a tensor with respect to others, as tensors.

    Parameters
    ----------
    output : Tensor
        The tensor that is differentiated, of floats.
    inputs : Tensor or sequence of Tensor
        The tensors with respect to which it is differentiated, of floats: placeholders, or
        intermediate tensors.
    head : Tensor, optional
        The adjoint of `output`, of shape ``prefix + output.shape``: the derivatives of some
        function of `output`, for the chain rule. By default it is the identity.

    Returns
    -------
    list of Tensor
        One tensor for each input. With a head, its shape is ``prefix + input.shape``, and it is the
        sum over all elements o of the output of ``head[…, o]`` times the derivative of
        ``output[o]``. Without a head, its shape is ``output.shape + input.shape``, and it holds all
        derivatives; for an output of shape ``()`` this is the gradient. It is 0 for an input on
        which the output does not depend.

    Raises
    ------
    ExpressionError
        If something is not a tensor of floats, the head does not fit, or an intermediate operation
        has no known derivative: `nextafter`, `te.extern`, `te.scan`, a reduction with ``init=``, of
        several values together (`argmax`), or by a reducer of the user that is no sum, product,
        maximum or minimum.

    Notes
    -----
    **Adjoints.** Each intermediate tensor X gets an adjoint, the stage ``X.grad``. An element of it
    is a sum over all points that read this element of X. These points are found by solving
    equations of indices (`dlcompiler.arith.inversion`). For example, if ``A[i*2 + k]`` is read with
    ``k < 3``, element a is read where ``i = a // 2 - q`` and ``k = a % 2 + q*2`` for ``q < 2``,
    under guards that keep i and k in range. So the gradient of a matrix product is a matrix
    product, and if each element is read once, there is no sum. This works for indices that are sums
    of axes times numbers, and their quotients and remainders by numbers. For other indices
    (``A[B[i]]``, ``A[i*j]``, ``A[i // n]`` with a symbol n), the adjoint runs over all points and
    adds where the index equals a.

    **Where there is no derivative.** Values that pass through integers, conditions or indices, and
    functions that are constant between jumps (`floor`), contribute 0. At a kink, one of the slopes
    is taken. If the operands of `maximum` or `minimum`, or values in a `max` or `min` reduction,
    are equal, the first gets all of the adjoint. If the result is NaN, the first NaN gets it; in
    ``maximum(x, 0)``, with a number, a NaN gets 0. The slope of `abs` at 0 is 1.

    Adjoints are computed in the dtypes of their tensors.

    **Source:** reverse mode, A. Griewank, A. Walther, "Evaluating Derivatives", 2nd ed., 2008,
    section 3.2. In classic TVM: ``te.gradient``.

    Examples
    --------
    >>> from dlcompiler import te
    >>> A, B = te.placeholder((4, 8), name="A"), te.placeholder((8, 6), name="B")
    >>> C = te.notation("C[i, j] += A[i, k] * B[k, j]", A=A, B=B)
    >>> dA, dB = te.gradient(C, [A, B], head=te.placeholder((4, 6), name="H"))
    >>> print(te.notation_text(dA, dB))
    A_grad[i, k] += H[i, j]*B[k, j]
    B_grad[k, j] += H[i, j]*A[i, k]
    """
    _check_tensor(output, "te.gradient")
    where = f"te.gradient of {output.name}"
    targets = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    for tensor in targets:
        _check_tensor(tensor, where)
    rank = 0 if head is None else _check_head(head, output, where)
    extents = output.shape if head is None else head.shape[:rank]
    prefix = tuple(Axis(f"p{n}", extent, "data") for n, extent in enumerate(extents))
    space = Space(prefix, _sizes([output, *targets, *([] if head is None else [head])]), where)
    found = _adjoints(output, targets, head, space)
    return [
        found[target] if target in found else adjoint_tensor(target, [], space)
        for target in targets
    ]


def _check_tensor(tensor: object, where: str) -> None:
    if not isinstance(tensor, Tensor):
        raise ExpressionError(
            where, "not a tensor", got=repr(tensor), expected="te.gradient(output, [A, B], head)"
        )
    if not dtypes.is_float(tensor.dtype):
        raise ExpressionError(
            where, f"{tensor.name} is not a tensor of floats", got=tensor.dtype,
            because="only floats have derivatives",
            hint="convert it: A.astype('float32')",
        )  # fmt: skip


def _check_head(head: Tensor, output: Tensor, where: str) -> int:
    """Return the number of dimensions of the head before those of the output."""
    _check_tensor(head, f"{where}: head")
    rank = head.ndim - output.ndim
    pairs = zip(head.shape[rank:], output.shape, strict=True) if rank >= 0 else ()
    if rank < 0 or not all(same_extent(a, b) for a, b in pairs):
        raise ExpressionError(
            where, "the shape of the head does not end with that of the output",
            got=f"{head.name}: {head.shape}", expected=f"(…, {str(output.shape)[1:]}",
        )  # fmt: skip
    if head.dtype != output.dtype:
        raise ExpressionError(
            where,
            "the dtype of the head differs from that of the output",
            got=head.dtype,
            expected=output.dtype,
        )
    return rank


def _sizes(tensors: Iterable[Tensor]) -> dict[Var, Interval]:
    """Return the ranges of symbols that are extents by themselves: these are not negative."""
    shapes = [t.shape for op in post_order(tensors) for t in op.outputs]
    sizes = [extent for shape in shapes for extent in shape if isinstance(extent, Var)]
    return dict.fromkeys(sizes, NATURAL)


def _adjoints(
    output: Tensor, targets: Sequence[Tensor], head: Tensor | None, space: Space
) -> dict[Tensor, Tensor]:
    """Return the adjoints of the tensors between the output and the targets."""
    order = post_order([output])
    wanted = _between(order, targets, space.where)
    uses: dict[Tensor, list[Use]] = {}
    found: dict[Tensor, Tensor] = {}
    if output in targets:
        found[output] = identity(output, space) if head is None else head
    # In reverse order, all consumers of a tensor come before it: its adjoint is complete then.
    for op in reversed(order):
        for tensor in op.outputs:
            if tensor in uses:
                found[tensor] = adjoint_tensor(tensor, uses[tensor], space)
            own = head if tensor is output else found.get(tensor)
            if isinstance(op, ComputeOp) and (own is not None or tensor is output):
                for use in _uses(op, tensor, own, wanted, space):
                    uses.setdefault(use.tensor, []).append(use)
    return found


def _between(order: Sequence[Operation], targets: Collection[Tensor], where: str) -> set[Tensor]:
    """Return the targets, and the tensors that depend on their values."""
    wanted = set(targets)
    for op in order:
        if not isinstance(op, ComputeOp):
            _check_source(op, wanted, where)
            continue
        for tensor, body in zip(op.outputs, op.bodies, strict=True):
            if any(is_differentiable(value, wanted) for value in _values(body)):
                wanted.add(tensor)
    return wanted


def _check_source(op: Operation, wanted: Collection[Tensor], where: str) -> None:
    """Refuse an operation that has inputs and is not a `ComputeOp`: its derivative is unknown."""
    if any(tensor in wanted for tensor in op.input_tensors):
        raise ExpressionError(
            where, f"the derivative of {op.name} is not known", got=repr(op),
            expected="only te.compute between the inputs and the output",
        )  # fmt: skip


def _values(body: Expr) -> tuple[Expr, ...]:
    """Return the values of a body at each point, before a reduction combines them."""
    return body.values if isinstance(body, Reduce) else (body,)


def _uses(
    op: ComputeOp, tensor: Tensor, own: Tensor | None, wanted: Collection[Tensor], space: Space
) -> Iterator[Use]:
    """Yield the contributions of a tensor's adjoint to the elements from which it is computed.

    Parameters
    ----------
    op
        The operation.
    tensor
        One of its outputs.
    own
        The adjoint of `tensor`; None for the identity.
    wanted
        The tensors whose adjoints are needed.
    space
        The context of the gradient.
    """
    body = op.bodies[tensor.value_index]
    if not any(is_differentiable(value, wanted) for value in _values(body)):
        return
    prefix, point = (tuple(a.var for a in axes) for axes in (space.prefix, op.axis))
    equations = () if own is not None else tuple(zip(point, prefix, strict=True))
    given = const(1, tensor.dtype) if own is None else TensorLoad(own, (*prefix, *point))
    where = f"{space.where}: {tensor.name}"
    if isinstance(body, Reduce):
        seed = seed_of_reduction(tensor, body, given, where)
        found = adjoints(body.value, seed, body.value, wanted, where)
    else:
        found = adjoints(body, Adjoint(given), TensorLoad(tensor, point), wanted, where)
    for load, adjoint in found:
        yield Use(op, load, adjoint, equations)
