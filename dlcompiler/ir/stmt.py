"""Statements of the loop IR, buffers, and the origin that links them to schedule steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from dlcompiler import dtypes
from dlcompiler.errors import ExpressionError, InternalError, as_template, filled
from dlcompiler.ir.expr import (
    Expr,
    Extent,
    Load,
    Ramp,
    Var,
    as_expr,
    as_index,
    binary,
    index_const,
    node,
)
from dlcompiler.ir.operations import BinaryOp, fold_index

ThreadTag: TypeAlias = Literal[
    "blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z", "vthread"
]
LoopKind: TypeAlias = Literal["serial", "parallel", "vectorized", "unrolled"] | ThreadTag

THREADS: tuple[ThreadTag, ...] = get_args(ThreadTag)
"""Kinds of loops whose iterations are blocks of a launch, or threads, some of them virtual."""


Mode: TypeAlias = Literal["r", "w", "rw", ""]
"""Access of a call to a region: read, write or both; '' is not declared yet."""
CallConvention: TypeAlias = Literal["packed", "c"]

SHARED = "shared"
"""The memory that the threads of a block share."""


WARP = "warp"
"""Registers of the threads of a warp, along x, which read them from each other."""
SHARED_SCOPES = SHARED, WARP
"""Scopes in which threads of a block read values that other threads wrote."""


def is_sharer(scope: str, kind: str) -> bool:
    """Tell whether the threads of a loop of this kind share memory of this scope."""
    if scope == WARP:
        return kind == "threadIdx.x"
    return scope == SHARED and is_in_block(kind)


def is_thread(kind: str) -> bool:
    """Tell whether a loop of this kind is bound to a thread axis of a device."""
    return kind in THREADS


def is_in_block(kind: str) -> bool:
    """Tell whether iterations of a loop of this kind are threads of one block."""
    return kind.startswith("threadIdx") or kind == "vthread"


def is_concurrent(kind: str) -> bool:
    """Tell whether iterations of a loop of this kind may run in any order or concurrently."""
    return kind in ("parallel", "vectorized") or kind in THREADS


PART = "(part)"
"""In place of an axis in the origin of a store: it is a step of a reduction that threads share."""


@dataclass(frozen=True, slots=True)
class StepRef:
    """The origin of a piece of the program: a stage or one of its axes, in a schedule state.

    `axis` is the path of the axis in its stage (``i.outer``), or '' for the stage itself.
    """

    state: str
    stage: str
    axis: str = ""

    def __str__(self) -> str:
        return f"{self.stage}.{self.axis}" if self.axis else self.stage


Origin: TypeAlias = tuple[StepRef, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A block of memory with a shape.

    `strides` counts elements per step of each dimension. `scope` names the memory
    (``global``, ``local`` …); `alignment` is in bytes. An extent is a number where it is known,
    else an expression of the function's symbols. If the buffer is bound to a part of another one,
    the offset of that part is a multiple of `offset_factor` elements; 0 for any offset.
    `separators` split the dimensions into groups, each of which is one dimension of the memory:
    ``[2, 8 | 4]`` has a separator at 2. Without separators the memory has one dimension.
    """

    name: str
    shape: tuple[Extent, ...]
    dtype: str
    scope: str = "global"
    strides: tuple[Extent, ...] = ()
    alignment: int = 64
    offset_factor: int = 0
    separators: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.strides:
            object.__setattr__(self, "strides", compact_strides(self.shape))

    @property
    def size(self) -> Extent:
        """Number of elements: the product of the shape."""
        return extent_product(self.shape)

    @property
    def is_static(self) -> bool:
        """Tell whether shape and strides are numbers."""
        return all(isinstance(extent, int) for extent in (*self.shape, *self.strides))

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape; raises an error unless all extents are numbers."""
        return static(self.shape, self.name)

    @property
    def static_strides(self) -> tuple[int, ...]:
        """The strides; raises an error unless all are numbers."""
        return static(self.strides, self.name)

    @property
    def data(self) -> Buffer:
        """The buffer itself: what classic code passes for the pointer of a call."""
        return self

    @property
    def elem_offset(self) -> Var:
        """A symbol for the offset of a part of memory that the buffer is bound to; [elements]."""
        return Var(f"{self.name}.elem_offset", is_symbol=True)

    def region(self, indices: Sequence[Any], extents: Sequence[Any], mode: Mode = "") -> Region:
        """Return the rectangular region that begins at `indices`, for an external call."""
        where = f"region of {self.name}"
        starts = self._places(indices, where)
        sizes = tuple(as_index(extent, where) for extent in extents)
        if len(sizes) != len(self.shape):
            raise ExpressionError(
                where, "wrong number of extents", got=len(sizes), expected=len(self.shape)
            )
        if mode not in get_args(Mode):
            raise ExpressionError(
                where, "no such access", got=repr(mode), expected="'r', 'w' or 'rw'"
            )
        return Region(self, starts, sizes, mode)

    def access_ptr(
        self,
        access_mask: str | int,
        ptr_type: str = "handle",
        content_lanes: int = 1,
        offset: Any = 0,
        extent: Any = None,
    ) -> Region:
        """Return the argument of an external call: a pointer to elements of the buffer.

        Parameters
        ----------
        access_mask : {"r", "w", "rw"}
            What the call does with the elements: reads, writes or both; in any order of letters.
        ptr_type
            Accepted for classic code; a pointer has no type here.
        content_lanes : 1
            Lanes of an element.
        offset : int or Expr
            Number of the first element; only for a buffer of one dimension. [1]
        extent : int or Expr, optional
            Number of elements that the call may access; by default all from `offset` on. [1]
        """
        del ptr_type
        where = f"access_ptr of {self.name}"
        masks: dict[Any, Mode] = {"r": "r", "w": "w", "rw": "rw", 1: "r", 2: "w", 3: "rw"}
        if isinstance(access_mask, str):
            access_mask = "".join(sorted(set(access_mask)))
        mode = masks.get(access_mask)
        if content_lanes != 1:
            raise ExpressionError(where, "content_lanes other than 1 is not supported")
        is_whole = extent is None and isinstance(offset, int) and offset == 0
        if mode is None:
            raise ExpressionError(
                where, "no such access", got=repr(access_mask), expected="'r', 'w' or 'rw'"
            )
        if not is_whole and len(self.shape) != 1:
            raise ExpressionError(
                where, "an offset or an extent is for a buffer of one dimension",
                got=f"shape {self.shape}",
                hint=f"name a box: {self.name}.region(indices, extents, {mode!r})",
            )  # fmt: skip
        if is_whole:
            return self.region([0] * len(self.shape), self.shape, mode)
        rest = extent_binary("sub", self.shape[0], offset) if extent is None else extent
        return self.region((offset,), (rest,), mode)

    def vload(self, begin: Any, dtype: str | None = None) -> Load:
        """Return the load of the element at `begin`, or of a vector that begins there."""
        return Load(self, self._lanes_at(begin, dtype or self.dtype))

    def vstore(self, begin: Any, value: Any) -> Store:
        """Return the store of `value`, a scalar or a vector, at `begin`."""
        expr = as_expr(value, self.dtype)
        return Store(self, self._lanes_at(begin, expr.dtype), expr)

    def _lanes_at(self, begin: Any, dtype: str) -> tuple[Expr, ...]:
        where = f"index {self.name}"
        if dtypes.element(dtype) != self.dtype:
            raise ExpressionError(
                where, "not the dtype of its elements", got=dtype, expected=self.dtype
            )
        items = tuple(begin) if isinstance(begin, list | tuple) else (begin,)
        indices = self._places(items, where)
        lanes = dtypes.lanes(dtype)
        if lanes == 1:
            return indices
        return (*indices[:-1], Ramp(indices[-1], index_const(1), lanes))

    def _places(self, indices: Sequence[Any], where: str) -> tuple[Expr, ...]:
        if len(indices) != len(self.shape):
            raise ExpressionError(
                where,
                "wrong number of indices",
                got=len(indices),
                expected=f"{len(self.shape)}, one for each dimension of {self.shape}",
            )
        return tuple(as_index(index, where) for index in indices)


@node
class Region(Expr):
    """A rectangular region of a buffer that begins at `indices`: an argument of an external call.

    It cannot be an operand of arithmetic. Its dtype is that of the elements.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    extents: tuple[Expr, ...]
    mode: Mode
    dtype: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.buffer.dtype)

    @property
    def is_read(self) -> bool:
        """Tell whether the call reads the region."""
        return "r" in self.mode

    @property
    def is_written(self) -> bool:
        """Tell whether the call writes the region; if it does not read it, it writes all of it."""
        return "w" in self.mode


