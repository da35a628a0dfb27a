"""Gradients: reverse mode over the operations that a tensor is computed by."""

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
    """Return the derivatives of a tensor by others, as tensors to schedule and build.

    Parameters
    ----------
    output : Tensor
        What is differentiated; a tensor of floats.
    inputs : Tensor or sequence of Tensor
        By what: placeholders, or tensors computed on the way, of floats.
    head : Tensor, optional
        What the derivatives are multiplied by, of shape ``prefix + output.shape``: the adjoint of
        `output`. Without it, the identity.

    Returns
    -------
    list of Tensor
        One for each input. With a head, of shape ``prefix + input.shape``: the sum over all
        elements o of the output of ``head[…, o]`` times the derivative of ``output[o]``. Without,
        of shape ``output.shape + input.shape``: all derivatives, which for an output of shape
        ``()`` is its gradient. 0 for an input that the output does not depend on.

    Raises
    ------
    ExpressionError
        If something is not a tensor of floats, the head does not fit, or an operation on the way
        has no known derivative: `nextafter`, a reduction with ``init=``, of several values together
        (`argmax`), or of the user's own that is no sum, product, maximum or minimum.

    Notes
    -----
    Each tensor on the way gets its adjoint, the stage ``X.grad``. It sums over all points that
    read an element. The equations for these are solved (`dlcompiler.arith.inversion`): of
    ``A[i*2 + k]`` with k below 3, the element a is read where ``i = a // 2 - q`` and ``k = a % 2 +
    q*2``, for a q below 2, with guards where i and k end. So the gradient of a product of matrices
    is one, and a read of each element once leaves nothing to sum. This holds for sums of axes times
    numbers, and their quotients and remainders by numbers. Of other indices (``A[B[i]]``,
    ``A[i*j]``, ``A[i // n]`` by a symbol n), the adjoint runs through all points and adds where
    the index is a.

    What passes through integers, conditions and indices, and functions that go in steps (`floor`),
    has no derivative and adds nothing. At a kink one of the slopes counts: of equal operands of
    `maximum` or `minimum`, and of equal values that `max` or `min` reduces, the first gets all;
    where NaN wins, the first NaN does, but of ``maximum(x, 0)`` a NaN gets nothing; `abs` has the
    slope 1 at 0. Adjoints are computed in the dtypes of their tensors.

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
            where, f"{tensor.name} is no tensor of floats", got=tensor.dtype,
            because="what is counted in integers has no derivative",
            hint="convert it: A.astype('float32')",
        )  # fmt: skip


def _check_head(head: Tensor, output: Tensor, where: str) -> int:
    """Return how many dimensions the head has before those of the output."""
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
            where, "the head has another dtype", got=head.dtype, expected=output.dtype
        )
    return rank


def _sizes(tensors: Iterable[Tensor]) -> dict[Var, Interval]:
    """Return the symbols that are extents by themselves, which are not negative."""
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
    """Refuse an operation that computes in another way than by an expression for each element."""
    if any(tensor in wanted for tensor in op.input_tensors):
        raise ExpressionError(
            where, f"nothing is known of the derivative of {op.name}", got=repr(op),
            expected="operations of te.compute between the inputs and the output",
        )  # fmt: skip


def _values(body: Expr) -> tuple[Expr, ...]:
    """Return what an operation computes at each point, before it reduces."""
    return body.values if isinstance(body, Reduce) else (body,)


def _uses(
    op: ComputeOp, tensor: Tensor, own: Tensor | None, wanted: Collection[Tensor], space: Space
) -> Iterator[Use]:
    """Yield what the elements that a tensor is computed from get of its adjoint.

    Parameters
    ----------
    op
        The operation.
    tensor
        One of its outputs.
    own
        The adjoint of `tensor`; None for the identity.
    wanted
        The tensors whose elements are asked for.
    space
        What all adjoints have in common.
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
