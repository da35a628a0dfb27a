"""Declaration of tensor intrinsics: small tensor computations that special instructions implement.

A declaration has two parts. The tensor expression says what the intrinsic computes; scheduling and
analyses use only this part. The implementation is an emitter of the code generator, or statements.
`measurement.verify` tests whether the two agree.
"""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

from dlcompiler.errors import ExpressionError, InternalError
from dlcompiler.ir import (
    Buffer,
    Intrinsic,
    IntrinsicMode,
    Part,
    PrimFunc,
    Reduce,
    Routine,
    Stmt,
    Var,
    print_func,
    verify_func,
)
from dlcompiler.target.fragments import OPERANDS, Fragment
from dlcompiler.te.definition import checked_name
from dlcompiler.te.extern.accesses import outside
from dlcompiler.te.extern.checks import with_checks
from dlcompiler.te.given_functions import call_given
from dlcompiler.te.intrinsics.rules import check_declaration
from dlcompiler.te.notation.reader import notation_arguments, notation_text
from dlcompiler.te.tensor import ComputeOp, Tensor

MODES: tuple[IntrinsicMode, ...] = ("body", "reset", "update")
Strides: TypeAlias = Sequence[int | None]
"""The required stride of each dimension [elements]; None if any stride is allowed."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class TensorIntrin:
    """A computation on small tensors of fixed shape, with an implementation by instructions."""

    name: str
    op: ComputeOp
    """The computation, on placeholders."""
    inputs: tuple[Tensor, ...]
    """The placeholders, in the order of their first use."""
    parts: Mapping[IntrinsicMode, Part]
    """The implementation of each mode: an emitter's name, or a routine."""
    strides: Mapping[Tensor, tuple[int | None, ...]]
    """The required strides of each operand."""
    offset_factors: Mapping[Tensor, int]
    """For some operands, a number that divides their offset from the start of the buffer;
    [elements]."""
    id: str = ""
    """Its name in traces. If the user declared it, this contains a hash of the declaration, so that
    a trace is not replayed with another intrinsic of the same name."""
    threads: int = 1
    """Number of neighbouring threads along x that carry out a call together; [1]."""
    lowered: Intrinsic = field(init=False)
    """The intrinsic as calls in the loop IR refer to it."""

    def __post_init__(self) -> None:
        is_shipped = self.id == self.name  # that of a user's declaration has a hash
        lowered = Intrinsic(self.name, self.parts, self.threads, is_shipped, self.id)
        object.__setattr__(self, "lowered", lowered)

    @property
    def output(self) -> Tensor:
        """The tensor that it computes."""
        return self.op.output(0)

    @property
    def fragments(self) -> dict[Tensor, Fragment]:
        """How the threads of a warp hold its tiles; empty for an intrinsic of one thread.

        Examples
        --------
        >>> from dlcompiler import te
        >>> c, a, b = te.tensor_intrin("mma_f16_16x8x16").fragments.values()
        >>> a.place(lane=5, element=3)
        (9, 3)
        """
        part = self.parts["body"] if self.threads > 1 else ""
        operands = OPERANDS.get(part, ()) if isinstance(part, str) else ()
        return {
            tensor: Fragment(operand.matrix, tensor.dtype)
            for tensor, operand in zip((self.output, *self.inputs), operands, strict=False)
            if operand is not None
        }

    @property
    def is_reduction(self) -> bool:
        """Tell whether the computation is a reduction."""
        return isinstance(self.op.body, Reduce)

    def __repr__(self) -> str:
        return f"TensorIntrin({self.id}: {notation_text(self.output)})"


def decl_tensor_intrin(
    op: ComputeOp,
    fcompute: Callable[[Sequence[Buffer], Sequence[Buffer]], Any],
    name: str = "tensor_intrin",
    binds: Mapping[Tensor, Strides | Buffer] | None = None,
) -> TensorIntrin:
    """Declare a tensor intrinsic, for `Stage.tensorize`.

    Parameters
    ----------
    op : ComputeOp
        The computation: an operation on placeholders of fixed shape, each read as a whole.
    fcompute : callable
        ``f(ins, outs)`` gets the buffers of the inputs and a list with the buffer of the output. It
        returns the implementation: the name of an emitter of the code generator, or a statement on
        these buffers. For a reduction, it may return a tuple (body, reset, update) of these, where
        each may be None. `body` computes the whole result, `reset` stores the identity, `update`
        adds to a partial result. Without `body`, `reset` and `update` are used in turn; without
        `reset`, plain stores of the identity.
    name : str
        A name of letters, digits and '_'.
    binds : mapping of Tensor to sequence or Buffer, optional
        The required strides of some tensors: a number [elements], or None for any stride, in each
        dimension; or a buffer with these strides. Tensors that are not in `binds` may have any
        strides. In the buffers that `fcompute` gets, a stride that may be any is a variable.

    Returns
    -------
    TensorIntrin
        If the same declaration was made before and is still in use, that one.

    Raises
    ------
    ExpressionError
        If the computation cannot be matched with loops, or the implementation is not valid for it.

    Examples
    --------
    >>> from dlcompiler import te
    >>> from dlcompiler.ir import Load, Store, Var, For, index_const
    >>> a = te.placeholder((4,), name="a")
    >>> b = te.compute((4,), lambda i: a[i] * 2.0, name="b")
    >>> def double(ins, outs):
    ...     i = Var("i")
    ...     twice = Store(outs[0], (i,), Load(ins[0], (i,)) + Load(ins[0], (i,)))
    ...     return For(i, index_const(4), "vectorized", twice)
    >>> te.decl_tensor_intrin(b.op, double, "double").name
    'double'
    """
    where = f"decl_tensor_intrin {checked_name(name, 'decl_tensor_intrin')}"
    check_declaration(op, where)
    inputs, output = op.input_tensors, op.output(0)
    given = dict(binds or {})
    if foreign := [t for t in given if t not in (*inputs, output)]:
        raise ExpressionError(where, "binds has a tensor that op does not use", got=foreign[0])
    buffers = [_buffer_of(t, given.get(t), where) for t in (output, *inputs)]
    strides = {
        tensor: tuple(s if isinstance(s, int) else None for s in buffer.strides)
        for tensor, buffer in zip((output, *inputs), buffers, strict=True)
    }
    made = call_given(fcompute, (buffers[1:], buffers[:1]), where, "f(ins, outs), lists of buffers")
    parts = _parts(op, made, buffers, where)
    factors = {
        tensor: buffer.offset_factor
        for tensor, buffer in zip((output, *inputs), buffers, strict=True)
        if buffer.offset_factor > 1
    }
    asked = (list(strides.values()), list(factors.values()))
    text = repr((notation_text(output), notation_arguments(output), *asked))
    text += "".join(f"{mode}: {_part_text(part)}" for mode, part in parts.items())
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    intrin = TensorIntrin(
        name,
        op,
        inputs,
        MappingProxyType(parts),
        MappingProxyType(strides),
        MappingProxyType(factors),
        f"{name}#{digest}",
    )
    with _declaring:
        return _declared.setdefault(intrin.id, intrin)