def static(extents: tuple[Extent, ...], name: str) -> tuple[int, ...]:
    """Return the extents of the buffer `name`; raise an error unless all are numbers."""
    numbers = tuple(extent for extent in extents if isinstance(extent, int))
    if len(numbers) != len(extents):
        raise InternalError(
            f"shape of {name}", "it is known only when the program runs",
            got=f"({', '.join(map(str, extents))})",
        )  # fmt: skip
    return numbers


def is_one(extent: Extent) -> bool:
    """Tell whether an extent is the number 1; one with symbols is not known to be."""
    return isinstance(extent, int) and extent == 1


def extent_product(extents: Iterable[Extent]) -> Extent:
    """Return the product of extents: a number if all are numbers, else an expression."""
    size: Extent = 1
    for extent in extents:
        size = extent_binary("mul", size, extent)
    return size


def extent_binary(op: BinaryOp, a: Extent, b: Extent) -> Extent:
    """Compute ``a op b`` of extents: a number if both are numbers, else an expression."""
    if isinstance(a, int) and isinstance(b, int):
        return fold_index(op, a, b)
    if op == "mul" and isinstance(a, int) and a in (0, 1):
        return b if a else 0
    if op == "mul" and isinstance(b, int) and b in (0, 1):
        return a if b else 0
    if op == "floordiv" and isinstance(b, int) and b == 1:
        return a
    return binary(op, extent_expr(a), extent_expr(b))


