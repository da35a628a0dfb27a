"""Build loop IR statement by statement from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from dlcompiler.errors import ExpressionError
from dlcompiler.ir.expr import (
    Call,
    Const,
    Expr,
    Extent,
    Load,
    Var,
    as_expr,
    as_index,
    binary,
    cast,
    condition,
)
from dlcompiler.ir.externs import decl_buffer
from dlcompiler.ir.names import checked_label
from dlcompiler.ir.stmt import (
    THREADS,
    Allocate,
    Buffer,
    For,
    If,
    Let,
    LoopKind,
    Mode,
    Region,
    Seq,
    Stmt,
    Store,
    extent_binary,
    extent_expr,
    seq,
)

KINDS: dict[str, LoopKind] = {
    "serial": "serial",
    "parallel": "parallel",
    "vectorize": "vectorized",
    "vectorized": "vectorized",
    "unroll": "unrolled",
    "unrolled": "unrolled",
    **{tag: tag for tag in THREADS},
}
"""Kind of a loop as a user writes it -> as the loop IR names it."""
Wrap: TypeAlias = Callable[[Stmt], Stmt]


class BufferView:
    """A buffer whose elements are read by ``b[i, j]`` and written by ``b[i, j] = value``.

    A single index into a buffer of several dimensions counts its elements in row-major order.
    """

    __slots__ = ("_builder", "buffer")

    def __init__(self, builder: Builder, buffer: Buffer) -> None:
        self._builder = builder
        self.buffer = buffer
        """The buffer that is read and written."""

    @property
    def dtype(self) -> str:
        """Type of an element."""
        return self.buffer.dtype

    @property
    def shape(self) -> tuple[Extent, ...]:
        """Extent of each dimension."""
        return self.buffer.shape

    def __getitem__(self, indices: Any) -> Load:
        return Load(self.buffer, self._places(indices))

    def __setitem__(self, indices: Any, value: Any) -> None:
        places = self._places(indices)
        expr = as_expr(value, self.dtype)
        if expr.dtype == "index":
            expr = cast(expr, self.dtype)
        if expr.dtype != self.dtype:
            raise ExpressionError(
                f"store to {self.buffer.name}", "the value has another dtype",
                got=f"{expr} ({expr.dtype})", expected=self.dtype,
                hint=f"convert it: value.astype('{self.dtype}')",
            )  # fmt: skip
        self._builder.emit(Store(self.buffer, places, expr))

    def access_ptr(self, access_mask: str | int, **options: Any) -> Region:
        """Return an argument for an external call; see `Buffer.access_ptr`."""
        return self.buffer.access_ptr(access_mask, **options)

    def region(self, indices: Sequence[Any], extents: Sequence[Any], mode: Mode = "") -> Region:
        """Return a rectangular region as an argument of an external call; see `Buffer.region`."""
        return self.buffer.region(indices, extents, mode)

    def _places(self, indices: Any) -> tuple[Expr, ...]:
        where = f"index {self.buffer.name}"
        items = tuple(indices) if isinstance(indices, list | tuple) else (indices,)
        if len(items) == 1 and len(self.shape) > 1:
            return self._unraveled(as_index(items[0], where))
        if len(items) != len(self.shape):
            raise ExpressionError(
                where, "wrong number of indices", got=len(items),
                expected=f"1, or {len(self.shape)}: one for each dimension of {self.shape}",
            )  # fmt: skip
        return tuple(as_index(item, where) for item in items)

    def _unraveled(self, flat: Expr) -> tuple[Expr, ...]:
        """Return the indices of element number `flat`, counted in row-major order."""
        places: list[Expr] = []
        for extent in reversed(self.shape[1:]):
            places.append(binary("floormod", flat, extent_expr(extent)))
            flat = binary("floordiv", flat, extent_expr(extent))
        return (flat, *reversed(places))

    def __repr__(self) -> str:
        return f"BufferView({self.buffer.name}: {self.dtype}{list(self.shape)})"


class Builder:
    """Collects statements; ``with`` opens loops and conditions around them.

    Examples
    --------
    >>> ib = Builder()
    >>> A = ib.buffer_ptr(decl_buffer((8,), "int32", name="A"))
    >>> with ib.for_range(0, 8, name="i") as i:
    ...     with ib.if_scope(i < 4):
    ...         A[i] = A[i] + 1
    ...     with ib.else_scope():
    ...         A[i] = 0
    >>> loop = ib.get()
    """

    def __init__(self) -> None:
        self._open: list[list[Stmt | Wrap]] = [[]]
        self._names: set[str] = set()

    @contextmanager
    def for_range(
        self,
        begin: Any,
        end: Any,
        name: str = "i",
        dtype: str = "int32",
        kind: str = "serial",
        *,
        for_type: str | None = None,
    ) -> Iterator[Expr]:
        """Open a loop from `begin` to below `end`, and return its variable.

        Parameters
        ----------
        begin, end : int or Expr
            The first value, and one more than the last; with ``begin >= end`` nothing runs.
        name : str
            Name of the loop.
        dtype : str
            Accepted for classic code; the value is an index.
        kind : {"serial", "parallel", "vectorize", "unroll", "threadIdx.x", …}
            How it runs; `for_type` is its older name.
        """
        del dtype
        where = f"for_range {name}"
        chosen = for_type or kind
        if chosen not in KINDS:
            raise ExpressionError(
                where, "no such kind of loop", got=repr(chosen),
                expected="'serial', 'parallel', 'vectorize' or 'unroll'",
            )  # fmt: skip
        first, last = _extent(begin, where), _extent(end, where)
        var = Var(self._unique(name))
        with self._scope() as body:
            yield var if isinstance(first, int) and first == 0 else binary("add", var, first)
        count = extent_binary("sub", last, first)
        if isinstance(count, int):
            count = max(count, 0)
        self._open[-1].append(For(var, extent_expr(count), KINDS[chosen], _body(body)))

    @contextmanager
    def if_scope(self, cond: Any) -> Iterator[None]:
        """Open a block that runs only if a condition holds."""
        test = condition(cond, "if_scope")
        with self._scope() as body:
            yield
        self._open[-1].append(If(test, _body(body)))

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """Open a block that runs if the condition of the preceding `if_scope` does not hold."""
        last = self._open[-1][-1] if self._open[-1] else None
        if not isinstance(last, If) or last.otherwise is not None:
            raise ExpressionError("else_scope", "no if_scope stands directly before it")
        self._open[-1].pop()
        with self._scope() as body:
            yield
        self._open[-1].append(If(last.condition, last.then, _body(body)))

    def allocate(
        self, dtype: Any, shape: Any, name: str = "buf", scope: str | None = None
    ) -> BufferView:
        """Allocate memory for the statements that follow in this scope.

        Parameters
        ----------
        dtype : str
            Type of an element.
        shape : int or tuple of int
            Extent of each dimension; [1].
        name : str
            Name of the buffer.
        scope : {"global", "local"}
            Memory.
        """
        if scope not in (None, "", "global", "local"):
            raise ExpressionError(
                f"allocate {name}", "no such memory", got=repr(scope),
                expected="'global' or 'local'",
            )  # fmt: skip
        buffer = decl_buffer(shape, dtype, self._unique(name), scope=scope or "global")
        self._open[-1].append(lambda body: Allocate(buffer, body))
        return BufferView(self, buffer)

    def buffer_ptr(self, buffer: Any, shape: Any = None) -> BufferView:
        """Return a view of a buffer whose elements can be read and written.

        `shape`, if given, must be the shape of the buffer.
        """
        if not isinstance(buffer, Buffer):
            raise ExpressionError("buffer_ptr", "not a buffer", got=repr(buffer))
        if shape is not None and tuple(shape) != buffer.shape:
            raise ExpressionError(
                f"buffer_ptr {buffer.name}", "another shape is not supported", got=repr(shape),
                expected=repr(buffer.shape),
            )  # fmt: skip
        return BufferView(self, buffer)

    def let(self, name: str, value: Any) -> Var:
        """Return a variable that holds a value in the statements that follow in this scope."""
        expr = as_expr(value)
        var = Var(self._unique(name), expr.dtype)
        self._open[-1].append(lambda body: Let(var, expr, body))
        return var

    def likely(self, expr: Any) -> Expr:
        """Return a condition with the hint that it nearly always holds."""
        return Call("likely", (condition(expr, "likely"),), "bool")

    def emit(self, stmt: Any) -> None:
        """Append a statement: an external call, or the result of another builder."""
        if not isinstance(stmt, Stmt):
            raise ExpressionError(
                "emit", "not a statement", got=str(stmt), expected="a call, or what get() returns"
            )
        self._open[-1].append(stmt)

    def get(self) -> Stmt:
        """Return all statements.

        Raises
        ------
        ExpressionError
            If a scope is still open.
        """
        if len(self._open) > 1:
            raise ExpressionError("get", "a scope is still open", hint="call it after the with")
        return _body(self._open[0])

    @contextmanager
    def _scope(self) -> Iterator[list[Stmt | Wrap]]:
        body: list[Stmt | Wrap] = []
        self._open.append(body)
        try:
            yield body
        finally:
            self._open.pop()

    def _unique(self, name: str) -> str:
        candidate, number = checked_label(name, "ir_builder"), 0
        while candidate in self._names:
            number += 1
            candidate = f"{name}_{number}"
        self._names.add(candidate)
        return candidate


def _body(entries: Sequence[Stmt | Wrap]) -> Stmt:
    """Join statements; an allocation or a `let` contains all statements after it."""
    following: list[Stmt] = []
    for entry in reversed(entries):
        following = [entry, *following] if isinstance(entry, Stmt) else [entry(seq(following))]
    return seq(following) if following else Seq(())


def _extent(value: Any, where: str) -> Extent:
    expr = as_index(value, where)
    return int(expr.value) if isinstance(expr, Const) else expr
