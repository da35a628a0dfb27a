"""Tensors, and the operations that define them: placeholder, compute, scan, extern."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from dlcompiler.display import render
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import (
    Axis,
    Buffer,
    Expr,
    Extent,
    PrimFunc,
    Reduce,
    Stmt,
    TensorLoad,
    as_expr,
    as_index,
    free_vars,
    walk,
)
from dlcompiler.ir.operators import Elementwise, Operators
from dlcompiler.ir.stmt import extent_binary, static
from dlcompiler.te.broadcast import NAMES, broadcast_shape, element_indices
from dlcompiler.te.constant_operands import check_constants

Shape: TypeAlias = tuple[Extent, ...]


class Tensor(Elementwise):
    """A tensor: the result of an operation. Tensors are compared by identity.

    ``A[i, j]`` is the expression of an element. An operator between whole tensors, ``A + 2 * B``,
    defines a new tensor; its shape follows NumPy's rules of broadcasting.
    """

    __slots__ = ("dtype", "name", "op", "shape")

    def __init__(self, name: str, shape: Shape, dtype: str, op: Operation) -> None:
        self.name = name
        self.shape = shape
        """Extent of each dimension; [1]."""
        self.dtype = dtype
        self.op = op
        """The operation that defines it."""

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape as numbers; an error if an extent is symbolic."""
        return static(self.shape, self.name)

    @property
    def axis(self) -> tuple[Axis, ...]:
        """The data axes of the operation (none for a placeholder)."""
        return self.op.axis

    @property
    def value_index(self) -> int:
        """The number of this tensor among the outputs of its operation."""
        return next(n for n, output in enumerate(self.op.outputs) if output is self)

    def __getitem__(self, indices: Any) -> Any:
        items = indices if isinstance(indices, tuple) else (indices,)
        if len(items) > len(self.shape) or (self.shape and not items):
            raise self._wrong_count(items)
        places = tuple(self._index(item, n) for n, item in enumerate(items))
        if len(items) < len(self.shape):
            return TensorSlice(self, items)
        return TensorLoad(self, places)

    def _wrong_count(self, items: tuple[Any, ...]) -> ExpressionError:
        return ExpressionError(
            f"index {self.name}",
            "wrong number of indices",
            got=f"{len(items)}: {self.name}[{', '.join(map(_shown, items))}]",
            expected=f"{len(self.shape)}, one for each dimension of {self.shape}",
        )

    def __call__(self, *indices: Any) -> Any:
        """Return an element; classic code also writes ``A(i, j)``."""
        return self[indices]

    def __iter__(self) -> Any:
        raise ExpressionError(
            f"iterate over {self.name}", "a tensor cannot be iterated over",
            because="its values are not known while the program is defined",
            hint="index it with axes inside te.compute: A[i, j]",
        )  # fmt: skip

    def _index(self, item: Any, position: int) -> Expr:
        where = f"index {position} of {self.name}"
        if isinstance(item, slice) or item is Ellipsis:
            raise ExpressionError(where, "slices are not supported", got=repr(item))
        return as_index(item, where)

    def elementwise(
        self, operation: str, operands: Sequence[Any], element: Callable[..., Expr]
    ) -> Tensor:
        """Define the tensor that applies an operator to whole tensors, element by element.

        Parameters
        ----------
        operation : str
            Name of the operator, such as ``"add"``.
        operands : sequence
            Tensors and scalars.
        element : callable
            Returns the expression of an element from those of the operands.
        """
        name = NAMES.get(operation, f"T_{operation}")
        shape = broadcast_shape([x.shape for x in operands if isinstance(x, Tensor)], name)
        axes = tuple(Axis(f"ax{n}", extent, "data") for n, extent in enumerate(shape))
        values = [_element(operand, axes, name) for operand in operands]
        body = element(*values)
        check_constants((body,), axes, f"{operation} of tensors")
        return ComputeOp(name, axes, (body,), "broadcast").output(0)

    def __repr__(self) -> str:
        return f"Tensor({self.name}: {self.dtype}[{', '.join(map(str, self.shape))}])"

    def _repr_html_(self) -> str:
        return render("tensor", self)