_declaring = threading.Lock()
# Intrinsics that were declared in this process and are still in use, by id: a trace that is
# replayed finds its intrinsic here.
_declared: weakref.WeakValueDictionary[str, TensorIntrin] = weakref.WeakValueDictionary()


def declared_intrin(id: str) -> TensorIntrin | None:
    """Return the intrinsic that was declared in this process with an id, if it is still in use."""
    return _declared.get(id)


def _buffer_of(tensor: Tensor, given: Strides | Buffer | None, where: str) -> Buffer:
    """Return the buffer of a tensor in the statements of an implementation."""
    if isinstance(given, Buffer):
        if given.static_shape != tensor.shape or given.dtype != tensor.dtype:
            raise ExpressionError(
                where, f"the buffer bound to {tensor.name} does not fit it",
                got=f"{given.dtype}{list(given.shape)}",
                expected=f"{tensor.dtype}{list(tensor.shape)}",
            )  # fmt: skip
        return given
    steps = (None,) * tensor.ndim if given is None else tuple(given)
    if len(steps) != tensor.ndim or not all(s is None or isinstance(s, int) for s in steps):
        raise ExpressionError(
            where, f"the strides of {tensor.name} do not fit it", got=repr(given),
            expected=f"{tensor.ndim}, each a number or None",
        )  # fmt: skip
    strides = tuple(
        Var(f"{tensor.name}.stride{n}", is_symbol=True) if step is None else step
        for n, step in enumerate(steps)
    )
    return Buffer(tensor.name, tensor.shape, tensor.dtype, strides=strides)


def _parts(
    op: ComputeOp, result: Any, buffers: list[Buffer], where: str
) -> dict[IntrinsicMode, Part]:
    """Return the implementation of each mode, from the result of the user's function."""
    given = tuple(result) if isinstance(result, list | tuple) else (result,)
    modes = MODES if isinstance(op.body, Reduce) else MODES[:1]
    if not 1 <= len(given) <= len(modes):
        raise ExpressionError(
            where, f"the function returned {'too many parts' if given else 'nothing'}",
            got=f"{len(given)}",
            expected="body" if len(modes) == 1 else "body or (body, reset, update)",
        )  # fmt: skip
    parts = {
        mode: _part(part, buffers, f"{where}: {mode}")
        for mode, part in zip(modes, given, strict=False)
        if part is not None
    }
    if not {"body", "update"} & parts.keys():
        raise ExpressionError(
            where, "neither body nor update is given", got=", ".join(parts) or "None",
            expected="a body or an update: the name of an emitter, or a statement",
        )  # fmt: skip
    return parts


def _part(part: Any, buffers: list[Buffer], where: str) -> Part:
    if isinstance(part, str):
        return part
    if not isinstance(part, Stmt):
        raise ExpressionError(
            where, "not an implementation of an intrinsic", got=repr(part),
            expected="the name of an emitter, or a statement of the loop IR",
        )  # fmt: skip
    try:
        verify_func(_as_func(part, buffers))
    except InternalError as error:
        raise ExpressionError(
            where, f"the statement is not valid: {error.problem}",
            hint="it may use only the buffers that the function gets, or that it allocates",
        ) from None  # fmt: skip
    for problem in outside(part):
        raise ExpressionError(
            where, "the statement uses an element outside its buffer", got=problem
        )
    return Routine(tuple(buffers), with_checks(part, buffers))


def _as_func(body: Stmt, buffers: Sequence[Buffer]) -> PrimFunc:
    symbols = Routine(tuple(buffers), body).variables
    return PrimFunc("intrinsic", (*buffers[1:], buffers[0]), (buffers[0],), body, {}, symbols)


def _part_text(part: Part) -> str:
    return part if isinstance(part, str) else print_func(_as_func(part.body, part.buffers)).text