def extent_expr(extent: Extent) -> Expr:
    """Return an extent as an expression of dtype ``index``."""
    return index_const(extent) if isinstance(extent, int) else extent


def compact_strides(shape: tuple[Extent, ...]) -> tuple[Extent, ...]:
    """Return the row-major strides of `shape`, in elements."""
    strides: list[Extent] = []
    step: Extent = 1
    for extent in reversed(shape):
        strides.append(step)
        step = extent_binary("mul", step, extent)
    return tuple(reversed(strides))


class Stmt:
    """A statement node."""

    __slots__ = ()


@node
class For(Stmt):
    """A loop: `var` takes 0, 1, … `extent` - 1."""

    var: Var
    extent: Expr
    kind: LoopKind
    body: Stmt
    origin: Origin = ()
    annotations: tuple[tuple[str, int | str], ...] = ()
    """Pragmas: (name, value), which passes and code generators may use."""


@node
class Store(Stmt):
    """An assignment to one element (or, with vector indices, several) of a buffer.

    Under a `predicate`, a vector of conditions, only the lanes where it holds are written.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    origin: Origin = ()
    predicate: Expr | None = None


@node
class If(Stmt):
    """A conditional statement."""

    condition: Expr
    then: Stmt
    otherwise: Stmt | None = None


@node
class Seq(Stmt):
    """Statements one after another."""

    statements: tuple[Stmt, ...]


class Window(NamedTuple):
    """The part of a tensor that a rolling buffer holds; it moves with each iteration."""

    var: Var
    """Variable of the loop."""
    steps: tuple[int, ...]
    """Distance by which it moves in each dimension; exactly one is not 0; [elements]."""


@node
class Allocate(Stmt):
    """A buffer that lives while `body` runs; its contents start undefined.

    `double` is the variable of a loop for double buffering: one copy is filled for the next
    iteration while the other is read. `window` describes a rolling buffer, which keeps values that
    the next iteration reuses.
    """

    buffer: Buffer
    body: Stmt
    origin: Origin = ()
    double: Var | None = None
    window: Window | None = None


@node
class Let(Stmt):
    """A value computed once: `var` stands for it in `body`."""

    var: Var
    value: Expr
    body: Stmt


@node
class Prefetch(Stmt):
    """A hint to load an element into the cache; it reads nothing, and the index may be outside."""

    buffer: Buffer
    indices: tuple[Expr, ...]


@node
class Assert(Stmt):
    """A condition that must hold here; otherwise the program stops with `message`.

    With `values`, indices that are reported, the message is a template for `errors.filled`.
    """

    condition: Expr
    message: str
    values: tuple[Expr, ...] = ()

    @property
    def text(self) -> str:
        """The message, with the expressions of its values."""
        return filled(self.message, self.values) if self.values else self.message

    @property
    def template(self) -> str:
        """The message as a template, into which the values are filled."""
        return self.message if self.values else as_template(self.message)


@node
class Barrier(Stmt):
    """A barrier: each thread of a block waits until all have reached it.

    Writes to shared memory before the barrier are visible to all threads after it.
    """


@node
class ExternCall(Stmt):
    """A call of an external function; its regions declare what it reads and writes.

    `name` is a function of Python that the process has registered (`packed`, which gets arrays and
    numbers), or one of C (`c`, which gets pointers and numbers; its result is dropped).
    """

    name: str
    convention: CallConvention
    args: tuple[Expr, ...]
    origin: Origin = ()

    @property
    def regions(self) -> tuple[Region, ...]:
        """The arguments that are regions of buffers."""
        return tuple(arg for arg in self.args if isinstance(arg, Region))


def seq(statements: Iterable[Stmt]) -> Stmt:
    """Join statements, flattening nested sequences."""
    flat: list[Stmt] = []
    for statement in statements:
        flat.extend(statement.statements if isinstance(statement, Seq) else (statement,))
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))