class TensorSlice(Operators):
    """A tensor with fewer indices than dimensions, ``A[i]``, so that ``A[i][j]`` is an element."""

    __slots__ = ("indices", "tensor")

    def __init__(self, tensor: Tensor, indices: tuple[Any, ...]) -> None:
        self.tensor = tensor
        self.indices = indices

    def __getitem__(self, indices: Any) -> Any:
        more = indices if isinstance(indices, tuple) else (indices,)
        return self.tensor[(*self.indices, *more)]

    def __iter__(self) -> Any:
        return iter(self.tensor)

    def __as_expr__(self) -> Expr:
        raise self.tensor._wrong_count(self.indices)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise self.tensor._wrong_count(self.indices)

    def __repr__(self) -> str:
        return f"{self.tensor.name}[{', '.join(map(_shown, self.indices))}]"


class PlaceholderOp:
    """Operation of an input, whose values the caller gives; see `placeholder`."""

    __slots__ = ("name", "outputs")

    axis: tuple[Axis, ...] = ()
    reduce_axis: tuple[Axis, ...] = ()

    def __init__(self, name: str, shape: Shape, dtype: str) -> None:
        self.name = name
        self.outputs: tuple[Tensor, ...] = (Tensor(name, shape, dtype, self),)
        """The tensor that it defines, as a tuple of one."""

    @property
    def num_outputs(self) -> int:
        """Number of tensors that it defines."""
        return len(self.outputs)

    def output(self, index: int) -> Tensor:
        """Return the tensor that the operation defines; `index` must be 0."""
        return _output(self, index)

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors it reads: none."""
        return ()

    def __repr__(self) -> str:
        return f"placeholder({self.name})"

    def _repr_html_(self) -> str:
        return render("operation", self)


class ComputeOp:
    """Operation that computes tensors element by element: ``bodies`` at each point of ``axis``.

    A body is an expression of the axes' variables. A reduction is never an operand: it is a whole
    body, and then all bodies are the results of this reduction. See `compute`.
    """

    __slots__ = ("_input_tensors", "axis", "bodies", "name", "outputs", "reduce_axis", "tag")

    def __init__(
        self, name: str, axis: tuple[Axis, ...], bodies: tuple[Expr, ...], tag: str = ""
    ) -> None:
        self.name = name
        self.axis = axis
        """The data axes, one for each dimension of the results."""
        self.bodies = bodies
        """The expression of an element of each output."""
        head = bodies[0]
        self.reduce_axis: tuple[Axis, ...] = head.axes if isinstance(head, Reduce) else ()
        self.tag = tag
        shape = tuple(a.extent for a in axis)
        names = [name] if len(bodies) == 1 else [f"{name}.v{n}" for n in range(len(bodies))]
        self.outputs: tuple[Tensor, ...] = tuple(
            Tensor(n, shape, body.dtype, self) for n, body in zip(names, bodies, strict=True)
        )
        """The tensors that it makes."""
        self._input_tensors: tuple[Tensor, ...] | None = None

    @property
    def body(self) -> Expr:
        """The expression of its first output."""
        return self.bodies[0]

    @property
    def num_outputs(self) -> int:
        """Number of tensors that it defines."""
        return len(self.outputs)

    def output(self, index: int) -> Tensor:
        """Return one of the tensors that the operation makes."""
        return _output(self, index)

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors that the bodies read, in order of first use."""
        if self._input_tensors is None:  # cached: each step of a schedule reads it
            self._input_tensors = tensors_of(self.bodies)
        return self._input_tensors

    def __repr__(self) -> str:
        return f"compute({self.name})"

    def _repr_html_(self) -> str:
        return render("operation", self)


