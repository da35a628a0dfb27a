"""Statements of one function: loops, conditions, assignments, allocations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from dlcompiler import dtypes
from dlcompiler.codegen.llvm import assertions, memory, parallel
from dlcompiler.codegen.llvm.addresses import span
from dlcompiler.codegen.llvm.expressions import Expressions
from dlcompiler.codegen.llvm.types import memory_type, value_type
from dlcompiler.codegen.llvm.writer import Function
from dlcompiler.errors import InternalError
from dlcompiler.ir import (
    Allocate,
    Assert,
    Buffer,
    Const,
    For,
    If,
    Let,
    Prefetch,
    Seq,
    Stmt,
    Store,
    extent_expr,
    extent_product,
)

STACK_BYTES = 16 * 1024
"""What the buffers of one function may take of the stack; the others are on the heap."""

ALIGNMENT = 64
"""Of every buffer that the generated code allocates [byte]."""


class Statements:
    """Writes the statements of one function.

    Parameters
    ----------
    w
        The function to append to.
    lines
        The line of each statement in the printed function, by ``id``.
    is_outlined
        Whether this is the body of a parallel loop, in which others run serially.
    """

    def __init__(self, w: Function, lines: Mapping[int, int], *, is_outlined: bool) -> None:
        self.w = w
        self.lines = lines
        self.is_outlined = is_outlined
        self.expressions = Expressions(w)
        self.status: str | None = None
        """Where the number of an assertion that fails goes."""
        self._stack_bytes = 0
        self._blocks: list[str] = []

    def write(self, stmt: Stmt) -> None:
        """Append a statement."""
        match stmt:
            case Seq(statements):
                self._sequence(statements)
            case Store():
                self._start(stmt)
                self.expressions.store(stmt)
            case For():
                self._for(stmt)
            case If():
                self._if(stmt)
            case Allocate(buffer, body):
                self._start(stmt)
                if buffer.is_static:
                    self._allocate(buffer)
                    self.write(body)
                else:
                    self._allocate_here(stmt)
            case Let(var, value, body):
                self._start(stmt)
                self.expressions.variables[var] = self.expressions.value(value)
                self.write(body)
            case Assert():
                self._assert(stmt)
            case Prefetch():
                self._start(stmt)
                memory.prefetch(self.expressions.addresses, stmt)
            case _:
                raise InternalError(
                    "generate LLVM code", f"unknown statement {type(stmt).__name__}"
                )

    def _sequence(self, statements: Sequence[Stmt]) -> None:
        """Append statements; the loads of plain stores in a row are looked at together."""
        for is_plain, run in groupby(statements, _is_plain_store):
            members = list(run)
            if is_plain:
                self._start(members[0])
                self.expressions.start_run([store for store in members if isinstance(store, Store)])
            for statement in members:
                self.write(statement)
            self.expressions.start_run(())

    def _start(self, stmt: Stmt) -> None:
        self.expressions.start_statement()
        self.w.at(self.lines.get(id(stmt), 0))

    # -- control flow -------------------------------------------------------------------------

    def _for(self, stmt: For) -> None:
        self._start(stmt)
        extent = stmt.extent.value if isinstance(stmt.extent, Const) else None
        if extent is not None and extent <= 0:
            return
        if extent == 1:
            self.expressions.variables[stmt.var] = "0"
            self.write(stmt.body)
            return
        operand = self.expressions.value(stmt.extent)
        if stmt.kind == "parallel" and not self.is_outlined:
            self._launch(stmt, operand)
        else:
            self.loop(stmt, "0", operand, runs_once=extent is not None)

    def loop(self, stmt: For, begin: str, end: str, *, runs_once: bool) -> None:
        """Append the iterations of `stmt` from `begin` to below `end`.

        Parameters
        ----------
        stmt
            The loop; its kind does not matter.
        begin, end
            Operands.
        runs_once
            Whether there is at least one iteration for certain.
        """
        w, name = self.w, stmt.var.name
        variable = f"%{w.name(name)}"
        head, done = w.name(f"{name}.loop"), w.name(f"{name}.end")
        if runs_once:
            w.jump(head)
        else:
            w.branch(w.pure(f"icmp slt i64 {begin}, {end}"), head, done)
        before = w.block
        w.open(head)
        phi = w.reserve()
        self.expressions.variables[stmt.var] = variable
        self.write(stmt.body)
        self._start(stmt)
        following = w.value(f"add nuw nsw i64 {variable}, 1")
        w.fill(phi, f"{variable} = phi i64 [ {begin}, %{before} ], [ {following}, %{w.block} ]")
        w.branch(w.pure(f"icmp slt i64 {following}, {end}"), head, done)
        w.open(done)

    def _launch(self, stmt: For, extent: str) -> None:
        """Append the launch of a parallel loop, and add its body to the module."""
        w, scope = self.w, self.expressions
        symbol = f"{w.symbol}.parallel.{len(w.module.functions) // 2}"
        line = self.lines.get(id(stmt), 0)
        inner = Statements(Function(w.module, f"{symbol}.body", line), self.lines, is_outlined=True)
        limit = f"i64 range(i64 0, {int(extent) + 1})" if extent.isdigit() else "i64"
        begin, end = inner.w.parameter("begin", limit), inner.w.parameter("end", limit)

        types, operands = [], []
        captured = parallel.captures(stmt)
        for buffer in captured.buffers:
            parameter = inner.w.parameter(buffer.name, parallel.buffer_parameter(buffer))
            inner.expressions.addresses.pointers[buffer] = parameter
            types.append("ptr")
            operands.append(scope.addresses.pointers[buffer])
        for variable in captured.variables:
            type_ = value_type(variable.dtype)
            inner.expressions.variables[variable] = inner.w.parameter(variable.name, type_)
            types.append(type_)
            operands.append(scope.variables[variable])

        if assertions.are_in(stmt.body):
            assert self.status is not None
            inner.status = inner.w.parameter("status", "ptr noalias")
            types.append("ptr")
            operands.append(self.status)
            inner.leave_if_failed()
        inner.loop(stmt, begin, end, runs_once=False)
        w.module.functions.append(inner.w.finished("internal", "noinline nounwind"))
        parallel.write_entry(w.module, symbol, line, types)
        parallel.write_launch(w, symbol, extent, types, operands)
        if inner.status is not None:
            self.leave_if_failed()

    def _if(self, stmt: If) -> None:
        w = self.w
        self._start(stmt)
        condition = self.expressions.value(stmt.condition)
        then, end = w.name("then"), w.name("endif")
        otherwise = end if stmt.otherwise is None else w.name("else")
        w.branch(condition, then, otherwise)
        for label, body in ((then, stmt.then), (otherwise, stmt.otherwise)):
            if body is None:
                continue
            w.open(label)
            self.write(body)
            self._start(stmt)
            w.jump(end)
        w.open(end)

    # -- assertions ---------------------------------------------------------------------------

    def _assert(self, stmt: Assert) -> None:
        self._start(stmt)
        assert self.status is not None
        condition = self.expressions.value(stmt.condition)
        holds = assertions.write(self.w, condition, self.status, stmt.message)
        self._leave()
        self.w.open(holds)

    def leave_if_failed(self) -> None:
        """Append a return for when an assertion has failed elsewhere."""
        assert self.status is not None
        holds = assertions.write_look(self.w, self.status)
        self._leave()
        self.w.open(holds)

    def _leave(self) -> None:
        """End the block with the end of the function, where nothing may stay allocated."""
        for pointer in self._blocks:
            self.w.effect(self._release(pointer))
        self.w.leave()

    # -- buffers ------------------------------------------------------------------------------

    def _allocate(self, buffer: Buffer) -> None:
        """Provide memory in the prologue: its size is fixed, so one block serves all iterations.

        It serves the copies of an unrolled or partitioned loop, too.
        """
        if buffer in self.expressions.addresses.pointers:
            return
        w, elements = self.w, max(span(buffer), 1)
        size = elements * dtypes.bytes_of(buffer.dtype)
        pointer = f"%{w.name(buffer.name)}"
        if self._stack_bytes + size <= STACK_BYTES:
            self._stack_bytes += size
            array = f"[{elements} x {memory_type(buffer.dtype)}]"
            w.prologue(f"{pointer} = alloca {array}, align {ALIGNMENT}")
        else:
            rounded = -(-size // ALIGNMENT) * ALIGNMENT
            w.prologue(f"{pointer} = {self._heap_block(str(rounded))}")
            w.epilogue(self._release(pointer))
        self.expressions.addresses.pointers[buffer] = pointer

    def _allocate_here(self, stmt: Allocate) -> None:
        """Provide memory around the body only: its size is known when the program gets there."""
        w, buffer = self.w, stmt.buffer
        count = extent_product((*buffer.shape[:1], *buffer.strides[:1]))
        elements = self.expressions.value(extent_expr(count))
        size = w.pure(f"mul nsw i64 {elements}, {dtypes.bytes_of(buffer.dtype)}")
        padded = w.pure(f"add nsw i64 {size}, {2 * ALIGNMENT - 1}")  # never 0 bytes
        rounded = w.pure(f"and i64 {padded}, {-ALIGNMENT}")
        pointer = w.value(self._heap_block(rounded))
        self.expressions.addresses.pointers[buffer] = pointer
        self._blocks.append(pointer)
        self.write(stmt.body)
        self._blocks.pop()
        self._start(stmt)
        w.effect(self._release(pointer))

    def _heap_block(self, size: str) -> str:
        """Return the call that allocates `size` bytes."""
        type_ = self.w.module.size_type
        if type_ != "i64" and not size.isdigit():
            size = self.w.pure(f"trunc i64 {size} to {type_}")
        declared = f"{type_}, {type_}"
        allocate = self.w.module.declare("aligned_alloc", "noalias ptr", declared, "nounwind")
        return f"call align {ALIGNMENT} ptr {allocate}({type_} {ALIGNMENT}, {type_} {size})"

    def _release(self, pointer: str) -> str:
        """Return the call that frees a block."""
        free = self.w.module.declare("free", "void", "ptr", "nounwind")
        return f"call void {free}(ptr {pointer})"


def _is_plain_store(stmt: Stmt) -> bool:
    return isinstance(stmt, Store) and stmt.predicate is None
