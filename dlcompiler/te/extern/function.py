"""`te.extern`: the operation, the checks of its statements, and its evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import ExpressionError, InternalError, ProgramError
from dlcompiler.ir import (
    Buffer,
    Expr,
    PrimFunc,
    Region,
    Stmt,
    Store,
    Var,
    free_vars,
    numeric,
    rewrite,
    verify_func,
    walk,
    walk_statements,
)
from dlcompiler.ir.names import checked_label
from dlcompiler.ir.rewrite import Node
from dlcompiler.simulate import interpret
from dlcompiler.te.definition import checked_data_dtype, checked_name, checked_shape
from dlcompiler.te.extern.accesses import outside
from dlcompiler.te.extern.zeros import with_zeros
from dlcompiler.te.given_functions import call_given
from dlcompiler.te.tensor import ExternOp, Tensor

Buffers = tuple[Buffer, ...]
Array = np.ndarray[Any, Any]


def extern(
    shape: Any,
    inputs: Sequence[Tensor],
    fcompute: Callable[..., Any],
    name: str = "extern",
    dtype: Any = None,
    in_buffers: Any = None,
    out_buffers: Any = None,
    tag: str = "",
    attrs: object = None,
    *,
    is_complete: bool = False,
) -> Any:
    """Define tensors by a call of an external function, or by statements of the loop IR.

    Parameters
    ----------
    shape : tuple of int or Expr, or list of such tuples
        Extents of the result; a list of tuples defines several tensors.
    inputs : sequence of Tensor
        The tensors that the code reads; they are computed completely before it runs.
    fcompute : callable
        ``f(ins, outs)`` gets the buffers of the inputs and those of the outputs as two lists. It
        returns a call (`call_packed`, `call_extern`), or statements (`ir.Builder`).
    name : str
        Name of the tensor and of its stage.
    dtype : str, or list of str
        Dtypes of the outputs; by default the dtype of the inputs, if all have the same.
    in_buffers, out_buffers : Buffer, or list of Buffer, optional
        The buffers that `fcompute` gets (`decl_buffer`); by default, contiguous ones are made.
    tag : str
        Free text kept with the operation.
    attrs
        Ignored; classic TVM has a parameter of this name.
    is_complete : bool
        Promise that the statements write each element of the outputs, and of what they allocate,
        before it is read; `te.evaluate` checks it.

    Returns
    -------
    Tensor or tuple of Tensor
        A tuple if several shapes are given.

    Raises
    ------
    ExpressionError
        If the statements are not valid loop IR, write an input, do not write an output, or
        certainly use an element outside its buffer.

    Notes
    -----
    Elements that the statements do not write are 0, in outputs and in temporaries to which the
    statements store. The loops that fill a buffer with 0 are left out if the statements certainly
    write each element before they read it, or if `is_complete` promises it. A buffer that only
    calls write is not filled.

    Examples
    --------
    >>> from dlcompiler import ir, te
    >>> A = te.placeholder((4, 8), name="A")
    >>> te.extern((4, 4), [A], lambda ins, outs: ir.call_packed("docs.gram", *ins, *outs), name="G")
    Tensor(G: float32[4, 4])
    """
    del attrs  # classic TVM stores it with the operation; no pass here uses it
    where = f"te.extern {checked_name(name, 'te.extern')}"
    checked_label(tag, where, "tag")
    given = _checked_inputs(inputs, where)
    is_one = not isinstance(shape, Sequence) or not shape or not isinstance(shape[0], Sequence)
    shapes = [checked_shape(each, where) for each in ([shape] if is_one else shape)]
    kinds = _dtypes(dtype, given, len(shapes), where)
    names = [name] if len(shapes) == 1 else [f"{name}.v{n}" for n in range(len(shapes))]
    read = [(tensor.name, tensor.shape, tensor.dtype) for tensor in given]
    reads = _buffers(in_buffers, read, "in_buffers", where)
    made_here = list(zip(names, shapes, kinds, strict=True))
    makes = _buffers(out_buffers, made_here, "out_buffers", where)
    made = call_given(fcompute, (list(reads), list(makes)), where, "f(ins, outs), lists of buffers")
    if not isinstance(made, Stmt):
        raise ExpressionError(
            where, "the function does not return statements", got=repr(made),
            expected="a call (ir.call_packed), or what get() of an ir.Builder returns",
        )  # fmt: skip
    op = extern_op(name, given, reads, makes, made, where, tag, is_complete=is_complete)
    return op.outputs[0] if len(shapes) == 1 else op.outputs


def _checked_inputs(inputs: Any, where: str) -> tuple[Tensor, ...]:
    is_one = isinstance(inputs, Tensor) or not isinstance(inputs, Iterable)
    given = (inputs,) if is_one else tuple(inputs)
    for tensor in given:
        if not isinstance(tensor, Tensor):
            raise ExpressionError(where, "an input is not a tensor", got=repr(tensor))
    return given


def extern_op(
    name: str,
    inputs: tuple[Tensor, ...],
    reads: Buffers,
    makes: Buffers,
    code: Stmt,
    where: str,
    tag: str = "",
    *,
    is_complete: bool = False,
) -> ExternOp:
    """Make the operation from statements on buffers; refuse statements that are not valid.

    Parameters
    ----------
    name : str
        Name of the operation.
    inputs : tuple of Tensor
        The tensors that it reads.
    reads, makes : tuple of Buffer
        The buffers of the inputs and of the outputs.
    code : Stmt
        The statements.
    where : str
        Names the operation in errors.
    tag : str
        Free text kept with the operation.
    is_complete : bool
        Whether the statements write each element before it is read.
    """
    body = _with_modes(code, reads, where)
    _check(body, reads, makes, where)
    return ExternOp(name, inputs, reads, makes, body, tag, is_complete=is_complete)


def _dtypes(dtype: Any, inputs: Sequence[Tensor], count: int, where: str) -> list[str]:
    if dtype is None:
        known = {tensor.dtype for tensor in inputs}
        if len(known) != 1:
            raise ExpressionError(
                where, "the dtype of the result is not given",
                because=f"the inputs have the dtypes {' and '.join(sorted(known))}"
                if known else "there are no inputs",
            )  # fmt: skip
        return [*known] * count
    many = list(dtype) if isinstance(dtype, list | tuple) else [dtype] * count
    if len(many) != count:
        raise ExpressionError(where, "wrong number of dtypes", got=len(many), expected=count)
    return [checked_data_dtype(each, where) for each in many]


def _buffers(given: Any, wanted: Sequence[tuple[str, Any, str]], what: str, where: str) -> Buffers:
    """Return the buffers of tensors: those that the user gives, if they fit, or new ones."""
    if given is None:
        return tuple(Buffer(name, shape, dtype) for name, shape, dtype in wanted)
    buffers = (given,) if isinstance(given, Buffer) else tuple(given)
    if len(buffers) != len(wanted):
        raise ExpressionError(
            where, f"wrong number of {what}", got=len(buffers), expected=len(wanted)
        )
    for buffer, (name, shape, dtype) in zip(buffers, wanted, strict=True):
        plain = Buffer(name, shape, dtype)
        if (buffer.shape, buffer.dtype, buffer.strides) != (shape, dtype, plain.strides):
            raise ExpressionError(
                where, f"the buffer given for {name} does not fit it",
                got=f"{buffer.dtype}{list(buffer.shape)}, strides {buffer.strides}",
                expected=f"{dtype}{list(shape)}, strides {plain.strides}",
            )  # fmt: skip
    return buffers


def _with_modes(body: Stmt, reads: Buffers, where: str) -> Stmt:
    """Set the access mode of buffers that calls get whole: inputs are read, others are written."""

    def rule(node: Node) -> Node:
        if isinstance(node, Region) and node.buffer in reads and node.is_written:
            raise ExpressionError(
                where, f"the code writes its input {node.buffer.name}", got=str(node),
                hint="write an output instead, after copying the input to it",
            )  # fmt: skip
        if isinstance(node, Region) and not node.mode:
            return replace(node, mode="r" if node.buffer in reads else "w")
        return node

    return rewrite(body, rule)


def _check(body: Stmt, reads: Buffers, makes: Buffers, where: str) -> None:
    symbols = {node for node in walk(body) if isinstance(node, Var) and node.is_symbol}
    for buffer in (*reads, *makes):
        symbols.update(_symbols(buffer))
    func = PrimFunc("extern", (*reads, *makes), makes, body, symbols=tuple(symbols))
    try:
        verify_func(func)
    except InternalError as error:
        raise ExpressionError(where, error.problem, excerpt=str(func)) from error
    written = {node.buffer for node in walk_statements(body) if isinstance(node, Store)}
    written |= {node.buffer for node in walk(body) if isinstance(node, Region) and node.is_written}
    for problem in outside(body):
        raise ExpressionError(
            where, "the code uses an element outside its buffer", got=problem, excerpt=str(func)
        )
    for buffer in makes:
        if buffer not in written:
            raise ExpressionError(where, f"nothing writes {buffer.name}", excerpt=str(func))


def _symbols(buffer: Buffer) -> Iterator[Var]:
    for extent in buffer.shape:
        if isinstance(extent, Expr):
            yield from free_vars(extent)


def compute_extern(
    op: ExternOp, values: Mapping[Any, Array], *, is_wide: bool
) -> dict[Tensor, Array]:
    """Compute the outputs of an operation of known shapes, by the interpreter.

    Parameters
    ----------
    op
        The operation.
    values
        The array of each input.
    is_wide
        Whether floats in `values` and in the results are float64. The statements compute in the
        declared dtypes in any case.
    """
    kinds = [numeric.storage(tensor.dtype) for tensor in op.inputs]
    given = [np.asarray(values[t], kind) for t, kind in zip(op.inputs, kinds, strict=True)]
    results = [np.zeros(t.static_shape, numeric.storage(t.dtype)) for t in op.outputs]
    body = op.body
    if not op.is_complete:
        body = with_zeros(body, op.out_buffers, fills_unstored=False)
    func = PrimFunc(op.name, (*op.in_buffers, *op.out_buffers), op.out_buffers, body)
    report = interpret(func, [*given, *results])
    if report.first_unwritten is not None:
        name, index = report.first_unwritten
        raise ProgramError(
            f"evaluate {op.name}", f"{report.unwritten} elements of its outputs are never written",
            kind="uninitialised", buffer=name, index=index, excerpt=op.text,
            got=f"the first is {name}[{', '.join(map(str, index))}]",
        )  # fmt: skip
    if is_wide:
        results = [
            array.astype(np.float64) if dtypes.is_float(tensor.dtype) else array
            for tensor, array in zip(op.outputs, results, strict=True)
        ]
    return dict(zip(op.outputs, results, strict=True))