class ScanOp:
    """Operation of a recurrence: tensors computed row by row; see `scan`.

    The first rows are those of `inits`. Each later row is a row of `updates`. The operations that
    compute it are the `cell`; they read earlier rows as elements of the placeholders `states`.
    """

    __slots__ = ("axis", "cell", "first", "inits", "name", "outputs", "states", "updates")

    reduce_axis: tuple[Axis, ...] = ()

    def __init__(
        self,
        name: str,
        inits: tuple[Tensor, ...],
        updates: tuple[Tensor, ...],
        states: tuple[Tensor, ...],
    ) -> None:
        self.name = name
        self.inits = inits
        self.updates = updates
        self.states = states
        """Placeholders for the rows that are computed already."""
        (self.first,) = static(inits[0].shape[:1], inits[0].name)
        """Number of rows that the inits give, so also the first row that a step computes; [1]."""
        steps = extent_binary("sub", states[0].shape[0], self.first)
        self.axis = (Axis("idx", steps, "scan"),)
        """The time axis: one iteration for each step."""
        self.cell = _cell(updates, states)
        """The operations of one step, producers first."""
        names = [name] if len(states) == 1 else [f"{name}.v{n}" for n in range(len(states))]
        self.outputs: tuple[Tensor, ...] = tuple(
            Tensor(n, state.shape, state.dtype, self)
            for n, state in zip(names, states, strict=True)
        )
        """The rows of all steps, for each state."""

    @property
    def scan_axis(self) -> Axis:
        """The time axis, by its name in classic TVM."""
        return self.axis[0]

    @property
    def num_outputs(self) -> int:
        """Number of tensors that it defines."""
        return len(self.outputs)

    def output(self, index: int) -> Tensor:
        """Return one of the tensors that the operation makes."""
        return _output(self, index)

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The inits, then the updates."""
        return (*self.inits, *self.updates)

    def text(self, names: Mapping[Tensor, str] | None = None) -> str:
        """Return the operation as the text of a call: ``S = scan(first, step, state)``."""
        made, *given = (
            [tensor.name if names is None else names[tensor] for tensor in group]
            for group in (self.outputs, self.inits, self.updates, self.states)
        )
        parts = (group[0] if len(group) == 1 else f"[{', '.join(group)}]" for group in given)
        return f"{', '.join(made)} = scan({', '.join(parts)})"

    def __repr__(self) -> str:
        return f"scan({self.name})"

    def _repr_html_(self) -> str:
        return render("operation", self)


class ExternOp:
    """Operation that computes tensors by statements or calls, not element by element; see `extern`.

    It has no axes, so no schedule changes its loops: these are part of `body`.
    """

    __slots__ = (
        "body", "in_buffers", "inputs", "is_complete", "name", "out_buffers", "outputs", "tag",
    )  # fmt: skip

    axis: tuple[Axis, ...] = ()
    reduce_axis: tuple[Axis, ...] = ()

    def __init__(
        self,
        name: str,
        inputs: tuple[Tensor, ...],
        in_buffers: tuple[Buffer, ...],
        out_buffers: tuple[Buffer, ...],
        body: Stmt,
        tag: str = "",
        *,
        is_complete: bool = False,
    ) -> None:
        self.name = name
        self.inputs = inputs
        """The tensors it reads, in the order of `in_buffers`."""
        self.in_buffers = in_buffers
        """The buffers of the inputs in `body`."""
        self.out_buffers = out_buffers
        """The buffers of the outputs in `body`."""
        self.body = body
        self.tag = tag
        self.is_complete = is_complete
        """Whether `body` is promised to write each element before it is read: nothing is filled
        with 0."""
        is_one = len(out_buffers) == 1
        self.outputs: tuple[Tensor, ...] = tuple(
            Tensor(name if is_one else f"{name}.v{n}", buffer.shape, buffer.dtype, self)
            for n, buffer in enumerate(out_buffers)
        )
        """The tensors that it makes."""

    @property
    def num_outputs(self) -> int:
        """Number of tensors that it defines."""
        return len(self.outputs)

    def output(self, index: int) -> Tensor:
        """Return one of the tensors that the operation makes."""
        return _output(self, index)

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors it reads, each once."""
        return tuple(dict.fromkeys(self.inputs))

    @property
    def text(self) -> str:
        """The statements of `body`, as text."""
        params = (*self.in_buffers, *self.out_buffers)
        return str(PrimFunc(self.name, params, self.out_buffers, self.body))

    def __repr__(self) -> str:
        return f"extern({self.name})"

    def _repr_html_(self) -> str:
        return render("operation", self)


Operation: TypeAlias = PlaceholderOp | ComputeOp | ScanOp | ExternOp


def _shown(index: Any) -> str:
    return str(as_expr(index)) if isinstance(index, Operators) else repr(index)


def _element(operand: Any, axes: tuple[Axis, ...], name: str) -> Any:
    """Return an operand of a whole-tensor operator at the point `axes`: an element, or a scalar."""
    if isinstance(operand, Tensor):
        return operand[element_indices(operand.shape, axes)]
    is_expr = isinstance(operand, Operators)
    if is_expr and any(not var.is_symbol for var in free_vars(as_expr(operand))):
        raise ExpressionError(
            name, "a whole tensor and an element of another computation cannot be combined",
            got=str(operand), hint="index the tensor inside te.compute: A[i, j]",
        )  # fmt: skip
    return operand


def _output(op: Operation, index: int) -> Tensor:
    if not 0 <= index < len(op.outputs):
        expected = "0" if len(op.outputs) == 1 else f"0 to {len(op.outputs) - 1}"
        raise ExpressionError(
            f"output {index} of {op.name}", "no such output", got=index, expected=expected
        )
    return op.outputs[index]


def tensors_of(bodies: Iterable[Expr]) -> tuple[Tensor, ...]:
    """Return the tensors that expressions read, in order of first use."""
    found: dict[Tensor, None] = {}
    for body in bodies:
        for item in walk(body):
            if isinstance(item, TensorLoad) and isinstance(item.tensor, Tensor):
                found[item.tensor] = None
    return tuple(found)


def post_order(outputs: Iterable[Tensor]) -> tuple[Operation, ...]:
    """Return all operations that `outputs` depend on, producers before consumers.

    The placeholders of a scan's states are left out: they are not inputs of the program.

    Parameters
    ----------
    outputs : iterable of Tensor
        The tensors; the operations that define them are included.

    Returns
    -------
    tuple of Operation

    Examples
    --------
    >>> from dlcompiler import te
    >>> A = te.placeholder((4,), name="A")
    >>> te.post_order([te.compute((4,), lambda i: A[i] + 1, name="B")])
    (placeholder(A), compute(B))
    """
    order = _visited(outputs)
    states = {state.op for op in order if isinstance(op, ScanOp) for state in op.states}
    return tuple(op for op in order if op not in states)


def outside_cells(order: Iterable[Operation]) -> tuple[Operation, ...]:
    """Return operations without those in the cells of scans."""
    order = tuple(order)
    inside = {op for scan in order if isinstance(scan, ScanOp) for op in scan.cell}
    return tuple(op for op in order if op not in inside)


def _cell(updates: Sequence[Tensor], states: Sequence[Tensor]) -> tuple[Operation, ...]:
    """Return the operations of one step: the updates, and all others that depend on a state."""
    made = set(states)
    last = {update.op for update in updates}
    cell: list[Operation] = []
    for op in _visited(updates):
        if op in last or made.intersection(op.input_tensors):
            made.update(op.outputs)
            cell.append(op)
    return tuple(cell)


def _visited(outputs: Iterable[Tensor]) -> tuple[Operation, ...]:
    order: dict[Operation, None] = {}
    visiting: list[tuple[Operation, bool]] = [(t.op, False) for t in reversed(list(outputs))]
    while visiting:
        op, done = visiting.pop()
        if op in order:
            continue
        if done:
            order[op] = None
            continue
        visiting.append((op, True))
        visiting.extend((t.op, False) for t in reversed(op.input_tensors))
    return tuple(order)
